package check_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/diag"
)

// seeds are configurations to make broken ones of.
func seeds(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("../../examples/*/config.cue")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no examples: %v", err)
	}
	var all []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, string(text))
	}
	for _, r := range check.Rules() {
		all = append(all, inTarget(r.Wrong))
	}
	return all
}

// runAllChecks does with a configuration everything that vet does, and formats the
// diagnostics.
func runAllChecks(text []byte) {
	p := compiler.OpenFiles(map[string][]byte{"config.cue": text})
	p.Verify()
	var b strings.Builder
	if err := diag.WriteText(&b, p.Report, p.Config.Sources, false); err != nil {
		panic(err)
	}
	for _, d := range p.Report.All() {
		if d.ID == "" || d.Message == "" {
			panic(fmt.Sprintf("an empty diagnostic: %+v", d))
		}
	}
}

// No replacement of a value makes a check panic.
func TestBrokenConfigurationsAreChecked(t *testing.T) {
	values := []string{`-1`, `0`, `99999999999999999999`, `""`, `"x"`, `true`, `null`, `[]`, `{}`, `[0, -1, 999]`, `{a: {b: 1}}`, `1.5`, `"\u202e"`, `_`, `string`, `"4-7-9"`, `"m"`, `"n"`}
	value := regexp.MustCompile(`"[^"\n]*"|\b[0-9]+\b|\btrue\b|\bfalse\b|\[[^][\n]*\]`)
	random := rand.New(rand.NewPCG(1, 2))
	for _, seed := range seeds(t) {
		places := value.FindAllStringIndex(seed, -1)
		for range 2 {
			at := places[random.IntN(len(places))]
			text := seed[:at[0]] + values[random.IntN(len(values))] + seed[at[1]:]
			assertNoPanic(t, text)
		}
		if lines := strings.SplitAfter(seed, "\n"); len(lines) > 8 {
			i := 5 + random.IntN(len(lines)-6)
			assertNoPanic(t, strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), ""))
		}
	}
}

func assertNoPanic(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%v\n%s", r, text)
		}
	}()
	runAllChecks([]byte(text))
}

func FuzzConfiguration(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, text []byte) { runAllChecks(text) })
}
