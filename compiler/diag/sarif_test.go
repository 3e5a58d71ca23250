package diag

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
)

// What a code host reads of a SARIF log, by the names of the specification.
func TestSARIFLogHasUniqueRulesAndLocatedFindings(t *testing.T) {
	r := &Report{}
	at := plan.Position{File: "config.cue", Line: 3, Column: 5}
	r.Add(Diagnostic{ID: "YT0102", Severity: Error, Message: "unknown field", Help: "did you mean \"x\"?", Pos: at})
	r.Add(Diagnostic{ID: "YT0102", Severity: Warning, Message: "again", Pos: plan.Position{File: "config.cue"},
		Related: []Related{{Pos: at, Message: "first here"}}})
	r.Add(Diagnostic{ID: "rule", Severity: Info, Message: "nowhere"})
	var b strings.Builder
	if err := WriteSARIF(&b, r.PrefixPaths("my box"), "1.2", func(id string) (Explanation, bool) {
		return Explanation{Title: "Title", Cause: "Cause", Fix: "Fix"}, id == "rule"
	}); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name, Version string
					Rules         []struct {
						ID                     string
						ShortDescription, Help *struct{ Text string }
					}
				}
			}
			Results []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || log.Runs[0].Tool.Driver.Name != "yoctune" || log.Runs[0].Tool.Driver.Version != "1.2" {
		t.Fatalf("got %+v", log)
	}
	rules := log.Runs[0].Tool.Driver.Rules
	if len(rules) != 2 || rules[0].ID != "YT0102" || rules[0].Help != nil || rules[1].Help.Text != "Cause\nFix" {
		t.Errorf("rules: %+v", rules)
	}
	results := log.Runs[0].Results
	if len(results) != 3 {
		t.Fatalf("%d results", len(results))
	}
	for i, want := range []string{
		`{"level":"error","locations":[{"physicalLocation":{"artifactLocation":{"uri":"my%20box/config.cue"},"region":{"startColumn":5,"startLine":3}}}],"message":{"text":"unknown field. did you mean \"x\"?"},"ruleId":"YT0102","ruleIndex":0}`,
		`{"level":"warning","locations":[{"physicalLocation":{"artifactLocation":{"uri":"my%20box/config.cue"}}}],"message":{"text":"again"},"relatedLocations":[{"message":{"text":"first here"},"physicalLocation":{"artifactLocation":{"uri":"my%20box/config.cue"},"region":{"startColumn":5,"startLine":3}}}],"ruleId":"YT0102","ruleIndex":0}`,
		`{"level":"note","message":{"text":"nowhere"},"ruleId":"rule","ruleIndex":1}`,
	} {
		got, err := json.Marshal(results[i])
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range results {
			g, err := json.Marshal(r)
			found = found || err == nil && string(g) == want
		}
		if !found {
			t.Errorf("no result %s; number %d is %s", want, i, got)
		}
	}
}
