package checklayer

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters"
)

func recorded(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestShowAppendsOutput(t *testing.T) {
	got := showAppends(recorded(t, "show-appends.txt"))
	for file, want := range map[string][]appendedTo{
		"/l/meta-edge/recipes-kernel/linux/linux-noble-nvidia-tegra_%.bbappend":    {{"linux-noble-nvidia-tegra_6.8", false}},
		"/l/meta-edge/recipes-kernel/linux/linux-noble-nvidia-tegra-rt_%.bbappend": {{"linux-noble-nvidia-tegra-rt_6.8", true}},
		"/l/meta-edge/recipes-bsp/tegra-nvpmodel/tegra-nvpmodel-base_%.bbappend":   {{"tegra-nvpmodel-base_39.2.0", false}},
		"/l/meta-edge/recipes-kernel/linux/linux-tegra_%.bbappend":                 nil,
	} {
		if !reflect.DeepEqual(got[file], want) {
			t.Errorf("%s: got %v, want %v", file, got[file], want)
		}
	}
}

func TestUnresolvedNamesHaveTheirOrigin(t *testing.T) {
	got := parseUnresolved(recorded(t, "unresolved.txt"))
	want := []unresolved{
		{Name: "zstd-native"},
		{Name: "virtual/kernel"},
		{Name: "virtual/compilerlibs", By: "/src/meta-tegra/recipes-bsp/tegra-nvpmodel-base_39.2.0.bb, /l/meta-edge/recipes-yoctune/yoctuned/yoctuned_1.0.bb"},
		{Name: "htop", Runtime: true, By: "/l/meta-edge/recipes-yoctune/packagegroups/packagegroup-yoctune-edge.bb"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestOnlyStandInTasksAreRecorded(t *testing.T) {
	got := missingTasksIn(recorded(t, "unresolved.txt"), "/w/stand-ins/quick")
	if !reflect.DeepEqual(got, []string{"do_image_wic"}) {
		t.Errorf("got %v", got)
	}
}

func TestErrorsKeepContinuationLines(t *testing.T) {
	got := errorsIn("NOTE: x\nERROR: a\n  why\n\nWARNING: w\n  not this\nERROR: a\n  why\nERROR: b\nNOTE: y\n")
	want := []string{"ERROR: a", "  why", "ERROR: b"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	parse := "ERROR: Unable to parse x.py\nTraceback (most recent call last):\n  File \"x.py\", line 200, in feeder\n>    raise ParseError(fn)\n     ^^^^^^\nbb.parse.ParseError: ParseError at a.conf:27: unparsed line: 'X'\n\nERROR: Parsing halted due to errors, see error messages above\n"
	if got, want := errorsIn(parse), []string{"ERROR: Unable to parse x.py", "  bb.parse.ParseError: ParseError at a.conf:27: unparsed line: 'X'"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(errorsIn(strings.Repeat("ERROR: 1\nERROR: 2\n", 3) + many())); n > maxErrorLines+1 {
		t.Errorf("%d lines are no excerpt", n)
	}
}

func many() string {
	var b strings.Builder
	for i := range 500 {
		b.WriteString("ERROR: number " + strings.Repeat("i", i) + "\n")
	}
	return b.String()
}

func TestEnvironmentUndoesTheQuotingOfBitBake(t *testing.T) {
	got := environment(recorded(t, "environment.txt"))
	want := map[string]string{
		"KERNEL_ARGS": "console=ttyTCU0,115200 isolcpus=4-5", "PATH": "/a:/b", "CFLAGS": " -O2 \n-g",
		"QUOTED": `say "hi" for $5`, "EMPTY": "",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestYoctoCheckLayerOutput(t *testing.T) {
	pass := checkLayerOutput(recorded(t, "check-layer-pass.txt"))
	if pass.Result != "PASS" || len(pass.Errors) > 0 || pass.Tests["test_security"] != "ok" || pass.Tests["test_patches_upstream_status"] != "unexpected success" {
		t.Errorf("a passed run reads as %+v", pass)
	}
	fail := checkLayerOutput(recorded(t, "check-layer-fail.txt"))
	if fail.Result != "FAIL" || fail.Tests["test_signatures"] != "FAIL" {
		t.Errorf("a failed run reads as %+v", fail)
	}
	text := strings.Join(fail.Errors, "\n")
	for _, want := range []string{"24 signatures changed", "tegra-nvpmodel-base:do_recipe_qa: 0f1e -> 9a8b"} {
		if !strings.Contains(text, want) {
			t.Errorf("the reason lacks %q:\n%s", want, text)
		}
	}
	for _, noise := range []string{"Traceback", "self.fail(", "preferred version"} {
		if strings.Contains(text, noise) {
			t.Errorf("the reason has %q:\n%s", noise, text)
		}
	}
}

func TestMissingSourceFileIsFatalThoughBitBakeOnlyWarns(t *testing.T) {
	out := "WARNING: /l/k.bb: Unable to get checksum for linux SRC_URI entry edge.cfg: file could not be found\nWARNING: other\n"
	if got := fatalWarnings(out); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestReasonOfASkippedRecipe(t *testing.T) {
	out := "ERROR: Nothing PROVIDES 'yoctune-edge-config'\nyoctune-edge-config was skipped: incompatible with machine jetson-x (not in COMPATIBLE_MACHINE)\n"
	if got := skipReason(out, "yoctune-edge-config"); got != "incompatible with machine jetson-x (not in COMPATIBLE_MACHINE)" {
		t.Errorf("got %q", got)
	}
}

// Whatever bitbake prints, reading it ends and never panics.
func FuzzOutputReaders(f *testing.F) {
	for _, name := range []string{"show-appends.txt", "unresolved.txt", "environment.txt", "check-layer-pass.txt", "check-layer-fail.txt"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add("X=\"a\\\n")
	f.Add("X=\"\\\"")
	f.Fuzz(func(t *testing.T, out string) {
		showAppends(out)
		parseUnresolved(out)
		missingTasksIn(out, "/")
		environment(out)
		checkLayerOutput(out)
		if n := len(errorsIn(out)); n > maxErrorLines+1 {
			t.Errorf("%d error lines", n)
		}
		for _, a := range linesOf(emitters.File{Means: emitters.ReadBitBake("conf/x.conf", []byte(out), nil)}) {
			if a.Variable == "" || a.Number < 1 {
				t.Errorf("assignment %+v", a)
			}
		}
	})
}
