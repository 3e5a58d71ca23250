package check_test

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/kconfig/forecast"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/facts/board"
)

// judge checks a configuration with other facts.
func judge(p *compiler.Project, book *forecast.Book, alter func(*resolve.Target)) map[string]diag.Diagnostic {
	var changed resolve.Project
	changed = *p.Project
	changed.Targets = nil
	for _, t := range p.Targets {
		own, facts := *t, *t.Board
		facts.Evidence = maps.Clone(facts.Evidence)
		own.Board = &facts
		alter(&own)
		changed.Targets = append(changed.Targets, &own)
	}
	var report diag.Report
	yolo := func(string) (*onnx.Model, error) {
		b := yoloModel()
		return onnx.Read(bytes.NewReader(b), int64(len(b)))
	}
	check.Run(&changed, &report, book, yolo)
	found := map[string]diag.Diagnostic{}
	for _, d := range report.All() {
		found[d.ID+" "+d.Path+" "+d.Message] = d
	}
	return found
}

func markVerified(t *resolve.Target, verified bool) {
	t.Exact = verified
	for _, field := range factsOf() {
		t.Board.Evidence[field] = board.Evidence{Source: "a test", Verified: verified}
	}
}

// factsOf lists the facts of a board that have evidence, by JSON name.
func factsOf() (names []string) {
	for f := range reflect.TypeFor[board.Board]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch name {
		case "-", "id", "name", "modules", "soc", "evidence", "releases", "identified_by", "device_trees", "default_machine", "quirks", "supply":
		default:
			names = append(names, name)
		}
	}
	return names
}

// otherFacts returns changes of facts: each sets one to something else.
func otherFacts() map[string]func(*resolve.Target) {
	changes := map[string]func(*resolve.Target){
		"no stock modes": func(t *resolve.Target) { t.Stock = board.Table{} },
		"renamed stock modes": func(t *resolve.Target) {
			t.Stock.Modes = slices.Clone(t.Stock.Modes)
			for i := range t.Stock.Modes {
				t.Stock.Modes[i].Name += "_OTHER"
			}
		},
	}
	for _, name := range factsOf() {
		set := func(value func(reflect.Value)) func(*resolve.Target) {
			return func(t *resolve.Target) {
				v := reflect.ValueOf(t.Board).Elem()
				for f := range v.Type().Fields() {
					if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
						value(v.FieldByIndex(f.Index))
					}
				}
			}
		}
		changes["no "+name] = set(func(v reflect.Value) {
			if !v.CanInt() {
				v.SetZero()
			}
		})
		changes["much "+name] = set(func(v reflect.Value) {
			if v.CanInt() {
				v.SetInt(1 << 50 >> (64 - v.Type().Bits()))
			}
		})
	}
	changes["64 cores"] = func(t *resolve.Target) { t.Board.Cores = 64 }
	changes["89 sm"] = func(t *resolve.Target) { t.Board.SM = 89 }
	return changes
}

// An error that another fact would not cause rests on that fact, and must be a warning
// where the fact is not verified. Each rule's own example finds those that forget it.
func TestNoRuleRefusesByAnUnverifiedFact(t *testing.T) {
	changes, book := otherFacts(), forecast.NewBook("")
	resting := map[string]bool{}
	for _, r := range check.Rules() {
		if r.Severity != diag.Error || r.Wrong == "" {
			continue
		}
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget(r.Wrong)), "yolo.onnx": yoloModel(), "broken.onnx": []byte("version https://git-lfs"), "parts.onnx": modelInParts()})
		if p.Project == nil {
			t.Fatalf("%s: no project", r.ID)
		}
		firm := judge(p, book, func(t *resolve.Target) { markVerified(t, true) })
		for _, d := range firm {
			if d.Unverified != "" {
				t.Errorf("%s: %q is not verified although every fact is: %s", r.ID, d.Message, d.Unverified)
			}
		}
		for key, d := range judge(p, book, func(t *resolve.Target) { markVerified(t, false) }) {
			if d.Severity < diag.Error {
				if d.Unverified != "" {
					resting[d.ID] = true
				}
				continue
			}
			for name, change := range changes {
				found, still := judge(p, book, func(t *resolve.Target) { markVerified(t, false); change(t) })[key]
				if !still || found.Severity < diag.Error {
					t.Errorf("%s: with %s the error %q goes away, so it rests on that fact; report it with refuse", d.ID, name, d.Message)
				}
			}
		}
	}
	for _, id := range []string{"core-exists", "power-default", "power-frequency", "dla-cores", "hugepages-memory"} {
		if !resting[id] {
			t.Errorf("%s rests on facts, and no example shows it", id)
		}
	}
}
