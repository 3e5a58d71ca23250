package watch_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/plan"
)

const (
	secret   = "/proc/sys/kernel/secret" // like stable_secret: EIO until it is written
	minFreq  = "/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq"
	maxFreq  = "/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
	irq48    = "/proc/irq/48/smp_affinity_list"
	sched    = "/sys/block/nvme0n1/queue/scheduler"
	rxCPUs   = "/sys/class/net/eth0/queues/rx-0/rps_cpus"
	zramSize = "/sys/devices/virtual/block/zram0/disksize"
)

// fault is a behaviour of sysfs or procfs, with the expected result of a plan.
type fault struct {
	row  int
	what string
	want []plan.Setting
	unit *plan.Unit
	harm func(*rig)

	outcome outcome.Outcome // of the first setting
	message string          // part of its message
	then    func(*rig)      // checks after the plan was applied
}

func text(s plan.Setting) plan.Setting { s.Type = plan.TypeString; return s }

func enforced(name, want string) plan.Setting { return sysctl(name, want, plan.Enforce) }

func disk(attr, typ, want string) plan.Setting {
	return classSetting("block", "nvme*", "queue/"+attr, typ, want)
}

func newSetting(path, typ, want string) plan.Setting {
	s := enforced("x", want)
	s.ID, s.Select.Path, s.Type = path, path, typ
	return s
}

// failWrite makes every write of a node return an error.
func failWrite(path string, err error) func(*rig) {
	return func(r *rig) { r.dev.WriteFault[path] = err }
}

