package kconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// errKconfig is the kind of an error in a Kconfig file; its text carries the
// positions.
var errKconfig = errors.New("kconfig files cannot be read")

const (
	maxErrors      = 20
	maxSourceDepth = 100
	maxFiles       = 20_000
	maxFileBytes   = 8 << 20
	maxExprDepth   = 500
	maxSymbols     = 100_000 // five times what Linux has; evaluation recurses once for each at worst
)

// parser reads the Kconfig files of a tree into a Builder.
type parser struct {
	roots []fs.FS // the tree, then overlays that are read after it
	// overlays are the names of the folders of roots[1:]
	overlays  []string
	macros    *macros
	b         *kernel.Builder
	oldSyntax bool // before 4.18: no macros, $NAME in strings, "---help---"

	file     string
	line     int
	stack    []string // files being read, outermost first
	files    int
	symbols  int
	problems []Problem
	warnings []Problem

	blocks []*block
	entry  *entry
}

// block is an if, menu or choice that is open.
type block struct {
	kind     string
	file     string
	line     int
	depends  kernel.ExprID
	visible  kernel.ExprID
	choice   int32 // the innermost choice, or -1
	ownEntry *entry
}

// entry is the config, choice, menu or comment whose options are being read.
type entry struct {
	kind    string
	name    string
	sym     int32
	def     kernel.Def
	typ     kernel.Type
	own     kernel.ExprID // own depends
	visible kernel.ExprID // of the enclosing menus
	group   kernel.Group
	choice  int32
	block   *block
	prompts int
	line    int
}

func (p *parser) errorAt(line, col int, format string, args ...any) error {
	return Problem{File: p.file, Line: line, Column: col, Message: fmt.Sprintf(format, args...)}
}

func (p *parser) warnAt(line, col int, format string, args ...any) {
	if len(p.warnings) < 1000 {
		p.warnings = append(p.warnings, Problem{File: p.file, Line: line, Column: col, Message: fmt.Sprintf(format, args...)})
	}
}

// record keeps a problem. It reports false if there are too many to continue.
func (p *parser) record(err error) bool {
	var pr Problem
	if !errors.As(err, &pr) {
		pr = Problem{File: p.file, Line: p.line, Column: 1, Message: err.Error()}
	}
	p.problems = append(p.problems, pr)
	return len(p.problems) < maxErrors
}

// readSource reads a file by its name in the tree, once for every root that has it.
func (p *parser) readSource(name string, line, col int, optional bool) error {
	if len(p.stack) >= maxSourceDepth {
		return p.errorAt(line, col, "source nested more than %d deep", maxSourceDepth)
	}
	if slices.Contains(p.stack, name) {
		return p.errorAt(line, col, "recursive inclusion of %q: %s", name, strings.Join(append(p.stack, name), " > "))
	}
	roots, inRoot := p.roots, name
	if !fs.ValidPath(name) {
		if roots, inRoot = p.findOverlay(name); roots == nil {
			return p.errorAt(line, col, "source %q leads out of the tree", name)
		}
	}
	found := false
	for _, root := range roots {
		data, err := readLimited(root, inRoot)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return p.errorAt(line, col, "source %q: %v", name, err)
		}
		found = true
		if p.files++; p.files > maxFiles {
			return p.errorAt(line, col, "more than %d files", maxFiles)
		}
		file, at := p.file, p.line
		p.stack = append(p.stack, name)
		p.file = name
		err = p.readFile(string(data))
		p.stack = p.stack[:len(p.stack)-1]
		p.file, p.line = file, at
		if err != nil {
			return err
		}
	}
	if !found && !optional {
		return p.errorAt(line, col, "can't open file %q", name)
	}
	return nil
}

// findOverlay finds the overlay that a name such as ../nvidia/drivers/Kconfig means: the
// one whose folder is called so. Nothing but overlays is read outside the tree.
func (p *parser) findOverlay(name string) (roots []fs.FS, inRoot string) {
	rest, up := strings.CutPrefix(name, "../")
	folder, file, below := strings.Cut(rest, "/")
	i := slices.Index(p.overlays, folder)
	if !up || !below || i < 0 || i+1 >= len(p.roots) || !fs.ValidPath(file) {
		return nil, ""
	}
	return p.roots[i+1 : i+2], file
}

