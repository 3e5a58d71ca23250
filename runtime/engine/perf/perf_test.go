package perf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFaultsAndTimeOfThisProcessAreCounted(t *testing.T) {
	c := Open()
	before := c.Read()
	const pages = 512
	size := pages * os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	// On a thread that is started after Open: it counts too.
	done := make(chan bool)
	go func() {
		runtime.LockOSThread()
		for i := 0; i < size; i += os.Getpagesize() {
			mem[i] = 1
		}
		close(done)
	}()
	<-done
	got := c.Read().Since(before)
	if got.MinorFaults == nil || *got.MinorFaults < pages {
		t.Errorf("%s faults for %d new pages", show(got.MinorFaults), pages)
	}
	if got.CPU == nil || *got.CPU <= 0 || got.MajorFaults == nil || len(got.Interrupts) == 0 {
		t.Errorf("%+v", got)
	}
	// A counter that the machine does not have is nil, with a reason; the others are not nil.
	for name, v := range map[string]*int64{"cycles": got.Cycles, "instructions": got.Instructions, "migrations": got.Migrations, "cache misses": got.CacheMisses} {
		explained := slices.ContainsFunc(got.Why, func(w string) bool { return strings.HasPrefix(w, name+": ") })
		if (v == nil) != explained {
			t.Errorf("%s is %s, and why is %q", name, show(v), got.Why)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func show(v *int64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprint(*v)
}

func TestWhatIsUnknownOnOneSideIsUnknown(t *testing.T) {
	before := Counts{MinorFaults: new(int64(5)), Interrupts: []int64{1, 2}}
	after := Counts{MinorFaults: new(int64(9)), Cycles: new(int64(100)), Interrupts: []int64{4, 2, 7}}
	got := after.Since(before)
	if *got.MinorFaults != 4 || got.Cycles != nil || got.Interrupts != nil {
		t.Errorf("%+v", got)
	}
}

func TestARefusalIsExplained(t *testing.T) {
	for err, want := range map[error]string{
		unix.ENOENT: "no such counter", unix.EACCES: "perf_event_paranoid", unix.EPERM: "counters: true", unix.ENOSYS: "CONFIG_PERF_EVENTS",
		errors.New("odd"): "odd",
	} {
		if got := explain(err); !strings.Contains(got, want) {
			t.Errorf("%v: %q", err, got)
		}
	}
}

func TestInterruptsAreAddedUpByProcessor(t *testing.T) {
	text := "           CPU0       CPU1\n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n" +
		" 26:          2         13  IO-APIC   4-edge      ttyS0\nLOC:    1000    2000   Local timer interrupts\nERR:          3\n"
	if got := parseInterrupts(text); !slices.Equal(got, []int64{1003, 2013}) {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{"", "\n", "x y\n1: 2 3\n"} {
		if got := parseInterrupts(bad); got != nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func FuzzInterrupts(f *testing.F) {
	f.Add("    CPU0\n 1: 5 x\n")
	f.Fuzz(func(t *testing.T, text string) {
		head, _, _ := strings.Cut(text, "\n")
		if got := parseInterrupts(text); got != nil && len(got) != len(strings.Fields(head)) {
			t.Errorf("%d sums for %q", len(got), head)
		}
	})
}