func (r *rig) real(path string) string {
	r.t.Helper()
	real, err := r.dev.Resolve(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return real
}

// createFile creates a file in the tree.
func (r *rig) createFile(path, content string, mode os.FileMode) {
	r.t.Helper()
	host := filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(host, []byte(content), mode); err != nil {
		r.t.Fatal(err)
	}
}

// tries counts the writes of a node.
type tries struct {
	rootfs.Device
	path string
	n    int
	err  []error // of each write; the last one repeats
}

func (d *tries) Write(name, value string) error {
	if name != d.path {
		return d.Device.Write(name, value)
	}
	err := d.err[min(d.n, len(d.err)-1)]
	if d.n++; err != nil {
		return &rootfs.PathError{Op: "write", Path: name, Err: err}
	}
	return d.Device.Write(name, value)
}

// busySensor returns EAGAIN for the first reads of a node, as a busy sensor bus does.
type busySensor struct {
	rootfs.Device
	path  string
	times int
}

func (d *busySensor) Read(name string) (rootfs.Content, error) {
	if name == d.path && d.times > 0 {
		d.times--
		return rootfs.Content{}, &rootfs.PathError{Op: "read", Path: name, Err: unix.EAGAIN}
	}
	return d.Device.Read(name)
}

// countWrites counts the writes of a node between the imitated kernel and its tree, and returns
// these errors for them.
func (r *rig) countWrites(path string, err ...error) *tries {
	d := &tries{Device: r.dev.Device, path: path, err: err}
	r.dev.Device = d
	return d
}

// faultModel returns the behaviours of sysfs and procfs.
func faultModel() []fault {
	return []fault{
		{row: 1, what: "EINVAL: not in the offered list", want: []plan.Setting{disk("scheduler", plan.TypeChoice, "cfq")},
			outcome: outcome.Refused, message: `nvme0n1 scheduler: "cfq" not offered (none, mq-deadline, kyber)`,
			then: func(r *rig) {
				if len(r.dev.Writes) != 1 { // of the neighbouring node
					r.t.Errorf("the list was not read first: %v", r.dev.Writes)
				}
			}},
		{row: 2, what: "EINVAL: out of range", want: []plan.Setting{enforced("vm.swappiness", "9999")},
			outcome: outcome.Refused, message: "vm.swappiness: kernel refused 9999: the range is 0 to 200",
			then: func(r *rig) {
				if tries := slices.DeleteFunc(slices.Clone(r.dev.Writes), func(w string) bool { return w != swappiness+"=9999" }); len(tries) != 1 {
					r.t.Errorf("final, and written %d times", len(tries))
				}
			}},
		{row: 3, what: "EINVAL from another knob's state", want: []plan.Setting{classSetting("cpufreq", "policy0", "scaling_max_freq", plan.TypeInt, "200000")},
			outcome: outcome.Refused, message: "refused while policy0 scaling_min_freq is "},
		{row: 3, what: "the order of a pair does not matter", want: []plan.Setting{
			classSetting("cpufreq", "policy0", "scaling_max_freq", plan.TypeInt, "200000"),
			classSetting("cpufreq", "policy0", "scaling_min_freq", plan.TypeInt, "115200")}, outcome: outcome.OK},
		{row: 4, what: "EINVAL on restore: the ratio is restored, not the zero", want: []plan.Setting{enforced("vm.dirty_bytes", "268435456")}, outcome: outcome.OK,
			then: func(r *rig) {
				r.rollBack()
				r.expectValue("/proc/sys/vm/dirty_bytes", "0")
				r.expectValue("/proc/sys/vm/dirty_ratio", "20")
			}},
		{row: 5, what: "ok, value normalised", want: []plan.Setting{enforced("vm.swappiness", "0x2a")}, outcome: outcome.OK,
			then: func(r *rig) { r.expectValue(swappiness, "42") }},
		{row: 6, what: "ok, value rounded: said, and not written again", want: []plan.Setting{disk("read_ahead_kb", plan.TypeInt, "130")},
			outcome: outcome.Adjusted, message: "read_ahead_kb: wrote 130, kernel uses 128",
			then: func(r *rig) {
				n := len(r.dev.Writes)
				r.advance(2 * watch.SweepEvery)
				if len(r.dev.Writes) != n {
					r.t.Errorf("written again: %v", r.dev.Writes[n:])
				}
			}},
		{row: 7, what: "bracketed lists", want: []plan.Setting{newSetting("/sys/kernel/mm/transparent_hugepage/enabled", plan.TypeChoice, "madvise")}, outcome: outcome.OK,
			then: func(r *rig) { r.expectValue("/sys/kernel/mm/transparent_hugepage/enabled", "madvise") }},
		{row: 8, what: "ok, partial", want: []plan.Setting{enforced("vm.nr_hugepages", "2048")},
			harm: func(r *rig) {
				r.dev.Quirk = func(name, value string) string {
					if strings.HasSuffix(name, "nr_hugepages") {
						return "1730"
					}
					return value
				}
			}, outcome: outcome.Partial, message: "1,730 of 2,048 pages",
			then: func(r *rig) {
				n := 0
				for _, w := range r.dev.Writes {
					if strings.HasPrefix(w, "/proc/sys/vm/nr_hugepages=") {
						n++
					}
				}
				if n > 4 {
					r.t.Errorf("%d writes", n)
				}
			}},
		{row: 9, what: "ENOENT: file absent until a module comes", want: []plan.Setting{enforced("net.netfilter.nf_conntrack_max", "65536")},
			outcome: outcome.Pending, message: "waits for module nf_conntrack",
			then: func(r *rig) {
				r.advance(15 * time.Second)
				w := r.keeper.State().Waiting
				if len(w) != 1 || w[0].Text(time.Unix(1_800_000_000, 0).Add(r.now)) != "net.netfilter.nf_conntrack_max: waits for module nf_conntrack (0:45 left)" {
					r.t.Errorf("%+v", w)
				}
				r.advance(watch.Patience)
				if e := r.expectEvents(watch.Overdue)[0]; !strings.Contains(e.Message, "module nf_conntrack is not loaded; the setting is applied when it is") {
					r.t.Errorf("%+v", e)
				}
				const node = "/proc/sys/net/netfilter/nf_conntrack_max"
				r.createFile(node, "262144\n", 0o644)
				r.keeper.HandleUevent(r.now, watch.Uevent{Action: "add", DevPath: "/module/nf_conntrack", Subsystem: "module"})
				r.advance(5 * time.Second)
				r.expectValue(node, "65536")
				if events := r.expectEvents(watch.Reapplied, watch.Returned); events[1].Message != "module nf_conntrack loaded: re-applied 1 knob" || len(r.keeper.State().Waiting) != 0 {
					r.t.Errorf("%+v", events)
				}
			}},
		{row: 10, what: "ENOENT from write, file present", want: []plan.Setting{text(enforced("net.ipv4.tcp_congestion_control", "bbr"))},
			harm: failWrite("/proc/sys/net/ipv4/tcp_congestion_control", unix.ENOENT), outcome: outcome.Refused, message: `"bbr" is unknown to the kernel; load module tcp_bbr`},
		{row: 11, what: "EACCES as root: the namespace's", want: []plan.Setting{enforced("net.core.rmem_max", "999999")},
			harm: failWrite("/proc/sys/net/core/rmem_max", unix.EACCES), outcome: outcome.Forbidden, message: "read-only in this network namespace"},
		{row: 11, what: "EACCES as root: the node's nature", want: []plan.Setting{enforced("vm.swappiness", "10")},
			harm: func(r *rig) {
				r.dev.WriteFault[swappiness] = unix.EACCES
				if err := os.Chmod(filepath.Join(r.dir, swappiness), 0o444); err != nil {
					r.t.Fatal(err)
				}
			}, outcome: outcome.Forbidden, message: "read-only node"},
		{row: 12, what: "EPERM", want: []plan.Setting{enforced("vm.swappiness", "10")},
			harm: failWrite(swappiness, unix.EPERM), outcome: outcome.Forbidden, message: "needs CAP_SYS_ADMIN",
			then: func(r *rig) {
				if got := r.session.MissingCapabilities(); len(got) != 1 || got[0] != "this process lacks CAP_SYS_ADMIN, which 2 of the plan's nodes may require" {
					r.t.Errorf("%q", got)
				}
			}},
		{row: 12, what: "EPERM: lockdown", want: []plan.Setting{newSetting(rxCPUs, plan.TypeCPUMask, "3")},
			harm: func(r *rig) {
				r.createFile("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n", 0o444)
				r.dev.WriteFault[r.real(rxCPUs)] = unix.EPERM
			}, outcome: outcome.Forbidden, message: "forbidden by the kernel's lockdown mode (integrity)"},
		{row: 13, what: "EROFS", want: []plan.Setting{enforced("vm.swappiness", "10")},
			harm: failWrite(swappiness, unix.EROFS), outcome: outcome.Forbidden, message: "mounted read-only (container?)"},
		{row: 14, what: "EBUSY that passes", want: []plan.Setting{enforced("vm.swappiness", "10")},
			harm: func(r *rig) { r.tried = r.countWrites(swappiness, unix.EBUSY, unix.EBUSY, nil) }, outcome: outcome.OK},
		{row: 14, what: "EBUSY that stays, and its holder", want: []plan.Setting{newSetting(zramSize, plan.TypeInt, "1073741824")},
			harm: func(r *rig) {
				r.createFile(zramSize, "0\n", 0o644)
				r.createFile("/proc/swaps", "Filename\t\t\t\tType\t\tSize\n/dev/zram0                              partition\t1000\n", 0o444)
				r.dev.WriteFault[zramSize] = unix.EBUSY
			}, outcome: outcome.Busy, message: "in use as swap: `swapoff /dev/zram0` first"},
		{row: 15, what: "EIO: a managed interrupt, tried once", want: []plan.Setting{newSetting(irq48, plan.TypeCPUList, "0-1")},
			harm: func(r *rig) { r.tried = r.countWrites(irq48, unix.EIO) }, outcome: outcome.Refused, message: "irq 48: affinity is kernel-managed",
			then: func(r *rig) {
				for range 3 {
					if got, err := r.session.Repair([]string{irq48}); err != nil || got[irq48].Outcome != outcome.Refused {
						r.t.Errorf("%v %+v", err, got)
					}
				}
				if r.tried.n != 1 {
					r.t.Errorf("written %d times", r.tried.n)
				}
				r.keeper.HandleUevent(r.now, watch.Uevent{Action: "add", DevPath: "/devices/x/nvme1", Subsystem: "nvme"})
				r.advance(time.Second)
				if _, err := r.session.Repair([]string{irq48}); err != nil || r.tried.n < 2 {
					r.t.Errorf("not written again after a hotplug: %v", err)
				}
			}},
		{row: 15, what: "EIO: the CPU is offline", want: []plan.Setting{newSetting(minFreq, plan.TypeInt, "115200")},
			harm: func(r *rig) {
				r.createFile(path.Join(path.Dir(minFreq), "affected_cpus"), "\n", 0o444)
				r.dev.WriteFault[minFreq] = unix.EIO
			}, outcome: outcome.Unsupported, message: "the CPU is offline"},
		{row: 15, what: "EIO of a CPU that is online", want: []plan.Setting{newSetting(minFreq, plan.TypeInt, "115200")},
			harm: failWrite(minFreq, unix.EIO), outcome: outcome.Refused, message: "input/output error"},
		{row: 16, what: "a list wider than the machine", want: []plan.Setting{newSetting(irq48, plan.TypeCPUList, "1-63")},
			outcome: outcome.Adjusted, message: "irq 48: wrote 1-63, kernel uses 1-",
			then: func(r *rig) {
				n := len(r.dev.Writes)
				r.advance(2 * watch.SweepEvery)
				if len(r.dev.Writes) != n {
					r.t.Errorf("written again: %v", r.dev.Writes[n:])
				}
			}},
		{row: 16, what: "a mask without a CPU of the machine", want: []plan.Setting{newSetting(rxCPUs, plan.TypeCPUMask, "ff,00000000")},
			outcome: outcome.Refused, message: "this machine has none of the CPUs"},
		{row: 16, what: "EOVERFLOW all the same", want: []plan.Setting{newSetting(irq48, plan.TypeCPUList, "0-1")},
			harm: failWrite(irq48, unix.EOVERFLOW), outcome: outcome.Refused, message: "exceeds what this device has"},
		{row: 17, what: "EAGAIN on read", want: []plan.Setting{enforced("vm.swappiness", "10")},
			harm: func(r *rig) { r.dev.ReadFault[swappiness] = unix.EAGAIN }, outcome: outcome.Stale, message: "the node has no value (EAGAIN)"},
		{row: 17, what: "EAGAIN on read, for a moment", want: []plan.Setting{enforced("vm.swappiness", "10")},
			harm: func(r *rig) { r.dev.Device = &busySensor{Device: r.dev.Device, path: swappiness, times: 3} }, outcome: outcome.OK},
		{row: 18, what: "a read that blocks", want: []plan.Setting{newSetting("/sys/kernel/mm/ksm/pages_to_scan", plan.TypeInt, "200")},
			harm: func(r *rig) {
				c := make(chan struct{})
				r.dev.Hung = map[string]chan struct{}{"/sys/kernel/mm/ksm/pages_to_scan": c}
				r.t.Cleanup(func() { close(c) })
			}, outcome: outcome.Stale, message: "the kernel did not answer in time"},
		{row: 19, what: "ENODEV half-way, and the device comes back", want: []plan.Setting{disk("nr_requests", plan.TypeInt, "512")},
			harm:    func(r *rig) { r.dev.WriteFault[r.real("/sys/block/nvme0n1/queue/nr_requests")] = unix.ENODEV },
			outcome: outcome.Unsupported, message: "no such node on this device",
			then: func(r *rig) {
				clear(r.dev.WriteFault)
				r.keeper.HandleUevent(r.now, watch.Uevent{Action: "add", DevPath: "/devices/x/nvme0n1", Subsystem: "block"})
				r.advance(5 * time.Second)
				r.expectValue("/sys/block/nvme0n1/queue/nr_requests", "512")
			}},
		{row: 20, what: "write-only", want: []plan.Setting{enforced("vm.drop_caches", "3")},
			harm: func(r *rig) { r.dev.ReadFault["/proc/sys/vm/drop_caches"] = unix.EACCES }, outcome: outcome.Forbidden, message: "write-only: an action, not a setting"},
		{row: 21, what: "unreadable original", want: []plan.Setting{enforced("kernel.secret", "1")},
			harm: func(r *rig) {
				r.createFile(secret, "", 0o644)
				r.dev.ReadFault[secret] = unix.EIO
				r.dev.Quirk = func(_, value string) string { delete(r.dev.ReadFault, secret); return value }
			}, outcome: outcome.OK,
			then: func(r *rig) {
				results, err := enforce.Rollback(r.dev, enforce.Options{Root: true})
				if err != nil || len(results) == 0 || !strings.Contains(results[0].Message, "the original value is unknown") {
					r.t.Errorf("%v %+v", err, results)
				}
			}},
		{row: 22, what: "one write(2), no newline", want: []plan.Setting{enforced("vm.swappiness", "10")}, outcome: outcome.OK,
			then: func(r *rig) {
				if !slices.Contains(r.dev.Writes, swappiness+"=10") {
					r.t.Errorf("%q", r.dev.Writes)
				}
			}},
		{row: 23, what: "empty write is accepted, changes nothing", want: []plan.Setting{text(enforced("kernel.core_pattern", ""))},
			outcome: outcome.Refused, message: rootfs.ErrEmpty.Error(),
			then: func(r *rig) {
				if err := r.dev.Device.Write("/proc/sys/kernel/core_pattern", " "); !errors.Is(err, rootfs.ErrEmpty) {
					r.t.Errorf("%v", err)
				}
			}},
		{row: 24, what: "index names move", want: []plan.Setting{func() plan.Setting {
			s := classSetting("devfreq", "", "governor", plan.TypeString, "performance")
			s.Select.Driver = "gk20a"
			return s
		}()}, outcome: outcome.OK,
			then: func(r *rig) {
				class := filepath.Join(r.dir, "/sys/class/devfreq")
				names, err := os.ReadDir(class)
				if err != nil || len(names) != 1 {
					r.t.Fatalf("%v %v", names, err)
				}
				if err := os.Rename(filepath.Join(class, names[0].Name()), filepath.Join(class, "devfreq7")); err != nil {
					r.t.Fatal(err)
				}
				r.keeper.HandleUevent(r.now, watch.Uevent{Action: "move", DevPath: "/devices/x", Subsystem: "devfreq"})
				r.writeSilently("/sys/class/devfreq/devfreq7/governor", "userspace")
				r.advance(5 * time.Second)
				r.expectValue("/sys/class/devfreq/devfreq7/governor", "performance")
			}},
		{row: 25, what: "re-created at its default: not reported as drift", want: []plan.Setting{newSetting(minFreq, plan.TypeInt, "115200")}, outcome: outcome.OK,
			then: func(r *rig) {
				r.writeSilently(minFreq, "729600")
				r.keeper.HandleUevent(r.now, watch.Uevent{Action: "online", DevPath: "/devices/system/cpu/cpu0", Subsystem: "cpu"})
				r.advance(5 * time.Second)
				r.expectValue(minFreq, "115200")
				events := r.expectEvents(watch.Reapplied, watch.Returned)
				if e := events[0]; e.By != nil || !strings.Contains(e.Message, "online of system/cpu/cpu0") {
					r.t.Errorf("%+v", e)
				}
				if got := events[1].Message; got != "cpu0 back online: re-applied 1 knob" {
					r.t.Error(got)
				}
			}},
		{row: 26, what: "udev, sysctl.d, networkd re-apply: the writer is named", want: []plan.Setting{enforced("vm.swappiness", "10")}, outcome: outcome.OK,
			then: func(r *rig) {
				r.write(312, swappiness, "60")
				r.expectValue(swappiness, "10")
				if e := r.expectEvents(watch.Drift)[0]; e.By == nil || e.By.PID != 312 {
					r.t.Errorf("%+v", e)
				}
			}},
		{row: 27, what: "another daemon fights: yielded to after three repairs", want: []plan.Setting{enforced("vm.swappiness", "10")}, outcome: outcome.OK,
			then: func(r *rig) {
				for n := range 4 {
					r.write(812, swappiness, strconv.Itoa(70+n))
				}
				r.expectValue(swappiness, "73")
				if e := r.expectEvents(watch.Drift, watch.Drift, watch.Drift, watch.Contest)[3]; !strings.Contains(e.Message, "contested by tool812 (pid 812); no longer repaired") {
					r.t.Errorf("%+v", e)
				}
			}},
		{row: 28, what: "the kernel clamps later: not fought", want: []plan.Setting{newSetting(maxFreq, plan.TypeInt, "1510400")}, outcome: outcome.OK,
			then: func(r *rig) {
				r.createFile("/sys/class/thermal/cooling_device9/type", "cpufreq-cpu0\n", 0o644)
				r.createFile("/sys/class/thermal/cooling_device9/cur_state", "3\n", 0o644)
				r.createFile("/sys/class/thermal/cooling_device9/max_state", "9\n", 0o644)
				r.writeSilently(maxFreq, "1190400")
				if got := r.session.Inspect([]string{maxFreq})[maxFreq]; got.Outcome != outcome.Capped || !strings.Contains(got.Message, "capped by cpufreq-cpu0 (step 3 of 9)") {
					r.t.Errorf("%+v", got)
				}
				r.advance(2 * watch.SweepEvery)
				r.expectValue(maxFreq, "1190400")
			}},
		{row: 29, what: "a sysctl that the daemon's namespace does not have", want: []plan.Setting{enforced("net.core.rmem_max", "999999")},
			harm: func(r *rig) {
				if err := os.Remove(filepath.Join(r.dir, "/proc/sys/net/core/rmem_max")); err != nil {
					r.t.Fatal(err)
				}
			}, outcome: outcome.Unsupported, message: "net.core.rmem_max: no such node"},
		{row: 30, what: "side effects on others: undone and put right", want: []plan.Setting{
			disk("nr_requests", plan.TypeInt, "512"), disk("scheduler", plan.TypeChoice, "kyber")}, outcome: outcome.OK,
			then: func(r *rig) {
				r.expectValue("/sys/block/nvme0n1/queue/nr_requests", "512")
				r.rollBack()
				r.expectValue("/sys/block/nvme0n1/queue/nr_requests", "1023")
				r.expectValue(sched, "none")
			}},
		{row: 31, what: "needs reboot: staged, never rebooted", want: []plan.Setting{{
			ID: "memory.gigantic", Domain: plan.DomainKernel, Type: plan.TypeString, Want: "1G",
			Select: plan.Select{Class: rootfs.ClassCmdline, Name: "hugepagesz"}, Compare: plan.Exact, Policy: plan.Report, Needs: plan.NeedsReboot,
		}}, outcome: outcome.Pending, message: "needs an image built from this plan's layer"},
		{row: 32, what: "task gone: nothing is said of it", unit: &plan.Unit{Name: "inference.service", Scheduling: "fifo", Priority: 50},
			harm: func(r *rig) {
				r.createFile("/sys/fs/cgroup/system.slice/inference.service/cgroup.procs", "4242\n4243\n", 0o644)
				for pid, stat := range map[string]string{"4242": "0 0", "4243": "50 1"} {
					r.createFile("/proc/"+pid+"/stat", pid+" (infer) S"+strings.Repeat(" 0", 36)+" "+stat+strings.Repeat(" 0", 12)+"\n", 0o444)
					r.createFile("/proc/"+pid+"/status", "Name:\tinfer\nCpus_allowed_list:\t0-3\n", 0o444)
				}
				r.dev.ReadFault["/proc/4242/stat"] = unix.ESRCH
			}, outcome: outcome.OK},
		{row: 33, what: "truncated read at a page: nothing is concluded", want: []plan.Setting{enforced("kernel.too_long", "10")},
			harm:    func(r *rig) { r.createFile("/proc/sys/kernel/too_long", strings.Repeat("9", rootfs.PageSize), 0o644) },
			outcome: outcome.Unsupported, message: "more than one page",
			then: func(r *rig) {
				if len(r.dev.Writes) != 1 { // of the neighbouring node
					r.t.Errorf("written: %v", r.dev.Writes)
				}
			}},
	}
}

func (r *rig) rollBack() {
	r.t.Helper()
	if results, err := enforce.Rollback(r.dev, enforce.Options{Root: true}); err != nil || !enforce.Satisfied(results) {
		r.t.Errorf("rollback: %v %+v", err, results)
	}
}

// Each error of the kernel leads to its outcome and message. The other setting of the plan is
// applied.
func TestFaultModelOnEveryBoard(t *testing.T) {
	const boards = 3
	if got := devicetest.Boards(); len(got) != boards {
		t.Errorf("boards %v", got)
	}
	rows := map[int]bool{}
	for _, f := range faultModel() {
		rows[f.row] = true
	}
	for row := 1; row <= 33; row++ {
		if !rows[row] {
			t.Errorf("row %d is not tried", row)
		}
	}
	const beside = "vm.vfs_cache_pressure"
	for _, board := range devicetest.Boards() {
		for _, f := range faultModel() {
			t.Run(fmt.Sprintf("%s/row %02d %s", board, f.row, f.what), func(t *testing.T) {
				t.Parallel() // it mostly waits for the disk
				dir := t.TempDir()
				if err := devicetest.Build(dir, board); err != nil {
					t.Fatal(err)
				}
				if f.harm == nil {
					f.harm = func(*rig) {}
				}
				p := plan.Plan{Settings: append(slices.Clone(f.want), enforced(beside, "50"))}
				id := "services.inference.service"
				if f.unit != nil {
					p.Units = []plan.Unit{*f.unit}
				} else {
					id = f.want[0].ID
				}
				r := startFaulty(t, dir, f.harm, p)
				for _, want := range []struct {
					id      string
					outcome outcome.Outcome
					message string
				}{{id, f.outcome, f.message}, {"sysctl." + beside, outcome.OK, ""}} {
					i := slices.IndexFunc(r.results, func(got enforce.Result) bool { return got.ID == want.id })
					if i < 0 {
						t.Fatalf("%s has no result", want.id)
					}
					if got := r.results[i]; got.Outcome != want.outcome || !strings.Contains(got.Message, want.message) {
						t.Errorf("%s: %q\nwant %s: … %s …", got.Outcome, got.Message, want.outcome, want.message)
					}
				}
				if f.then != nil {
					f.then(r)
				}
			})
		}
	}
}
