package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// export of a variable that bitbake may get from the shell.
var export = lazyregexp.New(`^\s*export\s+([A-Z][A-Z0-9_]*)=`)

// leaveExport points out a variable for bitbake that the release refuses: a search
// through the layers for it finds nothing.
func (im *importer) leaveExport(l *Line) bool {
	m := export.FindStringSubmatch(l.Text)
	if m == nil {
		return false
	}
	to, ok := im.release.FindRenamed(m[1])
	if !ok {
		return false
	}
	l.addTrap(renamedVariable)
	im.leaveRenamed(l, m[1], to)
	return true
}

// Bounds of a script: what loops and functions expand to.
const (
	maxCommands = 20000
	maxItems    = 1024
	maxDepth    = 16
	maxValue    = 4096     // bytes written to a kernel file: a page, as the kernel takes them
	maxWords    = 64 << 10 // bytes of the words of one command
	maxExpanded = 4 << 20  // bytes of the words of all commands; maxTotal for all scripts together
	maxFrames   = 4000     // of the parser's stack
)

var (
	errComputed = errors.New("computed by the shell")
	errTooLong  = errors.New("the values that the script builds are too long to follow")
	errTooDeep  = errors.New("it is nested too deep")
)

// shallowReader stops a parser whose recursion gets too deep. The parser reads a small piece at a
// time, so that the stack cannot grow much between two reads.
type shallowReader struct{ strings.Reader }

func (r *shallowReader) Read(p []byte) (int, error) {
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		return 0, errTooDeep
	}
	return r.Reader.Read(p)
}

func parseScript(text string) (*syntax.File, error) {
	return syntax.NewParser().Parse(&shallowReader{*strings.NewReader(text)}, "")
}

// shell walks a script without running it. Loops over words and functions are followed; what
// depends on the device, on the environment or on the result of a command is left.
type shell struct {
	im    *importer
	lines []*Line
	vars  map[string]string // variables whose value is in the script
	funcs map[string]*syntax.Stmt
	dir   string // of relative paths; "" where unknown
	// strict is set for the command of a unit: what sets no kernel file counts as left.
	strict bool
	steps  int
	length int // bytes that the words of the command expand to
	spent  int // bytes that all words expanded to
	depth  int
	left   int
	done   int
	ended  bool // the script has met exit
	back   bool // the function has met return
	// maybe is the line of a condition under which the script ends.
	maybe int
}

func newShell(im *importer, lines []*Line) *shell {
	return &shell{im: im, lines: lines, vars: map[string]string{}, funcs: map[string]*syntax.Stmt{}}
}

// isStarted reports whether something starts a script: a unit or an init script's name among
// the sources. Files that come without recipes are those of a device, where somebody does.
func (im *importer) isStarted(s Source) bool {
	base := path.Base(s.Name)
	isLayer := false
	for _, other := range im.sources {
		switch _, isRecipe := recipeFile(other.Name); {
		case isRecipe && strings.Contains(string(other.Text), "INITSCRIPT_NAME") && strings.Contains(string(other.Text), base):
			return true
		case isRecipe:
			isLayer = true
		case other.Kind == Systemd && strings.Contains(string(other.Text), "/"+base):
			return true
		}
	}
	return !isLayer || s.Given || slices.Contains(strings.Split(s.Name, "/"), "init.d")
}

// readScript reads a shell script: the commands that set what yoctune sets, too.
func (im *importer) readScript(lines []*Line, s Source) {
	if !im.isStarted(s) {
		leaveRest(lines, "nothing among these files starts the script; give it by name to import it")
		return
	}
	if first, _, _ := strings.Cut(string(s.Text), "\n"); strings.HasPrefix(first, "#!") {
		words := strings.Fields(strings.TrimPrefix(first, "#!"))
		if i := len(words) - 1; i >= 0 {
			name := path.Base(words[0])
			if name == "env" {
				name = path.Base(words[i])
			}
			if !slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, name) {
				leaveRest(lines, "a program for "+clean(name)+", not for a shell")
				return
			}
		}
	}
	for _, l := range lines {
		if l.Verdict == "" {
			im.leaveExport(l)
		}
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(s.Text), "\ufeff"), "\r", "")
	file, err := parseScript(text)
	if err != nil {
		leaveRest(lines, "not a shell script that can be parsed: "+clean(err.Error()))
		return
	}
	sh := newShell(im, lines)
	sh.walk(file.Stmts, "")
	for _, f := range sh.funcs {
		sh.mark(f, "a function that is not called with words of the script")
	}
	for _, l := range lines {
		if l.Verdict == "" && !l.partial && l.head == nil {
			l.leave("part of a script; yoctune sets kernel files only")
		}
	}
}

