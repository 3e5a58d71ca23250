// Package trace records profiling sessions of a running pipeline with the built program, and checks the
// traces with Perfetto's own definitions.
package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom/plugin"
	"github.com/yoctune/yoctune/schema/plan"
)

// device runs yoctuned in a folder, with sockets below it.
type device struct {
	t   *testing.T
	dir string
}

func newDevice(t *testing.T) *device {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "trace") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &device{t, dir}
	if err := os.Link(yoctuned, filepath.Join(dir, "yoctuned")); err != nil {
		t.Fatal(err)
	}
	return d
}

var yoctuned string // the built program

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("/tmp", "trace")
	if err == nil {
		yoctuned = filepath.Join(dir, "yoctuned")
		cmd := exec.Command("go", "build", "-o", yoctuned, "github.com/yoctune/yoctune/cmd/yoctuned")
		cmd.Stderr = os.Stderr
		err = cmd.Run()
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// run runs a program that must succeed and returns what it prints.
func (d *device) run(name string, args ...string) string {
	d.t.Helper()
	out, err := d.try(name, args...)
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (d *device) try(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	if name != "go" && name != "gcc" {
		cmd.Dir = d.dir
	}
	if name == "go" {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // a stage in Go needs none
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *device) yoctuned(args ...string) string {
	d.t.Helper()
	return d.run(filepath.Join(d.dir, "yoctuned"), d.rooted(args)...)
}

func (d *device) rooted(args []string) []string {
	return append(args[:len(args):len(args)], "--root", d.dir)
}

// refused runs a command that must fail with a text.
func (d *device) refused(want string, args ...string) {
	d.t.Helper()
	out, err := d.try(filepath.Join(d.dir, "yoctuned"), d.rooted(args)...)
	if err == nil || !strings.Contains(out, want) {
		d.t.Errorf("%s: %v, no %q in %s", strings.Join(args, " "), err, want, out)
	}
}

// start writes a plan of live pipelines with one custom stage each, and starts them.
func (d *device) start(stages map[string]plan.Custom) {
	d.t.Helper()
	all := map[string]plan.Pipeline{}
	for name, c := range stages {
		all[name] = plan.Pipeline{
			Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 64, Height: 32, FPSNum: 100, FPSDen: 1, Live: true},
			Stages: []plan.PipelineStage{{ID: "light", Kind: "custom", Input: "source", Custom: &c}},
			Sink:   plan.PipelineSink{Kind: "ndjson", Path: os.DevNull},
		}
	}
	p := plan.Plan{Layer: "test", Target: "t", Board: "orin-nano-8gb", Release: "scarthgap", Pipelines: all}
	if err := p.Seal(); err != nil {
		d.t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "plan.json"), b, 0o644); err != nil {
		d.t.Fatal(err)
	}
	for name := range all {
		cmd := exec.Command(filepath.Join(d.dir, "yoctuned"), d.rooted([]string{"pipeline", "run", "plan.json", name})...)
		var out bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = d.dir, &out, &out
		if err := cmd.Start(); err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				d.t.Errorf("%s: %v\n%s", name, err, out.String())
			}
		})
		d.await(func() bool { _, err := os.Stat(d.socket(name)); return err == nil })
	}
}

func (d *device) socket(name string) string {
	return pipelines.Path(filepath.Join(d.dir, pipelines.Dir), name)
}

func (d *device) await(done func() bool) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatal("it does not happen")
		}
	}
}

// session returns the line of a session in trace list.
func (d *device) session(name string) string {
	d.t.Helper()
	return regexp.MustCompile(`(?m)^` + name + ` .*$|\z`).FindString(d.yoctuned("trace", "list"))
}

// forms compiles the example stage in each of its forms.
func (d *device) forms() map[string]plan.Custom {
	d.t.Helper()
	example, err := filepath.Abs("../../examples/custom-stage")
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "yoctune_stage.h"), []byte(plugin.Header), 0o644); err != nil {
		d.t.Fatal(err)
	}
	so := filepath.Join(d.dir, "brightness.so")
	d.run("gcc", "-std=c11", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-I", d.dir, "-o", so, filepath.Join(example, "brightness.c"))
	program := filepath.Join(d.dir, "brightness")
	d.run("go", "build", "-o", program, "github.com/yoctune/yoctune/examples/custom-stage/go")
	return map[string]plan.Custom{
		"plugin": {Plugin: so}, "inside": {Plugin: so, Inside: true}, "go": {Exec: []string{program}},
		"python": {Exec: []string{"python3", filepath.Join(example, "brightness.py")}},
	}
}

// view is what trace view finds.
type view struct {
	Stages []struct {
		Stage string
		Runs  int
	}
	Scopes []struct {
		Name, Stage string
		Runs        int
		Max         int64 `json:"max_ns"`
	}
	Values []struct {
		Name  string
		Count int
		Last  float64
	}
	Frames map[string]uint64
	Full   bool
}

