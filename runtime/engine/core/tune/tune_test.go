package tune

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/occupancy"
	"github.com/yoctune/yoctune/runtime/engine/core"
)

func openCPU(t *testing.T) *core.Device {
	t.Helper()
	d, err := core.Open(core.Options{Backend: core.CPU})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// start creates a tuner, as a program does when it starts.
func start(t *testing.T, d *core.Device, dir string) *Tuner {
	t.Helper()
	tuner, err := New(d, core.OpenCache(dir))
	if err != nil {
		t.Fatal(err)
	}
	return tuner
}

// product is a real product of matrices, run with any configuration.
func product(t *testing.T, d *core.Device, m, n, k int) (Task, *core.Buffer) {
	t.Helper()
	alloc := func(n int) *core.Buffer {
		b, err := d.Alloc(4*n, core.MemHost)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := 0, b.Float32s(); i < len(x); i++ {
			x[i] = float32((i*7)%13) - 6.25
		}
		return b
	}
	a, b, c := alloc(m*k), alloc(k*n), alloc(m*n)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	args := core.GemmArgs{M: uint32(m), N: uint32(n), K: uint32(k), Alpha: 1}
	return Task{Kernel: "gemm", Shape: []int{m, n, k}, Run: func(ctx context.Context, cfg core.KernelConfig) (time.Duration, error) {
		at := time.Now()
		err := s.List().Gemm(c.All(), a.All(), b.All(), core.Region{}, args).Configure(cfg).Submit()
		return time.Since(at), errors.Join(err, s.Wait(ctx))
	}}, c
}

func choose(t *testing.T, tuner *Tuner, task Task) Choice {
	t.Helper()
	c, err := tuner.Choose(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSecondStartUsesTheCache(t *testing.T) {
	d, dir := openCPU(t), t.TempDir()
	task, _ := product(t, d, 40, 100, 70)
	first := start(t, d, dir)
	c := choose(t, first, task)
	left := c.Candidates - c.Pruned
	if c.From != Measured || c.Runs < left*(rounds+1) || first.Runs() != c.Runs || c.Pruned == 0 || left < 2 {
		t.Fatalf("%+v, %d runs", c, first.Runs())
	}
	second := start(t, d, dir)
	task.Run = func(context.Context, core.KernelConfig) (time.Duration, error) {
		t.Error("measured")
		return 0, nil
	}
	again := choose(t, second, task)
	if again.From != Kept || again.Config != c.Config || again.Time != c.Time || second.Runs() != 0 {
		t.Errorf("%+v, %d runs; %+v was kept", again, second.Runs(), c)
	}
	// Another size of the same bucket is the same question, one beyond it another.
	task.Shape = []int{64, 128, 65}
	if near := choose(t, second, task); near.From != Kept {
		t.Errorf("the same bucket: %+v", near)
	}
	task.Shape, task.Run = []int{65, 128, 65}, nil
	if far := choose(t, second, task); far.From != Model {
		t.Errorf("another bucket, and nothing to run: %+v", far)
	}
}

func TestOtherKernelsOrDriverAreMeasuredAgain(t *testing.T) {
	d, dir := openCPU(t), t.TempDir()
	task, _ := product(t, d, 16, 32, 64)
	choose(t, start(t, d, dir), task)
	for name, change := range map[string]func(*Tuner){
		"sources": func(u *Tuner) { u.key.Source = []byte("tuning other") },
		"driver":  func(u *Tuner) { u.key.Driver = "13.1" },
		"device":  func(u *Tuner) { u.key.Capability = "cuda Orin" },
	} {
		u := start(t, d, dir)
		change(u)
		if c := choose(t, u, task); c.From != Measured {
			t.Errorf("another %s: %+v", name, c)
		}
	}
}

// Every configuration computes the same to the bit: the order of additions stays.
func TestTuningDoesNotChangeResults(t *testing.T) {
	d := openCPU(t)
	for _, kind := range []core.Type{core.F32, core.I8} {
		task, out := product(t, d, 21, 77, 300)
		if kind == core.I8 {
			a, b, c := make([]byte, 21*300), make([]byte, 300*77), 4*21*77
			for i := range a {
				a[i] = byte(i * 31)
			}
			for i := range b {
				b[i] = byte(i * 17)
			}
			s, err := d.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			x, _ := d.Alloc(len(a), core.MemHost)
			y, _ := d.Alloc(len(b), core.MemHost)
			copy(x.Bytes(), a)
			copy(y.Bytes(), b)
			args := core.GemmArgs{M: 21, N: 77, K: 300, Type: uint8(core.I8), Out: uint8(core.I32), Alpha: 1}
			task.Run = func(ctx context.Context, cfg core.KernelConfig) (time.Duration, error) {
				return 1, errors.Join(s.List().Gemm(out.At(0, c), x.All(), y.All(), core.Region{}, args).Configure(cfg).Submit(), s.Wait(ctx))
			}
		}
		var want []byte
		for _, cfg := range candidates(d.Tunable()[0]) {
			for i := range out.Bytes() {
				out.Bytes()[i] = 0xff // NaN
			}
			if _, err := task.Run(context.Background(), cfg); err != nil {
				t.Fatalf("%+v: %v", cfg, err)
			}
			if want == nil {
				want = bytes.Clone(out.Bytes())
			}
			if !bytes.Equal(want, out.Bytes()) {
				t.Errorf("%v: %+v computes something else", kind, cfg)
			}
		}
	}
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := d.Alloc(64, core.MemHost)
	args := core.GemmArgs{M: 1, N: 1, K: 1, Alpha: 1}
	for _, tc := range []struct {
		l        *core.List
		wantText string
	}{
		{s.List().Gemm(b.At(0, 4), b.At(8, 4), b.At(16, 4), core.Region{}, args).Configure(core.KernelConfig{Block: 100}), "64 to 256 in steps of 64"},
		{s.List().Gemm(b.At(0, 4), b.At(8, 4), b.At(16, 4), core.Region{}, args).Configure(core.KernelConfig{Tile: 48}), "a power of two from 32 to 256"},
		{s.List().Reduce(b.At(0, 4), b.At(8, 4), core.Sum).Configure(core.KernelConfig{Block: 64}), "no launch configuration"},
		{s.List().Configure(core.KernelConfig{Block: 64}), "need a command"},
	} {
		if err := tc.l.Submit(); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), tc.wantText) {
			t.Errorf("%v does not contain %q", err, tc.wantText)
		}
	}
}

// pretend is a kernel whose times are known.
func pretend(took func(core.KernelConfig) time.Duration) Task {
	return Task{Kernel: "gemm", Shape: []int{512, 512, 512}, Run: func(_ context.Context, c core.KernelConfig) (time.Duration, error) { return took(c), nil }}
}

func TestFastestWinsDespiteNoise(t *testing.T) {
	d := openCPU(t)
	wanted := core.KernelConfig{Kernel: "gemm", Block: 192, Tile: 128}
	n := 0
	noisy := func(best time.Duration) Task {
		return pretend(func(c core.KernelConfig) time.Duration {
			n++
			noise := time.Duration(n%7) * 20
			if c == wanted {
				return best + noise
			}
			return 10000 + noise
		})
	}
	if c := choose(t, start(t, d, t.TempDir()), noisy(7000)); c.Config != wanted || c.BuiltIn <= c.Time {
		t.Errorf("30 %% quicker: %+v", c)
	}
	built := candidates(d.Tunable()[0])[0]
	if c := choose(t, start(t, d, t.TempDir()), noisy(9900)); c.Config != built {
		t.Errorf("1 %% quicker is noise: %+v, not %+v", c, built)
	}
	bad := errors.New("no")
	_, err := start(t, d, t.TempDir()).Choose(context.Background(), Task{Kernel: "gemm", Shape: []int{1, 1, 1}, Run: func(context.Context, core.KernelConfig) (time.Duration, error) { return 0, bad }})
	if !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := start(t, d, t.TempDir()).Choose(ctx, noisy(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if c := choose(t, start(t, d, t.TempDir()), Task{Kernel: "nms", Shape: []int{1000}}); c.From != BuiltIn || c.Config.Block != 0 {
		t.Errorf("a kernel without a choice: %+v", c)
	}
}

func TestDamagedAndForeignEntriesAreMeasuredAgain(t *testing.T) {
	d, dir := openCPU(t), t.TempDir()
	task := pretend(func(core.KernelConfig) time.Duration { return 1000 })
	choose(t, start(t, d, dir), task)
	files, err := filepath.Glob(filepath.Join(dir, "*.answer"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string][]byte{
		"empty": {}, "cut": whole[:len(whole)-3], "flipped": slices.Concat(whole[:len(whole)-5], []byte{whole[len(whole)-5] ^ 1}, whole[len(whole)-4:]), "text": []byte("fast"),
	} {
		if err := os.WriteFile(files[0], damage, 0o600); err != nil {
			t.Fatal(err)
		}
		if c := choose(t, start(t, d, dir), task); c.From != Measured {
			t.Errorf("%s: %+v", name, c)
		}
	}
	// Whole, with its checksum, and not a configuration of this kernel.
	for _, foreign := range []string{`{"block": 7, "tile": 9}`, `block=64`} {
		u := start(t, d, dir)
		of := u.key
		of.Options = fmt.Sprint("tune/1 gemm", Bucket(task.Shape))
		key := of.ID()
		kept := core.OpenCache(dir)
		kept.Drop(key)
		if _, _, err := kept.Get(key, func() ([]byte, error) { return []byte(foreign), nil }); err != nil {
			t.Fatal(err)
		}
		if c := choose(t, u, task); c.From != Measured || c.Config.Block == 7 {
			t.Errorf("%s: %+v", foreign, c)
		}
		if c := choose(t, start(t, d, dir), task); c.From != Kept {
			t.Errorf("%s was not replaced: %+v", foreign, c)
		}
	}
}

func TestReadOnlyRootMeasuresAtEachStart(t *testing.T) {
	d := openCPU(t)
	file := filepath.Join(t.TempDir(), "not-a-folder")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kept := core.OpenCache(filepath.Join(file, "kernels"))
	tuner, err := New(d, kept)
	if err != nil {
		t.Fatal(err)
	}
	task := pretend(func(core.KernelConfig) time.Duration { return 1000 })
	if c := choose(t, tuner, task); c.From != Measured {
		t.Errorf("%+v", c)
	}
	if c := choose(t, tuner, task); c.From != Kept || kept.Note() == "" {
		t.Errorf("%+v, note %q", c, kept.Note())
	}
}

// The environment variable with which the test runs itself as another process.
const other = "YOCTUNE_TUNE_IN"

func TestConcurrentTuning(t *testing.T) {
	d := openCPU(t)
	task, _ := product(t, d, 33, 65, 129)
	if dir := os.Getenv(other); dir != "" {
		for range 5 {
			choose(t, start(t, d, dir), task)
		}
		return
	}
	dir := t.TempDir()
	var all []*exec.Cmd
	for range 4 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestConcurrentTuning$")
		cmd.Env = append(os.Environ(), other+"="+dir)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, cmd.Stdout)
		}
	}
	last := start(t, d, dir)
	if c := choose(t, last, task); c.From != Kept || last.Runs() != 0 {
		t.Errorf("%+v", c)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*new*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestCostModelDependsOnTheShape(t *testing.T) {
	d := openCPU(t)
	tuner := start(t, d, t.TempDir())
	for _, tc := range []struct{ m, n, k, widest, deepest int }{
		{1, 10, 10, 32, 64}, {100, 60, 500, 64, 256}, {4096, 4096, 4096, 256, 256},
	} {
		c := choose(t, tuner, Task{Kernel: "gemm", Shape: []int{tc.m, tc.n, tc.k}})
		if c.From != Model || c.Config.Tile > tc.widest || c.Config.Block > tc.deepest || c.Config.Tile == 0 {
			t.Errorf("%+v: %+v", tc, c)
		}
	}
}

// On a GPU block sizes that leave the multiprocessor half empty are not measured.
func TestOccupancyPrunesBlockSizes(t *testing.T) {
	d, err := occupancy.Lookup(87)
	if err != nil {
		t.Fatal(err)
	}
	all := candidates(core.KernelLimits{Name: "preprocess", Block: 256, BlockMin: 32, BlockMax: 256, BlockStep: 32})
	if len(all) != 8 || all[0].Block != 256 {
		t.Fatalf("candidates %v", all)
	}
	left := pruneByOccupancy(d, "preprocess", all)
	if len(left) == len(all) || len(left) == 0 {
		t.Fatalf("left %v", left)
	}
	// 16 blocks of 32 threads are 16 of 48 warps: it must be gone.
	if slices.ContainsFunc(left, func(c core.KernelConfig) bool { return c.Block == 32 }) {
		t.Errorf("left %v", left)
	}
	if unknown := pruneByOccupancy(d, "unheard", all); !slices.Equal(unknown, all) {
		t.Errorf("a kernel without figures is not pruned: %v", unknown)
	}
}

func TestTuningOfAPipelineFrame(t *testing.T) {
	d := openCPU(t)
	p := core.Preprocess{Format: core.NV12, Width: 64, Height: 48, OutW: 32, OutH: 32, Fit: core.Letterbox}
	if c, err := start(t, d, t.TempDir()).Preprocess(context.Background(), p); err != nil || c.From != BuiltIn {
		t.Errorf("the CPU has one way to preprocess: %+v, %v", c, err)
	}
	b, err := newPreprocess(d, &p)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range []int{0, 32, 256} {
		if took, err := b.run(context.Background(), core.KernelConfig{Kernel: "preprocess", Block: block}); err != nil || took <= 0 {
			t.Errorf("blocks of %d: %v, %v", block, took, err)
		}
	}
	if _, err := b.run(context.Background(), core.KernelConfig{Kernel: "preprocess", Block: 33}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if err := b.release(); err != nil {
		t.Error(err)
	}
}
