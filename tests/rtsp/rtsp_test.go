// Package rtsp reads a network stream as a device does: from GStreamer's own RTSP server, with the
// programs that the compiler writes into a plan, up to the text that a trained model reads.
package rtsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

const media = "../../examples/video-analytics/media/"

// long limits waits that normally end earlier.
const long = 2 * time.Minute

// server is GStreamer's RTSP server, which repeats the example's clip.
type server struct {
	cmd  *exec.Cmd
	port string
}

// start starts the server on port, or on a free port when port is "0".
func start(t *testing.T, clip, port string) *server {
	t.Helper()
	s := &server{cmd: exec.Command("/usr/bin/python3", "server.py", port, "192", "48", "10", clip, "cam", "se%cret")}
	var stderr bytes.Buffer
	s.cmd.Stderr = &stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = s.cmd.Wait()
		t.Fatalf("the server does not start: %v\n%s", err, stderr.String())
	}
	s.port = strings.TrimSpace(line)
	t.Cleanup(s.kill)
	return s
}

func (s *server) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// tools holds the paths of the two programs.
func tools(t *testing.T) (yoctune, yoctuned string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/yoctune", "../../cmd/yoctuned").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "yoctune"), filepath.Join(dir, "yoctuned")
}

const config = `package labels

import "github.com/yoctune/yoctune/schema"

schema.#Config & {
	layer: {name: "labels", maintainer: "Line Team <line@example.com>", description: "Labels of a belt", serial: 1}
	targets: line: {
		board: "orin-nano-8gb", machine: "jetson-orin-nano-devkit", release: "scarthgap"
		pipelines: labels: {
			source: {kind: "rtsp", url: "rtsp://%s@127.0.0.1:%s/stream", via: "%s", format: "nv12", width: 192, height: 48, fps: 10, restart: "%s"}
			stages: {
				frame: {kind: "preprocess", input: "source", width: 320, height: 48, fit: "letterbox", color: "bgr", pad: 128, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}
				read: {kind: "model", input: "frame", path: "ch_PP-OCRv4_rec_infer.onnx"}
				text: {kind: "postprocess", input: "read", decode: "ctc", labels: "ppocr_keys_v1.txt", threshold: 0.5}
			}
		}
	}
}
`

// compile returns the plan of a configuration, with the module's scaler, which this machine lacks,
// replaced by GStreamer's.
func compile(t *testing.T, yoctune, user, port, via, restart string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.cue"), fmt.Appendf(nil, config, user, port, via, restart), 0o644); err != nil {
		t.Fatal(err)
	}
	models.Copy(t, dir, models.Recogniser, models.Characters)
	out, err := exec.Command(yoctune, "plan", dir, "--target", "line").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p, err := plan.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	l := p.Pipelines["labels"]
	if n := slices.Index(l.Source.Exec, "nvvidconv"); n >= 0 {
		l.Source.Exec = slices.Replace(l.Source.Exec, n, n+1, "videoconvert", "!", "videoscale")
	}
	p.Pipelines["labels"] = l
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// run is a running pipeline.
type run struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer // output of the program

	mu      sync.Mutex
	seen    []string // texts, in order
	summary summary
	end     chan struct{}
}

type summary struct {
	Type   string
	Ended  string
	Frames struct{ Read, Done, Dropped, Failed int }
	Events []struct{ Why string }
}

func pipeline(t *testing.T, yoctuned, plan string) *run {
	t.Helper()
	dir := models.Dir(t)
	r := &run{end: make(chan struct{}), cmd: exec.Command(yoctuned, "pipeline", "run", plan, "--format", "json", "--models", dir, "--library", models.Library(t))}
	sockets, err := os.MkdirTemp("/tmp", "socket") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	r.cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+sockets)
	r.cmd.Stderr = &r.stderr
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.end; _ = r.cmd.Wait() })
	go func() {
		defer close(r.end)
		in := bufio.NewScanner(out)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			var line struct {
				Type    string
				Results []struct{ Text string }
			}
			if json.Unmarshal(in.Bytes(), &line) != nil {
				continue
			}
			r.mu.Lock()
			if line.Type == "summary" {
				_ = json.Unmarshal(in.Bytes(), &r.summary)
			} else {
				text := ""
				for _, x := range line.Results {
					text += x.Text
				}
				r.seen = append(r.seen, text)
			}
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *run) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

