package tensorrt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	"github.com/yoctune/yoctune/tests/models"
)

// trtexec replaces NVIDIA's program: it accepts --saveEngine, prints the same messages and
// runs the script.
func trtexec(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trtexec")
	const head = `#!/bin/sh
echo "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # $*"
for a; do case $a in --saveEngine=*) out=${a#--saveEngine=};; esac; done
`
	if err := os.WriteFile(path, []byte(head+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func job(t *testing.T, script string) tensorrt.Job {
	t.Helper()
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Abs", In: []string{"x"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 3, 64, 64)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 3, 64, 64)},
	}
	model := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(model, g.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	sum, err := tensorrt.Digest(model)
	if err != nil {
		t.Fatal(err)
	}
	shape := tensorrt.Range{Min: []int64{1, 3, 64, 64}, Opt: []int64{4, 3, 64, 64}, Max: []int64{4, 3, 64, 64}}
	return tensorrt.Job{
		Key:   tensorrt.Key{Model: sum, TensorRT: "10.3.0", GPU: "nvidia,tegra234", Precision: "fp16", Workspace: 256 << 20, Shapes: map[string]tensorrt.Range{"x": shape}},
		Model: model, Builder: trtexec(t, script),
	}
}

// empty reports whether a store contains only its lock.
func empty(t *testing.T, s tensorrt.Store) bool {
	t.Helper()
	all, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(all) == 1 && all[0].Name() == ".lock"
}

func TestAnEngineIsBuiltOnceAndItsProgressIsReported(t *testing.T) {
	s := tensorrt.Store{Dir: filepath.Join(t.TempDir(), "engines")}
	j := job(t, "echo '[I] Engine built in 61 sec.'\nprintf ENGINE > \"$out\"\n")
	if _, err := s.Find(j.Key); !errors.Is(err, tensorrt.ErrNone) || !strings.Contains(err.Error(), "yoctuned engines build") {
		t.Errorf("before: %v", err)
	}
	var lines []string
	built, err := s.Build(context.Background(), j, func(p tensorrt.Progress) { lines = append(lines, p.Line) })
	if err != nil || !built {
		t.Fatalf("%t, %v", built, err)
	}
	want := "--onnx=" + j.Model + " --saveEngine=" + filepath.Join(s.Dir, ".building-"+j.Key.String(), "engine.plan") +
		" --iterations=1 --duration=0 --warmUp=0 --fp16 --memPoolSize=workspace:256 --timingCacheFile=" + filepath.Join(s.Dir, ".building-"+j.Key.String(), "timings") + " --minShapes=x:1x3x64x64 --optShapes=x:4x3x64x64 --maxShapes=x:4x3x64x64"
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "# "+want) || lines[1] != "[I] Engine built in 61 sec." {
		t.Errorf("got %q\nwant %s", lines, want)
	}
	path, err := s.Find(j.Key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(b, []byte("ENGINE")) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	m, err := onnx.ReadFile(path)
	if err != nil || m.Ops["EPContext"] != 1 || m.Opsets["com.microsoft"] != 1 || m.Inputs[0].String() != `"x" float32 [n 3 64 64]` || len(m.Outputs) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if built, err = s.Build(context.Background(), j, nil); built || err != nil {
		t.Errorf("again: %t, %v", built, err)
	}
	// Each part of the key is another engine.
	for name, change := range map[string]func(*tensorrt.Key){
		"TensorRT": func(k *tensorrt.Key) { k.TensorRT = "10.7.0" }, "GPU": func(k *tensorrt.Key) { k.GPU = "nvidia,tegra264" },
		"precision": func(k *tensorrt.Key) { k.Precision = "fp32" }, "workspace": func(k *tensorrt.Key) { k.Workspace = 0 },
		"model": func(k *tensorrt.Key) { k.Model = strings.Repeat("0", 64) }, "shapes": func(k *tensorrt.Key) { k.Shapes = nil },
	} {
		k := j.Key
		change(&k)
		if _, err := s.Find(k); !errors.Is(err, tensorrt.ErrNone) {
			t.Errorf("with another %s: %v", name, err)
		}
	}
	all, err := s.List(true)
	if err != nil || len(all) != 1 || all[0].Err != nil || all[0].Bytes != int64(len(b)) {
		t.Errorf("%+v, %v", all, err)
	}
}

// A model with scales in it, as yoctune model optimise makes them, needs int8, and float16 weights need
// fp16, whatever the stage asks for.
func TestThePrecisionIsThatOfTheStageAndTheModel(t *testing.T) {
	node := onnx.Node{Op: "Mul", In: []string{"x", "w"}, Out: []string{"y"}}
	scaled := onnx.Node{Op: "QuantizeLinear", In: []string{"y", "s"}, Out: []string{"q"}}
	weight := onnx.Weight{Name: "w", Dims: []int64{1}, Data: []float32{1}}
	for _, c := range []struct {
		half  bool
		nodes []onnx.Node
		asked string
		want  string
	}{
		{false, []onnx.Node{node}, "", "fp32"},
		{false, []onnx.Node{node}, "fp16", "fp16"},
		{true, []onnx.Node{node}, "", "fp16"},
		{false, []onnx.Node{node, scaled}, "fp32", "int8"},
		{false, []onnx.Node{node, scaled}, "fp16", "int8+fp16"},
		{true, []onnx.Node{node, scaled}, "", "int8+fp16"},
	} {
		g := onnx.Graph{Nodes: c.nodes, Weights: []onnx.Weight{weight}, Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 1)}, Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1)}}
		data := g.Encode()
		if c.half { // its type, which the reader takes from the weight's head
			data = bytes.Replace(data, []byte("\x10\x01\x42\x01w"), []byte("\x10\x0a\x42\x01w"), 1)
		}
		m, err := onnx.Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		got := tensorrt.Precision(c.asked, m)
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.asked, got, c.want)
		}
		j := tensorrt.Job{Key: tensorrt.Key{Precision: got}}
		args := strings.Join(j.Arguments("out"), " ")
		for flag, want := range map[string]bool{"--int8": strings.Contains(c.want, "int8"), "--fp16": strings.Contains(c.want, "fp16")} {
			if strings.Contains(args, flag) != want {
				t.Errorf("%s: %s", got, args)
			}
		}
	}
}

