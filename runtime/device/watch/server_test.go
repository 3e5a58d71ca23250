package watch

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/notify"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// silent is a Reporter that discards its reports.
type silent struct{}

func (silent) Applied([]enforce.Result)              {}
func (silent) Watching([]Source, int, time.Duration) {}
func (silent) Event(Event)                           {}
func (silent) Leased(string, Lease)                  {}
func (silent) Restored(string, []enforce.Result)     {}
func (silent) Problem(error)                         {}

// newIdleDaemon returns a daemon without its loop. Tests call its steps.
func newIdleDaemon(t testing.TB) *daemon {
	t.Helper()
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
	p := &plan.Plan{Layer: "vision", Target: "a"}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	file := &planfile.File{Plan: p, Path: "plan.json"}
	systemd, err := notify.Connect(func(string) string { return "" }, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{Settings: Settings{Root: root, File: file, Systemd: systemd, Report: silent{}}, shown: map[uint64]Lease{}}
	if d.session, err = enforce.Open(root, p, enforce.Options{Root: true}); err != nil {
		t.Fatal(err)
	}
	if d.poll, err = openPoll(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.poll.close)
	d.sampling = newSampling(root, d.poll.wake)
	d.sampling.last = &monitor.Sample{}
	d.keeper = NewKeeper(root, d.session, Config{File: file, Wall: time.Now, Name: rootfs.NameProcess, Emit: d.publishEvent})
	if d.server, err = listen(root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.server.close)
	return d
}

// addClient adds a client with a right and returns the other end of its connection.
func (d *daemon) addClient(t testing.TB, r right) (*client, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{fd: fds[0], holder: -1, uid: 1000, pid: os.Getpid(), right: r}
	d.server.clients[c.fd] = c
	return c, fds[1]
}

// A client that begins a line and does not finish it holds no connection; its lease ends.
func TestUnfinishedLineEndsTheConnection(t *testing.T) {
	d := newIdleDaemon(t)
	d.handlers = map[int]func(time.Duration){}
	patient, other := d.addClient(t, mayLease)
	defer func() { _ = unix.Close(other) }()
	slow, far := d.addClient(t, mayLease)
	defer func() { _ = unix.Close(far) }()
	now := rootfs.BootTime()
	send := func(c *client, fd int, text string, at time.Duration) {
		t.Helper()
		if _, err := unix.Write(fd, []byte(text)); err != nil {
			t.Fatal(err)
		}
		d.handleClient(at, c.fd)
	}
	send(patient, other, `{"type":"leases"}`+"\n", now)
	send(slow, far, `{"type":"acquire","profile":"high-performance","ttl_ms":60000}`+"\n", now)
	if slow.lineBy != 0 || slow.lease == 0 {
		t.Fatalf("a complete line has a deadline, or there is no lease: %+v", slow)
	}
	send(slow, far, `{"type":`, now+time.Second)
	send(slow, far, `"renew"`, now+2*time.Second) // later bytes do not extend the time
	if want := now + time.Second + lineTimeout; slow.lineBy != want || d.nextDeadline() > want {
		t.Fatalf("the line must be complete at %v, want %v; the daemon wakes up at %v", slow.lineBy, want, d.nextDeadline())
	}
	d.runDue(slow.lineBy - 1)
	if d.server.clients[slow.fd] == nil {
		t.Fatal("the connection ended too early")
	}
	d.runDue(slow.lineBy)
	if d.server.clients[slow.fd] != nil || d.server.clients[patient.fd] == nil || len(d.ledger.All()) != 0 {
		t.Errorf("connections: %v; leases: %v", d.server.clients, d.ledger.All())
	}
	answer := make([]byte, 65536)
	n, err := unix.Read(far, answer)
	if err != nil || !bytes.Contains(answer[:n], []byte("a line was not finished within 10s")) {
		t.Errorf("%v %q", err, answer[:max(n, 0)])
	}
}

// Work that no event has started, such as the proof of a boot after a minute, maps pages of the
// program again.
func TestMemoryIsFreedAfterTimedWork(t *testing.T) {
	d := newIdleDaemon(t)
	d.handlers = map[int]func(time.Duration){}
	proven := 0
	d.Prove = func() error { proven++; return nil }
	now := rootfs.BootTime()
	d.proveAt, d.removeOverlayAt = now, now+time.Second
	d.runDue(now)
	if want := now + idleBeforeFree; proven != 1 || d.freeMemoryAt != want {
		t.Fatalf("proven %d times; memory is freed at %v, want %v, as more work follows", proven, d.freeMemoryAt, want)
	}
	d.removeOverlayAt = 0
	d.runDue(d.freeMemoryAt)
	if d.freeMemoryAt != 0 {
		t.Errorf("memory is freed again at %v", d.freeMemoryAt)
	}
	d.proveAt = now
	d.runDue(now) // the last work
	if d.freeMemoryAt != 0 {
		t.Errorf("memory is freed again at %v", d.freeMemoryAt)
	}
}

// Any input, in any pieces, gets one answer for each line or closes the connection. Memory is
// bounded, and no lease outlives the connection or exceeds the client's right.
func FuzzServer(f *testing.F) {
	const acquire = `{"type":"acquire","profile":"high-performance","ttl_ms":60000}` + "\n"
	f.Add([]byte(acquire+`{"type":"renew"}`+"\n"+`{"type":"release"}`+"\n"), uint8(1), uint8(255))
	f.Add([]byte(acquire+acquire+`{"type":"revoke","lease":1}`+"\n"), uint8(0), uint8(3))
	f.Add(bytes.Repeat([]byte("\n"), 300), uint8(2), uint8(200))
	f.Add(bytes.Repeat([]byte("x"), 5000), uint8(1), uint8(90))
	f.Add([]byte("{\"type\":\"acquire\",\"profile\":\"\x00\xff\u2028\"}\n"), uint8(1), uint8(7))
	f.Add([]byte(`{"type":"watch"}`+"\n"+acquire), uint8(1), uint8(255))
	d := newIdleDaemon(f)
	f.Fuzz(func(t *testing.T, sent []byte, r, piece uint8) {
		c, far := d.addClient(t, right(r%3))
		defer func() { _ = unix.Close(far) }()
		open := true
		var answers []byte
		drain := func() {
			var buf [65536]byte
			for {
				n, err := unix.Read(far, buf[:])
				if err != nil || n <= 0 {
					return
				}
				answers = append(answers, buf[:n]...)
			}
		}
		lines := bytes.Count(sent, []byte("\n"))
		for rest := sent; len(rest) > 0 && open; {
			n, err := unix.Write(far, rest[:min(len(rest), int(piece)+1)])
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			open = d.server.receive(c) && d.serveClient(0, c)
			for open && c.hasLine() {
				open = d.serveClient(0, c)
				drain()
			}
			drain()
			if len(c.buf) > 2*api.MaxMessage {
				t.Fatalf("%d bytes are kept", len(c.buf))
			}
		}
		if c.right < mayLease && c.lease != 0 {
			t.Fatal("a lease for a client that may only read")
		}
		d.hangUp(0, c)
		if held := d.ledger.All(); len(held) != 0 || len(d.shown) != 0 {
			t.Fatalf("%+v outlives its connection", held)
		}
		got := 0
		for line := range bytes.Lines(answers) {
			var a api.Answer
			if err := json.Unmarshal(line, &a); err != nil || !bytes.HasPrefix(line, []byte(`{"type":"`)) {
				t.Fatalf("%q: %v", line, err)
			}
			if a.Type != api.Happened {
				got++
			}
		}
		if open && got != lines || got > lines+1 {
			t.Fatalf("%d answers for %d lines", got, lines)
		}
	})
}

// A client that opens many connections or never reads does not block others.
func TestHostileUserBlocksNoOtherUser(t *testing.T) {
	d := newIdleDaemon(t)
	var ends []int
	for range perUser {
		_, far := d.addClient(t, mayRead)
		ends = append(ends, far)
	}
	defer func() {
		for _, fd := range ends {
			_ = unix.Close(fd)
		}
	}()
	if why := d.server.rejectReason(&client{uid: 1000, right: mayLease}); why == "" {
		t.Error("one user may have any number of connections")
	}
	if why := d.server.rejectReason(&client{uid: 1001, right: mayRead}); why != "" {
		t.Error("another user: ", why)
	}
	for len(d.server.clients) < maxClients {
		c, far := d.addClient(t, mayRead)
		c.uid = uint32(2000 + far)
		ends = append(ends, far)
	}
	if why := d.server.rejectReason(&client{uid: 1001, right: mayRead}); why == "" {
		t.Error("any number of users may connect")
	}
	if why := d.server.rejectReason(&client{right: mayAdmin}); why != "" {
		t.Error("root may not connect: ", why)
	}

	// A client that never reads is disconnected when its answers no longer fit.
	c, far := d.addClient(t, mayRead)
	ends = append(ends, far)
	request := []byte(`{"type":"leases"}` + "\n")
	dropped := false
	for range 1 << 20 {
		c.buf = append(c.buf, request...)
		if !d.serveClient(0, c) {
			dropped = true
			break
		}
	}
	if !dropped {
		t.Error("answers are kept for a client that never reads")
	}
}

// In a burst, a watcher that does not read loses events and receives their number. A watcher that
// reads receives all events, and other clients receive none.
func TestSlowWatchersLoseEvents(t *testing.T) {
	d := newIdleDaemon(t)
	slow, slowEnd := d.addClient(t, mayRead)
	quick, quickEnd := d.addClient(t, mayRead)
	_, idleEnd := d.addClient(t, mayRead)
	defer func() {
		for _, fd := range []int{slowEnd, quickEnd, idleEnd} {
			_ = unix.Close(fd)
		}
	}()
	read := func(fd int) (out []api.Answer) {
		buf := make([]byte, 1<<20)
		for {
			n, err := unix.Read(fd, buf)
			if err != nil || n <= 0 {
				return out
			}
			for line := range bytes.Lines(buf[:n]) {
				var a api.Answer
				if err := json.Unmarshal(line, &a); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				out = append(out, a)
			}
		}
	}
	for _, c := range []*client{slow, quick} {
		c.buf = []byte(`{"type":"watch"}` + "\n")
		if !d.serveClient(0, c) {
			t.Fatal("not served")
		}
	}
	if got := read(quickEnd); len(got) != 1 || got[0].Type != api.Watching {
		t.Fatalf("%+v", got)
	}
	const burst = 5000
	e := Event{Type: Drift, Path: "/proc/sys/vm/swappiness", Found: strings.Repeat("7", 5000), By: &rootfs.Process{PID: 812, Command: "sh"}}
	for i := range burst {
		d.publishEvent(e)
		if got := read(quickEnd); len(got) != 1 || got[0].Event.By.PID != 812 || got[0].Event.Lost != 0 || len(got[0].Event.Found) > maxText {
			t.Fatalf("event %d: %+v", i, got)
		}
	}
	taken := len(read(slowEnd)) - 1
	if taken < 1 || taken >= burst {
		t.Fatalf("a watcher that does not read received %d of %d", taken, burst)
	}
	d.publishEvent(e)
	if got := read(slowEnd); len(got) != 1 || got[0].Event.Lost != burst-taken {
		t.Fatalf("%d are lost, reported: %+v", burst-taken, got)
	}
	if got := read(idleEnd); got != nil {
		t.Fatalf("a client that does not watch received %+v", got)
	}

	// A watcher that disconnects does not affect others.
	_ = unix.Close(quickEnd)
	quickEnd = -1
	d.publishEvent(e)
	if quick.watches {
		t.Error("events are sent to a disconnected client")
	}
}
