package watch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/notify"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/plan"
)

// patience is a timeout for a busy machine.
const patience = time.Minute

// recorder is a Reporter that sends reports to channels.
type recorder struct {
	watching chan []watch.Source
	events   chan watch.Event
	leases   chan string
	problems chan error
}

func (h *recorder) Applied([]enforce.Result)                          {}
func (h *recorder) Watching(s []watch.Source, _ int, _ time.Duration) { h.watching <- s }
func (h *recorder) Event(e watch.Event)                               { h.events <- e }
func (h *recorder) Leased(action string, _ watch.Lease)               { h.leases <- action }
func (h *recorder) Restored(string, []enforce.Result)                 {}
func (h *recorder) Problem(err error)                                 { h.problems <- err }

// startRun starts a run with a plan of these settings. The run ends with the test.
func startRun(t *testing.T, root *rootfs.Root, rollback string, settings ...plan.Setting) *recorder {
	t.Helper()
	return startPlan(t, root, &plan.Plan{Layer: "vision", Target: "line-camera", Rollback: rollback, Settings: settings})
}

// startPlan starts a run with a plan.
func startPlan(t *testing.T, root *rootfs.Root, p *plan.Plan) *recorder {
	t.Helper()
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	systemd, err := notify.Connect(func(string) string { return "" }, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &recorder{make(chan []watch.Source, 1), make(chan watch.Event, 1000), make(chan string, 1000), make(chan error, 1000)}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- watch.Run(ctx, watch.Settings{
			Root: root, File: &planfile.File{Plan: p, Path: "plan.json"}, Systemd: systemd, Report: h,
			Enforce: enforce.Options{Root: true},
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case sources := <-h.watching:
		for _, s := range sources {
			t.Logf("events of %s: %v %s", s.Name, s.Delivered, s.Why)
		}
		h.watching <- sources
	case err := <-done:
		done <- nil
		t.Fatalf("the run ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the run does not start")
	}
	return h
}

// needsEvents skips the test if the kernel reports no writes to this process.
func (h *recorder) needsEvents(t *testing.T) {
	t.Helper()
	sources := <-h.watching
	for _, s := range sources {
		if !s.Delivered && strings.HasPrefix(s.Name, "/") {
			t.Skipf("no events from %s here: %s", s.Name, s.Why)
		}
	}
}

// waitForRepair waits for the repair of a node.
func (h *recorder) waitForRepair(t *testing.T, path string) watch.Event {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case e := <-h.events:
			if e.Path == path && e.Repair > 0 {
				return e
			}
		case <-late:
			t.Fatalf("%s was not repaired", path)
		}
	}
}

