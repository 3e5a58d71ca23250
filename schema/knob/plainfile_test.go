package knob

import (
	"slices"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
)

// A file can only assign: it holds no bound, no choice among alternatives, and nothing that
// is selected by more than its name.
func TestOnlyAssignmentsHaveAFile(t *testing.T) {
	mtu := plan.Setting{Select: plan.Select{Class: "net", Name: "eth*", Attr: "mtu"}, Want: "9000", Compare: plan.Exact, Policy: plan.Enforce}
	if f := FindPlainFile(mtu); !slices.Equal(f.Places, []Place{PlaceUdev}) || f.Want != "9000" {
		t.Errorf("%+v: %+v, want udev", mtu.Select, f)
	}
	for what, change := range map[string]func(*plan.Setting){
		"a lower bound":      func(s *plan.Setting) { s.Compare = plan.AtLeast },
		"an upper bound":     func(s *plan.Setting) { s.Compare = plan.AtMost },
		"alternatives":       func(s *plan.Setting) { s.Compare = plan.FirstAvailable },
		"a reported value":   func(s *plan.Setting) { s.Policy = plan.Report },
		"a driver":           func(s *plan.Setting) { s.Select.Driver = "r8169" },
		"a device tree node": func(s *plan.Setting) { s.Select.OFNode = "ethernet" },
		"another attribute":  func(s *plan.Setting) { s.Select.Attr = "queues/rx-*/rps_cpus" },
		"another class":      func(s *plan.Setting) { s.Select.Class = "irq" },
	} {
		s := mtu
		change(&s)
		if f := FindPlainFile(s); len(f.Places) > 0 {
			t.Errorf("%s has places %v, want none", what, f.Places)
		}
	}
}

// Bounds whose own value satisfies them.
func TestReservedPagesAndMGLRUAreAssigned(t *testing.T) {
	for path, want := range map[string]string{
		"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "64",
		"/sys/kernel/mm/lru_gen/enabled":                         "y",
	} {
		s := plan.Setting{Select: plan.Select{Path: path}, Want: "64", Compare: plan.AtLeast, Policy: plan.Enforce}
		if f := FindPlainFile(s); !slices.Equal(f.Places, []Place{PlaceBoot}) || f.Want != want || f.Node != path {
			t.Errorf("%s: %+v, want %q in tmpfiles.d", path, f, want)
		}
	}
}
