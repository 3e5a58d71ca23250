package emitters_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestPartWithoutPositionInheritsIt(t *testing.T) {
	l := &plan.Layer{
		Origins: plan.Origins{"build": {File: "a.cue", Line: 1}},
		Targets: []*plan.Target{{Name: "t", Origins: plan.Origins{"sysctl.vm.swappiness": {File: "a.cue", Line: 2}, "storage.nvme*": {File: "a.cue", Line: 3}}}},
	}
	for _, tc := range []struct {
		ref  emitters.Ref
		line int
	}{
		{emitters.Ref{ID: "build.parallel.tasks"}, 1},
		{emitters.Ref{Target: "t", ID: "sysctl.vm.swappiness"}, 2},
		{emitters.Ref{Target: "t", ID: "storage.nvme*.scheduler"}, 3},
		{emitters.Ref{Target: "t", ID: "power.default"}, 0},
		{emitters.Ref{ID: "sysctl.vm.swappiness"}, 0},
	} {
		p, ok := emitters.Position(l, tc.ref)
		if p.Line != tc.line || ok != (tc.line > 0) {
			t.Errorf("%+v is at line %d, %t; want %d", tc.ref, p.Line, ok, tc.line)
		}
	}
}