func (d *device) view(file string) (v view) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.yoctuned("trace", "view", file, "--format", "json")), &v); err != nil {
		d.t.Fatal(err)
	}
	return v
}

// In each form of the example the session has the stage, its scope and its value; both encodings pass
// the referee and describe the same.
func TestSessionsOfEachFormOfAStage(t *testing.T) {
	python, err := filepath.Abs("../../build/trace-venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skipf("no Perfetto definitions: run scripts/setup.sh python (%v)", err)
	}
	referee, err := filepath.Abs("referee.py")
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice(t)
	forms := d.forms()
	d.start(forms)
	for name := range forms {
		d.yoctuned("trace", "start", "s-"+name, name)
	}
	for name := range forms {
		d.await(func() bool { return regexp.MustCompile(`[1-9][0-9]{2,} of 65536`).MatchString(d.session("s-" + name)) })
		d.yoctuned("trace", "stop", "s-"+name, "-o", name+".json")
		d.yoctuned("trace", "stop", "s-"+name, "-o", name+".pftrace") // kept, so that stop can be repeated
		t.Logf("%s: %s", name, d.run(python, referee, name+".json", name+".pftrace"))
		v := d.view(name + ".json")
		if len(v.Scopes) != 1 || v.Scopes[0].Name != "sum" || v.Scopes[0].Stage != "light" || v.Scopes[0].Runs < 10 || v.Scopes[0].Max <= 0 ||
			len(v.Values) != 1 || v.Values[0].Name != "light: brightness" || v.Values[0].Count < 10 || v.Values[0].Last < 1 || len(v.Stages) != 3 || v.Full {
			t.Errorf("%s: %+v", name, v)
		}
	}
	d.refused("open it in ui.perfetto.dev", "trace", "view", "go.pftrace")
}

