package facts

import (
	"strings"
	"testing"
)

func TestFactsAreConsistent(t *testing.T) {
	entries, problems := Check()
	for _, p := range problems {
		t.Error(p)
	}
	if entries < 50 {
		t.Errorf("only %d boards, releases and kernel parameters", entries)
	}
}

func TestUnknownNamesGetASuggestion(t *testing.T) {
	for name, want := range map[string]string{
		"orin-nano-":      "choose one of orin-nano-",
		"scarthgab":       `did you mean "scarthgap"?`,
		"vm.swapiness":    `did you mean "vm.swappiness"?`,
		"nothing-like-it": "",
	} {
		if got := Suggest(name); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
