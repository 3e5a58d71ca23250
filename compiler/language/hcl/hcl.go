// Package hcl reads configurations written in HCL.
//
// Blocks with labels are the entries of the language's maps, names are in
// snake_case, and expressions may use variables, locals, modules below the
// project's folder and functions that compute from their arguments alone:
//
//	locals { quiet = { thp = "madvise", ksm = false } }
//
//	target "line-camera" {
//	  board   = "orin-nano-8gb"
//	  release = "scarthgap"
//	  memory  = local.quiet
//	  service "vision.service" { exec = ["/usr/bin/vision"] }
//	}
//
// The schema decides which names are blocks, and which keys are the user's own and stay
// unchanged. The result is a tree of values with their positions; package conform checks it,
// as for every language.
//
// HCL does not limit what an expression may compute, so [Load] must run in the child process
// of package sandbox.
package hcl

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// Extension is the extension of HCL files.
const Extension = ".hcl"

// Bounds of a configuration.
const (
	maxModules = 100
	maxValues  = 1 << 20
)

// Load evaluates the HCL files of a configuration's folder and the modules that they call.
// The folder's files form one module and share variables and locals. Every file gives a
// tree.
func Load(p load.Program) load.Evaluated {
	e := &evaluator{prog: p, lang: conform.Language(), sources: map[string][]byte{}, tables: map[conform.Shape]*table{}, functions: functions()}
	m := e.parseModule(".", p.Files)
	if m == nil {
		return e.newResult(nil)
	}
	m.setVariables(p.Vars, p.VarsShared)
	roots := m.roots()
	if e.incomplete {
		roots = nil
	}
	return e.newResult(roots)
}

type evaluator struct {
	prog      load.Program
	lang      *conform.Schema
	found     []diag.Diagnostic
	sources   map[string][]byte
	tables    map[conform.Shape]*table
	functions map[string]function.Function
	modules   int
	values    int

	// incomplete is set when a value could not be computed. Checks for missing fields would
	// then only repeat the error.
	incomplete bool
	quiet      int // above zero, failures are not reported
}

func (e *evaluator) newResult(roots []*load.Node) load.Evaluated {
	for name := range e.prog.Files {
		delete(e.sources, name)
	}
	return load.Evaluated{Roots: roots, Sources: e.sources, Diagnostics: e.found}
}

// parseModule parses the files of a folder. It returns nil if one has errors.
func (e *evaluator) parseModule(dir string, files map[string][]byte) *module {
	m := &module{
		ev: e, dir: dir, vars: map[string]*variable{}, locals: map[string]*value{},
		outputs: map[string]*value{}, calls: map[string]*call{},
	}
	sound := true
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		e.sources[name] = text
		if line, column, deep := load.FindDeepBracket(text); deep {
			e.errorf("YT0006", plan.Position{File: name, Line: line, Column: column}, "", "brackets are nested more than %d deep", load.MaxDepth)
			sound = false
			continue
		}
		f, diags := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
		e.report(diags, true)
		sound = sound && !diags.HasErrors()
		if body, ok := f.Body.(*hclsyntax.Body); ok && !diags.HasErrors() {
			m.bodies = append(m.bodies, body)
			sound = m.declare(body) && m.checkObjects(body) && sound
		}
	}
	if !sound {
		e.incomplete = true
		return nil
	}
	return m
}

// readFolder reads the HCL files of a module's folder.
func (e *evaluator) readFolder(dir string) (map[string][]byte, error) {
	entries, err := fs.ReadDir(e.prog.Root, dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		name := entry.Name()
		if path.Ext(name) != Extension || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			continue
		}
		full := path.Join(dir, name)
		text, err := fs.ReadFile(e.prog.Root, full)
		if err != nil {
			return nil, err
		}
		files[full] = text
	}
	return files, nil
}

// startOf returns the start of a range. HCL counts columns in characters, yoctune in bytes.
func (e *evaluator) startOf(r hcl.Range) plan.Position {
	p := plan.Position{File: r.Filename, Line: r.Start.Line, Column: r.Start.Column}
	if text, ok := e.sources[r.Filename]; ok && r.Start.Byte <= len(text) {
		p.Column = r.Start.Byte - bytes.LastIndexByte(text[:r.Start.Byte], '\n')
	}
	return p
}
