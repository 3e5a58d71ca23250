package load

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue/ast"
	cueerrors "cuelang.org/go/cue/errors"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

// cueErrors converts CUE's errors to diagnostics. Their texts and grouping change between
// CUE versions. Only this file depends on them, and a golden test pins the results.
func (l *loader) cueErrors(err error, files []*ast.File) {
	circles := map[plan.Position]bool{} // one circle comes up on every turn
	for _, e := range cueerrors.Errors(err) {
		d := classify(e)
		if d.Pos.File == "" {
			d.Pos = placeOf(files, e.Path())
		}
		if d.ID == "YT0108" {
			if circles[d.Pos] {
				continue
			}
			circles[d.Pos] = true
		}
		l.report.Add(d)
	}
}

// placeOf finds where a path is written, for errors without a position: its
// field, or the nearest one around it.
func placeOf(files []*ast.File, path []string) plan.Position {
	best, depth := plan.Position{}, -1
	var decls func(list []ast.Decl, level int)
	var expr func(e ast.Expr, level int)
	decls = func(list []ast.Decl, level int) {
		for _, d := range list {
			switch d := d.(type) {
			case *ast.EmbedDecl:
				expr(d.Expr, level)
			case *ast.Field:
				name, _, err := ast.LabelName(d.Label)
				if err != nil || level >= len(path) || name != strings.Trim(path[level], `"`) {
					continue
				}
				if level > depth {
					best, depth = position(d.Pos()), level
				}
				expr(d.Value, level+1)
			}
		}
	}
	expr = func(e ast.Expr, level int) {
		switch e := e.(type) {
		case *ast.StructLit:
			decls(e.Elts, level)
		case *ast.BinaryExpr:
			expr(e.X, level)
			expr(e.Y, level)
		case *ast.ParenExpr:
			expr(e.X, level)
		}
	}
	for _, f := range files {
		decls(f.Decls, 0)
	}
	return best
}

func classify(e cueerrors.Error) diag.Diagnostic {
	format, args := e.Msg()
	text := fmt.Sprintf(format, args...)
	d := diag.Diagnostic{ID: "YT0100", Severity: diag.Error, Path: joinPath(e.Path()), Message: text}
	places := userPlaces(e)
	if len(places) > 0 {
		d.Pos = places[0]
	}
	switch {
	case strings.Contains(format, "conflicting values"), strings.Contains(text, "conflicting values"):
		d.ID = "YT0105"
		d.Message = "two values that cannot both hold"
		if _, values, ok := strings.Cut(text, "conflicting values "); ok {
			d.Got = values
		}
		for _, p := range places[min(1, len(places)):] {
			d.Related = append(d.Related, diag.Related{Pos: p, Message: "the other value"})
		}
		d.Help = "keep one of them, or move the difference into a profile that only some targets use"
	case strings.Contains(text, "reference") && strings.Contains(text, "not found"):
		d.ID = "YT0005"
		d.Help = "define it, or quote it to make it a string"
	case strings.Contains(text, "undefined field"):
		d.ID = "YT0005"
	case strings.Contains(text, "cycle"), strings.Contains(text, "cyclic"):
		d.ID = "YT0108"
		d.Message = "the value depends on itself"
		d.Help = "give one of the fields in the cycle a concrete value"
	case strings.Contains(text, "incomplete"), strings.Contains(text, "non-concrete"):
		d.ID = "YT0107"
		d.Message = "the value is not decided"
		d.Got = text
		d.Help = "write a concrete value; yoctune's defaults apply only where a field is absent"
	case strings.Contains(text, "field not allowed"):
		d.ID = "YT0102"
		d.Message = "unknown field in a definition of the configuration"
	case strings.Contains(text, "out of bound"), strings.Contains(text, "invalid value"):
		d.ID = "YT0106"
	case strings.Contains(text, "imported and not used"):
		d.ID = "YT0002"
	}
	return d
}

// userPlaces lists where in the user's files an error comes from, without
// repeats.
func userPlaces(e cueerrors.Error) []plan.Position {
	var places []plan.Position
	seen := map[plan.Position]bool{}
	for _, p := range cueerrors.Positions(e) {
		q := position(p)
		if q.File == "" || q.File == standIn || seen[q] {
			continue
		}
		seen[q] = true
		places = append(places, q)
	}
	return places
}

func joinPath(parts []string) string {
	path := ""
	for _, p := range parts {
		if len(p) > 1 && p[0] == '"' {
			p = strings.Trim(p, `"`)
		}
		path = PathOf(path, p)
	}
	return path
}
