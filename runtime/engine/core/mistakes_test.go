package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// The mistakes of well-known CUDA examples that docs/core.md lists, as claims about
// this core.

func TestMistake1MatrixProductOfEveryShapeStaysInBounds(t *testing.T) {
	d := openCPU(t)
	s, b := stream(t, d), alloc(t, d, 1<<16, core.MemAuto)
	a := core.GemmArgs{M: 7, N: 5, K: 3, Alpha: 1}
	fits := func(c, x, y int, a core.GemmArgs) error {
		return s.List().Gemm(b.At(0, c), b.At(16384, x), b.At(32768, y), core.Region{}, a).Submit()
	}
	if err := fits(4*7*5, 4*7*3, 4*3*5, a); err != nil {
		t.Errorf("exactly enough: %v", err)
	}
	for name, err := range map[string]error{
		"C one float short": fits(4*7*5-4, 4*7*3, 4*3*5, a),
		"A one float short": fits(4*7*5, 4*7*3-4, 4*3*5, a),
		"B one float short": fits(4*7*5, 4*7*3, 4*3*5-4, a),
		"rows that overlap": fits(4*7*5, 4*7*3, 4*3*5, core.GemmArgs{M: 7, N: 5, K: 3, LDB: 4, Alpha: 1}),
		"no size":           fits(4*7*5, 4*7*3, 4*3*5, core.GemmArgs{M: 0, N: 5, K: 3, Alpha: 1}),
	} {
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "gemm:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMistake2EachChunkHasItsOwnEvents(t *testing.T) {
	d := openCPU(t)
	s := queued(t, d)
	b := alloc(t, d, 1<<20, core.MemDevice)
	var starts, ends []*core.Event
	for range 8 {
		start, end := event(t, d), event(t, d)
		submit(t, s.List().Record(start).Fill(b.All(), 1).Record(end))
		starts, ends = append(starts, start), append(ends, end)
	}
	wait(t, s)
	for i := range starts {
		if took, err := ends[i].Since(starts[i]); err != nil || took <= 0 {
			t.Errorf("chunk %d took %v, %v", i, took, err)
		}
		if i > 0 {
			if gap, err := starts[i].Since(ends[i-1]); err != nil || gap < 0 {
				t.Errorf("chunk %d began %v after the one before ended, %v", i, gap, err)
			}
		}
	}
}

func TestMistake3ReductionOfAnyLengthIsOneValue(t *testing.T) {
	d := openCPU(t)
	for _, n := range []int{1, 31, 32, 33, 255, 257, 1000, 16385, 100003} {
		x := make([]float32, n)
		for i := range x {
			x[i] = 1
		}
		if got, err := d.Reduce(context.Background(), core.Sum, x); err != nil || got != float32(n) {
			t.Errorf("sum of %d ones is %g, %v", n, got, err)
		}
	}
}

func TestMistake4ManagedMemoryNeedsConcurrentAccess(t *testing.T) {
	orin := core.Attributes{Integrated: true, MapHost: true, Managed: true}
	if c, err := orin.Choose(core.MemManaged, core.TouchBoth); err != nil || !c.Refused {
		t.Errorf("managed memory without concurrent access: %+v, %v", c, err)
	}
}

func TestMistake5ABlockHasNoMoreThreadsThanItsKernelAllows(t *testing.T) {
	d := openCPU(t)
	if err := d.Configure(core.KernelConfig{Kernel: "preprocess", Block: 2048}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("more threads than a block has: %v", err)
	}
}