// importCommand reads one command of a unit; false when it does not only set kernel files.
func (im *importer) importCommand(l *Line, command string) bool {
	file, err := parseScript(strings.ReplaceAll(command, "\n", " "))
	if err != nil {
		return false
	}
	sh := newShell(im, []*Line{l})
	sh.strict = true
	sh.walk(file.Stmts, "")
	return sh.done > 0 && sh.left == 0
}

// at returns the line of a node, or a throwaway one.
func (sh *shell) at(n syntax.Node) *Line {
	if i := int(n.Pos().Line()) - 1; i >= 0 && i < len(sh.lines) {
		return sh.lines[i]
	}
	return &Line{}
}

// leave leaves a command.
func (sh *shell) leave(n syntax.Node, why string) {
	sh.left++
	if sh.strict {
		return
	}
	l := sh.at(n)
	if l.Verdict == Left || l.head != nil || strings.Contains(l.Why, why) {
		return
	}
	l.leavePart(clean(sh.text(n)), "%s", why)
	sh.join(n)
}

// text is the source of a node in one line.
func (sh *shell) text(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "the command"
	}
	text, _, _ := strings.Cut(b.String(), "\n")
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}

// join makes the further lines of a node follow its first.
func (sh *shell) join(n syntax.Node) {
	head := sh.at(n)
	for i := int(n.Pos().Line()); i < int(n.End().Line()) && i < len(sh.lines); i++ {
		if l := sh.lines[i]; l.Verdict == "" && !l.partial && len(l.paths) == 0 && l.head == nil && l != head {
			l.head = head
		}
	}
}

// mark leaves every line of a node that has no verdict.
func (sh *shell) mark(n syntax.Node, why string) {
	sh.left++
	if sh.strict {
		return
	}
	for i := int(n.Pos().Line()) - 1; i >= 0 && i < int(n.End().Line()) && i < len(sh.lines); i++ {
		if l := sh.lines[i]; l.Verdict == "" && !l.partial && len(l.paths) == 0 && l.head == nil {
			l.leave(why)
		}
	}
}

// frame accounts for the lines of a loop or branch that hold its words only.
func (sh *shell) frame(n syntax.Node, why string) {
	for i := int(n.Pos().Line()) - 1; i >= 0 && i < int(n.End().Line()) && i < len(sh.lines); i++ {
		if l := sh.lines[i]; l.Verdict == "" && !l.partial && len(l.paths) == 0 && l.head == nil {
			l.markUnderstood("%s", why)
		}
	}
}

// skip leaves a node, and forgets the variables that it may set.
func (sh *shell) skip(n syntax.Node, why string) {
	sh.mark(n, why)
	sh.forget(n)
	if !sh.ended && !sh.back && sh.maybe == 0 && calls(n, "exit", "return") {
		sh.maybe = int(n.Pos().Line())
	}
}

// calls reports whether a node has a call of one of the commands.
func calls(n syntax.Node, names ...string) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			found = found || slices.Contains(names, c.Args[0].Lit())
		}
		return !found
	})
	return found
}

// forget forgets the variables that a node may set.
func (sh *shell) forget(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				delete(sh.vars, n.Name.Value)
			}
		case *syntax.WordIter:
			delete(sh.vars, n.Name.Value)
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == "read" {
				for _, w := range n.Args[1:] {
					delete(sh.vars, w.Lit())
				}
			}
			if len(n.Args) > 0 && n.Args[0].Lit() == "cd" {
				sh.dir = ""
			}
		}
		return true
	})
}

// walk follows statements; note is added to what they set.
func (sh *shell) walk(stmts []*syntax.Stmt, note string) {
	for _, s := range stmts {
		if sh.steps++; sh.steps > maxCommands {
			sh.skip(s, "the loops of the script are too long to follow")
			continue
		}
		if sh.ended || sh.back {
			sh.skip(s, "the script ends before it")
			continue
		}
		sh.statement(s, note)
	}
}

