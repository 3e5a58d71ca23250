package knob_test

import (
	"path"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestExactNameOverridesPattern(t *testing.T) {
	mtu := func(name string) plan.Select { return plan.Select{Class: "net", Name: name, Attr: "mtu"} }
	ring := plan.Select{Class: "net", Name: "eth0", Attr: "ethtool/ring/rx"}
	for _, tc := range []struct {
		exact, pattern plan.Select
		want           bool
	}{
		{mtu("eth0"), mtu("eth*"), true},
		{mtu("eth0"), mtu("eth?"), true},
		{mtu("eth0"), mtu(""), true},
		{mtu("eth0"), mtu("can*"), false},
		{mtu("eth0"), mtu("eth0"), false},
		{mtu("eth*"), mtu("eth0"), false},
		{mtu("eth0*"), mtu("eth*"), false},
		{ring, mtu("eth*"), false},
		{plan.Select{Path: "/proc/sys/vm/swappiness"}, plan.Select{}, false},
	} {
		if got := knob.Overrides(tc.exact, tc.pattern); got != tc.want {
			t.Errorf("%+v over %+v: %v", tc.exact, tc.pattern, got)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"eth*", "e*0", true},
		{"eth?", "eth*", true},
		{"eth*", "eth*", true},
		{"nvme*n1", "nvme0*", true},
		{"*", "?", true},
		{"eth*", "can*", false},
		{"eth?", "eth??", false},
		{"mmcblk*", "mmcblk?boot0", true},
		{"*p1", "*p2", false},
		{"eth*", "eth0", true},
	} {
		if knob.Overlap(tc.a, tc.b) != tc.want || knob.Overlap(tc.b, tc.a) != tc.want {
			t.Errorf("%s and %s: want %v", tc.a, tc.b, tc.want)
		}
	}
}

// A name that both patterns match proves an overlap.
func FuzzOverlap(f *testing.F) {
	f.Add("eth*", "e*0", "eth0")
	f.Add("a?c", "*bc", "abc")
	f.Fuzz(func(t *testing.T, a, b, name string) {
		const other = "[]\\/-^"
		if strings.ContainsAny(a+b+name, other) || len(a) > 20 || len(b) > 20 {
			t.Skip("patterns of device names have none of " + other + " and are short here")
		}
		for _, s := range []string{a, b, name} {
			for _, r := range s {
				if r < ' ' || r > '~' {
					t.Skip("device names are ASCII")
				}
			}
		}
		x, _ := path.Match(a, name)
		y, _ := path.Match(b, name)
		if x && y && !knob.Overlap(a, b) {
			t.Errorf("%q and %q both match %q", a, b, name)
		}
	})
}