func readLimited(root fs.FS, name string) ([]byte, error) {
	st, err := fs.Stat(root, name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file")
	}
	if st.Size() > maxFileBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxFileBytes)
	}
	return fs.ReadFile(root, name)
}

// errStop ends the reading after too many problems.
var errStop = errors.New("too many problems")

func (p *parser) readFile(data string) error {
	open := len(p.blocks)
	lines := strings.Split(data, "\n")
	help := helpText{}
	for i := 0; i < len(lines); i++ {
		p.line = i + 1
		if help.holds(lines[i]) {
			continue
		}
		s := statement{lines: lines[i : i+1], first: i + 1}
		n := i
		for joinsNextLine(lines[n]) && n+1 < len(lines) {
			lines[n] = strings.TrimSuffix(lines[n], "\r")
			n++
		}
		s.lines = lines[i : n+1]
		i = n
		isHelp, err := p.parseStatement(s)
		if errors.Is(err, errStop) {
			return err
		}
		if err != nil && !p.record(err) {
			return errStop
		}
		if isHelp {
			help = helpText{open: true}
		}
	}
	p.finishEntry()
	for len(p.blocks) > open {
		b := p.blocks[len(p.blocks)-1]
		p.blocks = p.blocks[:len(p.blocks)-1]
		if !p.record(Problem{File: b.file, Line: b.line, Column: 1, Message: fmt.Sprintf("%s without end%s in this file", b.kind, b.kind)}) {
			return errStop
		}
	}
	return nil
}

// joinsNextLine reports whether a backslash joins the next line to this one. One
// that ends a comment or the value of a variable does not.
func joinsNextLine(line string) bool {
	line = strings.TrimSuffix(line, "\r")
	if !strings.HasSuffix(line, "\\") {
		return false
	}
	if _, _, _, ok := parseAssignmentLine(line); ok {
		return false
	}
	var quote byte
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return false
		}
	}
	return quote == 0
}

// helpText selects the lines of a help text: those indented at least as far as its first.
type helpText struct {
	open   bool
	indent int
}

func (h *helpText) holds(line string) bool {
	if !h.open {
		return false
	}
	indent := 0
	i := 0
	for ; i < len(line) && (line[i] == ' ' || line[i] == '\t'); i++ {
		if line[i] == '\t' {
			indent = indent&^7 + 8
		} else {
			indent++
		}
	}
	if strings.TrimRight(line[i:], "\r\f\v") == "" {
		return true
	}
	if h.indent == 0 && indent > 0 {
		h.indent = indent
	}
	if indent == 0 || indent < h.indent {
		h.open = false
	}
	return h.open
}

// parseStatement handles one logical line; help is true if a help text follows.
func (p *parser) parseStatement(s statement) (help bool, err error) {
	if name, op, value, ok := parseAssignmentLine(s.lines[0]); ok && !p.oldSyntax {
		p.finishEntry()
		if err := p.macros.assign(name, op, value); err != nil {
			return false, p.errorAt(s.first, 1, "%v", err)
		}
		return false, nil
	}
	first := strings.TrimSpace(s.lines[0])
	if first == "" || first[0] == '#' {
		return false, nil
	}
	if strings.HasPrefix(first, "---help---") || first == "help" {
		if p.entry == nil {
			return false, p.errorAt(s.first, 1, "help without an entry")
		}
		return true, nil
	}
	t, err := p.lex(s)
	if err != nil {
		return false, err
	}
	if len(t) == 0 {
		return false, nil
	}
	if t[0].kind != word || !t[0].literal {
		return false, p.errorAt(t[0].line, t[0].col, "invalid statement %q", t[0].text)
	}
	if t[0].text == "help" && len(t) == 1 {
		return true, nil
	}
	done, err := p.parseBlockStatement(t)
	if done || err != nil {
		return false, err
	}
	if p.entry == nil {
		return false, p.errorAt(t[0].line, t[0].col, "unknown statement %q", t[0].text)
	}
	return false, p.parseOption(t)
}

