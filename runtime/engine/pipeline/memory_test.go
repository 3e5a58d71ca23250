package pipeline

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/schema/plan"
)

// Locking affects the whole process, so a child process runs the test.
func TestMemoryOptionsLockAndUseLargePages(t *testing.T) {
	if os.Getenv("HOLD_MEMORY") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryOptionsLockAndUseLargePages$", "-test.v")
		cmd.Env = append(os.Environ(), "HOLD_MEMORY=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "locked: ") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	b, err := frame.MapMemory(8 * hugePage)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 1
	}
	var info RuntimeInfo
	errs := applyMemoryOptions(&plan.PipelineMemory{Lock: true, HugePages: true}, &info)
	switch {
	case len(errs) > 0:
		// Where the limit is small it is said, and nothing else happens.
		if !strings.Contains(errs[len(errs)-1].Error(), "memory.") {
			t.Errorf("%v", errs)
		}
		t.Logf("locked: not, %v", errs)
	case info.Locked == nil || *info.Locked < 8*hugePage:
		t.Errorf("locked %v of %d bytes", info.Locked, 8*hugePage)
	default:
		huge := int64(-1)
		if info.Huge != nil {
			huge = *info.Huge
		}
		t.Logf("locked: %d bytes, on large pages %d", *info.Locked, huge)
	}
}
