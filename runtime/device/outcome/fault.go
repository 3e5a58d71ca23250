package outcome

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"golang.org/x/sys/unix"
)

// Fault is a failed read or write and what is known around it.
type Fault struct {
	Path     string
	Write    bool
	Want     string      // of a write
	Offered  []string    // choices the kernel prints for the node, if it does
	Mode     fs.FileMode // permissions of the node, 0 when unknown
	Root     bool        // this process is root
	Lacks    []string    // capabilities that this process does not have
	Range    string      // what the kernel takes, "0 to 200"; "" when unknown
	Against  string      // what else decides whether the value is taken: "policy0 scaling_min_freq is 729600"
	Lockdown string      // the kernel's lockdown mode, "" for none
	Holder   string      // what keeps the node in use, "" when unknown
	Err      error
}

// Explain says what a fault means: the outcome, and a message that names the
// node, what was wanted, the cause, and what to do where something can be done.
//
// The table is that of the kernel as it behaves, not as it is documented: ENOENT
// from a write to a file that exists means an unknown value, EIO from an IRQ
// that it cannot be moved, EACCES for root that nobody may.
func Explain(f Fault) (Outcome, string) {
	name := Name(f.Path)
	is := func(target error) bool { return errors.Is(f.Err, target) }
	switch {
	case is(rootfs.ErrPath), is(rootfs.ErrForbidden):
		return Forbidden, fmt.Sprintf("%s: %s", name, root(f.Err))
	case is(rootfs.ErrEmpty):
		return Refused, fmt.Sprintf("%s: %s", name, rootfs.ErrEmpty)
	case is(context.DeadlineExceeded):
		return Stale, name + ": the kernel did not answer in time; the device behind the node may hang"
	case is(unix.EAGAIN):
		return Stale, name + ": the node has no value (EAGAIN), asked again and again"
	case is(unix.ENOENT) && f.Write && !missing(f.Err):
		msg := fmt.Sprintf("%s: the kernel does not know %q", name, knob.Clip(f.Want))
		if m := knob.ModuleOfValue(f.Path, f.Want); m != "" {
			msg += "; load module " + m
		}
		return Refused, msg
	case is(unix.ENOENT) && path.Base(f.Path) == "xps_cpus" && !missing(f.Err):
		return Unsupported, name + ": the interface has a single transmit queue, which every CPU uses"
	case is(unix.ENOENT), is(unix.ENOTDIR), is(unix.ENODEV), is(unix.ENXIO):
		if m := knob.ProvidingModule(f.Path); m != "" {
			return Pending, fmt.Sprintf("%s: waits for module %s", name, m)
		}
		return Unsupported, name + ": no such node on this device"
	case is(unix.EISDIR), is(rootfs.ErrNotFile):
		return Unsupported, name + ": not a file"
	case is(unix.EINVAL) && len(f.Offered) > 0 && !contains(f.Offered, f.Want):
		return Refused, NotOffered(f.Path, f.Want, f.Offered)
	case is(unix.EINVAL) && f.Range != "":
		return Refused, fmt.Sprintf("%s: kernel refused %s: it takes %s", name, knob.Clip(f.Want), f.Range)
	case is(unix.EINVAL) && f.Against != "":
		return Refused, fmt.Sprintf("%s: kernel refused %s: out of range, or refused while %s; see that setting", name, knob.Clip(f.Want), f.Against)
	case is(unix.EINVAL):
		return Refused, fmt.Sprintf("%s: kernel refused %s: out of range, or against another setting", name, knob.Clip(f.Want))
	case is(unix.EOVERFLOW), is(unix.ERANGE), is(unix.ENOSPC), is(unix.E2BIG):
		return Refused, fmt.Sprintf("%s: %s is more than this machine has", name, knob.Clip(f.Want))
	case is(unix.EACCES) && !f.Root, is(unix.EPERM) && !f.Root:
		return Forbidden, name + ": needs root"
	case is(unix.EACCES) && f.Write && f.Mode != 0 && f.Mode.Perm()&0o222 == 0:
		return Forbidden, name + ": read-only by nature"
	case is(unix.EACCES) && !f.Write && f.Mode != 0 && f.Mode.Perm()&0o444 == 0:
		return Forbidden, name + ": write-only: an action, not a setting"
	case is(unix.EACCES) && strings.HasPrefix(f.Path, "/proc/sys/net/"):
		return Forbidden, name + ": read-only in this network namespace (container?)"
	case is(unix.EACCES):
		return Forbidden, name + ": read-only in this namespace (container?)"
	case is(unix.EPERM) && contains(f.Lacks, Capability(f.Path)):
		return Forbidden, name + ": needs " + Capability(f.Path)
	case is(unix.EPERM) && f.Lockdown != "":
		return Forbidden, fmt.Sprintf("%s: the kernel's lockdown (%s) forbids it", name, f.Lockdown)
	case is(unix.EPERM):
		return Forbidden, name + ": the kernel forbids it: a capability, lockdown or a seccomp filter"
	case is(unix.EROFS):
		return Forbidden, name + ": mounted read-only (container?)"
	case is(unix.EBUSY) && f.Holder != "":
		return Busy, name + ": in use " + f.Holder
	case is(unix.EBUSY):
		return Busy, name + ": in use by something else"
	case is(unix.EIO) && strings.HasPrefix(f.Path, "/proc/irq/"):
		return Refused, name + ": affinity is kernel-managed"
	case is(unix.EIO) && strings.HasPrefix(f.Path, "/sys/devices/system/cpu/"):
		return Unsupported, name + ": the CPU is offline"
	case is(unix.EIO):
		return Refused, name + ": input/output error"
	case is(unix.EOPNOTSUPP), is(unix.ENOSYS):
		return Unsupported, name + ": the driver does not support it"
	}
	return Refused, fmt.Sprintf("%s: %s", name, root(f.Err))
}

