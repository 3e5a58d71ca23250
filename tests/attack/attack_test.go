// Package attack runs the built programs with sources that hang, on a machine without time, and with
// clients that do not read. scripts/prove.sh attack runs it.
package attack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/tests/models"
)

// prepare builds the programs, or skips the test.
func prepare(t *testing.T) (dir string) {
	t.Helper()
	if os.Getenv("YOCTUNE_ATTACK") == "" {
		t.Skip("YOCTUNE_ATTACK is not set; scripts/prove.sh attack sets it")
	}
	dir = t.TempDir()
	for _, build := range [][]string{
		{"-o", filepath.Join(dir, "yoctune"), "../../cmd/yoctune"},
		{"-o", filepath.Join(dir, "yoctuned"), "../../cmd/yoctuned"},
		{"-tags", "serve", "-o", filepath.Join(dir, "yoctuned-serve"), "../../cmd/yoctuned"},
	} {
		if out, err := exec.Command("go", append([]string{"build"}, build...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}

const config = `package attack

import "github.com/yoctune/yoctune/schema"

schema.#Config & {
	layer: {name: "attack", maintainer: "A <a@example.com>", description: "A pipeline", serial: 1}
	targets: t: {board: "orin-nano-8gb", machine: "jetson-orin-nano-devkit", release: "scarthgap", pipelines: p: {
%s
	}}
}
`

// frameBytes is the size of a frame of the sources that run a program.
const frameBytes = 192 * 48 * 3 / 2

// stages are those of pipelines that test sources.
const stages = `
	stages: {
		pre: {kind: "preprocess", input: "source", width: 32, height: 32}
		out: {kind: "postprocess", input: "pre", decode: "raw"}
	}`

// pipeline is a running pipeline. The processes that it starts have its mark in their environment.
type pipeline struct {
	cmd    *exec.Cmd
	mark   string
	out    bytes.Buffer
	stderr bytes.Buffer
}

func start(t *testing.T, dir, declared string, args ...string) *pipeline {
	t.Helper()
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "config.cue"), fmt.Appendf(nil, config, declared), 0o644); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(declared, models.TextDetector) {
		models.Copy(t, work, models.TextDetector)
	}
	var refused bytes.Buffer
	compile := exec.Command(filepath.Join(dir, "yoctune"), "plan", work, "--target", "t")
	compile.Stderr = &refused
	text, err := compile.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, refused.String())
	}
	plan := filepath.Join(work, "plan.json")
	if err := os.WriteFile(plan, text, 0o644); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("/tmp", "socket") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	p := &pipeline{mark: "YOCTUNE_ATTACK_RUN=" + filepath.Base(sockets)}
	p.cmd = exec.Command(filepath.Join(dir, "yoctuned"), append([]string{"pipeline", "run", plan, "--format", "json"}, args...)...)
	p.cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+sockets, p.mark)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		for _, pid := range p.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return p
}

