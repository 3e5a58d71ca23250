package check

import (
	"testing"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// A proposed rename must be a slip of the fingers, never another parameter.
func TestOnlyTyposAreRenamed(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"vm.swapiness", "vm.swappiness", true},
		{"vm.swappinesss", "vm.swappiness", true},
		{"vm.swappinses", "vm.swappiness", true},
		{"net.ipv4.udp_wmem_min", "net.ipv4.udp_rmem_min", false},
		{"vm.swappiness", "vm.swappiness", false},
		{"vm.x", "vm.swappiness", false},
		{"", "a", true},
	} {
		if got := isTypo(c.a, c.b); got != c.want {
			t.Errorf("isSlip(%q, %q) = %t", c.a, c.b, got)
		}
	}
}

func TestCPUListsAreParsedAsTheKernelDoes(t *testing.T) {
	for text, want := range map[string]bool{
		"1-3,5": true, "managed_irq,domain,4-5": true, "0": true, "5-4": false, "": false, "1,,2": false, "4-": false, "all": false, "1-2,domain": false, "0-99999999": false, "0-31:2/4": true, "0-31:2": false,
	} {
		if _, _, ok := parseCoreArg(text, -1, false); ok != want {
			t.Errorf("parseCoreArg(%q) = %t", text, ok)
		}
	}
	for text, want := range map[string]string{
		"2-N": "2-7", "N": "7", "all": "0-7", "domain,2-N": "2-7", "0,N": "0,7", "all:1/2": "0,2,4,6", "nonsense": "",
	} {
		if _, cores, ok := parseCoreArg(text, 7, true); ok != (want != "") || cpulist.Format(cores) != want {
			t.Errorf("parseCoreArg(%q) = %v, want %s", text, cores, want)
		}
	}
}