// parseAssignmentLine recognises NAME = value, := and += at the start of a line. Only
// what no option could start with may be a name here, which the kernel's
// grammar decides the same way: by the operator that follows the first word.
func parseAssignmentLine(line string) (name, op, value string, ok bool) {
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	start := i
	for i < len(line) && isWordByte(line[i]) {
		i++
	}
	if i == start {
		return
	}
	name = line[start:i]
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	for _, o := range [...]string{":=", "+=", "="} {
		if strings.HasPrefix(line[i:], o) {
			return name, o, strings.TrimLeft(strings.TrimSuffix(line[i+len(o):], "\r"), " \t"), true
		}
	}
	return "", "", "", false
}

func (p *parser) innermostBlock() *block {
	if len(p.blocks) == 0 {
		return &block{choice: -1}
	}
	return p.blocks[len(p.blocks)-1]
}

func (p *parser) openBlock(kind string, at token, e *entry) *block {
	up := p.innermostBlock()
	b := &block{kind: kind, file: p.file, line: at.line, depends: up.depends, visible: up.visible, choice: up.choice, ownEntry: e}
	p.blocks = append(p.blocks, b)
	return b
}

func (p *parser) parseBlockStatement(t []token) (bool, error) {
	at := t[0]
	switch at.text {
	case "config", "menuconfig":
		p.finishEntry()
		if len(t) != 2 || t[1].kind != word {
			return true, p.errorAt(at.line, at.col, "%s takes one symbol name", at.text)
		}
		name := t[1].text
		if !validName(name) || name == "y" || name == "m" || name == "n" {
			return true, p.errorAt(t[1].line, t[1].col, "%q is not a symbol name", name)
		}
		if p.symbols++; p.symbols > maxSymbols {
			p.record(p.errorAt(at.line, at.col, "more than %d config entries", maxSymbols))
			return true, errStop
		}
		up := p.innermostBlock()
		p.entry = &entry{kind: "config", name: name, sym: p.b.Define(name), visible: up.visible, choice: up.choice, line: at.line}
		p.entry.def = kernel.Def{Choice: up.choice, File: p.b.File(p.file), Line: int32(at.line)}
	case "choice":
		p.finishEntry()
		e := &entry{kind: "choice", visible: p.innermostBlock().visible, line: at.line}
		e.choice = p.b.AddChoice()
		e.block = p.openBlock("choice", at, e)
		e.block.choice = e.choice
		p.entry = e
	case "menu":
		p.finishEntry()
		if len(t) != 2 || t[1].kind != quoted {
			return true, p.errorAt(at.line, at.col, "menu takes one quoted text")
		}
		e := &entry{kind: "menu", line: at.line}
		e.block = p.openBlock("menu", at, e)
		p.entry = e
	case "comment":
		p.finishEntry()
		if len(t) != 2 || t[1].kind != quoted {
			return true, p.errorAt(at.line, at.col, "comment takes one quoted text")
		}
		p.entry = &entry{kind: "comment", line: at.line}
	case "if":
		p.finishEntry()
		cond, rest, err := p.parseExpression(t[1:])
		if err != nil {
			return true, err
		}
		if len(rest) > 0 {
			return true, p.errorAt(rest[0].line, rest[0].col, "unexpected %q after the condition", rest[0].text)
		}
		b := p.openBlock("if", at, nil)
		b.depends = p.b.And(b.depends, cond)
	case "endif", "endmenu", "endchoice":
		p.finishEntry()
		kind := strings.TrimPrefix(at.text, "end")
		if len(p.blocks) == 0 {
			return true, p.errorAt(at.line, at.col, "%s without %s", at.text, kind)
		}
		b := p.innermostBlock()
		if b.kind != kind {
			return true, p.errorAt(at.line, at.col, "unexpected %s: the %s of %s:%d is open", at.text, b.kind, b.file, b.line)
		}
		if b.file != p.file {
			return true, p.errorAt(at.line, at.col, "%s in another file than its %s at %s:%d", at.text, kind, b.file, b.line)
		}
		p.blocks = p.blocks[:len(p.blocks)-1]
	case "mainmenu":
		p.finishEntry()
	case "source", "rsource", "osource", "orsource":
		p.finishEntry()
		if len(t) != 2 || t[1].kind == punct {
			return true, p.errorAt(at.line, at.col, "%s takes one file name", at.text)
		}
		return true, p.parseSourceStatement(at.text, t[1])
	default:
		return false, nil
	}
	return true, nil
}

