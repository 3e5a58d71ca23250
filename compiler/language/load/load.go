// Package load reads a configuration and converts it to concrete values with positions:
// every [Node] carries the file, line and column that wrote it.
//
// CUE is evaluated with a stand-in for the schema, whose definitions accept anything.
// Package conform checks the values against the real definitions: it sees every value
// with its position, and one mistake does not hide another. Without the definitions,
// evaluation is also fast enough for a hundred targets.
package load

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema"
	"github.com/yoctune/yoctune/schema/plan"
)

// MaxSource bounds the text of one configuration, all files together, in bytes.
const MaxSource = 4 << 20

// Config is a loaded configuration.
type Config struct {
	Dir     string
	Root    *Node
	Sources *diag.Sources
}

// ErrAbsent reports that a folder has no configuration.
var ErrAbsent = errors.New("no configuration")

// Dir loads the configuration of a folder: its .cue files and those that the
// front ends read, unified. What is wrong with them is in the report; the error
// is about reading the folder itself.
func Dir(dir string, ends ...FrontEnd) (*Config, *diag.Report, error) {
	return ChangedDir(dir, nil, ends...)
}

// ChangedDir is [Dir] where some files have another text than on disk, or are not on disk yet.
// Names are as in [FilesIn].
func ChangedDir(dir string, changed map[string][]byte, ends ...FrontEnd) (*Config, *diag.Report, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration folder %s: %w", dir, WithoutPath(err))
	}
	files := maps.Clone(changed)
	if files == nil {
		files = map[string][]byte{}
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return !strings.Contains(name, "/") && !isSource(name, ends) })
	total := int64(0)
	report := &diag.Report{}
	for _, e := range entries {
		name := e.Name()
		if _, ok := files[name]; ok || !isSource(name, ends) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			return nil, nil, fmt.Errorf("reading the configuration: %s is not a regular file", path)
		}
		if err == nil {
			if total += info.Size(); total > MaxSource {
				report.Errorf("YT0006", plan.Position{File: name, Line: 1, Column: 1}, "", "the configuration is larger than %d MiB", MaxSource>>20)
				return nil, report, nil
			}
		}
		// A link that leads out of the folder is refused: an excerpt in a message
		// would reveal the content of its target.
		text, err := readInside(dir, name)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the configuration: %w", err)
		}
		files[name] = text
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("%w in %s: it holds no regular .cue%s file", ErrAbsent, dir, nameFrontEndFiles(ends))
	}
	cfg, r := FilesIn(dir, files, ends...)
	r.Merge(report)
	return cfg, r, nil
}

// isSource reports whether a file of a configuration's folder belongs to the configuration.
func isSource(name string, ends []FrontEnd) bool {
	foreign := slices.ContainsFunc(ends, func(end FrontEnd) bool { return end.Reads(name) })
	return (filepath.Ext(name) == ".cue" || foreign) && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "_")
}

// WithoutPath returns the cause of a file error, for messages that name the file themselves.
func WithoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Files loads a configuration from the text of its files, by name. It imports no packages.
func Files(files map[string][]byte, ends ...FrontEnd) (*Config, *diag.Report) {
	return FilesIn("", files, ends...)
}

// FilesIn loads the configuration of a folder from the text of its files, by name. A name
// with a slash is of a file of an imported package, whose text then replaces that on disk.
func FilesIn(dir string, files map[string][]byte, ends ...FrontEnd) (*Config, *diag.Report) {
	l := &loader{report: &diag.Report{}, cfg: &Config{Dir: dir, Sources: diag.NewSources()}}
	all := files
	files = maps.Clone(all)
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.Contains(name, "/") })
	names := slices.Sorted(maps.Keys(files))
	total := 0
	for _, name := range names {
		total += len(files[name])
		if l.checkEncoding(name, files[name]) {
			l.cfg.Sources.Add(name, files[name])
		}
	}
	if total > MaxSource {
		l.report.Errorf("YT0006", plan.Position{File: names[0], Line: 1, Column: 1}, "", "the configuration is larger than %d MiB", MaxSource>>20)
		return l.cfg, l.report
	}
	if l.report.Failed() {
		return l.cfg, l.report
	}
	names = slices.DeleteFunc(names, func(name string) bool { return filepath.Ext(name) != ".cue" })
	parsed := l.parse(names, files)
	imported := l.collectPackages(dir, parsed, all, total)
	broken := l.report.Failed()
	roots, ok := l.collectForeign(files, ends)
	if broken || !ok {
		return l.cfg, l.report
	}
	if len(parsed) == 0 && len(roots) == 1 {
		l.cfg.Root = roots[0]
		return l.cfg, l.report
	}
	pkg := ""
	for _, f := range parsed {
		pkg = f.PackageName()
	}
	for _, root := range roots {
		parsed = append(parsed, l.asCUE(root, pkg))
	}
	if root, ok := literalTree(parsed); ok {
		l.cfg.Root = root
	} else {
		l.evaluate(parsed, imported)
	}
	return l.cfg, l.report
}

