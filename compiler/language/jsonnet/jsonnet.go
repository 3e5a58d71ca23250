// Package jsonnet reads configurations written in Jsonnet.
//
// A program is evaluated twice. The first evaluation gives the values. In the second, every
// object has a hidden field with the positions of its fields. Where the two results differ,
// the positions are dropped and diagnostics point at the file.
//
// Jsonnet does not limit what a program may compute, and has three ways to end the whole
// process, so [Load] must run in the child process of package sandbox.
package jsonnet

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonnet "github.com/google/go-jsonnet"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// Extension is the extension of Jsonnet programs. Imported files may have any name;
// .libsonnet is customary.
const Extension = ".jsonnet"

// Library is the file of helpers in new projects.
const Library = "yoctune.libsonnet"

const (
	// maxStack bounds calls within calls.
	maxStack = 400

	// maxPlacing is the longest evaluation after which a second one, for the positions, is
	// started.
	maxPlacing = 2 * time.Second

	// maxExact is the largest integer below which all are exact: Jsonnet has only
	// floating point numbers.
	maxExact = 1 << 53

	maxValues = 1 << 20
)

// Load evaluates each Jsonnet file of a configuration's folder to a tree.
func Load(p load.Program) load.Evaluated {
	out := load.Evaluated{Sources: map[string][]byte{}}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		e := &evaluator{prog: p, name: name, importer: newImporter(p)}
		root := e.loadFile()
		out.Diagnostics = append(out.Diagnostics, e.found...)
		for path, text := range e.importer.listImported() {
			out.Sources[path] = text
		}
		if root == nil {
			return load.Evaluated{Sources: out.Sources, Diagnostics: out.Diagnostics}
		}
		out.Roots = append(out.Roots, root)
	}
	return out
}

type evaluator struct {
	prog     load.Program
	name     string
	importer *importer
	found    []diag.Diagnostic
	values   int
	bad      bool
}

func (e *evaluator) add(d diag.Diagnostic) {
	d.Severity = diag.Error
	e.found = append(e.found, d)
	e.bad = true
}

// loadFile evaluates the program to a tree, or returns nil after adding a diagnostic.
func (e *evaluator) loadFile() *load.Node {
	started := time.Now()
	text, err := e.evaluate(e.importer, e.name, "", maxStack)
	if err != nil {
		e.add(e.diagnose(err))
		return nil
	}
	v, err := decode(text)
	if err != nil {
		e.add(diag.Diagnostic{ID: "YT0900", Pos: e.top(), Message: err.Error()})
		return nil
	}
	var p *placed
	if time.Since(started) < maxPlacing {
		p = e.findPositions(v)
	}
	if _, ok := v.(map[string]any); !ok {
		e.add(diag.Diagnostic{ID: "YT0101", Pos: e.top(), Message: "the program gives " + kindOf(v) + ", not a configuration", Expected: "an object",
			Help: "the value of a program is its last expression: { layer: { … }, targets: { … } }"})
		return nil
	}
	root := e.node(v, p, e.top(), "", 0)
	if e.bad {
		return nil
	}
	return root
}

func (e *evaluator) top() plan.Position { return plan.Position{File: e.name, Line: 1, Column: 1} }

// evaluate runs a file, or a snippet beside it, and returns its JSON.
func (e *evaluator) evaluate(imports jsonnet.Importer, name, snippet string, stack int) (string, error) {
	vm := jsonnet.MakeVM()
	vm.MaxStack = stack
	vm.SetTraceOut(io.Discard)
	vm.Importer(imports)
	for _, v := range slices.Sorted(maps.Keys(e.prog.Vars)) {
		vm.ExtVar(v, e.prog.Vars[v])
	}
	if snippet == "" {
		node, _, err := vm.ImportAST("", name)
		if err != nil {
			return "", err
		}
		return vm.Evaluate(node)
	}
	node, err := jsonnet.SnippetToAST(name, snippet)
	if err != nil {
		return "", err
	}
	return vm.Evaluate(node)
}

func decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading the result of the program: %w", err)
	}
	return v, nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "text"
	case []any:
		return "an array"
	}
	return "an object"
}

// node converts a value to a tree. A value without a position takes that of the nearest
// enclosing field.
func (e *evaluator) node(v any, p *placed, around plan.Position, path string, depth int) *load.Node {
	n := &load.Node{Pos: p.position(around)}
	if e.values++; e.values > maxValues || depth > load.MaxDepth {
		if !e.bad {
			e.add(diag.Diagnostic{ID: "YT0006", Pos: n.Pos, Path: path, Message: fmt.Sprintf("the configuration holds more than %d values, or nests them more than %d deep", maxValues, load.MaxDepth)})
		}
		return n
	}
	switch v := v.(type) {
	case nil:
		n.Kind = load.Null
	case bool:
		n.Kind, n.True = load.Bool, v
	case string:
		n.Kind, n.Text = load.String, v
	case json.Number:
		e.number(n, string(v), path)
	case []any:
		n.Kind = load.List
		for i, item := range v {
			n.Items = append(n.Items, e.node(item, p.item(i), n.Pos, path+"["+strconv.Itoa(i)+"]", depth+1))
		}
	case map[string]any:
		n.Kind = load.Struct
		for _, name := range slices.Sorted(maps.Keys(v)) {
			child := p.field(name)
			label := n.Pos
			if child != nil && child.label.File != "" {
				label = child.label
			}
			n.Fields = append(n.Fields, load.Field{Name: name, Pos: label, Value: e.node(v[name], child, label, load.PathOf(path, name), depth+1)})
		}
	}
	return n
}

func (e *evaluator) number(n *load.Node, text, path string) {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.Abs(f) > maxExact:
		e.add(diag.Diagnostic{ID: "YT0106", Pos: n.Pos, Path: path, Message: "the number is larger than Jsonnet can hold exactly", Got: fmt.Sprintf("%.40s", text),
			Help: "write it as text with its unit, such as '2TiB', or in CUE"})
	case f == math.Trunc(f):
		n.Kind, n.Text = load.Int, strconv.FormatInt(int64(f), 10)
	default:
		n.Kind, n.Text = load.Number, load.Decimal(f)
	}
}
