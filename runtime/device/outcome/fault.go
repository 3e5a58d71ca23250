package outcome

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"golang.org/x/sys/unix"
)

// Fault is a failed read or write with its circumstances.
type Fault struct {
	Path     string
	Write    bool
	Want     string      // of a write
	Offered  []string    // choices the kernel prints for the node, if it does
	Mode     fs.FileMode // permissions of the node, 0 if unknown
	Root     bool        // this process is root
	Lacks    []string    // capabilities that this process lacks
	Range    string      // accepted range, "0 to 200"; "" if unknown
	Against  string      // state of a node that limits this one: "policy0 scaling_min_freq is 729600"
	Lockdown string      // the kernel's lockdown mode, "" for none
	Holder   string      // what uses the node, "" if unknown
	Offline  bool        // the node is of a CPU that is offline
	Err      error
}

// Explain returns the outcome of a fault and a message with the node, the wanted value, the
// cause and, if possible, the remedy.
//
// It follows the kernel's behaviour, which differs from its documentation: ENOENT from a
// write to an existing file reports an unknown value, EIO from an interrupt that its affinity
// is fixed, and EACCES for root that the node is read-only.
func Explain(f Fault) (Outcome, string) {
	for _, explain := range []func(Fault) (Outcome, string){
		explainRejected, explainMissing, explainValue, explainPermission, explainBusy,
	} {
		if o, text := explain(f); o != "" {
			return o, Name(f.Path) + ": " + text
		}
	}
	return Refused, fmt.Sprintf("%s: %s", Name(f.Path), rootCause(f.Err))
}

func (f Fault) isAny(targets ...error) bool {
	for _, t := range targets {
		if errors.Is(f.Err, t) {
			return true
		}
	}
	return false
}

// explainRejected explains errors of this program, and nodes that do not answer.
func explainRejected(f Fault) (Outcome, string) {
	switch {
	case f.isAny(rootfs.ErrPath, rootfs.ErrForbidden):
		return Forbidden, rootCause(f.Err).Error()
	case f.isAny(rootfs.ErrEmpty):
		return Refused, rootfs.ErrEmpty.Error()
	case f.isAny(context.DeadlineExceeded):
		return Stale, "the kernel did not answer in time; the device behind the node may hang"
	case f.isAny(unix.EAGAIN):
		return Stale, "the node has no value (EAGAIN) after several attempts"
	case f.isAny(unix.EISDIR, rootfs.ErrNotFile):
		return Unsupported, "not a file"
	}
	return "", ""
}

// explainMissing explains absent nodes, and values that an existing node does not have.
func explainMissing(f Fault) (Outcome, string) {
	switch {
	case f.isAny(unix.ENOENT) && f.Write && !isMissing(f.Err):
		text := fmt.Sprintf("%q is unknown to the kernel", knob.Clip(f.Want))
		if m := knob.ModuleOfValue(f.Path, f.Want); m != "" {
			text += "; load module " + m
		}
		return Refused, text
	case f.isAny(unix.ENOENT) && path.Base(f.Path) == "xps_cpus" && !isMissing(f.Err):
		return Unsupported, "the interface has a single transmit queue, which every CPU uses"
	case f.isAny(unix.ENOENT, unix.ENOTDIR, unix.ENODEV, unix.ENXIO):
		if m := knob.ProvidingModule(f.Path); m != "" {
			return Pending, "waits for module " + m
		}
		return Unsupported, "no such node on this device"
	}
	return "", ""
}

// explainValue explains refused values.
func explainValue(f Fault) (Outcome, string) {
	want := knob.Clip(f.Want)
	switch {
	case f.isAny(unix.EINVAL) && len(f.Offered) > 0 && !contains(f.Offered, f.Want):
		return Refused, describeOffer(f.Want, f.Offered)
	case f.isAny(unix.EINVAL) && f.Range != "":
		return Refused, fmt.Sprintf("kernel refused %s: the range is %s", want, f.Range)
	case f.isAny(unix.EINVAL) && f.Against != "":
		return Refused, fmt.Sprintf("kernel refused %s: out of range, or refused while %s; see that setting", want, f.Against)
	case f.isAny(unix.EINVAL):
		return Refused, fmt.Sprintf("kernel refused %s: out of range, or in conflict with another setting", want)
	case f.isAny(unix.EOVERFLOW, unix.ERANGE, unix.ENOSPC, unix.E2BIG):
		return Refused, want + " exceeds what this device has"
	}
	return "", ""
}

// explainPermission explains writes and reads that are not permitted.
func explainPermission(f Fault) (Outcome, string) {
	switch {
	case f.isAny(unix.EACCES, unix.EPERM) && !f.Root:
		return Forbidden, "needs root"
	case f.isAny(unix.EACCES):
		return Forbidden, describeDenied(f)
	case f.isAny(unix.EPERM) && contains(f.Lacks, Capability(f.Path)):
		return Forbidden, "needs " + Capability(f.Path)
	case f.isAny(unix.EPERM) && f.Lockdown != "":
		return Forbidden, fmt.Sprintf("forbidden by the kernel's lockdown mode (%s)", f.Lockdown)
	case f.isAny(unix.EPERM) && f.Path == "/sys/module/pcie_aspm/parameters/policy":
		return Forbidden, "the kernel does not control PCI Express links here: the firmware keeps them, or pcie_aspm=off was given"
	case f.isAny(unix.EPERM):
		return Forbidden, "not permitted by the kernel: missing capability, lockdown or seccomp filter"
	case f.isAny(unix.EROFS):
		return Forbidden, "mounted read-only (container?)"
	}
	return "", ""
}