func (sh *shell) statement(s *syntax.Stmt, note string) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		sh.call(s, c, note)
	case *syntax.DeclClause:
		sh.assign(s, c.Args)
		if c.Variant.Value == "export" {
			sh.leave(s, "the environment of other programs")
		}
	case *syntax.BinaryCmd:
		sh.binary(s, c, note)
	case *syntax.IfClause:
		sh.branch(c, note)
	case *syntax.ForClause:
		sh.loop(c, note)
	case *syntax.Block:
		sh.walk(c.Stmts, note)
		sh.frame(s, "")
	case *syntax.Subshell:
		dir := sh.dir
		sh.walk(c.Stmts, note)
		sh.frame(s, "")
		sh.dir = dir
	case *syntax.FuncDecl:
		sh.funcs[c.Name.Value] = c.Body
		sh.forget(c.Body)
	default:
		sh.skip(s, "whether and how often it runs depends on the device")
	}
}

// assign notes variables with a value in the script.
func (sh *shell) assign(s *syntax.Stmt, assigns []*syntax.Assign) {
	for _, a := range assigns {
		if a.Name == nil {
			continue
		}
		name := a.Name.Value
		value, err := "", error(nil)
		if a.Value != nil {
			value, err = sh.literal(a.Value)
		}
		if err != nil || a.Array != nil || a.Index != nil || a.Append || a.Naked {
			delete(sh.vars, name)
			sh.leave(s, explain(err, "a value that the script computes"))
			continue
		}
		sh.vars[name] = value
	}
	if l := sh.at(s); l.Verdict == "" && !l.partial {
		l.markUnderstood("")
	}
}

// config expands words with the variables of the script only.
func (sh *shell) config() *expand.Config {
	return &expand.Config{
		NoUnset: true,
		Env: expand.FuncEnviron(func(name string) string {
			if sh.spend(len(sh.vars[name])) != nil {
				return "" // expandWords returns the error
			}
			return sh.vars[name]
		}),
		CmdSubst: func(w io.Writer, c *syntax.CmdSubst) error {
			text, err := sh.sequence(c)
			if err == nil {
				_, err = io.WriteString(w, text)
			}
			return err
		},
	}
}

// spend accounts for bytes of expanded words.
func (sh *shell) spend(n int) error {
	sh.length += n
	sh.spent += n
	sh.im.spent += n
	if sh.length > maxWords || sh.spent > maxExpanded || sh.im.spent > maxTotal {
		return errTooLong
	}
	return nil
}

// sequence is the output of `seq`.
func (sh *shell) sequence(c *syntax.CmdSubst) (string, error) {
	if len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) > 0 {
		return "", errComputed
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 || len(call.Args) > 3 || call.Args[0].Lit() != "seq" {
		return "", errComputed
	}
	bounds := []int{1}
	for _, w := range call.Args[1:] {
		text, err := sh.expandWord(w)
		n, numErr := strconv.Atoi(text)
		if err != nil || numErr != nil {
			return "", errComputed
		}
		bounds = append(bounds, n)
	}
	bounds = bounds[len(bounds)-2:]
	var b strings.Builder
	for n := bounds[0]; n <= bounds[1] && n-bounds[0] < maxItems; n++ {
		fmt.Fprintln(&b, n)
	}
	return b.String(), sh.spend(b.Len())
}

// isPlain reports whether a word has nothing but text and variables of the script.
func (sh *shell) isPlain(w *syntax.Word) bool {
	plain := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			_, known := sh.vars[paramName(n)]
			simple := !n.Length && !n.Width && n.Index == nil && n.Slice == nil && n.Repl == nil && n.Exp == nil && n.Excl == false
			plain = plain && known && simple
		case *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
			plain = false
		case *syntax.CmdSubst:
			_, err := sh.sequence(n)
			plain = plain && err == nil
			return false
		}
		return plain
	})
	return plain
}

func paramName(p *syntax.ParamExp) string {
	if p.Param == nil {
		return ""
	}
	return p.Param.Value
}