// processes lists those with the mark of the pipeline.
func (p *pipeline) processes() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, []byte(p.mark+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// stop sends SIGTERM, and returns how long the pipeline took to end, and its summary.
func (p *pipeline) stop(t *testing.T) (time.Duration, summary) {
	t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	took := time.Since(began)
	if !limit.Stop() {
		t.Fatalf("it did not end within 30 s of SIGTERM: %s", p.stderr.String())
	}
	var s summary
	for line := range strings.Lines(p.out.String()) {
		if strings.Contains(line, `"type":"summary"`) {
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err != nil && s.Ended != "stopped" {
		t.Errorf("%v: %s", err, p.stderr.String())
	}
	for late := time.Now().Add(5 * time.Second); len(p.processes()) > 0 && time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
	}
	if left := p.processes(); len(left) > 0 {
		t.Errorf("processes %v of the source are left", left)
	}
	return took, s
}

type summary struct {
	Ended  string
	Frames struct{ Read, Done, Dropped, Failed int }
	Drops  map[string]int
	Events []struct {
		Kind     string
		From, To int
		Why      string
	}
}

// restarts counts the events about a source that is started again.
func (s summary) restarts() (n int) {
	for _, e := range s.Events {
		if strings.Contains(e.Why, "restarting it") {
			n++
		}
	}
	return n
}

func residentMiB(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	n, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return n >> 10
}

func descriptors(pid int) int {
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(files)
}

func TestSourcesThatHang(t *testing.T) {
	dir := prepare(t)
	program := func(script string) string {
		return fmt.Sprintf(`source: {kind: "command", exec: ["/bin/sh", "-c", %q], format: "nv12", width: 192, height: 48, fps: 30, live: true}`, script)
	}
	var connections atomic.Int32
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() { // it accepts, and never answers
		for {
			if _, err := server.Accept(); err != nil {
				return
			}
			connections.Add(1)
		}
	}()
	for _, tc := range []struct {
		name, source string
		wait         time.Duration
		done         int // frames at least
		restarts     int // at least
		needs        string
	}{
		{"an RTSP server that never answers", fmt.Sprintf(`source: {kind: "rtsp", url: "rtsp://%s/stream", via: "ffmpeg", format: "nv12", width: 192, height: 48, fps: 10}`, server.Addr()), 26 * time.Second, 0, 2, "ffmpeg"},
		{"half a frame, then a hang, SIGTERM ignored", program(fmt.Sprintf(`trap "" TERM; head -c %d /dev/zero; while :; do sleep 1; done`, frameBytes/2)), 24 * time.Second, 0, 1, ""},
		{"ten frames, then a hang", program(fmt.Sprintf(`head -c %d /dev/zero; sleep 1000`, 10*frameBytes)), 12 * time.Second, 20, 2, ""},
		{"nothing, and descriptors held open by a child", program(`sleep 1000 & wait`), 24 * time.Second, 0, 1, ""},
		{"endless bytes to stderr", program(`while :; do echo noise >&2; done`), 14 * time.Second, 0, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.needs != "" {
				if _, err := exec.LookPath(tc.needs); err != nil {
					t.Skip(err)
				}
			}
			p := start(t, dir, tc.source+stages)
			time.Sleep(3 * time.Second)
			pid := p.cmd.Process.Pid
			early := residentMiB(pid)
			time.Sleep(tc.wait - 3*time.Second)
			late, open := residentMiB(pid), descriptors(pid)
			took, s := p.stop(t)
			restarts := max(s.restarts(), strings.Count(p.stderr.String(), "restarting it"))
			t.Logf("saw: in %v %d restarts, %d connections to the RTSP server so far, %d frames done; %d MiB after 3 s, then %d MiB, %d descriptors; SIGTERM %.2f s", tc.wait, restarts, connections.Load(), s.Frames.Done, early, late, open, took.Seconds())
			if restarts < tc.restarts || s.Frames.Done < tc.done {
				t.Errorf("%d restarts, %+v: %s", restarts, s, p.stderr.String())
			}
			if early == 0 || late > early+32 || open > 64 || took > 5*time.Second {
				t.Error("it grows, or stops too late")
			}
		})
	}
}

// TestLadderUnderLoad takes the processors from a detector with four levels, and gives them back.
func TestLadderUnderLoad(t *testing.T) {
	dir := prepare(t)
	detector := func(source, more string) string {
		return source + `
	stages: {
		pre: {kind: "preprocess", input: "source", width: 320, height: 320}
		find: {kind: "model", input: "pre", path: "` + models.TextDetector + `"}
		out: {kind: "postprocess", input: "find", decode: "regions", threshold: 0.5}
	}
	` + more
	}
	args := []string{"--models", models.Dir(t), "--library", models.Library(t)}
	for _, tc := range []struct{ name, pipeline string }{
		{"a ladder of four levels", detector(
			`source: {kind: "synthetic", format: "nv12", width: 320, height: 320, fps: 20, live: true}`,
			`queue: {capacity: 2, policy: "drop-oldest"}
	slo: latencyP95: "150ms"
	degrade: ladder: [{sizes: pre: {width: 224, height: 224}}, {sizes: pre: {width: 160, height: 160}}, {sizes: pre: {width: 96, height: 96}}]`)},
		{"a target for utilisation", detector(
			`source: {kind: "synthetic", format: "nv12", width: 320, height: 320, fps: 60, live: true}`,
			`utilisation: 0.5
	queue: {capacity: 2, policy: "drop-oldest"}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, dir, tc.pipeline, args...)
			time.Sleep(8 * time.Second)
			early := residentMiB(p.cmd.Process.Pid)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 2 * runtime.NumCPU() {
				if err := exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done").Start(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Second)
			cancel()
			time.Sleep(4 * time.Second)
			late := residentMiB(p.cmd.Process.Pid)
			took, s := p.stop(t)
			levels := ""
			for _, e := range s.Events {
				if e.Kind == "degrade" {
					levels += fmt.Sprintf(" %d to %d", e.From, e.To)
				}
			}
			f := s.Frames
			t.Logf("saw: beside %d busy processes %d read = %d done + %d dropped + %d failed, %v; levels%s; %d MiB, then %d MiB; SIGTERM %.2f s", 2*runtime.NumCPU(), f.Read, f.Done, f.Dropped, f.Failed, s.Drops, levels, early, late, took.Seconds())
			if f.Read == 0 || f.Read != f.Done+f.Dropped+f.Failed || f.Failed > 0 || f.Done == 0 {
				t.Errorf("frames are lost: %+v: %s", f, p.stderr.String())
			}
			if strings.Contains(tc.pipeline, "ladder") && !strings.Contains(levels, " 0 to ") {
				t.Error("the ladder did not step down")
			}
			if late > early+64 || took > 5*time.Second {
				t.Error("it grows, or stops too late")
			}
		})
	}
}

// TestSlowClients connects to the server with clients that send half of a request or read nothing.
func TestSlowClients(t *testing.T) {
	dir := prepare(t)
	work := t.TempDir()
	tree := filepath.Join(work, "tree")
	if out, err := exec.Command(filepath.Join(dir, "yoctune"), "facts", "tree", "orin-nano-8gb", "-o", tree).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(filepath.Join(dir, "yoctuned-serve"), "serve", "--root", tree, "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	address := ""
	for address == "" && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "serving on http://"); ok {
			address = strings.TrimSuffix(rest, "/")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	pid := cmd.Process.Pid
	before, open := residentMiB(pid), descriptors(pid)

	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	attack := func(clients int, request string) {
		for range clients {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
			_, _ = io.WriteString(c, request) // the server may have closed it
		}
	}
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n" }
	attack(400, "GET / HTTP/1.1\r\nHost: x")
	attack(300, get("/"))
	attack(200, strings.Repeat(get("/"), 20))
	attack(200, get("/api/stream"))
	attack(200, get("/api/history?seconds=86400"))
	worst, refused := time.Duration(0), 0
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 50 {
		began := time.Now()
		answer, err := client.Get("http://" + address + "/api/sample")
		if err != nil {
			t.Fatalf("another client gets no answer: %v", err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			refused++
		}
		_ = answer.Body.Close()
		worst = max(worst, time.Since(began))
		time.Sleep(100 * time.Millisecond)
	}
	most, under := residentMiB(pid), descriptors(pid)
	time.Sleep(95 * time.Second) // longer than each limit of the server
	after, left := residentMiB(pid), descriptors(pid)
	t.Logf("saw: %d clients; %d MiB before, %d under attack, %d 100 s later; %d, %d and %d descriptors; other requests answered in at most %v", len(held), before, most, after, open, under, left, worst.Round(time.Millisecond))
	if refused > 0 || worst > 2*time.Second {
		t.Errorf("%d of 50 other requests refused, the slowest took %v", refused, worst)
	}
	// Streams have no limit: a page that is open in a background tab reads nothing for hours.
	if most > before+128 || left > open+80 {
		t.Error("connections are held without a limit")
	}
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("ended after %v: %v", time.Since(began), err)
	}
}
