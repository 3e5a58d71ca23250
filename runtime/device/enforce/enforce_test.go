package enforce_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
	"golang.org/x/sys/unix"
)

// newBoard returns a synthetic Orin Nano with an imitated kernel, and its directory.
func newBoard(t *testing.T) (*devicetest.Kernel, string) {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	return devicetest.NewKernel(open(t, dir)), dir
}

func open(t *testing.T, dir string) *rootfs.Root {
	t.Helper()
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// options are root's and do not wait for busy nodes.
func options() enforce.Options {
	return enforce.Options{Root: true, Backoff: []time.Duration{0, 0}}
}

func sysctl(name, want string) plan.Setting {
	return plan.Setting{
		ID: "sysctl." + name, Domain: plan.DomainSysctl, Type: plan.TypeInt, Want: want,
		Select:  plan.Select{Path: "/proc/sys/" + strings.ReplaceAll(name, ".", "/")},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
}

func block(glob, attr, typ, want string) plan.Setting {
	return plan.Setting{
		ID: "storage." + glob + "." + attr, Domain: plan.DomainStorage, Type: typ, Want: want,
		Select:  plan.Select{Class: "block", Name: glob, Attr: "queue/" + attr},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
}

// copyWith returns a changed copy of a setting.
func copyWith(s plan.Setting, change func(*plan.Setting)) plan.Setting {
	change(&s)
	return s
}

func planOf(settings ...plan.Setting) *plan.Plan {
	p := &plan.Plan{Layer: "vision", Target: "line-camera", Board: "orin-nano-8gb", Serial: 1, Settings: settings}
	if err := p.Seal(); err != nil {
		panic(err) // only on a float in a plan, which these have not
	}
	return p
}

// newTunedPlan returns a plan with every kind of selection and most types.
func newTunedPlan() *plan.Plan {
	irq := plan.Setting{
		ID: "irq.affinity.eth0", Domain: plan.DomainIRQ, Type: plan.TypeCPUList, Want: "0-1",
		Select:  plan.Select{Class: "irq", Name: "eth0", Attr: "smp_affinity_list"},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	governor := plan.Setting{
		ID: "cpu.governor", Domain: plan.DomainCPU, Type: plan.TypeString, Want: "performance",
		Select:  plan.Select{Class: "cpufreq", Attr: "scaling_governor"},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	gpu := plan.Setting{
		ID: "gpu.max", Domain: plan.DomainGPU, Type: plan.TypeInt, Want: "918000000",
		Select:  plan.Select{Class: "devfreq", OFNode: "gpu", Attr: "max_freq"},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	thp := plan.Setting{
		ID: "memory.thp", Domain: plan.DomainMemory, Type: plan.TypeChoice, Want: "madvise",
		Select:  plan.Select{Path: "/sys/kernel/mm/transparent_hugepage/enabled"},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	mask := plan.Setting{
		ID: "network.eth0.rps", Domain: plan.DomainNetwork, Type: plan.TypeCPUMask, Want: "0f",
		Select:  plan.Select{Class: "net", Name: "eth*", Attr: "queues/rx-0/rps_cpus"},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	return planOf(
		block("*", "scheduler", plan.TypeChoice, "kyber"),
		block("nvme*", "nr_requests", plan.TypeInt, "512"),
		block("nvme*", "read_ahead_kb", plan.TypeInt, "4096"),
		governor, gpu, irq, mask, thp,
		copyWith(sysctl("net.ipv4.tcp_rmem", "4096 262144 16777216"), func(s *plan.Setting) { s.Type = plan.TypeVector }),
		sysctl("vm.dirty_bytes", "268435456"),
		sysctl("vm.dirty_background_bytes", "67108864"),
		sysctl("vm.swappiness", "10"),
		sysctl("vm.vfs_cache_pressure", "50"),
	)
}

// readState returns the text of every kernel file of the tree, with normalised blanks.
func readState(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, top := range []string{"proc", "sys"} {
		err := filepath.WalkDir(filepath.Join(dir, top), func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(name)
			m[strings.TrimPrefix(name, dir)] = strings.Join(strings.Fields(string(b)), " ")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func compareStates(t *testing.T, want, got map[string]string) {
	t.Helper()
	for name, w := range want {
		if g := got[name]; g != w {
			t.Errorf("%s is %q, was %q", name, g, w)
		}
	}
}

func findResult(t *testing.T, results []enforce.Result, id string) enforce.Result {
	t.Helper()
	i := slices.IndexFunc(results, func(r enforce.Result) bool { return r.ID == id })
	if i < 0 {
		t.Fatalf("no result for %s in %+v", id, results)
	}
	return results[i]
}

func apply(t *testing.T, dev rootfs.Device, p *plan.Plan) []enforce.Result {
	t.Helper()
	results, err := enforce.Apply(dev, p, options())
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestApplyVerifyRollback(t *testing.T) {
	dev, dir := newBoard(t)
	before := readState(t, dir)
	p := newTunedPlan()

	if enforce.Satisfied(enforce.Verify(dev, p, options())) {
		t.Error("the plan is satisfied before it is applied")
	}
	for _, r := range apply(t, dev, p) {
		if r.Outcome != outcome.OK {
			t.Errorf("%s %s: %s: %s", r.ID, r.Path, r.Outcome, r.Message)
		}
	}
	for _, r := range enforce.Verify(dev, p, options()) {
		if r.Outcome != outcome.OK {
			t.Errorf("verify: %s %s: %s: %s", r.ID, r.Path, r.Outcome, r.Message)
		}
	}
	results, err := enforce.Rollback(dev, options())
	if err != nil || !enforce.Satisfied(results) {
		t.Fatalf("rollback: %v, %+v", err, results)
	}
	compareStates(t, before, readState(t, dir))
	if again, err := enforce.Rollback(dev, options()); err != nil || len(again) != 0 {
		t.Errorf("a second rollback found %+v, %v", again, err)
	}
}

func TestVerifyChangesNothing(t *testing.T) {
	dev, dir := newBoard(t)
	before := readState(t, dir)
	enforce.Verify(dev, newTunedPlan(), options())
	if dev.Clock != 0 {
		t.Errorf("verify made %d changes", dev.Clock)
	}
	compareStates(t, before, readState(t, dir))
}

func TestApplyWritesOnlyDifferingNodes(t *testing.T) {
	dev, _ := newBoard(t)
	p := newTunedPlan()
	apply(t, dev, p)
	dev.Writes = nil
	apply(t, dev, p)
	if len(dev.Writes) != 0 {
		t.Errorf("a second apply wrote %q", dev.Writes)
	}
}

func TestApplyWritesNoNewline(t *testing.T) {
	dev, _ := newBoard(t)
	apply(t, dev, newTunedPlan())
	for _, w := range dev.Writes {
		if strings.ContainsAny(w, "\n") {
			t.Errorf("wrote %q", w)
		}
	}
}

// The process may be killed before or during any of its changes.
func TestRollbackAfterKillAtAnyStep(t *testing.T) {
	counting, _ := newBoard(t)
	apply(t, counting, newTunedPlan())
	steps := counting.Clock
	if steps < 15 {
		t.Fatalf("only %d changes to kill the process at", steps)
	}
	// All rounds use one tree, which each must restore.
	dev, dir := newBoard(t)
	before := readState(t, dir)
	for _, torn := range []bool{false, true} {
		for at := 1; at <= steps && !t.Failed(); at++ {
			t.Run(fmt.Sprintf("torn=%t/step=%d", torn, at), func(t *testing.T) {
				dying := devicetest.NewKernel(dev.Device)
				dying.KillAt, dying.Torn = at, torn
				_, _ = enforce.Apply(dying, newTunedPlan(), options())

				alive := devicetest.NewKernel(dev.Device)
				results, err := enforce.Rollback(alive, options())
				if err != nil || !enforce.Satisfied(results) {
					t.Fatalf("rollback: %v, %+v", err, results)
				}
				compareStates(t, before, readState(t, dir))
			})
		}
	}
}

func TestRollbackAfterKilledRollback(t *testing.T) {
	dev, dir := newBoard(t)
	apply(t, dev, newTunedPlan())
	dev.Clock = 0
	if _, err := enforce.Rollback(dev, options()); err != nil {
		t.Fatal(err)
	}
	steps := dev.Clock
	before := readState(t, dir)
	for at := 1; at <= steps && !t.Failed(); at++ {
		t.Run(fmt.Sprintf("step=%d", at), func(t *testing.T) {
			dying := devicetest.NewKernel(dev.Device)
			apply(t, dying, newTunedPlan())
			dying.Clock, dying.KillAt, dying.Torn = 0, at, at%2 == 0
			_, _ = enforce.Rollback(dying, options())
			if _, err := enforce.Rollback(devicetest.NewKernel(dev.Device), options()); err != nil {
				t.Fatal(err)
			}
			compareStates(t, before, readState(t, dir))
		})
	}
}

func TestFirstOriginalSurvivesLaterApplies(t *testing.T) {
	dev, dir := newBoard(t)
	before := readState(t, dir)
	apply(t, dev, planOf(sysctl("vm.swappiness", "10")))
	apply(t, dev, planOf(sysctl("vm.swappiness", "20"), sysctl("vm.vfs_cache_pressure", "50")))
	apply(t, dev, planOf(sysctl("vm.swappiness", "30")))
	results, err := enforce.Rollback(dev, options())
	if err != nil {
		t.Fatal(err)
	}
	if r := findResult(t, results, "sysctl.vm.swappiness"); r.Wanted != "60" || r.Outcome != outcome.OK {
		t.Errorf("restored %+v, want the value before the first apply, 60", r)
	}
	compareStates(t, before, readState(t, dir))
}

func TestJournalOfAnotherBootIsDiscarded(t *testing.T) {
	dev, dir := newBoard(t)
	apply(t, dev, planOf(sysctl("vm.swappiness", "10")))
	bootID := filepath.Join(dir, "proc/sys/kernel/random/boot_id")
	if err := os.WriteFile(bootID, []byte("11111111-2222-3333-4444-555555555555\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	results, err := enforce.Rollback(dev, options())
	if err != nil || len(results) != 0 {
		t.Errorf("rollback after a reboot restored %+v, %v; originals of another boot must be ignored", results, err)
	}
}

func TestApplyWithoutBootIDWritesNothing(t *testing.T) {
	dev, dir := newBoard(t)
	if err := os.Remove(filepath.Join(dir, "proc/sys/kernel/random/boot_id")); err != nil {
		t.Fatal(err)
	}
	_, err := enforce.Apply(dev, newTunedPlan(), options())
	if !errors.Is(err, enforce.ErrJournal) {
		t.Errorf("error %v, want ErrJournal", err)
	}
	if len(dev.Writes) != 0 {
		t.Errorf("wrote %q", dev.Writes)
	}
}

// fullDisk is a device whose journal cannot be written.
type fullDisk struct{ *devicetest.Kernel }

func (fullDisk) AppendState(name string, _ []byte) error {
	return &rootfs.PathError{Op: "append to", Path: name, Err: unix.ENOSPC}
}

func TestApplyWithoutJournalWritesNothing(t *testing.T) {
	dev, _ := newBoard(t)
	_, err := enforce.Apply(fullDisk{dev}, newTunedPlan(), options())
	if !errors.Is(err, enforce.ErrJournal) || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v, want ErrJournal for ENOSPC", err)
	}
	if len(dev.Writes) != 0 {
		t.Errorf("wrote %q", dev.Writes)
	}
}

// Each row is an error of the kernel. The rest of the plan is applied.
func TestKernelErrorsBecomeOutcomes(t *testing.T) {
	shared, dir := newBoard(t)
	before := readState(t, dir)
	const swappiness = "/proc/sys/vm/swappiness"
	const secret = "/proc/sys/kernel/secret" // like stable_secret, it reads EIO before its first write
	for _, c := range []struct {
		name    string
		setting plan.Setting
		break_  func(t *testing.T, dev *devicetest.Kernel, dir string)
		outcome outcome.Outcome
		message string // a part of it
	}{
		{"a choice that is not offered", block("nvme*", "scheduler", plan.TypeChoice, "cfq"), nil,
			outcome.Refused, `nvme0n1 scheduler: "cfq" not offered (none, mq-deadline, kyber)`},
		{"a governor that is not offered", copyWith(newTunedPlan().Settings[3], func(s *plan.Setting) { s.Want = "turbo" }), nil,
			outcome.Refused, `policy0 scaling_governor: "turbo" not offered (conservative, ondemand`},
		{"out of range", sysctl("vm.swappiness", "9999"), nil,
			outcome.Refused, "vm.swappiness: kernel refused 9999"},
		{"a hexadecimal value is normalised", sysctl("vm.swappiness", "0x2a"), nil,
			outcome.OK, ""},
		{"rounded", block("nvme*", "read_ahead_kb", plan.TypeInt, "130"), nil,
			outcome.Adjusted, "nvme0n1 read_ahead_kb: wrote 130, kernel uses 128"},
		{"some huge pages", sysctl("vm.nr_hugepages", "2048"), func(_ *testing.T, dev *devicetest.Kernel, _ string) {
			dev.Quirk = func(name, value string) string {
				if strings.HasSuffix(name, "nr_hugepages") {
					return "1730"
				}
				return value
			}
		}, outcome.Partial, "1,730 of 2,048 pages"},
		{"absent", sysctl("kernel.no_such_thing", "1"), nil,
			outcome.Unsupported, "kernel.no_such_thing: no such node"},
		{"absent until a module is loaded", sysctl("net.netfilter.nf_conntrack_max", "262144"), nil,
			outcome.Pending, "waits for module nf_conntrack"},
		{"ENOENT from the write: unknown value", copyWith(sysctl("net.ipv4.tcp_congestion_control", "bbr"), func(s *plan.Setting) { s.Type = plan.TypeString }),
			failWrites("/proc/sys/net/ipv4/tcp_congestion_control", unix.ENOENT),
			outcome.Refused, `"bbr" is unknown to the kernel; load module tcp_bbr`},
		{"EACCES on a read-only file", sysctl("vm.swappiness", "10"), func(t *testing.T, dev *devicetest.Kernel, dir string) {
			dev.WriteFault[swappiness] = unix.EACCES
			name := filepath.Join(dir, swappiness)
			if err := os.Chmod(name, 0o444); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(name, 0o644) })
		}, outcome.Forbidden, "read-only node"},
		{"EACCES in a network namespace", sysctl("net.core.rmem_max", "999999"), failWrites("/proc/sys/net/core/rmem_max", unix.EACCES),
			outcome.Forbidden, "read-only in this network namespace"},
		{"EPERM", sysctl("vm.swappiness", "10"), failWrites(swappiness, unix.EPERM),
			outcome.Forbidden, "missing capability, lockdown or seccomp filter"},
		{"EROFS", sysctl("vm.swappiness", "10"), failWrites(swappiness, unix.EROFS),
			outcome.Forbidden, "mounted read-only"},
		{"EBUSY that stays", sysctl("vm.swappiness", "10"), failWrites(swappiness, unix.EBUSY),
			outcome.Busy, "in use by a driver or another program"},
		{"an interrupt that cannot move", copyWith(newTunedPlan().Settings[5], func(s *plan.Setting) { s.Select.Name = "nvme0q3" }), failWrites("/proc/irq/48/smp_affinity_list", unix.EIO),
			outcome.Refused, "irq 48: affinity is kernel-managed"},
		{"wider than the machine", copyWith(newTunedPlan().Settings[5], func(s *plan.Setting) { s.Want = "0-63" }), failWrites("/proc/irq/44/smp_affinity_list", unix.EOVERFLOW),
			outcome.Refused, "exceeds what this device has"},
		{"EAGAIN on read", sysctl("vm.swappiness", "10"), failReads(swappiness, unix.EAGAIN),
			outcome.Stale, "has no value"},
		{"the device went away", sysctl("vm.swappiness", "10"), failWrites(swappiness, unix.ENODEV),
			outcome.Unsupported, "no such node"},
		{"an action, not a setting", sysctl("vm.drop_caches", "3"), failReads("/proc/sys/vm/drop_caches", unix.EACCES),
			outcome.Forbidden, "write-only: an action, not a setting"},
		{"an unreadable original does not prevent the write", sysctl("kernel.secret", "1"), func(t *testing.T, dev *devicetest.Kernel, dir string) {
			if err := os.WriteFile(filepath.Join(dir, secret), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			dev.ReadFault[secret] = unix.EIO
			dev.Quirk = func(name, value string) string { delete(dev.ReadFault, name); return value }
		}, outcome.OK, ""},
		{"an empty value", sysctl("vm.swappiness", ""), nil,
			outcome.Refused, "vm.swappiness"},
		{"a value of another type", sysctl("vm.swappiness", "much"), nil,
			outcome.Refused, `"much" is not an integer`},
		{"a value with a second line", copyWith(sysctl("kernel.core_pattern", "core\nx"), func(s *plan.Setting) { s.Type = plan.TypeString }), nil,
			outcome.Refused, "line break"},
		{"more than a page", sysctl("kernel.too_long", "10"), func(t *testing.T, _ *devicetest.Kernel, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "proc/sys/kernel/too_long"), []byte(strings.Repeat("9", 4096)), 0o644); err != nil {
				t.Fatal(err)
			}
		}, outcome.Unsupported, "more than one page"},
		{"a path outside the kernel's files", copyWith(sysctl("x", "1"), func(s *plan.Setting) { s.Select.Path = "/etc/passwd" }), nil,
			outcome.Forbidden, "yoctuned may not access this path"},
		{"a path that climbs", copyWith(sysctl("x", "1"), func(s *plan.Setting) { s.Select.Path = "/proc/sys/../../etc/passwd" }), nil,
			outcome.Forbidden, "yoctuned may not access this path"},
		{"an attribute that climbs", copyWith(block("nvme*", "x", plan.TypeInt, "1"), func(s *plan.Setting) { s.Select.Attr = "../../../etc/passwd" }), nil,
			outcome.Forbidden, "yoctuned may not access this path"},
		{"a link that leads out of the kernel's files", copyWith(sysctl("x", "1"), func(s *plan.Setting) { s.Select.Path = "/sys/kernel/evil" }), func(t *testing.T, _ *devicetest.Kernel, dir string) {
			if err := os.Symlink("/etc/nvpmodel.conf.bak", filepath.Join(dir, "sys/kernel/evil")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "etc/nvpmodel.conf.bak"), []byte("1"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, outcome.Forbidden, "leads to /etc/nvpmodel.conf.bak"},
		{"a program for the kernel to run", copyWith(sysctl("kernel.core_pattern", "|/bin/sh"), func(s *plan.Setting) { s.Type = plan.TypeString }), nil,
			outcome.Forbidden, "run programs"},
		{"the module loader", copyWith(sysctl("kernel.modprobe", "/data/x"), func(s *plan.Setting) { s.Type = plan.TypeString }), nil,
			outcome.Forbidden, "run programs"},
		{"no device matches", block("sd*", "scheduler", plan.TypeChoice, "none"), nil,
			outcome.Unsupported, `no block device named "sd*"`},
		{"an unknown class", copyWith(block("x", "y", plan.TypeInt, "1"), func(s *plan.Setting) { s.Select.Class = "toaster" }), nil,
			outcome.Unsupported, `unknown device class "toaster"`},
		{"the first available of two", copyWith(block("nvme*", "scheduler", plan.TypeChoice, "bfq|kyber|none"), func(s *plan.Setting) { s.Compare = plan.FirstAvailable }), nil,
			outcome.OK, ""},
		{"more than required is enough", copyWith(sysctl("vm.swappiness", "50"), func(s *plan.Setting) { s.Compare = plan.AtLeast }), nil,
			outcome.OK, ""},
		{"an unknown comparison", copyWith(sysctl("vm.swappiness", "50"), func(s *plan.Setting) { s.Compare = "about" }), nil,
			outcome.Refused, `unknown comparison "about"`},
		{"an unknown type", copyWith(sysctl("vm.swappiness", "50"), func(s *plan.Setting) { s.Type = "colour" }), nil,
			outcome.Refused, `unknown value type "colour"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev := devicetest.NewKernel(shared.Device)
			if c.break_ != nil {
				c.break_(t, dev, dir)
			}
			results := apply(t, dev, planOf(c.setting, sysctl("vm.vfs_cache_pressure", "50")))
			r := findResult(t, results, c.setting.ID)
			if r.Outcome != c.outcome || !strings.Contains(r.Message, c.message) {
				t.Errorf("%s: %q\nwant %s: … %s …", r.Outcome, r.Message, c.outcome, c.message)
			}
			if c.outcome != outcome.OK && r.Satisfied() {
				t.Error("the result is satisfied")
			}
			if other := findResult(t, results, "sysctl.vm.vfs_cache_pressure"); other.Outcome != outcome.OK {
				t.Errorf("the next setting was not applied: %+v", other)
			}
			if _, err := enforce.Rollback(devicetest.NewKernel(dev.Device), options()); err != nil {
				t.Error(err)
			}
			compareStates(t, before, readState(t, dir))
		})
	}
}

func failWrites(name string, err error) func(*testing.T, *devicetest.Kernel, string) {
	return func(_ *testing.T, dev *devicetest.Kernel, _ string) { dev.WriteFault[name] = err }
}

func failReads(name string, err error) func(*testing.T, *devicetest.Kernel, string) {
	return func(_ *testing.T, dev *devicetest.Kernel, _ string) { dev.ReadFault[name] = err }
}

func TestUnreadableOriginalIsReportedLost(t *testing.T) {
	dev, _ := newBoard(t)
	const node = "/proc/sys/kernel/core_uses_pid"
	dev.ReadFault[node] = unix.EIO
	apply(t, dev, planOf(sysctl("kernel.core_uses_pid", "1")))
	results, err := enforce.Rollback(dev, options())
	if err != nil {
		t.Fatal(err)
	}
	r := findResult(t, results, "sysctl.kernel.core_uses_pid")
	if r.Outcome != outcome.Refused || !strings.Contains(r.Message, "the original value is unknown") || enforce.Satisfied(results) {
		t.Errorf("%+v", r)
	}
}

func TestOptionalAbsentNodeDoesNotCount(t *testing.T) {
	dev, _ := newBoard(t)
	s := copyWith(block("sd*", "scheduler", plan.TypeChoice, "none"), func(s *plan.Setting) { s.Optional = true })
	for _, results := range [][]enforce.Result{apply(t, dev, planOf(s)), enforce.Verify(dev, planOf(s), options())} {
		if r := results[0]; r.Outcome != outcome.Unsupported || !r.Satisfied() {
			t.Errorf("%+v", r)
		}
	}
}

func TestOrderDependentRefusalIsRetried(t *testing.T) {
	dev, _ := newBoard(t)
	freq := func(attr, want string) plan.Setting {
		return plan.Setting{
			ID: "cpu." + attr, Domain: plan.DomainCPU, Type: plan.TypeInt, Want: want,
			Select:  plan.Select{Class: "cpufreq", Name: "policy0", Attr: attr},
			Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
		}
	}
	// A maximum of 200000 is refused until the minimum, now 729600, is written.
	results := apply(t, dev, planOf(freq("scaling_max_freq", "200000"), freq("scaling_min_freq", "115200")))
	if !enforce.Satisfied(results) {
		t.Errorf("%+v", results)
	}
	if results, err := enforce.Rollback(dev, options()); err != nil || !enforce.Satisfied(results) {
		t.Errorf("rollback: %v %+v", err, results)
	}
}

func TestSettingsThatUndoEachOtherConflict(t *testing.T) {
	dev, dir := newBoard(t)
	before := readState(t, dir)
	results := apply(t, dev, planOf(sysctl("vm.dirty_bytes", "268435456"), sysctl("vm.dirty_ratio", "15")))
	contested := 0
	for _, r := range results {
		if r.Outcome == outcome.Contested {
			contested++
			if want := "vm.dirty_ratio: sysctl.vm.dirty_bytes of this plan overwrites it"; r.Message != want {
				t.Errorf("%q, want %q", r.Message, want)
			}
		}
	}
	if contested != 1 || enforce.Satisfied(results) {
		t.Errorf("%d contested in %+v", contested, results)
	}
	if _, err := enforce.Rollback(dev, options()); err != nil {
		t.Fatal(err)
	}
	compareStates(t, before, readState(t, dir))
}

// A process that writes while the plan is applied is not a setting of the plan.
func TestForeignWriteIsNotBlamedOnThePlan(t *testing.T) {
	dev, _ := newBoard(t)
	dev.Quirk = func(name, value string) string {
		if err := dev.Device.Write("/proc/sys/vm/swappiness", "33"); err != nil { // the other process
			t.Error(err)
		}
		if name == "/proc/sys/vm/swappiness" {
			return "33"
		}
		return value
	}
	r := findResult(t, apply(t, dev, planOf(sysctl("vm.swappiness", "60"), sysctl("vm.vfs_cache_pressure", "50"))), "sysctl.vm.swappiness")
	if want := "vm.swappiness: it was changed while the plan was applied, by another process or by the kernel"; r.Outcome != outcome.Contested || r.Message != want {
		t.Errorf("%+v, want %q", r, want)
	}
}

func TestTwoSettingsOfOneNodeConflict(t *testing.T) {
	dev, _ := newBoard(t)
	results := apply(t, dev, planOf(
		block("nvme*", "nr_requests", plan.TypeInt, "512"),
		copyWith(block("*", "nr_requests", plan.TypeInt, "256"), func(s *plan.Setting) { s.ID = "storage.all.nr_requests" })))
	var got []string
	for _, r := range results {
		got = append(got, r.Path+" "+string(r.Outcome))
	}
	want := []string{"/sys/block/nvme0n1/queue/nr_requests ok", "/sys/block/mmcblk0/queue/nr_requests ok", "/sys/block/nvme0n1/queue/nr_requests contested"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestApplyReportsAndRepairsDrift(t *testing.T) {
	dev, dir := newBoard(t)
	p := planOf(sysctl("vm.swappiness", "10"))
	apply(t, dev, p)
	if err := os.WriteFile(filepath.Join(dir, "proc/sys/vm/swappiness"), []byte("33\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := findResult(t, enforce.Verify(dev, p, options()), "sysctl.vm.swappiness")
	if r.Outcome != outcome.Differs || r.Found != "33" || r.Message != "vm.swappiness: found 33, wanted 10" {
		t.Errorf("%+v", r)
	}
	apply(t, dev, p)
	if !enforce.Satisfied(enforce.Verify(dev, p, options())) {
		t.Error("not repaired")
	}
}

func TestVerifyDistinguishesRoundingFromDrift(t *testing.T) {
	dev, dir := newBoard(t)
	p := planOf(block("nvme*", "read_ahead_kb", plan.TypeInt, "130"))
	apply(t, dev, p)
	if r := enforce.Verify(dev, p, options())[0]; r.Outcome != outcome.Adjusted || r.Satisfied() {
		t.Errorf("%+v", r)
	}
	real, err := dev.Resolve("/sys/block/nvme0n1/queue/read_ahead_kb")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+real, []byte("64\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := enforce.Verify(dev, p, options())[0]; r.Outcome != outcome.Differs {
		t.Errorf("%+v", r)
	}
}

func TestReportOnlySettingsAreNeverWritten(t *testing.T) {
	dev, _ := newBoard(t)
	p := planOf(copyWith(sysctl("vm.swappiness", "10"), func(s *plan.Setting) { s.Policy = plan.Report }))
	if r := apply(t, dev, p)[0]; r.Outcome != outcome.Differs || !r.Satisfied() {
		t.Errorf("apply: %+v", r)
	}
	if len(dev.Writes) != 0 {
		t.Errorf("wrote %q", dev.Writes)
	}
	if r := enforce.Verify(dev, p, options())[0]; r.Satisfied() {
		t.Errorf("verify: %+v", r)
	}
}

func TestKernelArgumentsArePendingUntilReboot(t *testing.T) {
	dev, dir := newBoard(t)
	arg := func(name, typ, want, needs string) plan.Setting {
		return plan.Setting{
			ID: "kernel.args." + name, Domain: plan.DomainKernel, Type: typ, Want: want,
			Select:  plan.Select{Class: "cmdline", Name: name},
			Compare: plan.Exact, Policy: plan.Enforce, Needs: needs,
		}
	}
	p := planOf(
		arg("isolcpus", plan.TypeCPUList, "4-5", plan.NeedsReboot),
		arg("nohz_full", plan.TypeCPUList, "4,5", plan.NeedsReflash),
		arg("quiet", plan.TypePresent, "1", plan.NeedsReboot),
		arg("rootwait", plan.TypePresent, "1", plan.NeedsReboot),
		copyWith(arg("rt", plan.TypeInt, "1", plan.NeedsReflash), func(s *plan.Setting) { s.Select = plan.Select{Path: "/sys/kernel/realtime"} }),
		copyWith(arg("bbr", plan.TypePresent, "1", plan.NeedsReboot), func(s *plan.Setting) {
			s.Domain, s.Select = plan.DomainModule, plan.Select{Path: "/sys/module/tcp_bbr"}
		}))
	results := apply(t, dev, p)
	if !enforce.Satisfied(results) {
		t.Error("apply fails for a setting that it cannot write")
	}
	for id, want := range map[string]string{
		"kernel.args.isolcpus":  "the running kernel was not given isolcpus: needs an image built from this plan's layer",
		"kernel.args.nohz_full": "the running kernel was not given nohz_full: needs an image built from this plan's layer",
		"kernel.args.quiet":     "kernel argument quiet is missing: needs an image built from this plan's layer",
		"kernel.args.rootwait":  "",
		"kernel.args.rt":        "/proc/sys/kernel/version does not name PREEMPT_RT: this is no real-time kernel: needs an image built from this plan's layer",
		"kernel.args.bbr":       "/sys/module/tcp_bbr is missing: in force after a reboot",
	} {
		if r := findResult(t, results, id); r.Message != want {
			t.Errorf("%s: %s: %q, want %q", id, r.Outcome, r.Message, want)
		}
	}
	if enforce.Satisfied(enforce.Verify(dev, p, options())) {
		t.Error("verify is satisfied without the arguments")
	}
	if err := devicetest.InstallPlan(dir, p); err != nil {
		t.Fatal(err)
	}
	for _, r := range enforce.Verify(dev, p, options()) {
		if r.Outcome != outcome.OK {
			t.Errorf("after flashing: %+v", r)
		}
	}
}

// Kernels with NVIDIA's real-time patches have /sys/kernel/realtime. Linux 6.12 names
// PREEMPT_RT in its version only.
func TestRealTimeKernelIsRecognisedByEitherFile(t *testing.T) {
	p := planOf(plan.Setting{
		ID: "kernel.preempt", Domain: plan.DomainKernel, Type: plan.TypeInt, Want: "1",
		Select:  plan.Select{Path: "/sys/kernel/realtime"},
		Compare: plan.Exact, Policy: plan.Report, Needs: plan.NeedsReflash,
	})
	for name, c := range map[string]struct {
		realtime, version string // "": no such file
		want              outcome.Outcome
		message           string
	}{
		"patched kernel":        {"1\n", "#1 SMP PREEMPT RT Thu Jan 1", outcome.OK, ""},
		"patched kernel, off":   {"0\n", "#1 SMP PREEMPT Thu Jan 1", outcome.Pending, "/sys/kernel/realtime is 0: needs an image built from this plan's layer"},
		"Linux 6.12":            {"", "#1 SMP PREEMPT_RT Debian 6.12.95-1", outcome.OK, ""},
		"Linux 4.9":             {"", "#1 SMP PREEMPT RT Thu Jan 1", outcome.OK, ""},
		"another kernel":        {"", "#1 SMP PREEMPT_DYNAMIC Thu Jan 1", outcome.Pending, "/proc/sys/kernel/version does not name PREEMPT_RT: this is no real-time kernel: needs an image built from this plan's layer"},
		"version that is empty": {"", "\n", outcome.Unsupported, "it is unknown if this kernel is a real-time kernel: it has no /sys/kernel/realtime, and /proc/sys/kernel/version is empty"},
		"neither file":          {"", "", outcome.Unsupported, "it is unknown if this kernel is a real-time kernel: it has no /sys/kernel/realtime, and find /proc/sys/kernel/version: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dev, dir := newBoard(t)
			for file, text := range map[string]string{"sys/kernel/realtime": c.realtime, "proc/sys/kernel/version": c.version} {
				file = filepath.Join(dir, file)
				if text == "" {
					if err := os.RemoveAll(file); err != nil {
						t.Fatal(err)
					}
				} else if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, results := range [][]enforce.Result{enforce.Verify(dev, p, options()), apply(t, dev, p)} {
				if r := results[0]; r.Outcome != c.want || r.Message != c.message {
					t.Errorf("%s: %q, want %s: %q", r.Outcome, r.Message, c.want, c.message)
				}
			}
		})
	}
}

func TestImageSettingsArePending(t *testing.T) {
	dev, dir := newBoard(t)
	p := planOf(copyWith(block("zram0", "disksize", plan.TypeInt, "2147483648"), func(s *plan.Setting) {
		s.Select.Attr, s.Policy, s.Needs = "disksize", plan.Report, plan.NeedsReboot
	}))
	if r := enforce.Verify(dev, p, options())[0]; r.Outcome != outcome.Pending || r.Satisfied() {
		t.Errorf("%+v", r)
	}
	if err := devicetest.InstallPlan(dir, p); err != nil {
		t.Fatal(err)
	}
	if r := enforce.Verify(dev, p, options())[0]; r.Outcome != outcome.OK {
		t.Errorf("%+v", r)
	}
}

// hung is a device with a node that never answers.
type hung struct {
	*devicetest.Kernel
	path    string
	release chan struct{}
}

func (h hung) Read(name string) (rootfs.Content, error) {
	if name == h.path {
		<-h.release
	}
	return h.Kernel.Read(name)
}

func TestHangingNodeFailsOneSetting(t *testing.T) {
	dev, _ := newBoard(t)
	const node = "/sys/kernel/mm/ksm/pages_to_scan"
	h := hung{dev, node, make(chan struct{})}
	defer close(h.release)
	o := options()
	o.ReadTimeout = 20 * time.Millisecond
	results := enforce.Verify(h, planOf(
		copyWith(sysctl("x", "100"), func(s *plan.Setting) { s.Select.Path = node }),
		sysctl("vm.vfs_cache_pressure", "100")), o)
	if r := results[0]; r.Outcome != outcome.Stale || r.Satisfied() {
		t.Errorf("%+v", r)
	}
	if r := results[1]; r.Outcome != outcome.OK {
		t.Errorf("%+v", r)
	}
}

func TestDamagedJournalLineLosesOneOriginal(t *testing.T) {
	dev, dir := newBoard(t)
	before := readState(t, dir)
	apply(t, dev, planOf(sysctl("vm.swappiness", "10")))
	name := filepath.Join(dir, journal.File)
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("deadbeef {\"v\":1,\"boo"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	apply(t, dev, planOf(sysctl("vm.vfs_cache_pressure", "50")))
	if _, err := enforce.Rollback(dev, options()); err != nil {
		t.Fatal(err)
	}
	compareStates(t, before, readState(t, dir))
}

func TestRollbackReportsLostOriginals(t *testing.T) {
	dev, dir := newBoard(t)
	apply(t, dev, planOf(sysctl("vm.swappiness", "10"), sysctl("vm.vfs_cache_pressure", "50")))
	name := filepath.Join(dir, journal.File)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(b, []byte(`"value":"60"`), []byte(`"value":"61"`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	results, err := enforce.Rollback(dev, options())
	if err != nil || len(results) != 2 || enforce.Satisfied(results) || results[0].Outcome != outcome.OK {
		t.Fatalf("%v %+v", err, results)
	}
	if last := results[1]; last.Path != journal.File || !strings.Contains(last.Message, "lost records: 1") {
		t.Errorf("%+v", last)
	}
	if results, err := enforce.Rollback(dev, options()); err != nil || len(results) != 0 {
		t.Errorf("again: %v %+v", err, results)
	}
}

func TestRollbackIgnoresRemovedNodes(t *testing.T) {
	dev, dir := newBoard(t)
	apply(t, dev, planOf(sysctl("vm.swappiness", "10")))
	if err := os.Remove(filepath.Join(dir, "proc/sys/vm/swappiness")); err != nil {
		t.Fatal(err)
	}
	results, err := enforce.Rollback(dev, options())
	if err != nil || !enforce.Satisfied(results) || results[0].Outcome != outcome.Stale {
		t.Errorf("%v %+v", err, results)
	}
}

// The end of a trial restores the values from before the trial and not those of the boot, also
// if the process is killed at any change.
func TestTrialIsRevertedAfterKillAtAnyStep(t *testing.T) {
	dev, dir := newBoard(t)
	apply(t, dev, planOf(sysctl("vm.swappiness", "20"), sysctl("vm.dirty_ratio", "15")))
	before := readState(t, dir)
	trial := planOf(sysctl("vm.swappiness", "30"), sysctl("vm.dirty_bytes", "268435456"), block("nvme*", "scheduler", plan.TypeChoice, "kyber"))
	for at := 1; ; at++ {
		dying := devicetest.NewKernel(dev.Device)
		dying.KillAt, dying.Torn = at, at%2 == 0
		s, err := enforce.Open(dying, trial, options())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.ApplyTrial()
		results, err := enforce.RevertTrial(devicetest.NewKernel(dev.Device), options())
		if err != nil || !enforce.Satisfied(results) {
			t.Fatalf("step %d: %v %+v", at, err, results)
		}
		compareStates(t, before, readState(t, dir))
		if t.Failed() {
			t.Fatalf("step %d", at)
		}
		if dying.Clock < at {
			break
		}
	}
	results, err := enforce.Rollback(dev, options())
	if err != nil || findResult(t, results, "sysctl.vm.swappiness").Wanted != "60" {
		t.Errorf("rollback does not restore the boot's values: %v %+v", err, results)
	}
}

func TestConfirmedTrialIsNotReverted(t *testing.T) {
	dev, dir := newBoard(t)
	s, err := enforce.Open(dev, planOf(sysctl("vm.swappiness", "30")), options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ApplyTrial(); err != nil {
		t.Fatal(err)
	}
	if err := enforce.ConfirmTrial(dev); err != nil {
		t.Fatal(err)
	}
	after := readState(t, dir)
	if results, err := enforce.RevertTrial(dev, options()); err != nil || len(results) != 0 {
		t.Errorf("%v %+v", err, results)
	}
	compareStates(t, after, readState(t, dir))
}

// A node that hangs is read once, since each read would block another thread.
func TestHungNodeIsSkippedUntilItResponds(t *testing.T) {
	dev, _ := newBoard(t)
	const node = "/sys/kernel/mm/ksm/pages_to_scan"
	h := &counted{Kernel: dev, path: node, release: make(chan struct{})}
	o := options()
	o.ReadTimeout = 5 * time.Millisecond
	s, err := enforce.Open(h, planOf(copyWith(sysctl("x", "100"), func(s *plan.Setting) { s.Select.Path = node })), o)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if r := s.Inspect([]string{node})[node]; r.Outcome != outcome.Stale {
			t.Errorf("%+v", r)
		}
	}
	if n := h.calls.Load(); n != 1 {
		t.Errorf("read %d times", n)
	}
	close(h.release)
	for late := time.Now().Add(20 * time.Second); ; {
		if r := s.Inspect([]string{node})[node]; r.Outcome == outcome.OK {
			break
		} else if time.Now().After(late) {
			t.Fatalf("it answers, and is %+v", r)
		}
	}
}

// counted is a device with a node that hangs until it is released.
type counted struct {
	*devicetest.Kernel
	path    string
	release chan struct{}
	calls   atomic.Int32
}

func (c *counted) Read(name string) (rootfs.Content, error) {
	if name == c.path {
		c.calls.Add(1)
		<-c.release
	}
	return c.Kernel.Read(name)
}

func TestThermalCapIsNotDriftOrRounding(t *testing.T) {
	dev, dir := newBoard(t)
	p := planOf(newTunedPlan().Settings[4], plan.Setting{
		ID: "cpu.max", Domain: plan.DomainCPU, Type: plan.TypeInt, Want: "1510400",
		Select:  plan.Select{Class: "cpufreq", Name: "policy0", Attr: "scaling_max_freq"},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	})
	apply(t, dev, p)
	for name, text := range map[string]string{
		"sys/class/thermal/cooling_device0/type":                  "thermal-cpufreq-0\n", // as kernels before 5.12 call it
		"sys/class/thermal/cooling_device0/cur_state":             "2\n",
		"sys/class/thermal/cooling_device0/max_state":             "9\n",
		"sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "1190400\n",
	} {
		host := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(host, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := findResult(t, enforce.Verify(dev, p, options()), "cpu.max")
	if r.Outcome != outcome.Capped || !r.Satisfied() || !strings.Contains(r.Message, "policy0 scaling_max_freq: 1190400 of 1510400: capped by thermal-cpufreq-0 (step 2 of 9)") {
		t.Errorf("%+v", r)
	}
	if r := findResult(t, enforce.Verify(dev, p, options()), "gpu.max"); r.Outcome != outcome.OK {
		t.Errorf("the GPU is not the CPU's: %+v", r)
	}
}

func TestApplyAndRollbackOfAThousandSettings(t *testing.T) {
	dev, dir := newBoard(t)
	var settings []plan.Setting
	for n := range 1000 {
		name := fmt.Sprintf("bulk.k%d", n)
		host := filepath.Join(dir, "proc/sys/bulk", fmt.Sprintf("k%d", n))
		if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(host, []byte("1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		settings = append(settings, sysctl(name, "2"))
	}
	before := readState(t, dir)
	start := time.Now()
	results := apply(t, dev, planOf(settings...))
	t.Logf("applied in %v", time.Since(start).Round(time.Millisecond))
	if len(results) != 1000 || !enforce.Satisfied(results) {
		t.Errorf("%d results", len(results))
	}
	if _, err := enforce.Rollback(dev, options()); err != nil {
		t.Fatal(err)
	}
	compareStates(t, before, readState(t, dir))
}
