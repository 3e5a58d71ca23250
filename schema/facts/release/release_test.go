package release

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestBranchFactsAreConsistent(t *testing.T) {
	want := []string{
		"kirkstone", "kirkstone-l4t-r32.7.x", "master", "scarthgap", "scarthgap-l4t-r35.x",
		"walnascar", "whinlatter", "wrynose",
	}
	if got := Names(); !slices.Equal(got, want) {
		t.Fatalf("Names() = %v, want %v", got, want)
	}
	for _, name := range want {
		r, ok := Lookup(name)
		if !ok || r.Name != name {
			t.Errorf("Lookup(%q) = %q, %t", name, r.Name, ok)
		}
		for _, problem := range r.Check() {
			t.Error(problem)
		}
	}
	if _, ok := Lookup("dunfell"); ok {
		t.Error("dunfell is supported")
	}
}

// testdata/machines.txt was recorded from the branches apart from the generator.
func TestMachinesMatchTheBranches(t *testing.T) {
	f, err := os.Open("testdata/machines.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	recorded := map[string][]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		branch, rest, _ := strings.Cut(lines.Text(), " ")
		recorded[branch] = append(recorded[branch], rest)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	for _, name := range Names() {
		r, _ := Lookup(name)
		var got []string
		for _, m := range r.Machines() {
			got = append(got, strings.Join([]string{m.Name, m.NVPModel, dash(m.BoardID), dash(m.BoardSKU)}, " "))
		}
		if !slices.Equal(got, recorded[name]) {
			t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(recorded[name], "\n     "))
		}
	}
}

func TestRenamedVariablesAreRefused(t *testing.T) {
	for _, c := range []struct {
		variable, release, replacement string
		refused                        bool
	}{
		{"SSTATE_DUPWHITELIST", "kirkstone", "SSTATE_ALLOW_OVERLAP_FILES", true},
		{"BB_ENV_EXTRAWHITE", "kirkstone-l4t-r32.7.x", "BB_ENV_PASSTHROUGH_ADDITIONS", true},
		{"LICENSE_FLAGS_WHITELIST", "scarthgap", "LICENSE_FLAGS_ACCEPTED", true},
		{"TCLIBCAPPEND", "scarthgap", "", false},
		{"TCLIBCAPPEND", "walnascar", "", true},
		{"BB_DANGLINGAPPENDS_WARNONLY", "whinlatter", "", true},
		{"DISTRO_FEATURES_BACKFILL_CONSIDERED", "whinlatter", "", false},
		{"DISTRO_FEATURES_BACKFILL_CONSIDERED", "wrynose", "DISTRO_FEATURES_OPTED_OUT", true},
		{"SDK_TOOLCHAIN_LANGS", "wrynose", "", false},
		{"SDK_TOOLCHAIN_LANGS", "master", "SDK_FEATURES", true},
		{"BB_NUMBER_THREADS", "master", "", false},
	} {
		r, _ := Lookup(c.release)
		v, refused := r.FindRenamed(c.variable)
		if refused != c.refused || v.New != c.replacement {
			t.Errorf("%s on %s: refused %t, new name %q; want %t, %q", c.variable, c.release, refused, v.New, c.refused, c.replacement)
		}
	}
}

func TestSyntaxFollowsTheSeries(t *testing.T) {
	has := func(release, rule string) bool {
		r, _ := Lookup(release)
		return slices.ContainsFunc(r.Syntax(), func(s Syntax) bool { return s.ID == rule })
	}
	for _, c := range []struct {
		release, rule string
		want          bool
	}{
		{"kirkstone", "override-colon", true},
		{"kirkstone", "systemd-usrmerge", false},
		{"scarthgap", "s-is-workdir", false},
		{"walnascar", "s-is-workdir", true},
		{"walnascar", "git-s", false},
		{"whinlatter", "git-s", true},
		{"master", "features-opted-out", true},
	} {
		if got := has(c.release, c.rule); got != c.want {
			t.Errorf("%s holds for %s: %t, want %t", c.rule, c.release, got, c.want)
		}
	}
	for _, s := range SyntaxRules() {
		if !slices.Contains(Series(), s.Since) || s.Rule == "" || s.Fix == "" || s.Source == "" {
			t.Errorf("rule %s is incomplete", s.ID)
		}
	}
}

func TestLineIsTheKeyOfBoardFacts(t *testing.T) {
	for name, want := range map[string]string{"kirkstone-l4t-r32.7.x": "R32", "kirkstone": "R35", "scarthgap": "R36", "wrynose": "R39"} {
		r, _ := Lookup(name)
		if r.Line() != want {
			t.Errorf("%s: line %s, want %s", name, r.Line(), want)
		}
	}
}

func TestUnitsMatchTheL4T(t *testing.T) {
	for _, c := range []struct {
		release, unit string
		want          bool
	}{
		{"kirkstone-l4t-r32.7.x", "nvfancontrol.service", false},
		{"kirkstone", "nvfancontrol.service", true},
		{"scarthgap", "nvphs.service", true},
		{"wrynose", "nvphs.service", false},
		{"wrynose", "nvpower.service", true},
	} {
		r, _ := Lookup(c.release)
		if _, got := r.Unit(c.unit); got != c.want {
			t.Errorf("%s on %s: %t, want %t", c.unit, c.release, got, c.want)
		}
	}
	r, _ := Lookup("scarthgap")
	u, _ := r.Unit("nvpmodel.service")
	if !slices.Contains(u.After, "nvpower.service") {
		t.Errorf("nvpmodel.service is after %v, want nvpower.service among them", u.After)
	}
}

func TestUnreadVariablesAreNamed(t *testing.T) {
	for _, c := range []struct {
		variable, release string
		want              bool
	}{
		{"BB_DEFAULT_TASK_MAXMEM", "master", true},
		{"BB_NUMBER_DOWNLOAD_THREADS", "kirkstone", true},
		{"BB_LOADFACTOR_MAX", "kirkstone", true},
		{"BB_LOADFACTOR_MAX", "scarthgap-l4t-r35.x", false},
		{"BB_HASHSERVE_DB_DIR", "whinlatter", true},
		{"BB_HASHSERVE_DB_DIR", "wrynose", false},
		{"BB_NUMBER_THREADS", "kirkstone", false},
	} {
		r, _ := Lookup(c.release)
		a, got := r.FindAbsent(c.variable)
		if got != c.want || got && (a.Instead == "" || a.Source == "") {
			t.Errorf("%s on %s: %t (%+v), want %t", c.variable, c.release, got, a, c.want)
		}
	}
}

func TestImageFeaturesOfOtherSeriesAreKnown(t *testing.T) {
	for _, c := range []struct {
		feature, release string
		want             bool
	}{
		{"debug-tweaks", "scarthgap", false},
		{"debug-tweaks", "walnascar", true},
		{"serial-autologin-root", "kirkstone", true},
		{"ssh-server-openssh", "kirkstone", false}, // a package group, on every series
	} {
		r, _ := Lookup(c.release)
		if got := r.LacksImageFeature(c.feature); got != c.want {
			t.Errorf("%s on %s: %t, want %t", c.feature, c.release, got, c.want)
		}
	}
}