func TestSessionsAreBounded(t *testing.T) {
	d := newDevice(t)
	d.start(map[string]plan.Custom{"a": d.forms()["plugin"], "b": d.forms()["plugin"]})

	// It ends without its client: after its time, and when it is full.
	d.yoctuned("trace", "start", "brief", "a", "--time", "300ms")
	d.yoctuned("trace", "start", "small", "a", "--events", "50")
	d.yoctuned("trace", "start", "long", "a", "--time", "1h")
	d.await(func() bool {
		return strings.Contains(d.session("brief"), "300ms of 300ms") && strings.Contains(d.session("brief"), "ended: time")
	})
	d.await(func() bool {
		return strings.Contains(d.session("small"), "50 of 50") && strings.Contains(d.session("small"), "ended: events")
	})
	if s := d.session("long"); !strings.HasSuffix(s, "records") {
		t.Errorf("%q", s)
	}
	d.yoctuned("trace", "stop", "small")
	if v := d.view("small.trace.json"); !v.Full {
		t.Errorf("%+v", v)
	}
	if out := d.yoctuned("trace", "view", "small.trace.json"); !strings.Contains(out, "start one with more --events") {
		t.Errorf("%s", out)
	}

	// Names and numbers.
	d.refused("a session of that name exists: long has recorded for", "trace", "start", "long", "a")
	d.refused("its trace was not fetched", "trace", "start", "brief", "a")
	d.refused("invalid session: name", "trace", "start", "../x", "a")
	d.refused(`no running pipeline has a session "none"`, "trace", "stop", "none")
	d.refused(`pipeline "c" is not running`, "trace", "start", "x", "c")
	d.refused("--events must be", "trace", "start", "x", "a", "--events", "0")
	d.refused("--time must be", "trace", "start", "x", "a", "--time", "2h")
	d.yoctuned("trace", "start", "small", "a") // it was fetched
	d.yoctuned("trace", "start", "fourth", "a")
	d.refused("a pipeline has at most 4: brief, fourth, long, small", "trace", "start", "fifth", "a")

	// One name in two pipelines.
	d.yoctuned("trace", "start", "long", "b")
	d.refused("choose one with --pipeline: a, b", "trace", "stop", "long")
	d.yoctuned("trace", "stop", "long", "--pipeline", "b")

	// A foreign file stays, and so does the session.
	if err := os.WriteFile(filepath.Join(d.dir, "mine.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.refused("is not a trace of yoctuned", "trace", "stop", "fourth", "-o", "mine.txt")
	d.refused("is not a regular file", "trace", "stop", "fourth", "-o", "/dev/null")
	d.refused("no such file or directory", "trace", "stop", "fourth", "-o", "absent/x.json")
	if b, err := os.ReadFile(filepath.Join(d.dir, "mine.txt")); err != nil || string(b) != "mine" {
		t.Errorf("%q %v", b, err)
	}
	if s := d.session("fourth"); !strings.HasSuffix(s, "records") {
		t.Errorf("%q", s)
	}
	d.yoctuned("trace", "stop", "fourth", "-o", "long.trace.json") // replaces a trace
	if out := d.yoctuned("trace", "stop", "fourth", "-o", "-"); !json.Valid([]byte(out)) {
		t.Errorf("%.80q", out)
	}
}

// curl speaks to the socket, and what is not a request for a session is refused with its reason.
func TestRequestsOverTheSocket(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skipf("curl: %v", err)
	}
	d := newDevice(t)
	d.start(map[string]plan.Custom{"a": d.forms()["plugin"]})
	curl := func(args ...string) string {
		return d.run("curl", append([]string{"-sS", "--max-time", "20", "--unix-socket", d.socket("a"), "-w", " %{http_code}"}, args...)...)
	}
	const url = "http://pipeline/v1/trace"
	for _, c := range []struct {
		want string
		args []string
	}{
		{`{"sessions":[]}`, []string{url}},
		{`"session":"s","pipeline":"a",`, []string{url, "-d", `{"action":"start","session":"s"}`}},
		{`201`, []string{url, "-d", `{"action":"start","session":"t","limit_ns":60000000000,"max_events":99}`}},
		{`409`, []string{url, "-d", `{"action":"start","session":"s"}`}},
		{`traceEvents`, []string{url, "-d", `{"action":"stop","session":"s"}`}},
		{`encoding \"xml\": must be chrome or perfetto`, []string{url, "-d", `{"action":"stop","session":"s","encoding":"xml"}`}},
		{`404`, []string{url, "-d", `{"action":"stop","session":"gone"}`}},
		{`unknown field`, []string{url, "-d", `{"action":"start","session":"u","duration":"1m"}`}},
		{`a time of -1ns`, []string{url, "-d", `{"action":"start","session":"u","limit_ns":-1}`}},
		{`must be 1 to 262144`, []string{url, "-d", `{"action":"start","session":"u","max_events":1000000000}`}},
		{`action \"erase\"`, []string{url, "-d", `{"action":"erase","session":"u"}`}},
		{`400`, []string{url, "-d", strings.Repeat("[", 5000)}},
		{`413`, []string{url, "-d", strings.Repeat("[", 9000)}},
		{`has /v1/trace only`, []string{"http://pipeline/v1/other"}},
		{`405`, []string{"-X", "DELETE", url}},
		{`not Transfer-Encoding`, []string{url, "-H", "Transfer-Encoding: chunked", "-d", "x"}},
		{`400`, []string{url, "-H", "X: " + strings.Repeat("x", 20000)}},
		{`200`, []string{"-I", url}},
	} {
		if out := curl(c.args...); !strings.Contains(out, c.want) {
			t.Errorf("%v: no %q in %.300s", c.args, c.want, out)
		}
	}
	// Without a request the statistics come, at once to a client that closes its side.
	cmd := exec.Command(filepath.Join(d.dir, "yoctuned"), d.rooted([]string{"pipeline", "top", "--once", "--format", "json"})...)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"type":"pipeline"`) {
		t.Errorf("%v %s", err, out)
	}
}

// Another user may read the statistics, and not use sessions.
func TestOtherUsersMayNotUseSessions(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run a program as another user")
	}
	d := newDevice(t)
	d.start(map[string]plan.Custom{"a": d.forms()["plugin"]})
	for path := d.dir; path != "/tmp"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(d.dir, "yoctuned"), d.rooted([]string{"trace", "start", "s", "a"})...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "only root and the user of the pipeline may use sessions") {
		t.Errorf("%v %s", err, out)
	}
	top := exec.Command(filepath.Join(d.dir, "yoctuned"), d.rooted([]string{"pipeline", "top", "--once"})...)
	top.SysProcAttr = cmd.SysProcAttr
	if out, err := top.CombinedOutput(); err != nil || !strings.Contains(string(out), "1 pipeline running") {
		t.Errorf("%v %s", err, out)
	}
}

// A client that does not read its trace ends neither the session nor the pipeline.
func TestAClientThatDoesNotReadLosesNothing(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skipf("curl: %v", err)
	}
	d := newDevice(t)
	d.start(map[string]plan.Custom{"a": d.forms()["plugin"]})
	d.yoctuned("trace", "start", "s", "a")
	d.await(func() bool { return regexp.MustCompile(`[1-9][0-9]{3,} of`).MatchString(d.session("s")) })
	cmd := exec.Command("curl", "-sSN", "--unix-socket", d.socket("a"), "http://pipeline/v1/trace", "-d", `{"action":"stop","session":"s"}`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	d.yoctuned("trace", "stop", "s")
	if v := d.view("s.trace.json"); v.Frames["done"] < 100 {
		t.Errorf("%+v", v)
	}
}
