package bitbake_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yoctune/yoctune/schema/formats/bitbake"
)

func TestParseAssignment(t *testing.T) {
	for line, want := range map[string]bitbake.Assignment{
		`A = "b"`:                       {Name: "A", Op: "=", Value: "b"},
		`A+="b"`:                        {Name: "A", Op: "+=", Value: "b"},
		`A:="b"`:                        {Name: "A", Op: ":=", Value: "b"},
		`A.="b"`:                        {Name: "A", Op: ".=", Value: "b"},
		`A ??= 'b "c"'  `:               {Name: "A", Op: "??=", Value: `b "c"`},
		`export GO = "1"`:               {Name: "GO", Op: "=", Value: "1", Exported: true},
		`SRC_URI[a.sha256sum] = "0"`:    {Name: "SRC_URI", Flag: "a.sha256sum", Op: "=", Value: "0"},
		`RDEPENDS:${PN}:append = " x"`:  {Name: "RDEPENDS:${PN}:append", Op: "=", Value: " x"},
		`PREFERRED_PROVIDER_v/k =. "x"`: {Name: "PREFERRED_PROVIDER_v/k", Op: "=.", Value: "x"},
	} {
		got, ok := bitbake.ParseAssignment(line)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: parsed %v (-want +got)\n%s", line, ok, diff)
		}
	}
	for _, line := range []string{"", `A = "b`, `A = b`, `A "b"`, `= "b"`, `A = "b'`, `# A = "b"`, `A = "`} {
		if got, ok := bitbake.ParseAssignment(line); ok {
			t.Errorf("%s: parsed as %+v", line, got)
		}
	}
}

func TestSplit(t *testing.T) {
	a, _ := bitbake.ParseAssignment(`IMAGE_INSTALL:append:jetson:tegra = " x"`)
	variable, op, overrides := a.Split()
	if diff := cmp.Diff([]string{"IMAGE_INSTALL", "append", "jetson", "tegra"}, append([]string{variable, op}, overrides...)); diff != "" {
		t.Error(diff)
	}
}

func TestAssignmentsJoinLines(t *testing.T) {
	const text = "# A = \"no\" \\\nA = \"b \\\n    c\"\nfoo\nB = \"d\"\n"
	got := bitbake.Assignments(text)
	want := []bitbake.Assignment{
		{Name: "A", Op: "=", Value: "b c", Line: 2, Start: 13, End: 28},
		{Name: "B", Op: "=", Value: "d", Line: 5, Start: 33, End: 40},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