func (p *parser) parseSourceStatement(kind string, t token) error {
	name := t.text
	optional := strings.HasPrefix(kind, "o")
	if strings.HasSuffix(kind, "rsource") {
		name = path.Join(path.Dir(p.file), name)
	}
	if src := p.macros.env["srctree"]; src != "" {
		name = strings.TrimPrefix(name, src+"/")
	}
	name = path.Clean(name)
	if !strings.ContainsAny(name, "*?[") {
		return p.readSource(name, t.line, t.col, optional)
	}
	names := map[string]bool{}
	for _, root := range p.roots {
		hits, err := fs.Glob(root, name)
		if err != nil {
			return p.errorAt(t.line, t.col, "source %q: %v", name, err)
		}
		for _, h := range hits {
			names[h] = true
		}
	}
	if len(names) == 0 && !optional {
		return p.errorAt(t.line, t.col, "no file matches %q", name)
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if err := p.readSource(n, t.line, t.col, optional); err != nil {
			return err
		}
	}
	return nil
}

var typeWords = map[string]kernel.Type{
	"bool": kernel.Bool, "boolean": kernel.Bool, "tristate": kernel.Tristate,
	"int": kernel.Int, "hex": kernel.Hex, "string": kernel.String,
	"def_bool": kernel.Bool, "def_tristate": kernel.Tristate,
}

// optionEntries lists the entries that an option may stand in. Others may stand in any.
var optionEntries = map[string][]string{
	"bool": {"config", "choice"}, "boolean": {"config", "choice"}, "tristate": {"config", "choice"},
	"int": {"config", "choice"}, "hex": {"config", "choice"}, "string": {"config", "choice"},
	"prompt": {"config", "choice"}, "default": {"config", "choice"},
	"def_bool": {"config", "choice"}, "def_tristate": {"config", "choice"},
	"select": {"config"}, "imply": {"config"}, "range": {"config"}, "option": {"config"},
	"modules": {"config"}, "transitional": {"config"}, "visible": {"menu"}, "optional": {"choice"},
}

