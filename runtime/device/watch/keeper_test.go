package watch_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/plan"
)

// rig is a keeper of a plan on a synthetic Orin Nano. It also simulates other writers, the
// kernel's events and the clock.
type rig struct {
	t      *testing.T
	dir    string
	dev    *devicetest.Kernel
	keeper *watch.Keeper

	session *enforce.Session
	results []enforce.Result // of the first apply
	tried   *tries           // writes that are counted

	events []watch.Event
	marked map[string]bool
	now    time.Duration
	step   time.Duration // by which the wall clock was set

	noMarks error         // error of marking
	queued  []watch.Write // that the kernel has reported and the keeper has not read
}

// Mark and Unmark implement watch.Marker.
func (r *rig) Mark(real string) error {
	if r.noMarks != nil {
		return r.noMarks
	}
	r.marked[real] = true
	return nil
}
func (r *rig) Unmark(real string) { delete(r.marked, real) }

// Writes implements watch.Marker.
func (r *rig) Writes() ([]watch.Write, bool) {
	writes := r.queued
	r.queued = nil
	return writes, false
}

func start(t *testing.T, settings ...plan.Setting) *rig {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	return startIn(t, dir, settings...)
}

// startIn starts a keeper on a device, which an earlier keeper may have used.
func startIn(t *testing.T, dir string, settings ...plan.Setting) *rig {
	t.Helper()
	return startFaulty(t, dir, func(*rig) {}, plan.Plan{Settings: settings})
}