// startWriter starts a process that writes a value and runs until the test ends.
func startWriter(t *testing.T, path, value string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", `printf %s "$1" >"$2"; read wait`, "sh", value, path)
	if _, err := cmd.StdinPipe(); err != nil { // it reads until the test ends it
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func tree(t *testing.T) *rootfs.Root {
	t.Helper()
	// The path of a Unix socket has at most 108 bytes.
	dir, err := os.MkdirTemp("", "yt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := devicetest.Build(dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestWriterProcessIsReported(t *testing.T) {
	root := tree(t)
	h := startRun(t, root, "keep", sysctl("vm.swappiness", "10", plan.Enforce))
	h.needsEvents(t)
	other := startWriter(t, filepath.Join(root.Dir(), swappiness), "77")
	e := h.waitForRepair(t, swappiness)
	if e.By == nil || e.By.PID != other.Process.Pid || e.By.Command != "sh" || e.Outcome != outcome.OK {
		t.Errorf("%+v by %+v", e, e.By)
	}
}

// The values are changed by another process on this machine's kernel.
func TestDriftOnThisKernelIsRepaired(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: the kernel of this machine cannot be changed")
	}
	devicetest.LockMachine(t)
	root, err := rootfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := root.Lock("go test")
	if err != nil {
		t.Skipf("this machine is being tuned: %v", err)
	}
	defer unlock()
	if _, err := root.ReadState(journal.File); err == nil {
		t.Skipf("this machine is tuned: %s exists", journal.File)
	}
	before, err := root.Read(swappiness)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Write(swappiness, strings.TrimSpace(before.Text)); err != nil {
		t.Skipf("/proc/sys is not writable here: %v", err)
	}
	state, stateErr := root.ReadState(watch.File)
	t.Cleanup(func() {
		if now, err := root.Read(swappiness); err != nil || now.Text != before.Text {
			t.Errorf("swappiness is %q, was %q: %v", now.Text, before.Text, err)
		}
		// The enforcer keeps its last state for `yoctuned status`, which would report this test.
		var err error
		if errors.Is(stateErr, fs.ErrNotExist) {
			err = root.RemoveState(watch.File)
		} else if stateErr == nil {
			err = root.WriteState(watch.File, state)
		}
		if err != nil {
			t.Error(err)
		}
	})
	h := startRun(t, root, "on-stop", sysctl("vm.swappiness", "11", plan.Enforce))
	h.needsEvents(t)
	var took []string
	for n := range watch.Repairs {
		other := startWriter(t, swappiness, fmt.Sprint(70+n))
		e := h.waitForRepair(t, swappiness)
		if e.By == nil || e.By.PID != other.Process.Pid || e.Outcome != outcome.OK || e.Found != fmt.Sprint(70+n) {
			t.Errorf("%+v by %+v", e, e.By)
		}
		if now, err := root.Read(swappiness); err != nil || strings.TrimSpace(now.Text) != "11" {
			t.Errorf("swappiness is %q: %v", now.Text, err)
		}
		took = append(took, fmt.Sprintf("%.2f ms", float64(e.Repair)/1000))
		if e.Repair > 50_000 {
			t.Logf("slower than 50 ms, on a machine that may be busy")
		}
	}
	t.Logf("from the event to the value read back: %s", strings.Join(took, ", "))
	startWriter(t, swappiness, "79")
	for {
		select {
		case e := <-h.events:
			if e.Type != watch.Contest {
				continue
			}
			if !strings.Contains(e.Message, "contested by sh (pid ") {
				t.Error(e.Message)
			}
			return
		case <-time.After(patience):
			t.Fatal("no alarm")
		}
	}
}

func dial(t *testing.T, root *rootfs.Root) *api.Client {
	t.Helper()
	c, err := api.Dial(filepath.Join(root.Dir(), api.Socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// startLeasing starts a run and returns when its socket exists.
func startLeasing(t *testing.T) (*rootfs.Root, *recorder) {
	t.Helper()
	root := tree(t)
	h := startRun(t, root, "keep", classSetting("cpufreq", "policy*", "scaling_governor", plan.TypeString, "schedutil"))
	late := time.Now().Add(patience)
	for {
		c, err := api.Dial(filepath.Join(root.Dir(), api.Socket))
		if err == nil {
			_ = c.Close()
			return root, h
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED) || time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

func (h *recorder) waitForLease(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-h.leases:
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("no report of %q", want)
	}
}

// waitForValue polls a node until it has a value.
func waitForValue(t *testing.T, root *rootfs.Root, path, want string) {
	t.Helper()
	late := time.Now().Add(patience)
	for {
		c, err := root.Read(path)
		if err == nil && strings.TrimSpace(c.Text) == want {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s is %q, want %q: %v", path, c.Text, want, err)
		}
	}
}

const governor = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"

func TestLeaseEndsWithItsConnection(t *testing.T) {
	root, h := startLeasing(t)
	c := dial(t, root)
	granted, err := c.Acquire(lease.Profile, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	h.waitForLease(t, "granted")
	if len(granted.Settings) == 0 || granted.TTL != 60_000 || len(granted.Notes) == 0 {
		t.Errorf("%+v", granted)
	}
	waitForValue(t, root, governor, "performance")
	second := dial(t, root)
	if _, err := second.Acquire(lease.Profile, time.Minute); err != nil {
		t.Fatal(err)
	}
	h.waitForLease(t, "granted")
	if a, err := second.Do(api.Request{Type: api.Leases}); err != nil || len(a.Leases) != 2 || a.Leases[0].PID != os.Getpid() {
		t.Errorf("%+v %v", a.Leases, err)
	}
	if _, err := c.Acquire(lease.Profile, time.Minute); !refused(err, api.CodeQuota) {
		t.Errorf("a second lease on one connection: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	h.waitForLease(t, "ended with its holder")
	waitForValue(t, root, governor, "performance") // held by the other lease
	if _, err := second.Renew(); err != nil {
		t.Error(err)
	}
	if _, err := second.Do(api.Request{Type: api.Release}); err != nil {
		t.Error(err)
	}
	h.waitForLease(t, "released")
	waitForValue(t, root, governor, "schedutil")
	if _, err := second.Renew(); !refused(err, api.CodeNone) {
		t.Errorf("%v", err)
	}
}

func TestLeaseOfAHungHolderExpires(t *testing.T) {
	root, h := startLeasing(t)
	c := dial(t, root)
	if _, err := c.Acquire(lease.Profile, lease.MinTTL); err != nil {
		t.Fatal(err)
	}
	h.waitForLease(t, "granted")
	h.waitForLease(t, "expired")
	waitForValue(t, root, governor, "schedutil")
}

func TestRootCanRevokeALease(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: only root may revoke the lease of another")
	}
	root, h := startLeasing(t)
	holder, admin := dial(t, root), dial(t, root)
	granted, err := holder.Acquire(lease.Profile, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Do(api.Request{Type: api.Revoke, Lease: granted.Lease}); err != nil {
		t.Fatal(err)
	}
	h.waitForLease(t, "granted")
	h.waitForLease(t, "revoked")
	waitForValue(t, root, governor, "schedutil")
	if _, err := admin.Do(api.Request{Type: api.Revoke, Lease: granted.Lease}); !refused(err, api.CodeNone) {
		t.Errorf("%v", err)
	}
}

// requestAs sends a request as a user other than root and returns the answer.
func requestAs(t *testing.T, root *rootfs.Root, gid uint32, request string) string {
	t.Helper()
	const python = "/usr/bin/python3" // one in root's home could not be run by that user
	if _, err := os.Stat(python); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and ", python, " to change the user: ", err)
	}
	if err := os.Chmod(root.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", `import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + b"\n"); print(s.makefile().readline())`,
		filepath.Join(root.Dir(), api.Socket), request)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{gid}}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestPeerCredentialsDecidePermissions(t *testing.T) {
	root, _ := startLeasing(t)
	const leases, acquire, revoke = `{"type":"leases"}`, `{"type":"acquire","profile":"high-performance"}`, `{"type":"revoke","lease":1}`
	if got := requestAs(t, root, 65534, leases); !strings.HasPrefix(got, `{"type":"listed"`) {
		t.Errorf("a stranger reads: %s", got)
	}
	if got := requestAs(t, root, 900, acquire); !strings.Contains(got, `"code":"denied"`) {
		t.Errorf("without a group yoctune: %s", got)
	}
	// The group may be created while the service runs.
	f, err := os.OpenFile(filepath.Join(root.Dir(), "etc/group"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("yoctune:x:900:\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := requestAs(t, root, 65534, acquire); !strings.Contains(got, "user 65534 may not take leases: only root and members of group yoctune may") {
		t.Errorf("a stranger: %s", got)
	}
	if got := requestAs(t, root, 900, acquire); !strings.HasPrefix(got, `{"type":"granted"`) {
		t.Errorf("a member: %s", got)
	}
	if got := requestAs(t, root, 900, revoke); !strings.Contains(got, `"code":"denied"`) {
		t.Errorf("a member revokes: %s", got)
	}
}

// The holder's child has inherited the connection and outlives the holder.
func TestLeaseEndsWithItsHolderDespiteAChild(t *testing.T) {
	root, h := startLeasing(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3: ", err)
	}
	cmd := exec.Command(python, "-c", `import os, socket, subprocess, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.set_inheritable(True)
s.sendall(b'{"type":"acquire","profile":"high-performance"}\n'); s.recv(65536)
subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
sys.stdin.read()`, filepath.Join(root.Dir(), api.Socket))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	h.waitForLease(t, "granted")
	waitForValue(t, root, governor, "performance")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	h.waitForLease(t, "ended with its holder")
	waitForValue(t, root, governor, "schedutil")
}

// Requests that arrive in one read are all answered, in several turns.
func TestConcurrentRequests(t *testing.T) {
	root, _ := startLeasing(t)
	conn, err := net.Dial("unix", filepath.Join(root.Dir(), api.Socket))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	const count = 200
	if _, err := conn.Write([]byte(strings.Repeat(`{"type":"leases"}`+"\n", count))); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(conn)
	for n := range count {
		if !answers.Scan() {
			t.Fatalf("%d answers of %d: %v", n, count, answers.Err())
		}
	}
}

// No input of a client affects the next client.
func TestTheSocketSurvivesGarbage(t *testing.T) {
	root, h := startLeasing(t)
	for _, garbage := range []string{"", "\n", "\x00\xff\n", "{}\n", strings.Repeat("x", 3*api.MaxMessage), strings.Repeat(`{"type":"renew"}`+"\n", 2000), `{"type":"acquire","profile":"root shell"}` + "\n"} {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(root.Dir(), api.Socket)}); err != nil {
			t.Fatal(err)
		}
		for b := []byte(garbage); len(b) > 0; {
			n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			if err != nil {
				break // the socket is full or closed
			}
			b = b[n:]
		}
		_ = unix.Close(fd)
		c := dial(t, root)
		if _, err := c.Do(api.Request{Type: api.Leases}); err != nil {
			t.Errorf("after %.20q: %v", garbage, err)
		}
		_ = c.Close()
	}
	if len(h.leases) != 0 {
		t.Errorf("%d leases from invalid requests", len(h.leases))
	}
}

func TestPlanIsEnforcedWithoutASocket(t *testing.T) {
	root := tree(t)
	if err := os.MkdirAll(filepath.Join(root.Dir(), api.Socket, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := startRun(t, root, "keep", sysctl("vm.swappiness", "10", plan.Enforce))
	select {
	case err := <-h.problems:
		if !strings.Contains(err.Error(), "no leases: listen on "+api.Socket) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("no problem was reported")
	}
	h.needsEvents(t)
	startWriter(t, filepath.Join(root.Dir(), swappiness), "77")
	h.waitForRepair(t, swappiness)
}

// A process makes 24,000 changes in a row. The enforcer repairs a few, reports the contest, and
// uses no more memory than before.
func TestBurstOfDriftRaisesAnAlarm(t *testing.T) {
	root := tree(t)
	nodes := []string{"swappiness", "vfs_cache_pressure", "dirty_expire_centisecs", "page-cluster"}
	var settings []plan.Setting
	var paths []string
	for _, n := range nodes {
		settings = append(settings, sysctl("vm."+n, "3", plan.Enforce))
		paths = append(paths, filepath.Join(root.Dir(), "proc/sys/vm", n))
	}
	h := startRun(t, root, "keep", settings...)
	h.needsEvents(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	burst := exec.Command("sh", append([]string{"-c", `i=0; while [ $i -lt 6000 ]; do i=$((i+1)); for f; do echo $((i%90+4)) >"$f"; done; done`, "sh"}, paths...)...)
	start := time.Now()
	if out, err := burst.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	took := time.Since(start)
	contested, repaired := map[string]bool{}, 0
	for late := time.After(patience); len(contested) < len(nodes); {
		select {
		case e := <-h.events:
			switch {
			case e.Type == watch.Contest:
				contested[e.Path] = true
			case e.Repair > 0:
				repaired++
			}
		case <-late:
			t.Fatalf("contested are %v", contested)
		}
	}
	if repaired > watch.Repairs*len(nodes) {
		t.Errorf("%d repairs", repaired)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("24,000 writes in %v, %d repairs, heap %d KiB before and %d after", took.Round(time.Millisecond), repaired, before.HeapAlloc/1024, after.HeapAlloc/1024)
	if after.HeapAlloc > before.HeapAlloc+4<<20 {
		t.Errorf("the heap grew by %d KiB", (after.HeapAlloc-before.HeapAlloc)/1024)
	}
}

func TestPlanIsProvenOnceItHasLasted(t *testing.T) {
	root := tree(t)
	p := &plan.Plan{Layer: "vision", Target: "line-camera", Settings: []plan.Setting{sysctl("vm.swappiness", "10", plan.Enforce)}}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	systemd, err := notify.Connect(func(string) string { return "" }, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	proofs := 0
	err = watch.Run(ctx, watch.Settings{
		Root: root, File: &planfile.File{Plan: p, Path: "plan.json"}, Systemd: systemd, Enforce: enforce.Options{Root: true},
		Report:     &recorder{make(chan []watch.Source, 1), make(chan watch.Event, 1000), make(chan string, 1000), make(chan error, 1000)},
		ProveAfter: time.Millisecond,
		Prove: func() error {
			proofs++
			stop()
			return planfile.ProveBoot(root, p)
		},
	})
	if err != nil || proofs != 1 {
		t.Errorf("%v, proven %d times", err, proofs)
	}
	if b, err := planfile.ReadBoot(root); err != nil || b == nil || !b.Proven {
		t.Errorf("%+v %v", b, err)
	}
}

// Clients that request a sample at the same time share one reading of the sensors, and a recent
// sample is sent again.
func TestClientsShareOneReading(t *testing.T) {
	root, _ := startLeasing(t)
	at := make(chan int64, 5)
	for range cap(at) {
		c := dial(t, root)
		go func() {
			b, err := c.Sample(time.Hour)
			var s monitor.Sample
			if err == nil {
				err = json.Unmarshal(b, &s)
			}
			if err != nil || s.Type != "sample" || len(s.CPUs) != 6 || s.PowerMode == nil {
				t.Errorf("%v: %.200s", err, b)
			}
			at <- s.Monotonic
		}()
	}
	first := <-at
	for range cap(at) - 1 {
		if n := <-at; n != first || n == 0 {
			t.Errorf("samples of %d and %d", first, n)
		}
	}
	// Requests for a fresh sample do not lower the minimum interval between readings.
	c := dial(t, root)
	for last, n := first, 0; n < 3; {
		b, err := c.Sample(0)
		var s monitor.Sample
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Monotonic == last {
			continue
		}
		if d := time.Duration(s.Monotonic - last); d < 100*time.Millisecond {
			t.Errorf("the sensors were read again after %v", d)
		}
		last, n = s.Monotonic, n+1
	}
	if _, err := c.Do(api.Request{Type: api.Leases}); err != nil {
		t.Errorf("the connection cannot be used afterwards: %v", err)
	}
}

// refused reports whether err is a refusal with the given code.
func refused(err error, code string) bool {
	var r *api.RefusedError
	return errors.As(err, &r) && r.Code == code
}