// parseOption reads one line of the current entry.
func (p *parser) parseOption(t []token) error {
	e, at, rest := p.entry, t[0], t[1:]
	end := func(rest []token) error {
		if len(rest) > 0 {
			return p.errorAt(rest[0].line, rest[0].col, "unexpected %q after %s", rest[0].text, at.text)
		}
		return nil
	}
	if kinds, limited := optionEntries[at.text]; limited && !slices.Contains(kinds, e.kind) {
		return p.errorAt(at.line, at.col, "%s cannot stand in a %s", at.text, e.kind)
	}
	setType := func(typ kernel.Type) {
		if e.typ == kernel.Unknown {
			e.typ = typ
		} else if e.typ != typ {
			p.warnAt(at.line, at.col, "ignoring type redefinition of %s from %s to %s", e.name, e.typ, typ)
		}
	}
	switch at.text {
	case "bool", "boolean", "tristate", "int", "hex", "string":
		setType(typeWords[at.text])
		if len(rest) == 0 {
			return nil
		}
		return p.parsePrompt(at, rest)
	case "prompt":
		return p.parsePrompt(at, rest)
	case "default", "def_bool", "def_tristate":
		if at.text != "default" {
			setType(typeWords[at.text])
		}
		v, rest, err := p.parseExpression(rest)
		if err != nil {
			return err
		}
		cond, rest, err := p.parseIf(rest)
		if err != nil {
			return err
		}
		if e.kind == "choice" {
			e.group.Defaults = append(e.group.Defaults, kernel.Target{Symbol: p.soleOperand(v), If: cond})
		} else {
			e.def.Defaults = append(e.def.Defaults, kernel.Default{Value: v, If: cond})
		}
		return end(rest)
	case "select", "imply":
		if len(rest) == 0 || rest[0].kind != word {
			return p.errorAt(at.line, at.col, "%s takes a symbol name", at.text)
		}
		to := p.b.Word(rest[0].text)
		cond, rest, err := p.parseIf(rest[1:])
		if err != nil {
			return err
		}
		if at.text == "select" {
			e.def.Selects = append(e.def.Selects, kernel.Target{Symbol: to, If: cond})
		} else {
			e.def.Implies = append(e.def.Implies, kernel.Target{Symbol: to, If: cond})
		}
		return end(rest)
	case "range":
		if len(rest) < 2 || rest[0].kind == punct || rest[1].kind == punct {
			return p.errorAt(at.line, at.col, "range takes two values")
		}
		lo, hi := p.parseOperand(rest[0]), p.parseOperand(rest[1])
		cond, rest, err := p.parseIf(rest[2:])
		if err != nil {
			return err
		}
		e.def.Ranges = append(e.def.Ranges, kernel.Range{Low: lo, High: hi, If: cond})
		return end(rest)
	case "depends":
		if len(rest) == 0 || rest[0].text != "on" {
			return p.errorAt(at.line, at.col, "depends must be followed by on")
		}
		cond, rest, err := p.parseExpression(rest[1:])
		if err != nil {
			return err
		}
		e.own = p.b.And(e.own, cond)
		if e.block != nil {
			e.block.depends = p.b.And(e.block.depends, cond)
		}
		return end(rest)
	case "visible":
		cond, rest, err := p.parseIf(rest)
		if err != nil {
			return err
		}
		e.block.visible = p.b.And(e.block.visible, cond)
		return end(rest)
	case "optional":
		e.group.Optional = true
		return nil
	case "modules", "transitional":
		return nil
	case "option":
		// option env="NAME": the value is the environment's.
		if len(rest) == 3 && rest[0].text == "env" && rest[1].text == "=" {
			v := p.b.Operand(p.b.ConstantOperand(p.macros.env[rest[2].text]))
			e.def.Defaults = append(e.def.Defaults, kernel.Default{Value: v})
		}
		return nil
	}
	return p.errorAt(at.line, at.col, "unknown option %q", at.text)
}

func (p *parser) parsePrompt(at token, rest []token) error {
	e := p.entry
	if len(rest) == 0 {
		return p.errorAt(at.line, at.col, "prompt takes one quoted text")
	}
	if rest[0].kind != quoted {
		return p.errorAt(rest[0].line, rest[0].col, "a prompt must be quoted")
	}
	cond, rest, err := p.parseIf(rest[1:])
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return p.errorAt(rest[0].line, rest[0].col, "unexpected %q after the prompt", rest[0].text)
	}
	cond = p.b.And(cond, e.visible)
	seen := &e.def.Visible
	if e.kind == "choice" {
		seen = &e.group.Visible
	}
	if e.prompts++; e.prompts > 1 {
		p.warnAt(at.line, at.col, "prompt redefined")
		if *seen != kernel.Always && cond != kernel.Always {
			cond = p.b.Expr(kernel.Or, int32(*seen), int32(cond))
		} else {
			cond = kernel.Always
		}
	}
	*seen = cond
	e.def.Prompt, e.group.Prompt = true, true
	return nil
}

// finishEntry adds the entry that has been read to the tree.
func (p *parser) finishEntry() {
	e := p.entry
	p.entry = nil
	if e == nil {
		return
	}
	up := p.innermostBlock()
	switch e.kind {
	case "config":
		e.def.Depends = p.b.And(up.depends, e.own)
		s := p.b.Symbol(e.sym)
		if s.Type == kernel.Unknown {
			s.Type = e.typ
		} else if e.typ != kernel.Unknown && e.typ != s.Type {
			p.warnAt(e.line, 1, "ignoring type redefinition of %s from %s to %s", e.name, s.Type, e.typ)
		}
		s.Defs = append(s.Defs, e.def)
		if e.choice >= 0 {
			g := p.b.Choice(e.choice)
			if !slices.Contains(g.Members, e.sym) {
				g.Members = append(g.Members, e.sym)
			}
		}
	case "choice":
		e.group.Depends = e.block.depends
		e.group.Type = e.typ
		*p.b.Choice(e.choice) = e.group
	}
}

