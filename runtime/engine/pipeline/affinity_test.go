package pipeline

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A policy applies to all threads, including later ones. A child process runs the test,
// because the policy cannot be undone.
func TestEveryThreadIsScheduledAsPlanned(t *testing.T) {
	if os.Getenv("SCHEDULE_THREADS") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestEveryThreadIsScheduledAsPlanned$")
		cmd.Env = append(os.Environ(), "SCHEDULE_THREADS=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	nice := 5
	for range 2 { // values already set are not set again
		if err := Schedule("batch", 0, &nice); err != nil {
			t.Fatal(err)
		}
	}
	later := make(chan int)
	for range 4 {
		go func() {
			runtime.LockOSThread()
			later <- unix.Gettid()
			select {}
		}()
		<-later
	}
	seen := 0
	err := eachThread(func(tid int) error {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err == nil && (attr.Policy != unix.SCHED_BATCH || attr.Nice != 5) {
			t.Errorf("thread %d has policy %d and nice %d", tid, attr.Policy, attr.Nice)
		}
		seen++
		return err
	})
	if err != nil || seen < 8 {
		t.Errorf("%v, %d looks at threads", err, seen)
	}
	if err := Schedule("soon", 0, nil); !errors.Is(err, ErrPlan) {
		t.Errorf("an unknown policy: %v", err)
	}
}
