package probe

import (
	"strings"
	"testing"
)

const (
	device = `{"type":"device","compatible":["nvidia,p3768-0000+p3767-0003","nvidia,p3767-0003","nvidia,tegra234"],"l4t":"36.4.0","kernel":"5.15.148"}` + "\n"
	end    = `{"type":"summary","command":"probe"}` + "\n"
)

// hardware has as many cores as given; an Orin Nano 8 GB has six.
func hardware(cores string) string { return `{"type":"hardware","cores":` + cores + "}\n" }

func TestIncompleteProbesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"text":             {"no JSON\n", "line 1: "},
		"empty":            {"", "it is not what"},
		"no hardware":      {device + end, "no line of type hardware"},
		"cut off":          {device + hardware("6"), "its end is missing"},
		"another command":  {device + hardware("6") + `{"type":"summary","command":"status"}`, `the output of "status"`},
		"a field of words": {device + hardware(`"six"`) + end, "line 2: "},
	} {
		if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestObservationIsMarkedWhereItContradictsAFact(t *testing.T) {
	for cores, contradictions := range map[string]int{"6": 0, "4": 1} {
		p, err := Read(strings.NewReader(device + hardware(cores) + end))
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Compare("", "")
		if err != nil {
			t.Fatal(err)
		}
		if c.Board.ID != "orin-nano-8gb" || c.Release.Line() != "R36" || c.Contradictions() != contradictions {
			t.Errorf("%s cores: board %s, release %s, %d contradictions", cores, c.Board.ID, c.Release.Name, c.Contradictions())
		}
		text, err := c.CUE(Names{Board: "mine", Package: "config"})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(text); !strings.HasPrefix(got, "package config\n") || strings.Contains(got, "CONTRADICTS") != (contradictions > 0) {
			t.Errorf("%s cores:\n%s", cores, got)
		}
	}
}

func TestProbeOfAnotherModuleIsRefused(t *testing.T) {
	p, err := Read(strings.NewReader(device + hardware("6") + end))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ board, release, want string }{
		{"agx-orin-64gb", "", "the device is another module"},
		{"no-such-board", "", "no facts about the board"},
		{"", "no-such-release", "is not known"},
	} {
		if _, err := p.Compare(c.board, c.release); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got %v, want %q", c.board, c.release, err, c.want)
		}
	}
}