// What TensorRT measured of its implementations serves the next build; a build that is stopped or fails
// leaves no cache that it may have damaged.
func TestTheTimingCacheGoesFromBuildToBuild(t *testing.T) {
	s := tensorrt.Store{Dir: t.TempDir()}
	const script = "for a; do case $a in --timingCacheFile=*) cache=${a#--timingCacheFile=};; esac; done\n" +
		"echo \"had $(cat \"$cache\" 2>/dev/null)\"\nprintf x >> \"$cache\"\nprintf ENGINE > \"$out\"\n"
	build := func(change func(*tensorrt.Job), script string) (string, error) {
		j := job(t, script)
		change(&j)
		said := ""
		_, err := s.Build(t.Context(), j, func(p tensorrt.Progress) {
			if strings.HasPrefix(p.Line, "had") {
				said = p.Line
			}
		})
		return strings.TrimSpace(said), err
	}
	for _, c := range []struct {
		name, script string
		change       func(*tensorrt.Job)
		want         string
		fails        bool
	}{
		{"first", script, func(*tensorrt.Job) {}, "had", false},
		{"another model", script, func(j *tensorrt.Job) { j.Key.Workspace = 1 << 20 }, "had x", false},
		{"another GPU", script, func(j *tensorrt.Job) { j.Key.GPU = "nvidia,tegra264" }, "had", false},
		{"another TensorRT", script, func(j *tensorrt.Job) { j.Key.TensorRT = "10.7.0" }, "had", false},
		{"failed", script + "exit 1\n", func(j *tensorrt.Job) { j.Key.Workspace = 2 << 20 }, "had xx", true},
		{"after it", script, func(j *tensorrt.Job) { j.Key.Workspace = 3 << 20 }, "had", false},
		{"no caches yet", "printf ENGINE > \"$out\"\ncase \"$*\" in *timing*) exit 1;; esac\n", func(j *tensorrt.Job) { j.Key.TensorRT = "7.1.3" }, "", false},
	} {
		if got, err := build(c.change, c.script); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, want %q; %v", c.name, got, c.want, err)
		}
	}
	// Caches are neither engines nor rubbish.
	all, err := s.List(true)
	if err != nil || slices.ContainsFunc(all, func(e tensorrt.Entry) bool { return e.Err != nil }) {
		t.Errorf("%+v %v", all, err)
	}
}