// checkWords starts a command: words are followed if they are plain and not too long.
func (sh *shell) checkWords(words ...*syntax.Word) error {
	sh.length = 0
	for _, w := range words {
		if err := sh.spend(int(w.End().Offset() - w.Pos().Offset())); err != nil {
			return err
		}
	}
	for _, w := range words {
		if !sh.isPlain(w) {
			return cmp.Or(sh.spend(0), errComputed)
		}
	}
	return nil
}

// expandWord expands a plain word to one text.
func (sh *shell) expandWord(w *syntax.Word) (string, error) {
	text, err := expand.Literal(sh.config(), w)
	return text, cmp.Or(sh.spend(0), err)
}

// literal expands a word to one text.
func (sh *shell) literal(w *syntax.Word) (string, error) {
	if err := sh.checkWords(w); err != nil {
		return "", err
	}
	return sh.expandWord(w)
}

// fields expands words as arguments; globs stay as they are.
func (sh *shell) fields(words []*syntax.Word) ([]string, error) {
	if err := sh.checkWords(words...); err != nil {
		return nil, err
	}
	var out []string
	for text, err := range expand.FieldsSeq(sh.config(), words...) {
		if err = cmp.Or(err, sh.spend(len(text))); err != nil {
			return nil, err
		}
		if out = append(out, text); len(out) > maxItems {
			return nil, errTooLong
		}
	}
	return out, nil
}

// explain is why words are left that did not expand; computed is the usual reason.
func explain(err error, computed string) string {
	if errors.Is(err, errTooLong) {
		return err.Error()
	}
	return computed
}

// binary follows A && B, A || B, and A | tee FILE.
func (sh *shell) binary(s *syntax.Stmt, c *syntax.BinaryCmd, note string) {
	switch c.Op {
	case syntax.AndStmt:
		if guard, ok := sh.guard([]*syntax.Stmt{c.X}); ok {
			sh.statement(c.Y, guard)
			return
		}
		if sh.isTest(c.X) {
			sh.skip(s, "it runs under a condition")
			return
		}
		sh.statement(c.X, note)
		sh.statement(c.Y, note)
	case syntax.OrStmt:
		if _, ok := sh.guard([]*syntax.Stmt{c.X}); ok && calls(c.Y, "exit", "return") {
			sh.at(s).markUnderstood("a missing file is reported")
			return
		}
		if sh.isTest(c.X) {
			sh.skip(s, "it runs under a condition")
			return
		}
		sh.statement(c.X, note)
		if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && slices.Contains([]string{"true", ":", "exit", "echo", "return"}, call.Args[0].Lit()) && len(c.Y.Redirs) == 0 {
			return // what happens on failure, which is reported
		}
		sh.leave(c.Y, "it runs only if the command before it fails")
		sh.forget(c.Y)
	default:
		if !sh.pipe(s, c, note) {
			sh.skip(s, "its values come from another command")
		}
	}
}

// pipe imports `echo V | tee FILE...`.
func (sh *shell) pipe(s *syntax.Stmt, c *syntax.BinaryCmd, note string) bool {
	from, ok1 := c.X.Cmd.(*syntax.CallExpr)
	to, ok2 := c.Y.Cmd.(*syntax.CallExpr)
	if !ok1 || !ok2 || c.Op != syntax.Pipe || len(c.X.Redirs) > 0 {
		return false
	}
	value, ok := sh.printed(from)
	args, err := sh.fields(to.Args)
	args = cutRunner(args)
	if !ok || err != nil || len(args) < 2 || args[0] != "tee" {
		return false
	}
	for _, file := range args[1:] {
		if !strings.HasPrefix(file, "-") {
			sh.write(s, file, value, note)
		}
	}
	return true
}

// printed is what echo or printf writes.
func (sh *shell) printed(c *syntax.CallExpr) (string, bool) {
	args, err := sh.fields(c.Args)
	args = cutRunner(args)
	if err != nil || len(args) == 0 {
		return "", false
	}
	switch path.Base(args[0]) {
	case "echo":
		args = args[1:]
		for len(args) > 0 && slices.Contains([]string{"-n", "-e", "-ne", "-en", "-E"}, args[0]) {
			args = args[1:]
		}
		return strings.Join(args, " "), true
	case "printf":
		if len(args) == 3 && strings.TrimSuffix(args[1], `\n`) == "%s" {
			return args[2], true
		}
		if len(args) == 2 && !strings.Contains(args[1], "%") {
			return strings.TrimSuffix(args[1], `\n`), true
		}
	}
	return "", false
}