type loader struct {
	report *diag.Report
	cfg    *Config
	wall   time.Duration // how long CUE may take; maxWall when it is 0
}

// Bounds of nesting, checked before the recursive parser and evaluator see the
// text: brackets, and what nests without them ("a: b: c:", "1+1+1").
const (
	MaxDepth = 200
	maxChain = 2000
)

func (l *loader) parse(names []string, files map[string][]byte) []*ast.File {
	var parsed []*ast.File
	pkg := ""
	for _, name := range names {
		if line, column, ok := FindDeepBracket(files[name]); ok {
			l.report.Errorf("YT0006", plan.Position{File: name, Line: line, Column: column}, "", "brackets are nested more than %d deep", MaxDepth)
			continue
		}
		if line, column, ok := findDeepRun(files[name]); ok {
			l.report.Errorf("YT0006", plan.Position{File: name, Line: line, Column: column}, "", "an expression or a chain of fields has more than %d parts", maxChain)
			continue
		}
		f, err := parser.ParseFile(name, files[name])
		if err != nil {
			for _, e := range cueerrors.Errors(err) {
				l.syntax(name, e)
			}
			continue
		}
		parsed = append(parsed, f)
		l.refuseAttributes(f)
		if p := f.PackageName(); p != "" {
			if pkg == "" {
				pkg = p
			}
			if p != pkg {
				l.report.Add(diag.Diagnostic{ID: "YT0002", Severity: diag.Error, Pos: packagePos(f),
					Message: fmt.Sprintf("this file is of package %s, the others are of package %s", p, pkg),
					Help:    "give all files of the folder the same package clause"})
			}
		}
	}
	return parsed
}

// checkEncoding reports a file that is not UTF-8. The parsers would report each of its
// bytes.
func (l *loader) checkEncoding(name string, text []byte) bool {
	d := diag.Diagnostic{ID: "YT0001", Severity: diag.Error, Pos: plan.Position{File: name, Line: 1, Column: 1}, Help: "save the file as UTF-8"}
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		d.Message = "the file is encoded in UTF-16"
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		d.Message = "the file is not text encoded in UTF-8"
		for line := range bytes.Lines(text) {
			if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
				break
			}
			d.Pos.Line++
		}
	default:
		return true
	}
	l.report.Add(d)
	return false
}

// FindDeepBracket finds the first bracket that is nested deeper than [MaxDepth]: it could
// exhaust the stack of a recursive parser. Brackets in strings and comments count too,
// because no real configuration comes near the limit.
func FindDeepBracket(text []byte) (line, column int, deep bool) {
	depth, line, start := 0, 1, 0
	for i, c := range text {
		switch c {
		case '{', '[', '(':
			if depth++; depth > MaxDepth {
				return line, i - start + 1, true
			}
		case '}', ']', ')':
			if depth > 0 {
				depth--
			}
		case '\n':
			line, start = line+1, i+1
		}
	}
	return 0, 0, false
}

// findDeepRun finds a run of labels and operators that would nest as deep as
// brackets do. Only a text longer than the bound can hold one.
func findDeepRun(text []byte) (line, column int, long bool) {
	if len(text) <= maxChain {
		return 0, 0, false
	}
	file := token.NewFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Pos, string, []any) {}, 0)
	run := 0
	for {
		pos, tok, _ := s.Scan()
		switch {
		case tok == token.EOF:
			return 0, 0, false
		case tok == token.COMMA: // the scanner puts one at the end of a line, too
			run = 0
		case tok.IsOperator():
			if run++; run > maxChain {
				at := file.Position(pos)
				return at.Line, at.Column, true
			}
		}
	}
}

