package enforce_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/schema/plan"
)

// meeting is a device on which the writes to some nodes return only when all of them have been
// started. Sequential writes would block for ever.
type meeting struct {
	*devicetest.Kernel
	suffix string
	all    sync.WaitGroup
	late   atomic.Bool
}

func (m *meeting) Write(name, value string) error {
	if strings.HasSuffix(name, m.suffix) {
		m.all.Done()
		met := make(chan struct{})
		go func() { m.all.Wait(); close(met) }()
		select {
		case <-met:
		case <-time.After(time.Minute):
			m.late.Store(true)
		}
	}
	return m.Kernel.Write(name, value)
}

func TestDisksAreWrittenInParallelAndEachInOrder(t *testing.T) {
	dev, dir := newBoard(t)
	before := readState(t, dir)
	p := planOf(
		block("*", "nr_requests", plan.TypeInt, "200"),
		block("*", "scheduler", plan.TypeChoice, "kyber"),
		sysctl("vm.swappiness", "10"),
	)
	m := &meeting{Kernel: dev, suffix: "/queue/scheduler"}
	m.all.Add(2)
	results, err := enforce.Apply(m, p, options())
	if err != nil || !enforce.Satisfied(results) {
		t.Fatalf("%v %+v", err, results)
	}
	if m.late.Load() {
		t.Error("one disk waited for the other")
	}
	// A scheduler resets nr_requests, which is therefore written once and after it.
	for _, disk := range []string{"nvme0n1", "mmcblk0"} {
		var wrote []string
		for _, w := range dev.Writes {
			if strings.Contains(w, "/"+disk+"/queue/") {
				wrote = append(wrote, w[strings.LastIndexByte(w, '/')+1:])
			}
		}
		if !slices.Equal(wrote, []string{"scheduler=kyber", "nr_requests=200"}) {
			t.Errorf("%s: %q", disk, wrote)
		}
	}

	m.all.Add(2)
	if results, err = enforce.Rollback(m, options()); err != nil || !enforce.Satisfied(results) {
		t.Fatalf("%v %+v", err, results)
	}
	if m.late.Load() {
		t.Error("rollback: one disk waited for the other")
	}
	compareStates(t, before, readState(t, dir))
}
