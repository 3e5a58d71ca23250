package compiler

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// checkDefinitions reports fields that a user's definition adds to a closed definition without
// such a field. CUE reports them only once the definition is used and the field is set,
// so that a typo could go unnoticed.
func checkDefinitions(cfg *load.Config, lang *conform.Schema, report *diag.Report) {
	var files []*ast.File
	own := map[string]map[string]map[string]bool{} // fields by folder, which is a package, and definition
	for _, name := range cfg.Sources.Names() {
		text := cfg.Sources.Text(name)
		if !strings.HasSuffix(name, ".cue") || !bytes.Contains(text, []byte("?:")) && !bytes.Contains(text, []byte("!:")) {
			continue
		}
		f, err := parser.ParseFile(name, text)
		if err != nil {
			continue // reported where it was read
		}
		files = append(files, f)
		folder := path.Dir(name)
		if own[folder] == nil {
			own[folder] = map[string]map[string]bool{}
		}
		collectFields(f, own[folder])
	}
	for _, f := range files {
		own := own[path.Dir(f.Filename)]
		ast.Walk(f, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.AND {
				return true
			}
			if def := load.SchemaDefinition(b.X); def != "" {
				if fields, open, known := lang.FieldsOf(def); known && !open {
					checkRefinement(b.Y, def, fields, report)
				}
			} else if id, ok := b.X.(*ast.Ident); ok && own[id.Name] != nil {
				checkRefinement(b.Y, id.Name, own[id.Name], report)
			}
			return true
		}, nil)
	}
}

// collectFields collects the fields of a file's top-level definitions, as far as they are
// closed structs written out.
func collectFields(f *ast.File, own map[string]map[string]bool) {
	for _, d := range f.Decls {
		def, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		name, _, err := ast.LabelName(def.Label)
		st, ok := def.Value.(*ast.StructLit)
		if err != nil || !ok || !strings.HasPrefix(name, "#") || own[name] != nil {
			continue
		}
		fields := map[string]bool{}
		for _, e := range st.Elts {
			f, ok := e.(*ast.Field)
			var label string
			if ok {
				label, _, err = ast.LabelName(f.Label)
			}
			if !ok || err != nil {
				fields = nil // embeddings, patterns and ... bring others
				break
			}
			fields[label] = true
		}
		if fields != nil {
			own[name] = fields
		}
	}
}

// checkRefinement reports the optional and required fields of a struct that a
// definition does not have. Regular fields are checked with their values.
func checkRefinement(e ast.Expr, def string, fields map[string]bool, report *diag.Report) {
	st, ok := e.(*ast.StructLit)
	if !ok {
		return
	}
	for _, d := range st.Elts {
		f, ok := d.(*ast.Field)
		if !ok || f.Constraint == token.ILLEGAL {
			continue
		}
		name, _, err := ast.LabelName(f.Label)
		if err != nil || fields[name] {
			continue
		}
		at := f.Label.Pos().Position()
		pos := plan.Position{File: at.Filename, Line: at.Line, Column: at.Column}
		dg := diag.Diagnostic{ID: "YT0102", Severity: diag.Error, Pos: pos, Path: def + "." + name,
			Message: fmt.Sprintf("unknown field %q: %s has no such field", name, def)}
		dg.SuggestName(name, slices.Sorted(maps.Keys(fields)))
		report.Add(dg)
	}
}