// cutRunner cuts sudo and paths off a command.
func cutRunner(args []string) []string {
	for len(args) > 1 && slices.Contains([]string{"sudo", "nice", "exec", "command"}, args[0]) {
		args = args[1:]
		for len(args) > 1 && strings.HasPrefix(args[0], "-") {
			args = args[1:]
		}
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "/") {
		args = slices.Clone(args)
		args[0] = path.Base(args[0])
	}
	return args
}

// isTest reports whether a statement only tests something.
func (sh *shell) isTest(s *syntax.Stmt) bool {
	switch c := s.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		return true
	case *syntax.CallExpr:
		return len(c.Args) > 0 && slices.Contains([]string{"[", "test", "grep", "which", "command", "pgrep"}, c.Args[0].Lit())
	case *syntax.BinaryCmd:
		return sh.isTest(c.X) || sh.isTest(c.Y)
	}
	return false
}

// guard reports whether a condition only asks whether kernel files exist, and the note for
// what it guards: yoctuned reports a missing file instead.
func (sh *shell) guard(cond []*syntax.Stmt) (string, bool) {
	const note = "without the condition: a missing file is reported"
	if len(cond) != 1 || cond[0].Negated {
		return "", false
	}
	var args []string
	switch c := cond[0].Cmd.(type) {
	case *syntax.CallExpr:
		fields, err := sh.fields(c.Args)
		if err != nil || len(fields) == 0 {
			return "", false
		}
		if fields[0] == "[" {
			args = fields[1 : len(fields)-1]
		} else if fields[0] == "test" {
			args = fields[1:]
		}
	case *syntax.TestClause:
		if u, ok := c.X.(*syntax.UnaryTest); ok {
			if w, ok := u.X.(*syntax.Word); ok {
				if file, err := sh.literal(w); err == nil {
					args = []string{u.Op.String(), file}
				}
			}
		}
	case *syntax.BinaryCmd:
		_, x := sh.guard([]*syntax.Stmt{c.X})
		_, y := sh.guard([]*syntax.Stmt{c.Y})
		return note, c.Op == syntax.AndStmt && x && y
	}
	if len(args) != 2 || !slices.Contains([]string{"-e", "-f", "-d", "-w", "-r", "-h", "-L"}, args[0]) {
		return "", false
	}
	return note, strings.HasPrefix(args[1], "/sys/") || strings.HasPrefix(args[1], "/proc/")
}

// branch follows an if that only asks whether kernel files exist.
func (sh *shell) branch(c *syntax.IfClause, note string) {
	guard, ok := sh.guard(c.Cond)
	if !ok {
		sh.skip(c, "it runs under a condition")
		return
	}
	sh.walk(c.Then, guard)
	sh.ended, sh.back = false, false
	if c.Else != nil {
		for _, s := range c.Else.Then {
			sh.skip(s, "it runs only if the file is missing")
		}
		if c.Else.Else != nil {
			sh.skip(c.Else, "it runs only if the file is missing")
		}
	}
	sh.frame(c, "")
}

// loop follows a for over words of the script.
func (sh *shell) loop(c *syntax.ForClause, note string) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select {
		sh.skip(c, "the number of repetitions is computed")
		return
	}
	items, err := sh.fields(iter.Items)
	if err != nil || len(items) == 0 {
		sh.skip(c, explain(err, "the script computes the words of the loop"))
		return
	}
	if calls(c, "break", "continue") {
		sh.skip(c, "the loop may end early")
		return
	}
	if sh.depth++; sh.depth > maxDepth {
		sh.skip(c, "the loops are too deep")
		return
	}
	for _, item := range items {
		sh.vars[iter.Name.Value] = item
		sh.walk(c.Do, note)
	}
	sh.depth--
	sh.frame(c, "")
}