func packagePos(f *ast.File) plan.Position {
	for _, d := range f.Decls {
		if p, ok := d.(*ast.Package); ok {
			return position(p.Name.Pos())
		}
	}
	return plan.Position{File: f.Filename, Line: 1, Column: 1}
}

func (l *loader) syntax(name string, e cueerrors.Error) {
	pos := position(e.Position())
	if pos.File == "" {
		pos = plan.Position{File: name, Line: 1, Column: 1}
	}
	format, args := e.Msg()
	l.report.Add(diag.Diagnostic{ID: "YT0001", Severity: diag.Error, Pos: pos, Message: "syntax: " + fmt.Sprintf(format, args...)})
}

// isSchema recognises the schema's import path, with or without the version and the package
// name that CUE allows after it.
func isSchema(path string) bool {
	rest, ok := strings.CutPrefix(path, schema.ImportPath)
	return ok && (rest == "" || rest[0] == '@' || rest[0] == ':')
}

// isPurePackage reports whether path is a built-in CUE package that computes only from its
// arguments. Packages that read the machine or run programs are not pure.
func isPurePackage(path string) bool {
	switch path {
	case "encoding/base64", "encoding/csv", "encoding/hex", "encoding/json", "encoding/yaml",
		"list", "math", "math/bits", "net", "path", "regexp", "strconv", "strings", "struct", "text/tabwriter", "time", "crypto/sha256":
		return true
	}
	return false
}

// refuseAttributes reports attributes that would change what the configuration says: those
// that read other files, and those of the cue command that yoctune does not evaluate.
// Others are notes for other tools.
func (l *loader) refuseAttributes(f *ast.File) {
	ast.Walk(f, func(n ast.Node) bool {
		a, ok := n.(*ast.Attribute)
		if !ok {
			return true
		}
		d := diag.Diagnostic{ID: "YT0004", Severity: diag.Error, Pos: position(a.Pos())}
		key, _ := a.Split()
		switch key {
		case "embed", "extern":
			d.Message, d.Help = "attribute @"+key+" is not allowed: it reads other files", "write the value into the configuration"
		case "if", "ignore":
			d.Message = "attribute @" + key + " is not evaluated: cue would leave the file out by it, and yoctune reads every file of the package"
			d.Help = "remove the file or the attribute; what only some targets have belongs into a profile that they use"
		case "tag":
			d.Message = "attribute @tag is not evaluated: cue would replace the value by that of its option --inject"
			d.Help = "write a target or a profile for each value, and choose with --target; HCL and Jsonnet take variables with --var"
		default:
			return true
		}
		l.report.Add(d)
		return true
	}, nil)
}

// standIn is the name of the permissive schema as a file. No file of a user has it.
const standIn = "schema:stand-in"

// newPermissiveSchema returns a schema package whose definitions accept any value.
func newPermissiveSchema(ctx *build.Context) *build.Instance {
	inst := ctx.NewInstance("schema", nil)
	inst.ImportPath, inst.PkgName = schema.ImportPath, "schema"
	var b strings.Builder
	b.WriteString("package schema\n")
	for _, name := range definitions() {
		fmt.Fprintf(&b, "%s: _\n", name)
	}
	f, err := parser.ParseFile(standIn, b.String())
	if err == nil {
		err = inst.AddSyntax(f)
	}
	if err != nil {
		inst.Err = cueerrors.Promote(err, "schema")
	}
	return inst
}

// definitions lists the names that the schema's files define at the top level.
func definitions() []string {
	var names []string
	for _, file := range schema.Files() {
		for line := range strings.Lines(string(file.Text)) {
			if name, _, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "#") {
				names = append(names, name)
			}
		}
	}
	return names
}

