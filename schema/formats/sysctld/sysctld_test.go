package sysctld

import (
	"strings"
	"testing"
)

func TestParseLine(t *testing.T) {
	for text, want := range map[string]Line{
		"vm.swappiness = 10":                     {Kind: Assignment, Key: "vm.swappiness", Value: "10"},
		"  vm/swappiness=10\n":                   {Kind: Assignment, Key: "vm.swappiness", Value: "10"},
		"-net.ipv4.conf.*.rp_filter = 2":         {Kind: Assignment, Key: "net.ipv4.conf.*.rp_filter", Value: "2", Lenient: true},
		"net/ipv4/conf/eth0.100/rp_filter = 2":   {Kind: Assignment, Key: "net.ipv4.conf.eth0/100.rp_filter", Value: "2"},
		"kernel.core_pattern = |/bin/x a=b # no": {Kind: Assignment, Key: "kernel.core_pattern", Value: "|/bin/x a=b # no"},
		"vm.swappiness =":                        {Kind: Assignment, Key: "vm.swappiness"},
		"-net.ipv4.conf.all.rp_filter":           {Kind: Exclusion, Key: "net.ipv4.conf.all.rp_filter", Lenient: true},
		"":                                       {},
		"# vm.swappiness = 1":                    {},
		"; vm.swappiness = 1":                    {},
		"vm.swappiness 10":                       {},
		"= 10":                                   {},
		"- = 10":                                 {},
	} {
		if got := ParseLine(text); got != want {
			t.Errorf("ParseLine(%q) = %+v, want %+v", text, got, want)
		}
	}
	if !IsGlob("net.ipv4.conf.*.rp_filter") || IsGlob("vm.swappiness") {
		t.Error("IsGlob does not distinguish a pattern from a name")
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add("-net/ipv4/conf/eth0.100/rp_filter = 2 # x")
	f.Fuzz(func(t *testing.T, text string) {
		l := ParseLine(text)
		if l.Kind == Other && l != (Line{}) {
			t.Errorf("%q: a line without meaning has %+v", text, l)
		}
		if l.Kind != Other && (l.Key == "" || strings.TrimSpace(l.Key) != l.Key || strings.TrimSpace(l.Value) != l.Value) {
			t.Errorf("%q: %+v", text, l)
		}
	})
}