// Capability names the one that the kernel asks for before a node is written
// (capabilities(7)): a network namespace's owner may set what is the namespace's.
func Capability(name string) string {
	switch {
	case strings.HasPrefix(name, "/proc/sys/net/"), strings.HasPrefix(name, "/sys/class/net/"):
		return "CAP_NET_ADMIN"
	case strings.HasPrefix(name, rootfs.CgroupDir+"/") && strings.Contains(name, "/tasks/"):
		return "CAP_SYS_NICE"
	}
	return "CAP_SYS_ADMIN"
}

// NotOffered is the message for a choice that the kernel does not list.
func NotOffered(path, want string, offered []string) string {
	return fmt.Sprintf("%s: %q not offered (%s)", Name(path), knob.Clip(want), strings.Join(offered, ", "))
}

// Changed is the message for a write that the kernel accepted and changed.
func Changed(path, want, found string) string {
	return fmt.Sprintf("%s: asked %s, kernel uses %s", Name(path), knob.Clip(want), knob.Clip(found))
}

// Short is the message for pages of which the kernel could give only some.
func Short(path, want, found string) string {
	return fmt.Sprintf("%s: %s of %s pages: memory is too fragmented; ask at boot with hugepages=", Name(path), thousands(found), thousands(want))
}

// IsPages reports whether the node takes a number of huge pages, of which the
// kernel gives what it can find.
func IsPages(name string) bool {
	switch path.Base(name) {
	case "nr_hugepages", "nr_hugepages_mempolicy":
		return true
	}
	return false
}

// missing tells an absent file from a value that a present file does not know:
// both are ENOENT, but only the second comes from write(2).
func missing(err error) bool {
	var pe *rootfs.PathError
	return errors.As(err, &pe) && pe.Op == "find"
}

// root is the innermost cause, whose text says the thing itself.
func root(err error) error {
	var pe *rootfs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == strings.TrimSpace(s) {
			return true
		}
	}
	return false
}

// Name is how people call a node: "vm.swappiness", "nvme0n1 scheduler", "irq 24".
func Name(name string) string {
	if path.Clean(name) != name {
		return name
	}
	if key, ok := knob.SysctlKey(name); ok {
		return key
	}
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	switch {
	case name == rootfs.BannedIRQs:
		return "irqbalance's list"
	case rootfs.IsVirtual(name) && strings.HasPrefix(name, rootfs.CgroupDir):
		return parts[len(parts)-3] + " " + parts[len(parts)-1]
	case len(parts) >= 4 && parts[0] == "sys" && parts[1] == "block":
		return parts[2] + " " + parts[len(parts)-1]
	case len(parts) >= 4 && parts[0] == "sys" && parts[len(parts)-2] == "queue":
		return parts[len(parts)-3] + " " + parts[len(parts)-1]
	case len(parts) >= 6 && parts[0] == "sys" && parts[1] == "class" && parts[2] == "net":
		return parts[3] + " " + strings.TrimPrefix(strings.Join(parts[4:], "/"), "queues/")
	case len(parts) >= 5 && parts[0] == "sys" && parts[1] == "class":
		return parts[3] + " " + parts[len(parts)-1]
	case len(parts) >= 3 && parts[0] == "proc" && parts[1] == "irq":
		return "irq " + parts[2]
	case len(parts) >= 3 && strings.HasPrefix(name, "/sys/devices/system/cpu/"):
		return parts[len(parts)-2] + " " + parts[len(parts)-1]
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