// The wrapped engine is a model that ONNX Runtime can read; only TensorRT is missing here.
func TestONNXRuntimeReadsTheWrapperAndMissesOnlyTensorRT(t *testing.T) {
	s := tensorrt.Store{Dir: t.TempDir()}
	j := job(t, "printf ENGINE > \"$out\"\n")
	if _, err := s.Build(context.Background(), j, nil); err != nil {
		t.Fatal(err)
	}
	path, err := s.Find(j.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, lib := range []string{models.OldLibrary(t), models.Library(t)} {
		rt, err := ort.Open(lib)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rt.NewSession(path, ort.Options{Threads: 1})
		if !errors.Is(err, ort.ErrModel) || !strings.Contains(err.Error(), "EPContext") {
			t.Errorf("%s: %v", rt.Version(), err)
		}
		session, err := rt.NewSession(j.Model, ort.Options{Threads: 1, Providers: []string{ort.TensorRT, ort.CPU}, Engine: func() (string, error) { return path, nil }})
		if err != nil {
			t.Fatal(err)
		}
		if session.Provider() != ort.CPU || len(session.Missing()) != 1 || !strings.Contains(session.Missing()[0].Why, "onnx runtime") {
			t.Errorf("%s: on %s without %+v", rt.Version(), session.Provider(), session.Missing())
		}
		session.Close()
		rt.Close()
	}
}

func TestAFailedBuildLeavesNothingAndReportsTheEndOfItsOutput(t *testing.T) {
	for name, c := range map[string]struct{ script, wantText string }{
		"error":         {"printf HALF > \"$out\"\necho '[E] Error[4]: no valid tactic for Conv_17'\nexit 1\n", "no valid tactic for Conv_17"},
		"no engine":     {"echo '&&&& PASSED'\n", "wrote no engine"},
		"empty engine":  {": > \"$out\"\n", "wrote no engine"},
		"killed":        {"printf HALF > \"$out\"\nkill -9 $$\n", "killed"},
		"binary output": {"printf '\\377\\376\\n' >&2\nexit 3\n", "exit status 3"},
		"a long line":   {"head -c 100000 /dev/zero | tr '\\0' x\necho\necho after\nexit 1\n", "after"},
	} {
		s := tensorrt.Store{Dir: t.TempDir()}
		j := job(t, c.script)
		_, err := s.Build(context.Background(), j, nil)
		if !errors.Is(err, tensorrt.ErrBuild) || !strings.Contains(err.Error(), c.wantText) || len(err.Error()) > 64<<10 {
			t.Errorf("%s: %.300v", name, err)
		}
		if !empty(t, s) {
			t.Errorf("%s: something is left", name)
		}
	}
	s := tensorrt.Store{Dir: t.TempDir()}
	j := job(t, "")
	if err := os.WriteFile(j.Model, []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(context.Background(), j, nil); !errors.Is(err, onnx.ErrFormat) {
		t.Errorf("no model: %v", err)
	}
	if j.Builder = filepath.Join(t.TempDir(), "absent"); true {
		j.Model = job(t, "").Model
		if _, err := s.Build(context.Background(), j, nil); !errors.Is(err, tensorrt.ErrBuild) {
			t.Errorf("no builder: %v", err)
		}
	}
}

// A builder that does not listen, and the child it started, end with the context.
func TestABuildThatIsStoppedEndsWithAllItStarted(t *testing.T) {
	s := tensorrt.Store{Dir: t.TempDir()}
	pids := filepath.Join(t.TempDir(), "pids")
	j := job(t, "sleep 600 &\necho $! > "+pids+"\nprintf HALF > \"$out\"\necho started\nwait\n")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := s.Build(ctx, j, func(p tensorrt.Progress) {
		if p.Line == "started" {
			cancel()
		}
	})
	if !errors.Is(err, tensorrt.ErrBuild) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if !empty(t, s) {
		t.Error("something is left")
	}
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(30 * time.Second)
	for {
		st, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
		if err != nil || strings.Contains(string(st), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the builder's child is alive")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A program that was killed in the middle left half an engine; the next build is as
// if it had never been.
func TestHalfAnEngineIsNeverFoundAndIsReplaced(t *testing.T) {
	s := tensorrt.Store{Dir: t.TempDir()}
	j := job(t, "printf ENGINE > \"$out\"\n")
	half := filepath.Join(s.Dir, ".building-"+j.Key.String())
	for dir, files := range map[string]map[string]string{
		half:                                 {"engine.plan": "HA"},
		filepath.Join(s.Dir, j.Key.String()): {"engine.onnx": "cut", "about.json": "{"},
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Find(j.Key); !errors.Is(err, tensorrt.ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
	all, err := s.List(false)
	if err != nil || len(all) != 2 || all[0].Err == nil || all[1].Err == nil {
		t.Errorf("%+v, %v", all, err)
	}
	if built, err := s.Build(context.Background(), j, nil); !built || err != nil {
		t.Fatalf("%t, %v", built, err)
	}
	path, err := s.Find(j.Key)
	if err != nil {
		t.Fatal(err)
	}
	// Cut short later, and changed in place.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:10], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(j.Key); !errors.Is(err, tensorrt.ErrDamaged) {
		t.Errorf("cut: %v", err)
	}
	whole[20] ^= 1
	if err := os.WriteFile(path, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	if all, err = s.List(true); err != nil || len(all) != 1 || !errors.Is(all[0].Err, tensorrt.ErrDamaged) {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestTwoWhoBuildTheSameBuildItOnce(t *testing.T) {
	s := tensorrt.Store{Dir: t.TempDir()}
	count := filepath.Join(t.TempDir(), "count")
	j := job(t, "echo x >> "+count+"\nprintf ENGINE > \"$out\"\n")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := s.Build(context.Background(), j, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if b, err := os.ReadFile(count); err != nil || string(b) != "x\n" {
		t.Errorf("built %q, %v", b, err)
	}
}

func TestPruneKeepsWhatIsWanted(t *testing.T) {
	s := tensorrt.Store{Dir: t.TempDir()}
	if gone, err := (tensorrt.Store{Dir: filepath.Join(s.Dir, "absent")}).Prune(nil); gone != nil || err != nil {
		t.Errorf("no store: %v, %v", gone, err)
	}
	keep, drop := job(t, "printf ENGINE > \"$out\"\n"), job(t, "printf ENGINE > \"$out\"\n")
	drop.Key.TensorRT = "8.5.2"
	for _, j := range []tensorrt.Job{keep, drop} {
		if _, err := s.Build(context.Background(), j, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.Dir, ".building-x"), 0o755); err != nil {
		t.Fatal(err)
	}
	gone, err := s.Prune([]tensorrt.Key{keep.Key})
	if err != nil || !slices.Equal(gone, []string{".building-x", drop.Key.String()}) {
		t.Errorf("%v, %v", gone, err)
	}
	if _, err := s.Find(keep.Key); err != nil {
		t.Error(err)
	}
}

func TestWhatAMachineHasIsSeenInItsFiles(t *testing.T) {
	root := t.TempDir()
	touch := func(name, text string) {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if h := tensorrt.DetectHost(root, []string{"acme,board"}); !strings.Contains(h.Obstacle(), "no NVIDIA GPU") {
		t.Errorf("%+v: %s", h, h.Obstacle())
	}
	orin := []string{"nvidia,p3768-0000+p3767-0003", "nvidia,p3767-0003", "nvidia,tegra234"}
	if h := tensorrt.DetectHost(root, orin); h.GPU != "nvidia,tegra234" || !strings.Contains(h.Obstacle(), "libnvinfer") {
		t.Errorf("%+v: %s", h, h.Obstacle())
	}
	for _, v := range []string{"8", "8.5.2", "10.3.0", "9.9.9", "10.3.0.extra"} {
		touch("usr/lib/libnvinfer.so."+v, "")
	}
	touch("usr/src/tensorrt/bin/trtexec", "")
	h := tensorrt.DetectHost(root, orin)
	if h.TensorRT != "10.3.0.extra" && h.TensorRT != "10.3.0" || h.Builder != filepath.Join(root, "usr/src/tensorrt/bin/trtexec") || h.Obstacle() != "" {
		t.Errorf("%+v: %s", h, h.Obstacle())
	}
	touch("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100 PCIe\nIRQ: 16\n")
	if h := tensorrt.DetectHost(root, nil); h.GPU != "NVIDIA H100 PCIe" {
		t.Errorf("%+v", h)
	}
}

func ExampleJob_Arguments() {
	j := tensorrt.Job{Model: "/m.onnx", Key: tensorrt.Key{TensorRT: "8.0.1", Workspace: 1 << 30}}
	fmt.Println(strings.Join(j.Arguments("/e.plan"), " "))
	// Output: --onnx=/m.onnx --saveEngine=/e.plan --iterations=1 --duration=0 --warmUp=0 --workspace=1024
}