// evaluate runs CUE's evaluator within bounds. CUE cannot be interrupted: an evaluation
// beyond the bounds is abandoned, and the program exits soon after the report.
func (l *loader) evaluate(files []*ast.File, imported *packages) {
	done := make(chan *loader, 1)
	go func() {
		w := &loader{report: &diag.Report{}, cfg: &Config{}}
		defer func() {
			if r := recover(); r != nil { // a fault of the evaluator; programs that run on must survive it
				w.report.Errorf("YT0900", position(files[0].Pos()), "", "evaluating the configuration failed: %v", r)
			}
			done <- w
		}()
		w.evaluateUnbounded(files, imported)
	}()
	limit := time.NewTimer(cmp.Or(l.wall, maxWall))
	defer limit.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	excess := ""
	for excess == "" {
		select {
		case w := <-done:
			l.report.Merge(w.report)
			l.cfg.Root = w.cfg.Root
			return
		case <-limit.C:
			excess = fmt.Sprintf("after %s it was not done", cmp.Or(l.wall, maxWall))
		case <-look.C:
			if heap() > maxHeap {
				excess = fmt.Sprintf("it needed more than %d GiB of memory", maxHeap>>30)
			}
		}
	}
	l.report.Add(diag.Diagnostic{ID: "YT0007", Severity: diag.Error, Pos: position(files[0].Pos()),
		Message: "evaluating the configuration took too much: " + excess,
		Help:    "look for comprehensions inside comprehensions, and for structs that grow from themselves"})
}

// Bounds of evaluating CUE.
const (
	maxWall   = 30 * time.Second
	maxHeap   = 3 << 30 // bytes
	lookEvery = 200 * time.Millisecond
)

// heap is the memory in use, in bytes. It stops the world, five times a second at
// most, and only in an evaluation that is long already.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (l *loader) evaluateUnbounded(files []*ast.File, imported *packages) {
	bctx := build.NewContext()
	inst := bctx.NewInstance("", imported.load(bctx))
	for _, f := range files {
		if err := inst.AddSyntax(f); err != nil {
			l.cueErrors(err, files)
			return
		}
	}
	if err := inst.Complete(); err != nil {
		l.cueErrors(err, files)
		return
	}
	v := cuecontext.New().BuildInstance(inst)
	if err := v.Validate(cue.Concrete(true), cue.DisallowCycles(true)); err != nil {
		l.cueErrors(err, files)
		return
	}
	l.cfg.Root = nodeOf(v)
}

// nodeOf converts an evaluated value.
func nodeOf(v cue.Value) *Node {
	n := &Node{Pos: valuePos(v)}
	switch v.Kind() {
	case cue.BoolKind:
		n.Kind = Bool
		n.True, _ = v.Bool()
	case cue.IntKind:
		n.Kind = Int
		if i, err := v.Int(nil); err == nil {
			n.Text = i.String()
		}
	case cue.FloatKind:
		n.Kind = Number
		if b, err := v.MarshalJSON(); err == nil {
			n.Text = string(b)
		}
	case cue.StringKind:
		n.Kind = String
		n.Text, _ = v.String()
	case cue.BytesKind:
		n.Kind = String
		b, _ := v.Bytes()
		n.Text = string(b)
	case cue.ListKind:
		n.Kind = List
		it, err := v.List()
		for err == nil && it.Next() {
			n.Items = append(n.Items, nodeOf(it.Value()))
		}
	case cue.StructKind:
		n.Kind = Struct
		it, err := v.Fields()
		for err == nil && it.Next() {
			child := it.Value()
			f := Field{Name: it.Selector().Unquoted(), Pos: labelPos(child), Value: nodeOf(child)}
			n.Fields = append(n.Fields, f)
		}
	}
	return n
}

// valuePos is where a value was written: the value of the field, not its label.
func valuePos(v cue.Value) plan.Position {
	switch src := v.Source().(type) {
	case *ast.Field:
		return position(src.Value.Pos())
	case ast.Node:
		if p := position(src.Pos()); p.File != "" && p.File != standIn {
			return p
		}
	}
	return position(v.Pos())
}

func labelPos(v cue.Value) plan.Position {
	if f, ok := v.Source().(*ast.Field); ok {
		return position(f.Label.Pos())
	}
	return valuePos(v)
}

// position converts CUE's; the zero value when there is none.
func position(p token.Pos) plan.Position {
	if !p.IsValid() {
		return plan.Position{}
	}
	q := p.Position()
	return plan.Position{File: q.Filename, Line: q.Line, Column: q.Column}
}