func (r *run) await(t *testing.T, what string, results int) {
	t.Helper()
	for deadline := time.Now().Add(long); r.count() < results; time.Sleep(20 * time.Millisecond) {
		select {
		case <-r.end:
			t.Fatalf("%s: the run ended: %s", what, r.stderr.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d results of %d", what, r.count(), results)
		}
	}
}

// TestStreamLabelsAreRead stops the server in the middle of the stream and starts it again.
func TestStreamLabelsAreRead(t *testing.T) {
	clip, labels := prepare(t)
	yoctune, yoctuned := tools(t)
	for _, via := range []string{"ffmpeg", "gstreamer"} {
		t.Run(via, func(t *testing.T) {
			s := start(t, clip, "0")
			r := pipeline(t, yoctuned, compile(t, yoctune, "cam:se%25cret", s.port, via, "always"))
			r.await(t, "at the start", 10)
			s.kill()
			// Frames in flight still arrive; then no more results may follow.
			before := r.count()
			start(t, clip, s.port)
			began := time.Now()
			r.await(t, "after the server was away", before+15)
			t.Logf("saw: results again %v after the server was back", time.Since(began).Round(100*time.Millisecond))
			if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			<-r.end
			if err := r.cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, r.stderr.String())
			}
			known := 0
			for _, text := range r.seen {
				if slices.Contains(labels, text) {
					known++
				}
			}
			f := r.summary.Frames
			t.Logf("saw: %d of %d results are labels of the clip; %+v, ended %s", known, len(r.seen), f, r.summary.Ended)
			// The stop of the server may truncate a frame.
			if known < len(r.seen)-2 || f.Read != f.Done+f.Dropped+f.Failed || f.Failed > 1 || r.summary.Ended != "stopped" {
				t.Errorf("%+v: %v", r.summary, r.seen)
			}
			notices := 0
			for _, e := range r.summary.Events {
				t.Logf("saw: %.200s", e.Why)
				if strings.Contains(e.Why, "restarting it") {
					notices++
				}
				if strings.Contains(e.Why, "cret") {
					t.Errorf("a password is shown: %s", e.Why)
				}
			}
			if notices == 0 || !strings.Contains(r.stderr.String(), "restarting it") {
				t.Errorf("the restart of the source was not reported: %s", r.stderr.String())
			}
		})
	}
}

// TestWrongPasswordIsReported also checks that the message omits the password.
func TestWrongPasswordIsReported(t *testing.T) {
	clip, _ := prepare(t)
	yoctune, yoctuned := tools(t)
	s := start(t, clip, "0")
	for _, via := range []string{"ffmpeg", "gstreamer"} {
		t.Run(via, func(t *testing.T) {
			r := pipeline(t, yoctuned, compile(t, yoctune, "cam:hunter2", s.port, via, "never"))
			<-r.end
			err := r.cmd.Wait()
			stderr := r.stderr.String()
			t.Logf("saw: %v: %.300s", err, stderr)
			if r.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr, "401") || !strings.Contains(stderr, "nauthorized") || strings.Contains(stderr, "hunter2") {
				t.Errorf("%v: %s", err, stderr)
			}
		})
	}
}

// prepare writes some minutes of the clip and returns its labels.
func prepare(t *testing.T) (clip string, labels []string) {
	t.Helper()
	if os.Getenv("YOCTUNE_RTSP") == "" {
		t.Skip("YOCTUNE_RTSP is not set; scripts/prove.sh rtsp sets it")
	}
	b, err := os.ReadFile(media + "serials.nv12")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(media + "serials.txt")
	if err != nil {
		t.Fatal(err)
	}
	clip = filepath.Join(t.TempDir(), "clip.nv12")
	if err := os.WriteFile(clip, bytes.Repeat(b, 300), 0o644); err != nil {
		t.Fatal(err)
	}
	return clip, strings.Fields(string(text))
}
