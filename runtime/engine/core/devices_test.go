package core_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

func TestVirtualDevices(t *testing.T) {
	if n, err := core.Count(core.Options{Backend: core.CPU}); n != 1 || err != nil {
		t.Errorf("%d devices, %v", n, err)
	}
	for i := range 3 {
		if info, err := openWith(t, core.Options{Devices: 3, Index: i}).Info(); err != nil || info.Backend != core.CPU {
			t.Errorf("device %d: %+v, %v", i, info, err)
		}
	}
	if _, err := core.Open(core.Options{Backend: core.CPU, Devices: 3, Index: 3}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("device 3 of 3: %v", err)
	}
	t.Setenv("YT_CPU_DEVICES", "2")
	if n, err := core.Count(core.Options{Backend: core.CPU}); n != 2 || err != nil {
		t.Errorf("%d devices, %v", n, err)
	}
	for _, v := range []string{"0", "17", "-1", "two", "1 "} {
		t.Setenv("YT_CPU_DEVICES", v)
		if _, err := core.Count(core.Options{Backend: core.CPU}); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("YT_CPU_DEVICES=%q: %v", v, err)
		}
	}
}

// A device that takes three times as long gets a quarter of the work; when the
// other is lost it gets all.
func TestBalanceByRateSkipsLostDevices(t *testing.T) {
	b, err := core.NewBalancer(core.BalanceThroughput, 2)
	if err != nil {
		t.Fatal(err)
	}
	took := [2]time.Duration{time.Millisecond, 3 * time.Millisecond}
	var got [2]int
	for range 1000 {
		i, err := b.Next()
		if err != nil {
			t.Fatal(err)
		}
		got[i]++
		b.Done(i, took[i], nil)
	}
	if got[0] < 740 || got[0] > 760 {
		t.Errorf("shares %v, want 750 and 250", got)
	}
	i, err := b.Next()
	if err != nil {
		t.Fatal(err)
	}
	b.Done(i, 0, &core.Error{Code: 5, Sticky: true})
	for range 10 {
		j, err := b.Next()
		if err != nil || j == i {
			t.Fatalf("device %d, %v; %d is lost", j, err, i)
		}
		b.Done(j, took[j], nil)
	}
	b.Done(1-i, 0, &core.Error{Code: 5, Sticky: true})
	if _, err := b.Next(); !errors.Is(err, core.ErrDeviceLost) {
		t.Errorf("none is left: %v", err)
	}
	b.Restore(i)
	if j, err := b.Next(); err != nil || j != i {
		t.Errorf("restored: %d, %v", j, err)
	}
}

func TestManualAndLatencyBalance(t *testing.T) {
	b, err := core.NewBalancer(core.BalanceManual, 3, 1, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got [3]int
	for range 300 {
		i, _ := b.Next()
		got[i]++
		b.Done(i, time.Millisecond, nil)
	}
	if got != [3]int{100, 200, 0} {
		t.Errorf("weights 1, 2, 0 gave %v", got)
	}
	l, err := core.NewBalancer(core.BalanceLatency, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, took := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
		for {
			j, _ := l.Next()
			if j == i {
				l.Done(j, took, nil)
				break
			}
			l.Done(j, 0, nil)
		}
	}
	var order []int
	for range 10 { // no item completes: the quick device fills up first
		i, _ := l.Next()
		order = append(order, i)
	}
	for k, i := range order[:9] {
		if i != 0 {
			t.Errorf("item %d went to %d; the quick device finishes nine items before the slow one finishes one", k, i)
		}
	}
	for _, w := range [][]float64{{1}, {0, 0}, {-1, 2}} {
		if _, err := core.NewBalancer(core.BalanceManual, 2, w...); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("weights %v: %v", w, err)
		}
	}
}

// One of two devices is slowed down and later lost.
func TestBalanceOfTwoVirtualDevices(t *testing.T) {
	devices := []*core.Device{openWith(t, core.Options{Devices: 2}), openWith(t, core.Options{Devices: 2, Index: 1, Faults: "slow:x50"})}
	b, err := core.NewBalancer(core.BalanceThroughput, 2)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 1<<18)
	run := func() int {
		i, err := b.Next()
		if err != nil {
			t.Fatal(err)
		}
		least := time.Duration(math.MaxInt64) // the minimum excludes delays by other programs
		for range 3 {
			start := time.Now()
			if _, err = devices[i].Reduce(context.Background(), core.Sum, x); err != nil {
				break
			}
			least = min(least, time.Since(start))
		}
		b.Done(i, least, err)
		return i
	}
	var got [2]int
	for range 150 {
		got[run()]++
	}
	if got[0] <= got[1] || got[1] == 0 {
		t.Errorf("shares %v: the slow device must have the smaller share, but not zero", got)
	}
	if err := devices[1].InjectFaults("device:lost@t=0s"); err != nil {
		t.Fatal(err)
	}
	// Fixed weights, so that the lost device is tried exactly once.
	if b, err = core.NewBalancer(core.BalanceManual, 2, 1, 1); err != nil {
		t.Fatal(err)
	}
	after := [2]int{}
	for range 100 {
		after[run()]++
	}
	if after[1] != 1 || b.Rates()[1] != 0 {
		t.Errorf("a lost device received %d items, rates %v", after[1], b.Rates())
	}
}

func TestInvalidOperationsAreRefused(t *testing.T) {
	d := openCPU(t)
	s, b := stream(t, d), alloc(t, d, 4096, core.MemAuto)
	for name, l := range map[string]*core.List{
		"softmax": s.List().Softmax(b.At(0, 400), b.At(512, 400), core.RowsArgs{Rows: 10, Cols: 10}),
		"nms":     s.List().NMS(b.At(0, core.BoxesBytes(4)), b.At(1024, core.BoxesBytes(8)), core.NMSArgs{InMax: 8, Max: 4, Batch: 1, IoU: 0.5}),
		"gemm": s.List().Gemm(b.At(0, 64), b.At(512, 64), b.At(1024, 64), core.Region{},
			core.GemmArgs{M: 4, N: 4, K: 4, Alpha: 1}),
	} {
		if err := l.Submit(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := s.List().Softmax(b.At(0, 100), b.At(512, 400), core.RowsArgs{Rows: 10, Cols: 10})
	if err := l.Submit(); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("no room: %v", err)
	}
}

func TestBalanceRetriesASlowDevice(t *testing.T) {
	b, err := core.NewBalancer(core.BalanceThroughput, 2)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]int, 2)
	for range 400 {
		i, err := b.Next()
		if err != nil {
			t.Fatal(err)
		}
		took := time.Millisecond
		if i == 1 && got[i] == 0 {
			took = time.Hour // the machine was suspended
		}
		got[i]++
		b.Done(i, took, nil)
	}
	if got[1] < 3 {
		t.Errorf("as quick as the other one but once, it got %d items of 400", got[1])
	}
}
