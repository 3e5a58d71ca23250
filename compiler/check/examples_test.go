package check_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

// inTarget puts a rule's example into an otherwise sound configuration: into its
// target, or beside it when the example is about the whole. It may bring its own
// board and release.
func inTarget(example string) string {
	example = strings.TrimSpace(example)
	const head = "package box\nimport \"github.com/yoctune/yoctune/schema\"\nschema.#Config & {\nlayer: {name: \"box\", maintainer: \"x\"}\n"
	if slices.ContainsFunc([]string{"build:", "targets:", "boards:", "profiles:"}, func(part string) bool { return strings.HasPrefix(example, part) }) {
		return head + "targets: cam: {" + completeExample(example) + "}\n" + example + "\n}\n"
	}
	if inner, ok := strings.CutPrefix(example, "{"); ok {
		example = strings.TrimSuffix(inner, "}")
	}
	return head + "targets: cam: {\n" + completeExample(example) + "\n" + example + "\n}\n}\n"
}

// completeExample returns the required fields of a target that an example omits.
func completeExample(example string) string {
	text := ""
	if !strings.Contains(example, "board:") {
		text += "board: \"orin-nano-8gb\"\n"
	}
	if !strings.Contains(example, "release:") {
		text += "release: \"scarthgap\"\n"
	}
	return text
}

// yoloModel returns the model that the examples name.
func yoloModel() []byte {
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Detector", In: []string{"images"}, Out: []string{"output0"}}},
		Inputs:  []onnx.Value{onnx.Tensor("images", onnx.Float32, 1, 3, 640, 640)},
		Outputs: []onnx.Value{onnx.Tensor("output0", onnx.Float32, 1, 84, 8400)},
	}
	return g.Encode()
}

// cropModel returns a classifier of crops; batch 0 is a free axis.
func cropModel(batch int64) []byte {
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Classifier", In: []string{"crops"}, Out: []string{"scores"}}},
		Inputs:  []onnx.Value{onnx.Tensor("crops", onnx.Float32, batch, 3, 64, 64)},
		Outputs: []onnx.Value{onnx.Tensor("scores", onnx.Float32, batch, 10)},
	}
	return g.Encode()
}

// mapModel returns a model that gives a map of text.
func mapModel() []byte {
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Detector", In: []string{"images"}, Out: []string{"map"}}},
		Inputs:  []onnx.Value{onnx.Tensor("images", onnx.Float32, 1, 3, 640, 640)},
		Outputs: []onnx.Value{onnx.Tensor("map", onnx.Float32, 1, 1, 32, 32)},
	}
	return g.Encode()
}

// modelInParts returns a model whose weights are in a file beside it.
func modelInParts() []byte {
	g := onnx.Graph{
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{3}, Data: onnx.External("parts.bin")}},
		Nodes:   []onnx.Node{{Op: "Add", In: []string{"images", "w"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("images", onnx.Float32, 1, 3, 640, 640)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 3)},
	}
	return g.Encode()
}

// boardFile returns the board file that the examples name, of a device of an architecture.
func boardFile(arch string) []byte {
	read := map[string]string{}
	for _, fact := range []string{"arch", "cpus", "memory", "block", "thermal_zones", "devfreq"} {
		read[fact] = "example"
	}
	f := boardfile.File{
		Arch: arch, Memory: &boardfile.Memory{Bytes: 4 << 30}, Read: read,
		CPUs:    &boardfile.CPUs{Present: "0-3", Policies: []boardfile.Policy{{CPUs: "0-3", MinHz: 6e8, MaxHz: 18e8, Hz: []int64{6e8, 12e8, 18e8}, Governors: []string{"performance", "schedutil"}}}},
		Block:   []boardfile.Block{{Name: "vda", Schedulers: []string{"mq-deadline", "none"}}},
		Devfreq: []boardfile.Devfreq{{Name: "38000000.gpu", MinHz: 2e8, MaxHz: 8e8, Hz: []int64{2e8, 4e8, 8e8}}},
		Zones:   []boardfile.Zone{{Type: "cpu-thermal", Trips: []boardfile.Trip{{Type: "passive", Temp: 85000, Writable: true}, {Type: "critical", Temp: 95000}}}, {Type: "gpu-thermal", Trips: []boardfile.Trip{{Type: "passive", Temp: 85000}}}},
	}
	text, err := f.Encode()
	if err != nil {
		return nil // the examples then fail
	}
	return text
}

func findRaisedRules(t *testing.T, text string) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, d := range findings(t, text) {
		ids[d.ID] = true
	}
	return ids
}

// findings are those of a whole configuration.
func findings(t *testing.T, text string) []diag.Diagnostic {
	t.Helper()
	p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(text), "yolo.onnx": yoloModel(), "broken.onnx": []byte("version https://git-lfs"), "parts.onnx": modelInParts(),
		"boards/mine.json": boardFile("aarch64"), "boards/x86.json": boardFile("x86_64")})
	p.Verify()
	return p.Report.All()
}

// The pages of explain show a wrong and a right example; both are what they say.
func TestRuleExamplesAreTrue(t *testing.T) {
	for _, r := range check.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			if r.Title == "" || r.Cause == "" || r.Fix == "" {
				t.Error("the page is incomplete")
			}
			if r.Wrong == "" {
				t.Error("there is no example that raises the rule")
			}
			if r.Wrong != "" {
				if got := findRaisedRules(t, inTarget(r.Wrong)); !got[r.ID] {
					t.Errorf("%s raises %v", r.Wrong, got)
				}
			}
			if r.Right != "" {
				if got := findRaisedRules(t, inTarget(r.Right)); got[r.ID] || got["YT0101"] || got["YT0102"] || got["YT0104"] {
					t.Errorf("%s raises %v", r.Right, got)
				}
			}
		})
	}
}

func TestDiagnosticIDsAreUniqueAndDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range compiler.PageIDs() {
		if seen[id] {
			t.Errorf("%s is used twice", id)
		}
		seen[id] = true
		page, ok := compiler.Page(id)
		if !ok || page.Title == "" || page.Cause == "" || page.Fix == "" {
			t.Errorf("%s has no complete page", id)
		}
		if !regexp.MustCompile(`^(YT\d{4}|[a-z0-9]+(-[a-z0-9]+)*)$`).MatchString(id) {
			t.Errorf("%s is neither a code nor a slug", id)
		}
	}
}

// A rule that is switched off is silent; one that protects the device stays.
func TestSuppressingARule(t *testing.T) {
	loud := inTarget(`sysctl: "vm.swappiness": 10`)
	if !findRaisedRules(t, loud)["swap-config"] {
		t.Fatal("the rule is not raised to begin with")
	}
	quiet := loud + "suppress: \"swap-config\": reason: \"swap is added by another layer\"\n"
	if got := findRaisedRules(t, quiet); len(got) != 0 {
		t.Errorf("after suppressing: %v", got)
	}
	for _, id := range []string{"sysctl-executes", "no-such-rule", "YT0102"} {
		if got := findRaisedRules(t, loud+"suppress: \""+id+"\": reason: \"x\"\n"); !got["YT0103"] {
			t.Errorf("suppressing %s is accepted: %v", id, got)
		}
	}
}

var update = flag.Bool("update", false, "rewrite docs/rules.md")

// docs/rules.md lists every rule, for people who read before they run.
func TestTheListOfRulesIsUpToDate(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Rules\n\nWhat `yoctune vet` judges beyond the language itself. `yoctune explain RULE` prints the\npage of a rule with its cause, remedy and examples. A rule is switched off with\n`suppress: \"RULE\": reason: \"...\"`, except those marked firm, which protect a device or\na build host; of those, only findings that rest on [unverified\nfacts](facts.md#verified-and-unverified-facts) are switched off. Written by `go test ./compiler/check -update`.\n\n| rule | severity | what is wrong | rests on |\n|---|---|---|---|\n")
	for _, r := range check.Rules() {
		severity := r.Severity.String()
		if r.Firm {
			severity += ", firm"
		}
		fmt.Fprintf(&b, "| <a id=\"%[1]s\"></a>`%[1]s` | %[2]s | %[3]s | %[4]s |\n", r.ID, severity, strings.ReplaceAll(r.Title, "|", `\|`), strings.ReplaceAll(r.See, "*", `\*`))
	}
	b.WriteString("\n## Diagnostics\n\nErrors of syntax, names, types, values and output, which cannot be suppressed.\n\n| diagnostic | what is wrong |\n|---|---|\n")
	for _, id := range diag.IDs() {
		page, _ := diag.Page(id)
		fmt.Fprintf(&b, "| <a id=\"%s\"></a>`%s` | %s |\n", strings.ToLower(id), id, strings.ReplaceAll(page.Title, "|", `\|`))
	}
	path := filepath.Join("..", "..", "docs", "rules.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != b.String() {
		t.Errorf("docs/rules.md is not up to date: go test ./compiler/check -update (%v)", err)
	}
}

// The examples on the pages of the language are true as well, wherever in a
// configuration they belong.
func TestLanguageExamplesAreTrue(t *testing.T) {
	const head = "package box\nimport \"github.com/yoctune/yoctune/schema\"\nschema.#Config & {layer: {name: \"box\", maintainer: \"x\"}}\n"
	sound := head + "targets: cam: {board: \"orin-nano-8gb\", release: \"scarthgap\"}\n"
	places := []func(string) string{
		func(e string) string { return inTarget(e) + "profiles: \"quiet-box\": {}\n" },
		func(e string) string { return sound + e },
		func(e string) string { return head + e },
		func(e string) string { return sound + "layer: " + e },
		func(e string) string { return sound + "layer: {" + e + "}" },
		func(e string) string { return inTarget("storage: \"nvme*\": " + e) },
		func(e string) string {
			return inTarget("pipelines: p: {source: {kind: \"file\", path: \"a.y4m\", format: \"y4m\"}, " + e + "}")
		},
		func(e string) string { return inTarget("cpu: " + e) },
		func(e string) string {
			return "package box\nimport \"github.com/yoctune/yoctune/schema\"\n" + e + "\nschema.#Config & {layer: {name: \"box\", maintainer: \"x\"}, targets: cam: {board: \"orin-nano-8gb\", release: \"scarthgap\"}}\n"
		},
		func(e string) string { return "package box\n" + e },
	}
	for _, id := range diag.IDs() {
		page, _ := diag.Page(id)
		switch {
		case page.Wrong == "", id == "YT0007", id == "YT0002":
			continue // of another language, or of several files
		}
		for i, place := range places {
			if findRaisedRules(t, place(page.Wrong))[id] {
				if findRaisedRules(t, place(page.Right))[id] {
					t.Errorf("%s, place %d: what is called right raises it: %s", id, i, page.Right)
				}
				break
			}
			if i == len(places)-1 {
				t.Errorf("%s is not raised by its example: %s", id, page.Wrong)
			}
		}
	}
}