func (p *parser) parseOperand(t token) kernel.Ref {
	if t.kind == quoted {
		return p.b.ConstantOperand(t.text)
	}
	return p.b.Word(t.text)
}

// soleOperand is the symbol that an expression consists of.
func (p *parser) soleOperand(id kernel.ExprID) kernel.Ref {
	if r, ok := p.b.SoleOperand(id); ok {
		return r
	}
	return p.b.ConstantOperand("")
}

func (p *parser) parseIf(t []token) (kernel.ExprID, []token, error) {
	if len(t) == 0 || t[0].kind != word || t[0].text != "if" {
		return kernel.Always, t, nil
	}
	return p.parseExpression(t[1:])
}

// parseExpression reads as much of t as is an expression and returns the rest.
func (p *parser) parseExpression(t []token) (kernel.ExprID, []token, error) {
	return p.parseOr(t, 0)
}

func (p *parser) parseOr(t []token, depth int) (kernel.ExprID, []token, error) {
	l, t, err := p.parseAnd(t, depth)
	for err == nil && len(t) > 0 && t[0].kind == punct && t[0].text == "||" {
		var r kernel.ExprID
		if r, t, err = p.parseAnd(t[1:], depth); err == nil {
			l = p.b.Expr(kernel.Or, int32(l), int32(r))
		}
	}
	return l, t, err
}

func (p *parser) parseAnd(t []token, depth int) (kernel.ExprID, []token, error) {
	l, t, err := p.parseNot(t, depth)
	for err == nil && len(t) > 0 && t[0].kind == punct && t[0].text == "&&" {
		var r kernel.ExprID
		if r, t, err = p.parseNot(t[1:], depth); err == nil {
			l = p.b.Expr(kernel.And, int32(l), int32(r))
		}
	}
	return l, t, err
}

var comparisons = map[string]kernel.Op{
	"=": kernel.Equal, "!=": kernel.Unequal, "<": kernel.Less,
	"<=": kernel.LessEqual, ">": kernel.Greater, ">=": kernel.GreaterEqual,
}

func (p *parser) parseNot(t []token, depth int) (kernel.ExprID, []token, error) {
	if len(t) == 0 {
		return 0, nil, p.errorAt(p.line, 1, "expression expected before the end of the line")
	}
	at := t[0]
	if depth > maxExprDepth {
		return 0, nil, p.errorAt(at.line, at.col, "expression nested more than %d deep", maxExprDepth)
	}
	if at.kind == punct {
		switch at.text {
		case "!":
			x, rest, err := p.parseNot(t[1:], depth+1)
			if err != nil {
				return 0, nil, err
			}
			return p.b.Expr(kernel.Not, int32(x), 0), rest, nil
		case "(":
			x, rest, err := p.parseOr(t[1:], depth+1)
			if err != nil {
				return 0, nil, err
			}
			if len(rest) == 0 || rest[0].text != ")" || rest[0].kind != punct {
				return 0, nil, p.errorAt(at.line, at.col, "( without )")
			}
			return x, rest[1:], nil
		}
		return 0, nil, p.errorAt(at.line, at.col, "unexpected %q in an expression", at.text)
	}
	l := p.parseOperand(at)
	if len(t) > 1 && t[1].kind == punct {
		if op, ok := comparisons[t[1].text]; ok {
			if len(t) < 3 || t[2].kind == punct {
				return 0, nil, p.errorAt(t[1].line, t[1].col, "value expected after %s", t[1].text)
			}
			return p.b.Expr(op, int32(l), int32(p.parseOperand(t[2]))), t[3:], nil
		}
	}
	return p.b.Operand(l), t[1:], nil
}

// joinErrors joins the errors in the order of reading.
func joinErrors(ps []Problem) error {
	if len(ps) == 0 {
		return nil
	}
	errs := make([]error, 0, len(ps)+1)
	errs = append(errs, errKconfig)
	for _, p := range ps {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// dirFS is os.DirFS with symbolic links followed only inside the tree.
func dirFS(dir string) (fs.FS, error) {
	r, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	return r.FS(), nil
}
