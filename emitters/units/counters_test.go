package units_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/units"
	"github.com/yoctune/yoctune/schema/plan"
)

// The processor's counters also reveal information about other programs, so only a
// pipeline that requests them may open them.
func TestOnlyProfiledPipelinesMayOpenCounters(t *testing.T) {
	l := emittest.Vision(t)
	l.Targets[0].Plan.Pipelines = map[string]plan.Pipeline{"counted": {Counters: true}, "plain": {}, "pinned": {CPUs: "1"}}
	files, err := units.Emit(l)
	if err != nil {
		t.Fatal(err)
	}
	lets := map[string]bool{}
	for _, f := range files {
		if _, name, ok := strings.Cut(f.Path, "yoctuned-pipeline@"); ok {
			lets[name[:strings.Index(name, ".")]] = strings.Contains(string(f.Data), "\nSystemCallFilter=perf_event_open\n")
		}
	}
	if !lets["counted"] || lets["plain"] || lets["pinned"] || len(lets) != 2 {
		t.Errorf("may open counters: %v", lets)
	}
}
