// Package bbref parses configuration text and generated layers with bitbake's own
// parser, as an independent reference for tests.
//
// The parser is the lib/bb that the Python package bitbake-setup bundles, in
// build/bb-venv of the repository or where YOCTUNE_BITBAKE_VENV points. Without
// it a test is skipped with the reason, or fails when YOCTUNE_REQUIRE_BITBAKE=1.
package bbref

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Problem is an error or a warning of the parser.
type Problem struct {
	Level   string `json:"level"` // error, warning
	File    string `json:"file"`
	Line    int    `json:"line"` // from 1; 0 when unknown
	Message string `json:"message"`
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Level, p.Message)
	}
	return fmt.Sprintf("%s: %s: %s", p.File, p.Level, p.Message)
}

// Result holds the variables and problems of one piece of text.
type Result struct {
	Raw      map[string]string `json:"raw"`    // as assigned
	Values   map[string]string `json:"values"` // expanded, as a recipe sees them
	Problems []Problem         `json:"errors"`
}

// Eval parses the content of a .conf file and returns the expanded value of every variable. A
// warning or an error of the parser fails the test.
func Eval(t testing.TB, text string) map[string]string {
	t.Helper()
	r := EvalAll(t, text)[0]
	for _, p := range r.Problems {
		t.Errorf("bitbake: %s\n%s", p, text)
	}
	return r.Values
}

// EvalAll parses each text separately in one run of the parser. The caller handles problems.
func EvalAll(t testing.TB, texts ...string) []Result {
	t.Helper()
	type text struct {
		Text string `json:"text"`
	}
	var request struct {
		Texts []text `json:"texts"`
	}
	for _, s := range texts {
		request.Texts = append(request.Texts, text{s})
	}
	var answer struct {
		Results []Result `json:"results"`
	}
	runDriver(t, "eval", request, &answer)
	if len(answer.Results) != len(texts) {
		t.Fatalf("bitbake's parser answered %d of %d texts", len(answer.Results), len(texts))
	}
	return answer.Results
}

// Request describes how to parse a layer.
type Request struct {
	Dir       string `json:"dir"`
	Machine   string `json:"machine"`
	Overrides string `json:"overrides"` // MACHINEOVERRIDES below the machine, lowest first
	UnpackDir bool   `json:"unpackdir"` // the series defines UNPACKDIR (walnascar and later)
	Fragments bool   `json:"fragments"` // switch on by conf/fragments instead of conf/yoctune
	Enable    bool   `json:"enable"`    // false: the layer is only present

	Beside []string `json:"beside"` // further layers of the build, on or off as the first; FindRecipes only
}

// Recipe is one .bb, or one .bbappend on a stand-in recipe.
type Recipe struct {
	Values    map[string]string `json:"values"`
	Functions map[string]string `json:"functions"`
	Python    []string          `json:"python"` // the text of each ${@…}
	Skipped   string            `json:"skipped"`
}

// Layer holds the parsed files of a layer.
type Layer struct {
	BitBake        string            `json:"bitbake"` // version of the parser
	Config         map[string]string `json:"config"`
	ConfigSet      []string          `json:"config_set"` // variables the layer's files set
	ConfigPython   []string          `json:"config_python"`
	Recipes        map[string]Recipe `json:"recipes"` // by file
	Appends        map[string]Recipe `json:"appends"` // by file
	Files          []string          `json:"files"`
	Problems       []Problem         `json:"errors"`
	StubbedClasses []string          `json:"stubbed_classes"`
	StubbedModules []string          `json:"stubbed_modules"`
}

// ParseLayer parses every .conf, .bb, .bbappend and .inc below request.Dir. It prints the
// stand-ins used, because they prove nothing.
func ParseLayer(t testing.TB, request Request) Layer {
	t.Helper()
	if request.Overrides == "" {
		request.Overrides = "cuda:tegra:aarch64"
	}
	dir, err := filepath.Abs(request.Dir)
	if err != nil {
		t.Fatal(err)
	}
	request.Dir = dir
	var layer Layer
	runDriver(t, "layer", request, &layer)
	t.Logf("bitbake %s; stubbed classes: %v; stubbed modules: %v", layer.BitBake, layer.StubbedClasses, layer.StubbedModules)
	return layer
}

// Attached is a recipe in a build with further layers.
type Attached struct {
	Appends []string          `json:"appends"` // files of the layer, in the order bitbake reads them
	Values  map[string]string `json:"values"`  // its RDEPENDS and RRECOMMENDS
}

// FindRecipes returns the recipes and appends that bitbake finds, by recipe, in a build for series that
// has core, tegra and one layer for each of the collections. A warning or an error of bitbake
// fails the test.
func FindRecipes(t testing.TB, request Request, series string, collections ...string) map[string]Attached {
	t.Helper()
	recipes, problems := TryRecipes(t, request, series, collections...)
	for _, p := range problems {
		t.Errorf("bitbake: %s", p)
	}
	return recipes
}

// TryRecipes is FindRecipes for builds that bitbake may refuse. The caller handles problems.
func TryRecipes(t testing.TB, request Request, series string, collections ...string) (map[string]Attached, []Problem) {
	t.Helper()
	dir, err := filepath.Abs(request.Dir)
	if err != nil {
		t.Fatal(err)
	}
	request.Dir, request.Beside = dir, append([]string{}, request.Beside...)
	var answer struct {
		Recipes  map[string]Attached `json:"recipes"`
		Problems []Problem           `json:"errors"`
	}
	runDriver(t, "attach", struct {
		Request
		Series      string   `json:"series"`
		Collections []string `json:"collections"`
	}{request, series, append([]string{}, collections...)}, &answer)
	return answer.Recipes, answer.Problems
}

// Run runs a python task defined in file as bitbake would run it, with variables set. It returns
// the messages of the task.
func Run(t testing.TB, file, function string, variables map[string]string) []Problem {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Problems []Problem `json:"errors"`
	}
	runDriver(t, "run", struct {
		File      string            `json:"file"`
		Function  string            `json:"function"`
		Variables map[string]string `json:"variables"`
	}{path, function, variables}, &answer)
	return answer.Problems
}

// runDriver runs the driver. A call takes about a quarter of a second.
func runDriver(t testing.TB, verb string, request, answer any) {
	t.Helper()
	root := findRepository(t)
	python := interpreter(t, root)
	in, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, filepath.Join(root, "tests", "bitbake", "driver.py"), verb)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1", "LC_ALL=C.UTF-8")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("running bitbake's parser: %v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), answer); err != nil {
		t.Fatalf("reading the parser's answer: %v\n%s", err, stdout.String())
	}
}

// findRepository finds the module's root above the test's folder.
func findRepository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}

func interpreter(t testing.TB, root string) string {
	t.Helper()
	venv := os.Getenv("YOCTUNE_BITBAKE_VENV")
	if venv == "" {
		venv = filepath.Join(root, "build", "bb-venv")
	}
	python := filepath.Join(venv, "bin", "python3")
	if _, err := os.Stat(python); err != nil {
		reason := fmt.Sprintf("bitbake's parser is not installed: %v (python3 -m venv build/bb-venv && build/bb-venv/bin/pip install --no-deps --require-hashes -r tests/bitbake/requirements.txt)", err)
		if os.Getenv("YOCTUNE_REQUIRE_BITBAKE") == "1" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	return python
}