// describeDenied explains EACCES for root: the mode of the node, or the namespace.
func describeDenied(f Fault) string {
	perm := f.Mode.Perm()
	switch {
	case f.Write && f.Mode != 0 && perm&0o222 == 0:
		return "read-only node"
	case !f.Write && f.Mode != 0 && perm&0o444 == 0:
		return "write-only: an action, not a setting"
	case strings.HasPrefix(f.Path, "/proc/sys/net/"):
		return "read-only in this network namespace (container?)"
	}
	return "read-only in this namespace (container?)"
}

// explainBusy explains nodes in use, and devices that fail.
func explainBusy(f Fault) (Outcome, string) {
	switch {
	case f.isAny(unix.EBUSY) && f.Holder != "":
		return Busy, "in use " + f.Holder
	case f.isAny(unix.EBUSY):
		return Busy, "in use by a driver or another program"
	case f.isAny(unix.EIO) && strings.HasPrefix(f.Path, "/proc/irq/"):
		return Refused, "affinity is kernel-managed"
	case f.isAny(unix.EIO) && f.Offline:
		return Unsupported, "the CPU is offline"
	case f.isAny(unix.EIO):
		return Refused, "input/output error"
	case f.isAny(unix.EOPNOTSUPP, unix.ENOSYS):
		return Unsupported, "not supported by the driver"
	}
	return "", ""
}

// Capability returns the capability that a write of the node requires (capabilities(7)). The
// nodes of a network namespace require CAP_NET_ADMIN in that namespace.
func Capability(name string) string {
	switch {
	case strings.HasPrefix(name, "/proc/sys/net/"), strings.HasPrefix(name, "/sys/class/net/"):
		return "CAP_NET_ADMIN"
	case strings.HasPrefix(name, rootfs.CgroupDir+"/") && strings.Contains(name, "/tasks/"), rootfs.ThreadOf(name) != "":
		return "CAP_SYS_NICE"
	}
	return "CAP_SYS_ADMIN"
}

// DescribeNotOffered returns the message for a choice that the kernel does not list.
func DescribeNotOffered(path, want string, offered []string) string {
	return Name(path) + ": " + describeOffer(want, offered)
}

func describeOffer(want string, offered []string) string {
	return fmt.Sprintf("%q not offered (%s)", knob.Clip(want), strings.Join(offered, ", "))
}

// DescribeChanged returns the message for a value that the kernel accepted and changed.
func DescribeChanged(path, want, found string) string {
	return fmt.Sprintf("%s: wrote %s, kernel uses %s", Name(path), knob.Clip(want), knob.Clip(found))
}

// DescribeShortage returns the message for huge pages of which the kernel allocated only some.
func DescribeShortage(path, want, found string) string {
	return fmt.Sprintf("%s: %s of %s pages: memory is too fragmented; reserve them at boot with hugepages=", Name(path), thousands(found), thousands(want))
}

// IsPages reports whether the node is a number of huge pages, of which the kernel allocates as
// many as it can.
func IsPages(name string) bool {
	base := path.Base(name)
	return base == "nr_hugepages" || base == "nr_hugepages_mempolicy"
}

// isMissing distinguishes an absent file from an unknown value. Both are ENOENT, but the latter
// is returned by write(2).
func isMissing(err error) bool {
	var pe *rootfs.PathError
	return errors.As(err, &pe) && pe.Op == "find"
}

// rootCause returns the innermost cause.
func rootCause(err error) error {
	var pe *rootfs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func contains(list []string, s string) bool { return slices.Contains(list, strings.TrimSpace(s)) }

// Name returns a short name of a node for the user: "vm.swappiness", "nvme0n1 scheduler",
// "irq 24".
func Name(name string) string {
	if path.Clean(name) != name {
		return name
	}
	if key, ok := knob.SysctlKey(name); ok {
		return key
	}
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	n, last := len(parts), parts[len(parts)-1]
	below := func(dir string, least int) bool { return strings.HasPrefix(name, dir) && n >= least }
	switch {
	case name == rootfs.BannedIRQs:
		return "irqbalance's exclusions"
	case rootfs.IsVirtual(name) && strings.HasPrefix(name, rootfs.CgroupDir):
		return parts[n-3] + " " + last
	case rootfs.IsUnitDir(name):
		return last
	case rootfs.ThreadOf(name) != "":
		return rootfs.ThreadOf(name) + " " + last
	case below("/sys/block/", 4):
		return parts[2] + " " + last
	case below("/sys/", 4) && parts[n-2] == "queue":
		return parts[n-3] + " " + last
	case below("/sys/class/net/", 6):
		return parts[3] + " " + strings.TrimPrefix(strings.Join(parts[4:], "/"), "queues/")
	case below("/sys/class/", 5):
		return parts[3] + " " + last
	case below("/proc/irq/", 3):
		return "irq " + parts[2]
	case below("/sys/devices/system/cpu/", 3):
		return parts[n-2] + " " + last
	}
	return name
}

// thousands groups digits: 2048 → 2,048.
func thousands(s string) string {
	if _, err := strconv.ParseUint(s, 10, 64); err != nil {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