// call follows a command.
func (sh *shell) call(s *syntax.Stmt, c *syntax.CallExpr, note string) {
	if len(c.Args) == 0 {
		sh.assign(s, c.Assigns)
		return
	}
	if value, ok := sh.printed(c); ok {
		for _, r := range s.Redirs {
			if (r.Op == syntax.RdrOut || r.Op == syntax.AppOut || r.Op == syntax.RdrClob) && (r.N == nil || r.N.Value == "1") {
				sh.redirect(s, r, value, note)
				return
			}
		}
	}
	args, err := sh.fields(c.Args)
	if err != nil {
		sh.leaveComputed(s, err)
		return
	}
	args = cutRunner(args)
	if len(args) == 0 {
		return
	}
	if body, ok := sh.funcs[args[0]]; ok {
		sh.callFunction(s, args, body, note)
		return
	}
	switch args[0] {
	case "exit", "return":
		sh.ended, sh.back = sh.ended || args[0] == "exit", args[0] == "return"
		sh.at(s).markUnderstood("")
	case "cd":
		sh.dir = ""
		if len(args) == 2 && strings.HasPrefix(args[1], "/") {
			sh.dir = args[1]
		}
		sh.at(s).markUnderstood("")
	case "set", ":", "true", "sleep", "sync", "echo", "printf":
		if len(s.Redirs) > 0 && (args[0] == "echo" || args[0] == "printf") {
			sh.leave(s, "not a kernel file")
			return
		}
		sh.at(s).markUnderstood("it sets nothing")
	default:
		sh.command(s, args, note)
	}
}

// leaveComputed leaves a command with a word that the shell computes.
func (sh *shell) leaveComputed(s *syntax.Stmt, err error) {
	if !sh.strict && !errors.Is(err, errTooLong) {
		sh.at(s).addTrap(environmentOnly)
	}
	sh.leave(s, explain(err, "the shell computes its words"))
	sh.forget(s)
}

// redirect imports the value that is written to a file.
func (sh *shell) redirect(s *syntax.Stmt, r *syntax.Redirect, value, note string) {
	files, err := sh.fields([]*syntax.Word{r.Word})
	if err != nil || len(files) != 1 {
		sh.leaveComputed(s, err)
		return
	}
	sh.write(s, files[0], value, note)
}

// write imports a value for a file.
func (sh *shell) write(s *syntax.Stmt, file, value, note string) {
	if !strings.HasPrefix(file, "/") && sh.dir != "" {
		file = path.Join(sh.dir, file)
	}
	if !strings.HasPrefix(file, "/sys/") && !strings.HasPrefix(file, "/proc/") {
		if file != "/dev/null" && file != "/dev/kmsg" {
			sh.leave(s, "not a kernel file")
		}
		return
	}
	if len(value) > maxValue {
		sh.leave(s, fmt.Sprintf("the value has %d bytes, and a kernel file takes %d", len(value), maxValue))
		return
	}
	sh.set(s, note, func(l *Line) {
		l.addTrap(sysfsScript)
		sh.im.importKernelFile(l, file, value)
	})
}

// set imports what a command sets. Several commands may stand on one line.
func (sh *shell) set(s syntax.Node, note string, do func(l *Line)) {
	l := sh.at(s)
	if l.Verdict == Left {
		return
	}
	before := len(l.paths)
	do(l)
	sh.done++
	if note != "" && len(l.paths) > before {
		l.markAdjusted("%s", note)
	}
	if sh.maybe > 0 && len(l.paths) > before {
		l.markAdjusted("the script may end at line %d, before it", sh.maybe)
	}
	sh.join(s)
}

// callFunction follows a function of the script.
func (sh *shell) callFunction(s *syntax.Stmt, args []string, body *syntax.Stmt, note string) {
	if sh.depth++; sh.depth > maxDepth {
		sh.leave(s, "functions call each other without end")
		sh.depth--
		return
	}
	for i := 1; i <= 9; i++ {
		name := strconv.Itoa(i)
		delete(sh.vars, name)
		if i < len(args) {
			sh.vars[name] = args[i]
		}
	}
	sh.walk([]*syntax.Stmt{body}, note)
	sh.depth--
	sh.back = false
	if l := sh.at(s); l.Verdict == "" && !l.partial && len(l.paths) == 0 {
		l.markUnderstood("")
	}
}
