package jsonnet

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	jsonnet "github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/ast"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/plan"
)

// diagnose converts an error of the evaluator to a diagnostic. Only this file depends on the
// wording of the evaluator's messages.
func (e *evaluator) diagnose(err error) diag.Diagnostic {
	d := diag.Diagnostic{ID: "YT0100", Pos: e.top(), Message: err.Error()}
	var deep *tooDeep
	var runtime jsonnet.RuntimeError
	var static interface{ Loc() ast.LocationRange }
	switch {
	case errors.As(err, &deep):
		d.ID, d.Pos = "YT0006", plan.Position{File: deep.file, Line: deep.line, Column: deep.column}
		d.Message = deepMessage
		return d
	case errors.As(err, &runtime):
		d.Message = runtime.Msg
		// The innermost frame in a file of the project is the user's line; it comes last. An
		// error inside the helpers' file is reported at the call.
		for _, frame := range slices.Backward(runtime.StackTrace) {
			p := e.place(frame.Loc)
			if p.File == "" {
				continue
			}
			if d.Pos = p; path.Base(p.File) != Library {
				break
			}
		}
	case errors.As(err, &static):
		d.ID = "YT0001"
		if p := e.place(static.Loc()); p.File != "" {
			d.Pos = p
		}
	}
	return e.classify(d)
}

var deepMessage = "brackets are nested more than " + strconv.Itoa(load.MaxDepth) + " deep"

// located matches a message about an imported file: NAME:LINE:COLUMN-… TEXT.
var located = lazyregexp.New(`^([^\s:]+):(?:(\d+):(\d+)(?:-\d+)?|\((\d+):(\d+)\)-\(\d+:\d+\))\s+(.*)$`)

// classify sets the id, position and help of an error by its message.
func (e *evaluator) classify(d diag.Diagnostic) diag.Diagnostic {
	d.Message, _, _ = strings.Cut(strings.TrimSpace(d.Message), "\n")
	if m := located.FindStringSubmatch(d.Message); m != nil && e.importer.known(m[1]) {
		line, _ := strconv.Atoi(m[2] + m[4])
		column, _ := strconv.Atoi(m[3] + m[5])
		d.ID, d.Pos, d.Message = "YT0001", plan.Position{File: m[1], Line: line, Column: column}, m[6]
		if d.Message == deepMessage {
			d.ID = "YT0006"
			return d
		}
	}
	d.Message = strings.TrimSuffix(d.Message, ".")
	text := d.Message
	switch {
	case strings.HasPrefix(text, errImport.Error()+" of "):
		d.ID, d.Help = "YT0003", "a program may import files below the folder of its configuration, by a path relative to itself"
	case strings.HasPrefix(text, "Unknown variable: "):
		d.ID = "YT0005"
		d.Message = "the name " + strconv.Quote(strings.TrimPrefix(text, "Unknown variable: ")) + " is not defined"
		d.Help = "define it with local, or quote it to make it a string"
		return d
	case strings.HasPrefix(text, "field does not exist: "), strings.HasPrefix(text, "Field does not exist: "):
		d.ID = "YT0005"
		d.Message = "the field " + strconv.Quote(text[len("field does not exist: "):]) + " does not exist"
		return d
	case strings.HasPrefix(text, "undefined external variable: "), strings.HasPrefix(text, "Undefined external variable: "):
		d.ID = "YT0107"
		name := text[len("undefined external variable: "):]
		d.Message, d.Help = "std.extVar("+strconv.Quote(name)+") has no value", "give one with --var "+name+"=VALUE"
		return d
	case strings.HasPrefix(text, "max stack frames exceeded"):
		d.ID = "YT0007"
		d.Message = "the program calls itself without end or is nested more than " + strconv.Itoa(maxStack) + " deep"
		d.Help = "look for a value that refers to itself or a function that calls itself"
		return d
	}
	if len(text) > 1 && text[0] >= 'A' && text[0] <= 'Z' && (text[1] < 'A' || text[1] > 'Z') {
		text = string(text[0]-'A'+'a') + text[1:]
	}
	if d.ID == "YT0001" {
		text = "syntax: " + text
	}
	d.Message = text
	return d
}

// place returns the start of a range in a file of the project; the zero value for other
// files.
func (e *evaluator) place(loc ast.LocationRange) plan.Position {
	name := loc.FileName
	if !e.importer.known(name) || !loc.Begin.IsSet() {
		return plan.Position{}
	}
	return plan.Position{File: name, Line: loc.Begin.Line, Column: loc.Begin.Column}
}

func (i *importer) known(name string) bool {
	_, ok := i.files[name]
	return ok
}