// startFaulty starts a keeper after harm has changed its device.
func startFaulty(t *testing.T, dir string, harm func(*rig), p plan.Plan) *rig {
	t.Helper()
	root, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, dev: devicetest.NewKernel(root), marked: map[string]bool{}}
	harm(r)
	p.Layer, p.Target, p.Board = "vision", "line-camera", "orin-nano-8gb"
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	session, err := enforce.Open(r.dev, &p, enforce.Options{
		Root: true, Backoff: []time.Duration{0}, ReadTimeout: time.Second, MissingCaps: []string{"CAP_SYS_ADMIN"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.keeper = watch.NewKeeper(r.dev, session, watch.Config{
		File: &planfile.File{Plan: &p, Path: "plan.json"}, Marker: r, PID: 1,
		Wall: func() time.Time { return time.Unix(1_800_000_000, 0).Add(r.now + r.step) },
		Name: func(pid int) rootfs.Process { return rootfs.Process{PID: pid, Command: fmt.Sprintf("tool%d", pid)} },
		Emit: func(e watch.Event) { r.events = append(r.events, e) },
	})
	r.session = session
	if r.results, err = session.Apply(); err != nil {
		t.Fatal(err)
	}
	r.keeper.SetSources(0, []watch.Source{{Name: "/proc", Delivered: true}, {Name: "/sys", Delivered: true}})
	return r
}

// write writes a node as another process, which the kernel reports.
func (r *rig) write(pid int, path, value string) {
	r.t.Helper()
	r.writeSilently(path, value)
	real, err := r.dev.Resolve(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.marked[real] {
		r.keeper.HandleWrites(r.now, []watch.Write{{Path: real, PID: pid, Count: 1}})
	}
}

// writeSilently changes a node as the kernel does, without an event.
func (r *rig) writeSilently(path, value string) {
	r.t.Helper()
	if err := r.dev.Device.Write(path, value); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) expectValue(path, want string) {
	r.t.Helper()
	c, err := r.dev.Read(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if got := strings.TrimSpace(c.Text); got != want && !strings.Contains(got, "["+want+"]") {
		r.t.Errorf("%s is %s, want %s", path, got, want)
	}
}

// advance lets time pass and runs the keeper's ticks.
func (r *rig) advance(d time.Duration) {
	r.t.Helper()
	end := r.now + d
	for n := 0; ; n++ {
		next := max(r.keeper.Next(), r.now)
		if next > end {
			break
		}
		if n > 1000 {
			r.t.Fatalf("the keeper is not done at %v", next)
		}
		r.now = next
		if err := r.keeper.Tick(r.now); err != nil {
			r.t.Fatal(err)
		}
	}
	r.now = end
}

func (r *rig) expectEvents(types ...string) []watch.Event {
	r.t.Helper()
	var got []string
	for _, e := range r.events {
		got = append(got, e.Type)
	}
	if !slices.Equal(got, types) {
		r.t.Errorf("events %v, want %v:\n%+v", got, types, r.events)
	}
	defer func() { r.events = nil }()
	return r.events
}

func sysctl(name, want, policy string) plan.Setting {
	return plan.Setting{
		ID: "sysctl." + name, Domain: plan.DomainSysctl, Type: plan.TypeInt, Want: want,
		Select:  plan.Select{Path: "/proc/sys/" + strings.ReplaceAll(name, ".", "/")},
		Compare: plan.Exact, Policy: policy, Needs: plan.NeedsNothing,
	}
}

func classSetting(class, name, attr, typ, want string) plan.Setting {
	return plan.Setting{
		ID: class + "." + name + "." + attr, Domain: plan.DomainStorage, Type: typ, Want: want,
		Select:  plan.Select{Class: class, Name: name, Attr: attr},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
}

const swappiness = "/proc/sys/vm/swappiness"

func TestDriftIsRepairedAndItsWriterReported(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	r.write(812, swappiness, "77")
	r.expectValue(swappiness, "10")
	e := r.expectEvents(watch.Drift)[0]
	if e.By == nil || e.By.PID != 812 || e.By.Command != "tool812" || e.Found != "77" || e.Outcome != outcome.OK || e.Repair == 0 {
		t.Errorf("%+v", e)
	}
	r.write(812, swappiness, "10")
	r.expectEvents()
}

// A sweep may find a change before its event is read, which names the writer all the same.
func TestSweepNamesTheWriterOfAQueuedEvent(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce), sysctl("vm.vfs_cache_pressure", "50", plan.Enforce))
	r.writeSilently(swappiness, "77")
	r.writeSilently("/proc/sys/vm/vfs_cache_pressure", "99")
	r.queued = []watch.Write{{Path: swappiness, PID: 812, Count: 1}}
	r.advance(2 * watch.SweepEvery)
	r.expectValue(swappiness, "10")
	for _, e := range r.expectEvents(watch.Drift, watch.Drift) {
		if named := e.By != nil && e.By.PID == 812; named != (e.Path == swappiness) {
			t.Errorf("%+v", e)
		}
	}
}

func TestPoliciesReportAndOnce(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Report), sysctl("vm.vfs_cache_pressure", "50", plan.Once))
	r.expectValue(swappiness, "60")
	r.expectValue("/proc/sys/vm/vfs_cache_pressure", "50")
	r.write(1, swappiness, "77")
	r.write(1, "/proc/sys/vm/vfs_cache_pressure", "99")
	r.expectValue(swappiness, "77")
	r.expectValue("/proc/sys/vm/vfs_cache_pressure", "99")
	for _, e := range r.expectEvents(watch.Drift, watch.Drift) {
		if !strings.Contains(e.Message, "not repaired, policy is") || e.Repair != 0 {
			t.Errorf("%+v", e)
		}
	}
	r.advance(2 * watch.SweepEvery)
	r.expectEvents() // reported once
	r.expectValue("/proc/sys/vm/vfs_cache_pressure", "99")
}

func TestRepeatedDriftBecomesAContest(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	for n := range 4 {
		r.write(812, swappiness, fmt.Sprint(70+n))
	}
	r.expectValue(swappiness, "73")
	events := r.expectEvents(watch.Drift, watch.Drift, watch.Drift, watch.Contest)
	if alarm := events[3]; !strings.Contains(alarm.Message, "contested by tool812 (pid 812)") || alarm.Outcome != outcome.Contested {
		t.Errorf("%+v", alarm)
	}
	if c := r.keeper.State().Contested; len(c) != 1 || c[0].By.PID != 812 || c[0].Path != swappiness {
		t.Errorf("%+v", c)
	}
	if r.marked[swappiness] {
		t.Error("writes of a contested node must not wake this program")
	}
	// Sweeps do not repair it. The end of the truce repairs it once.
	r.advance(watch.Truce - time.Second)
	r.expectValue(swappiness, "73")
	r.expectEvents()
	r.advance(time.Second)
	r.expectValue(swappiness, "10")
	r.expectEvents(watch.Regained, watch.Drift)
	r.write(812, swappiness, "70")
	r.expectValue(swappiness, "70")
	r.expectEvents(watch.Contest)
}

// The wall clock is set back and forth during a contest.
func TestWallClockChangesAreIgnored(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	for n := range watch.Repairs {
		r.step = []time.Duration{-48 * time.Hour, 0, 300 * time.Hour}[n%3]
		r.write(400, swappiness, "60")
		r.expectValue(swappiness, "10")
	}
	r.step = 1000 * time.Hour
	r.write(400, swappiness, "61")
	r.expectValue(swappiness, "61") // the fourth within a minute of elapsed time
	r.step = 5000 * time.Hour
	r.advance(watch.Truce / 2)
	r.expectValue(swappiness, "61") // the truce lasts ten minutes of elapsed time
	for _, e := range r.events {
		if e.Repair < 0 {
			t.Errorf("%+v", e)
		}
	}
}

func TestContestEndsWhenTheNodeHasTheWantedValue(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	for range 4 {
		r.write(812, swappiness, "77")
	}
	r.events = nil
	r.write(1, swappiness, "10") // an administrator has stopped the other program
	r.advance(2 * watch.SweepEvery)
	r.expectEvents(watch.Regained)
	if len(r.keeper.State().Contested) != 0 || !r.marked[swappiness] {
		t.Errorf("%+v", r.keeper.State().Contested)
	}
}

func TestSweepFindsChangesByTheKernel(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	r.writeSilently(swappiness, "60")
	r.advance(2 * watch.SweepEvery)
	r.expectValue(swappiness, "10")
	if e := r.expectEvents(watch.Drift)[0]; e.By != nil {
		t.Errorf("a writer was reported: %+v", e)
	}
}

func TestSweepIsFrequentWithoutEvents(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	r.keeper.SetSources(0, []watch.Source{{Name: "/proc", Why: "no CAP_SYS_ADMIN"}})
	r.writeSilently(swappiness, "60")
	r.advance(2 * watch.SweepBlind)
	r.expectValue(swappiness, "10")
	if s := r.keeper.State(); s.Sweep != int64(watch.SweepBlind/time.Second) {
		t.Errorf("status reports %d s", s.Sweep)
	}
}

func TestSweepIsFrequentForUnmarkedNodes(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	r.noMarks = unix.ENOSPC // above fs.fanotify.max_user_marks
	r.advance(2 * watch.SweepEvery)
	if err := r.keeper.MarkError(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	delete(r.marked, swappiness)
	r.write(1, swappiness, "77")
	r.advance(2 * watch.SweepBlind)
	r.expectValue(swappiness, "10")
}

// A write of dirty_ratio zeroes dirty_bytes, and the kernel reports only the write.
func TestWriteToARelatedNodeIsDetected(t *testing.T) {
	r := start(t, sysctl("vm.dirty_bytes", "268435456", plan.Enforce))
	const ratio = "/proc/sys/vm/dirty_ratio"
	if !r.marked[ratio] {
		t.Fatalf("marked: %v", slices.Sorted(maps.Keys(r.marked)))
	}
	r.writeSilently("/proc/sys/vm/dirty_bytes", "0")
	r.write(812, ratio, "20")
	r.expectValue("/proc/sys/vm/dirty_bytes", "268435456")
	if e := r.expectEvents(watch.Drift)[0]; e.By == nil || e.By.PID != 812 {
		t.Errorf("%+v", e)
	}
}

func TestReturningDeviceIsNotDrift(t *testing.T) {
	const scheduler = "/sys/block/nvme0n1/queue/scheduler"
	r := start(t, classSetting("block", "nvme*", "queue/scheduler", plan.TypeChoice, "kyber"))
	for n := range 6 { // more than the limit of a contest
		r.writeSilently(scheduler, "[none] mq-deadline kyber")
		r.keeper.HandleUevent(r.now, watch.Uevent{Action: "add", DevPath: "/devices/pci0000:00/nvme0n1", Subsystem: "block"})
		r.advance(5 * time.Second)
		r.expectValue(scheduler, "kyber")
		if e := r.expectEvents(watch.Reapplied, watch.Returned)[0]; e.By != nil || !strings.Contains(e.Message, "add of pci0000:00/nvme0n1") {
			t.Errorf("time %d: %+v", n, e)
		}
	}
}

func TestResumeIsReportedBeforeItsDevices(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	for n := range 9 {
		r.keeper.HandleUevent(r.now, watch.Uevent{Action: "add", DevPath: fmt.Sprintf("/devices/virtual/vc/vcs%d", n), Subsystem: "vc"})
	}
	r.keeper.Rescan(r.now, "resume from sleep")
	r.writeSilently("/proc/sys/vm/swappiness", "60")
	r.advance(5 * time.Second)
	r.expectValue("/proc/sys/vm/swappiness", "10")
	if events := r.expectEvents(watch.Reapplied, watch.Returned); !strings.HasPrefix(events[1].Message, "resume from sleep, vcs0 added, ") {
		t.Errorf("%q", events[1].Message)
	}
}

func TestNodeOfALoadedModuleIsSetAndMarked(t *testing.T) {
	const conntrack = "/proc/sys/net/netfilter/nf_conntrack_max"
	r := start(t, sysctl("net.netfilter.nf_conntrack_max", "65536", plan.Once))
	if r.marked[conntrack] {
		t.Fatal("marked before it exists")
	}
	host := filepath.Join(r.dir, conntrack)
	if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
		t.Fatal(err)
	}
	// Kernels before 4.17 announce a module before its sysctls exist.
	r.keeper.HandleUevent(r.now, watch.Uevent{Action: "add", DevPath: "/module/nf_conntrack", Subsystem: "module"})
	r.advance(100 * time.Millisecond)
	if err := os.WriteFile(host, []byte("262144\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.advance(3 * time.Second)
	r.expectValue(conntrack, "65536")
	if !r.marked[conntrack] {
		t.Error("not marked")
	}
	r.expectEvents(watch.Reapplied, watch.Returned)
	r.write(7, conntrack, "1000")
	r.expectValue(conntrack, "1000") // policy once
}

func TestUeventStormIsCoalesced(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	looks := 0
	r.dev.Quirk = nil
	for range 10_000 {
		r.keeper.HandleUevent(r.now, watch.Uevent{Action: "add", DevPath: "/devices/x", Subsystem: "net"})
		r.now += time.Millisecond
		if r.keeper.Next() <= r.now {
			looks++
			if err := r.keeper.Tick(r.now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if looks > 25 {
		t.Errorf("%d reads in ten seconds of uevents", looks)
	}
}

func TestIrrelevantUeventsAreIgnored(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce))
	r.advance(2 * time.Second)
	before := r.keeper.Next()
	r.keeper.HandleUevent(r.now, watch.Uevent{Action: "change", DevPath: "/devices/virtual/thermal/thermal_zone0", Subsystem: "thermal"})
	if r.keeper.Next() != before {
		t.Error("a uevent of a thermal zone schedules a selection")
	}
}

func TestThermalCapIsNotRepaired(t *testing.T) {
	const limit = "/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
	r := start(t, classSetting("cpufreq", "policy0", "scaling_max_freq", plan.TypeInt, "1510400"))
	r.expectValue(limit, "1510400")
	cooling := filepath.Join(r.dir, "sys/class/thermal/cooling_device0")
	if err := os.MkdirAll(cooling, 0o755); err != nil {
		t.Fatal(err)
	}
	for attr, text := range map[string]string{"type": "cpufreq-cpu0", "cur_state": "3", "max_state": "10"} {
		if err := os.WriteFile(filepath.Join(cooling, attr), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.writeSilently(limit, "1190400")
	writes := len(r.dev.Writes)
	r.advance(3 * watch.SweepEvery)
	if len(r.dev.Writes) != writes {
		t.Errorf("wrote %q against a thermal limit", r.dev.Writes[writes:])
	}
	r.expectEvents()
	// The device is cool again, and another program lowers the limit.
	if err := os.WriteFile(filepath.Join(cooling, "cur_state"), []byte("0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.advance(2 * watch.SweepEvery)
	r.expectValue(limit, "1510400")
}

func TestBurstOfDriftIsBounded(t *testing.T) {
	var settings []plan.Setting
	for _, name := range []string{"swappiness", "vfs_cache_pressure", "dirty_expire_centisecs", "page-cluster"} {
		settings = append(settings, sysctl("vm."+name, "3", plan.Enforce))
	}
	r := start(t, settings...)
	writes := len(r.dev.Writes)
	for batch := range 240 {
		var burst []watch.Write
		for n := range 100 {
			path := settings[n%len(settings)].Select.Path
			if n < len(settings) {
				r.writeSilently(path, fmt.Sprint(4+batch%90))
			}
			burst = append(burst, watch.Write{Path: path, PID: n%3 + 1, Count: 1})
		}
		r.keeper.HandleWrites(r.now, burst)
	}
	if got := len(r.dev.Writes) - writes; got > watch.Repairs*len(settings) {
		t.Errorf("%d repairs", got)
	}
	if n := len(r.keeper.State().History); n > 256 {
		t.Errorf("%d events remembered", n)
	}
	r.advance(2 * time.Second)
	b, err := r.dev.ReadState(watch.File)
	if err != nil || len(b) > 256<<10 {
		t.Errorf("history is %d bytes, %v", len(b), err)
	}
}

func TestHistorySurvivesAKillButNotABoot(t *testing.T) {
	s := sysctl("vm.swappiness", "10", plan.Enforce)
	r := start(t, s)
	r.write(812, swappiness, "77")
	r.advance(time.Second)
	again := startIn(t, r.dir, s)
	if h := again.keeper.State().History; len(h) != 1 || h[0].By.PID != 812 {
		t.Errorf("%+v", h)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "proc/sys/kernel/random/boot_id"), []byte("other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if h := startIn(t, r.dir, s).keeper.State().History; len(h) != 0 {
		t.Errorf("%+v", h)
	}
}

func TestDamagedHistoryIsReplaced(t *testing.T) {
	s := sysctl("vm.swappiness", "10", plan.Enforce)
	r := start(t, s)
	if err := r.dev.WriteState(watch.File, []byte(`{"boot":`)); err != nil {
		t.Fatal(err)
	}
	again := startIn(t, r.dir, s)
	again.write(1, swappiness, "77")
	again.expectValue(swappiness, "10")
}

func TestRefusedRepairIsReportedOnce(t *testing.T) {
	r := start(t, sysctl("vm.swappiness", "10", plan.Enforce), sysctl("vm.vfs_cache_pressure", "50", plan.Enforce))
	r.dev.WriteFault[swappiness] = unix.EPERM
	r.write(1, swappiness, "77")
	if e := r.expectEvents(watch.Drift)[0]; e.Outcome != outcome.Forbidden {
		t.Errorf("%+v", e)
	}
	r.advance(5 * watch.SweepEvery)
	r.expectEvents()
	// Other nodes are still repaired.
	r.write(1, "/proc/sys/vm/vfs_cache_pressure", "99")
	r.expectValue("/proc/sys/vm/vfs_cache_pressure", "50")
}

// A lease takes precedence over the plan, and its end restores the plan's values.
func TestLeaseIsAppliedAndUndone(t *testing.T) {
	const policy = "/sys/devices/system/cpu/cpufreq/policy0/"
	r := start(t, classSetting("cpufreq", "policy0", "scaling_governor", plan.TypeString, "schedutil"))
	before, err := r.dev.Read(policy + "scaling_min_freq")
	if err != nil {
		t.Fatal(err)
	}
	over := []plan.Setting{
		classSetting("cpufreq", "policy0", "scaling_governor", plan.TypeString, "performance"),
		classSetting("cpufreq", "policy0", "scaling_min_freq", plan.TypeInt, "1510400"),
	}
	if _, err := r.keeper.Overlay(over); err != nil {
		t.Fatal(err)
	}
	r.expectValue(policy+"scaling_governor", "performance")
	r.write(1, policy+"scaling_governor", "schedutil")
	r.expectValue(policy+"scaling_governor", "performance")
	if failed, err := r.keeper.RemoveOverlay(); err != nil || len(failed) > 0 {
		t.Fatalf("%v %+v", err, failed)
	}
	r.expectValue(policy+"scaling_governor", "schedutil")
	r.expectValue(policy+"scaling_min_freq", strings.TrimSpace(before.Text))
	r.write(1, policy+"scaling_governor", "performance")
	r.expectValue(policy+"scaling_governor", "schedutil")
}

// If the process is killed at any change during a lease, the next one ends the lease, and
// rollback restores the originals.
func TestLeaseIsUndoneAfterKillAtAnyStep(t *testing.T) {
	const policy = "/sys/devices/system/cpu/cpufreq/policy0/"
	p := &plan.Plan{Layer: "vision", Target: "line-camera", Settings: []plan.Setting{
		classSetting("cpufreq", "policy0", "scaling_governor", plan.TypeString, "conservative"),
	}}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	over := []plan.Setting{
		classSetting("cpufreq", "policy0", "scaling_governor", plan.TypeString, "performance"),
		classSetting("cpufreq", "policy0", "scaling_min_freq", plan.TypeInt, "1510400"),
	}
	dir := t.TempDir()
	if err := devicetest.Build(dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	options := enforce.Options{Root: true, Backoff: []time.Duration{0}}
	values := func() string {
		var out []string
		for _, n := range []string{"scaling_governor", "scaling_min_freq"} {
			c, err := root.Read(policy + n)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, strings.TrimSpace(c.Text))
		}
		return strings.Join(out, " ")
	}
	atBoot := values()
	min := strings.Fields(atBoot)[1]
	for at := 1; ; at++ {
		dying := devicetest.NewKernel(root)
		dying.KillAt, dying.Torn = at, at%2 == 0
		life := func() error {
			s, err := enforce.Open(dying, p, options)
			if err != nil {
				return err
			}
			if _, err := s.Apply(); err != nil {
				return err
			}
			if _, err := s.Overlay(over); err != nil {
				return err
			}
			_, err = s.RemoveOverlay()
			return err
		}
		_ = life()
		done := dying.Clock < at
		s, err := enforce.Open(devicetest.NewKernel(root), p, options)
		if err != nil {
			t.Fatal(err)
		}
		if failed, err := s.RemoveOverlay(); err != nil || len(failed) > 0 {
			t.Fatalf("step %d: %v %+v", at, err, failed)
		}
		if _, err := s.Apply(); err != nil {
			t.Fatal(err)
		}
		if got := values(); got != "conservative "+min {
			t.Fatalf("step %d: after the restart %q", at, got)
		}
		if _, err := enforce.Rollback(root, options); err != nil {
			t.Fatal(err)
		}
		if got := values(); got != atBoot {
			t.Fatalf("step %d: after rollback %q, at boot %q", at, got, atBoot)
		}
		if done {
			break
		}
	}
	if _, err := root.ReadState(journal.File); err == nil {
		t.Error("the journal still exists")
	}
}

func TestParseUevent(t *testing.T) {
	u, ok := watch.ParseUevent([]byte("add@/module/nf_conntrack\x00ACTION=add\x00DEVPATH=/module/nf_conntrack\x00SUBSYSTEM=module\x00SEQNUM=4\x00"))
	if !ok || u != (watch.Uevent{Action: "add", DevPath: "/module/nf_conntrack", Subsystem: "module"}) {
		t.Errorf("%+v %v", u, ok)
	}
	for _, bad := range []string{"", "libudev\x00\xfe\xed", "add@", "@/x\x00", "add@relative\x00"} {
		if u, ok := watch.ParseUevent([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, u)
		}
	}
}

func FuzzParseUevent(f *testing.F) {
	f.Add([]byte("change@/devices/x\x00SUBSYSTEM=block\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if u, ok := watch.ParseUevent(b); ok && (u.Action == "" || u.DevPath == "") {
			t.Fatalf("%+v", u)
		}
	})
}

// Nothing reports that a kernel thread starts or that its scheduling changes.
func TestLateKernelThreadIsScheduled(t *testing.T) {
	dir := t.TempDir()
	if err := devicetest.Build(dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	thread := func(pid, name string) string {
		node := "/proc/" + pid + "/kthread/" + strings.ReplaceAll(name, "/", "!") + "/scheduling"
		for file, text := range map[string]string{
			"/proc/" + pid + "/stat": pid + " (" + name + ") S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 -51 0 1 0 3 0 0\n", node: "fifo 50\n",
		} {
			if err := os.MkdirAll(filepath.Dir(dir+file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return node
	}
	early := thread("300", "irq/76-can1")
	r := startIn(t, dir, plan.Setting{ID: "threads.can", Domain: plan.DomainThread, Select: plan.Select{Class: "kthread", Name: "irq/*-can*", Attr: "scheduling"},
		Type: plan.TypeString, Want: "fifo 80", Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing})
	r.expectValue(early, "fifo 80")
	late := thread("301", "irq/77-can0")
	r.advance(2 * watch.SweepThreads)
	r.expectValue(late, "fifo 80")
	r.writeSilently(late, "fifo 1")
	r.advance(2 * watch.SweepThreads)
	r.expectValue(late, "fifo 80")
}
