package kernelsource

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Param is one registration of a kernel argument.
type Param struct {
	Name   string // as on the command line
	Macro  string // "__setup", "early_param", "core_param" or "module_param" with its relatives
	Value  string // what it takes: see [Param.Value] values below
	Source string
	Module string   // for module parameters
	Needs  []string // options of the object and of the #ifdef around the line
	Gate   string   // the object's
	Arch   string   // the architecture other than arm64 that the source belongs to
	Built  bool     // an arm64 kernel is linked from the source
}

var (
	registration = regexp.MustCompile(`\b(__setup|__setup_param|early_param|early_param_on_off|core_param|core_param_cb|core_param_unsafe|device_param_cb|` +
		`arch_param_cb|subsys_param_cb|postcore_param_cb|fs_param_cb|late_param_cb|module_param|module_param_unsafe|module_param_named|module_param_named_unsafe|` +
		`module_param_cb|module_param_cb_unsafe|module_param_call|module_param_string|module_param_array|module_param_array_named|module_param_hw|module_param_hw_named|` +
		`module_param_hw_array|torture_param|__module_param_call)\s*\(`)
	include   = regexp.MustCompile(`^\s*#\s*include\s+"([^"]+)"`)
	textMacro = regexp.MustCompile(`^define[ \t]+(KBUILD_MODNAME|MODULE_PARAM_PREFIX)\b(.*)`)
	define    = regexp.MustCompile(`^define[ \t]+(\w+)[ \t]+"([^"\n]*)"[ \t]*$`)
	function  = regexp.MustCompile(`^define[ \t]+(\w+)\(([^)\n]*)\)[ \t]*(.*)`)
	alias     = regexp.MustCompile(`(?m)^\s*\{\s*"([\w.\-]+)"\s*,\s*"?[\w.]`)
)

// Params lists the registrations of the tree, sorted.
func (t *Tree) Params(objects []Object) []Param {
	bySource := map[string][]Object{}
	for _, o := range objects {
		bySource[o.Source] = append(bySource[o.Source], o)
	}
	x := &extractor{tree: t, reached: map[string]bool{}, clean: map[string]string{}, counted: map[string]bool{}}
	for _, source := range t.sorted() {
		for _, o := range bySource[source] {
			x.file(source, o, nil, 0)
		}
	}
	x.overrides()
	for _, source := range t.sorted() {
		if !x.reached[source] && strings.HasSuffix(source, ".c") && t.declares[source] {
			x.unreached(source)
		}
	}
	slices.SortFunc(x.found, compareParams)
	return slices.CompactFunc(x.found, func(a, b Param) bool { return compareParams(a, b) == 0 })
}

func compareParams(a, b Param) int {
	key := func(p Param) string {
		return strings.Join([]string{p.Name, p.Macro, p.Source, p.Module, p.Value, p.Gate, p.Arch, strings.Join(p.Needs, ",")}, "\x00")
	}
	return cmp.Compare(key(a), key(b))
}

type extractor struct {
	tree    *Tree
	reached map[string]bool
	clean   map[string]string
	counted map[string]bool
	found   []Param
}

// text returns a source without comments, with continued lines joined.
func (x *extractor) text(source string) string {
	if s, ok := x.clean[source]; ok {
		return s
	}
	s := stripComments(string(x.tree.files[source]))
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\\\r\n", " "), "\\\n", " ")
	x.clean[source] = s
	return s
}

// includesOne reports whether a source includes, in quotes, another that counts.
func (x *extractor) includesOne(source string) bool {
	for line := range bytes.Lines(x.tree.files[source]) {
		if bytes.HasPrefix(line, []byte("#")) {
			if m := include.FindSubmatch(line); m != nil && x.counts(path.Join(path.Dir(source), string(m[1]))) {
				return true
			}
		}
	}
	return false
}

func (x *extractor) counts(target string) bool {
	if known, ok := x.counted[target]; ok {
		return known
	}
	x.counted[target] = x.tree.declares[target] // a source can include itself
	if strings.HasSuffix(target, ".c") && !x.counted[target] {
		x.counted[target] = x.tree.files[target] != nil && x.includesOne(target)
	}
	return x.counted[target]
}

// file reads a source and what it includes in quotes.
func (x *extractor) file(source string, o Object, outer []string, depth int) {
	if depth > 4 || x.tree.files[source] == nil {
		return
	}
	x.reached[source] = true
	if !x.counts(source) {
		return
	}
	f := &unit{x: x, source: source, object: o, text: x.text(source)}
	f.scan(outer, depth)
}

// unreached reads a source that no arm64 kernel is linked from.
func (x *extractor) unreached(source string) {
	arch := ""
	if rest, ok := strings.CutPrefix(x.tree.inner(source), "arch/"); ok {
		arch, _, _ = strings.Cut(rest, "/")
	}
	if arch == "arm64" {
		arch = ""
	}
	module := strings.ReplaceAll(strings.TrimSuffix(path.Base(source), ".c"), "-", "_")
	f := &unit{x: x, source: source, object: Object{Source: source, Module: module}, text: x.text(source), arch: arch, out: true}
	f.scan(nil, 99)
}

// overrides adds the spellings of arm64's feature overrides, which no macro registers.
func (x *extractor) overrides() {
	for _, source := range x.tree.sorted() {
		if !strings.HasSuffix(source, "idreg-override.c") {
			continue
		}
		text := x.text(source)
		_, list, _ := strings.Cut(text, "aliases[]")
		list, _, _ = strings.Cut(list, "};")
		for _, a := range alias.FindAllStringSubmatch(list, -1) {
			x.found = append(x.found, Param{Name: a[1], Macro: "override", Source: source, Built: true})
		}
	}
}

// unit is one source being read for one object.
type unit struct {
	x      *extractor
	source string
	object Object
	text   string
	arch   string
	out    bool
	macros map[string]string
	shapes map[string]shape
	name   string // of the module
	prefix string // of its parameters

	prefixText  []string
	modnameText string
}

// shape is a function-like macro of the source that registers arguments.
type shape struct {
	params []string
	body   string
}

func (f *unit) scan(outer []string, depth int) {
	f.defines()
	f.name = f.moduleName()
	f.prefix = f.modulePrefix()
	var stack []branch
	text := f.text
	// What spans lines is read from its first line on.
	for start := 0; start < len(text); {
		end := strings.IndexByte(text[start:], '\n')
		if end < 0 {
			end = len(text) - start
		}
		line := text[start : start+end]
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "#") {
			stack = preprocess(stack, strings.TrimSpace(trimmed[1:]))
			if inc := include.FindStringSubmatch(line); inc != nil && depth < 4 && !isDead(stack) {
				f.x.include(f.source, inc[1], f.object, union(outer, needsOf(stack)), depth+1)
			}
		} else if !isDead(stack) {
			f.line(text[start:], len(line), union(outer, needsOf(stack)), isModuleOnly(stack))
		}
		start += end + 1
	}
}

// defines reads the macros that matter: texts, and those that register arguments.
func (f *unit) defines() {
	f.macros, f.shapes = map[string]string{}, map[string]shape{}
	for line := range strings.Lines(f.text) {
		rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "#")
		if rest = strings.TrimLeft(rest, " \t"); !ok || !strings.HasPrefix(rest, "define") {
			continue
		}
		if m := define.FindStringSubmatch(rest); m != nil {
			f.macros[m[1]] = m[2]
		}
		if m := textMacro.FindStringSubmatch(rest); m != nil {
			switch m[1] {
			case "MODULE_PARAM_PREFIX":
				f.prefixText = append(f.prefixText, strings.TrimSpace(m[2]))
			case "KBUILD_MODNAME":
				f.modnameText = strings.Trim(strings.TrimSpace(m[2]), `"`)
			}
		}
		if !strings.Contains(rest, "_param") && !strings.Contains(rest, "__setup") {
			continue
		}
		if m := function.FindStringSubmatch(rest); m != nil && registration.MatchString(m[3]) {
			var params []string
			for p := range strings.SplitSeq(m[2], ",") {
				params = append(params, strings.TrimSpace(p))
			}
			f.shapes[m[1]] = shape{params, m[3]}
		}
	}
}

func (x *extractor) include(from, name string, o Object, needs []string, depth int) {
	target := path.Join(path.Dir(from), name)
	if x.counts(target) {
		x.file(target, o, needs, depth)
	} else if strings.HasSuffix(name, ".c") {
		x.reached[target] = true
	}
}

// line reads the registrations that begin in the first length bytes of text.
func (f *unit) line(text string, length int, needs []string, module bool) {
	line := text[:length]
	if !strings.Contains(line, "_param") && !strings.Contains(line, "__setup") && len(f.shapes) == 0 {
		return
	}
	for _, at := range registration.FindAllStringSubmatchIndex(line, -1) {
		if before := strings.TrimSpace(line[:at[0]]); strings.HasPrefix(before, "#") {
			return
		}
		f.register(line[at[2]:at[3]], arguments(text[at[1]:]), needs, module)
	}
	for name, s := range f.shapes {
		for _, at := range findCalls(line, name) {
			values := arguments(text[at:])
			body := s.body
			for i, p := range s.params {
				if i < len(values) {
					body = substitute(body, p, values[i])
				}
			}
			for _, inner := range registration.FindAllStringSubmatchIndex(body, -1) {
				f.register(body[inner[2]:inner[3]], arguments(body[inner[1]:]), needs, module)
			}
		}
	}
}

func findCalls(line, name string) []int {
	var all []int
	for from := 0; ; {
		i := strings.Index(line[from:], name)
		if i < 0 {
			return all
		}
		i += from
		from = i + len(name)
		if i > 0 && isWord(line[i-1]) {
			continue
		}
		rest := strings.TrimLeft(line[from:], " \t")
		if strings.HasPrefix(rest, "(") {
			all = append(all, len(line)-len(rest)+1)
		}
	}
}

// substitute replaces a macro's parameter in its body, with # and ##.
func substitute(body, param, value string) string {
	if param == "" || param == "..." {
		return body
	}
	var out strings.Builder
	for i := 0; i < len(body); {
		if !strings.HasPrefix(body[i:], param) || i > 0 && isWord(body[i-1]) || i+len(param) < len(body) && isWord(body[i+len(param)]) {
			out.WriteByte(body[i])
			i++
			continue
		}
		before := strings.TrimRight(out.String(), " \t")
		switch {
		case strings.HasSuffix(before, "##"):
			out.Reset()
			out.WriteString(strings.TrimRight(strings.TrimSuffix(before, "##"), " \t") + value)
		case strings.HasSuffix(before, "#"):
			out.Reset()
			out.WriteString(strings.TrimSuffix(before, "#") + `"` + value + `"`)
		default:
			out.WriteString(value)
		}
		i += len(param)
		if rest := strings.TrimLeft(body[i:], " \t"); strings.HasPrefix(rest, "##") {
			i = len(body) - len(strings.TrimLeft(rest[2:], " \t"))
		}
	}
	return out.String()
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// arguments splits the text after an opening bracket at commas, up to the closing one.
func arguments(text string) []string {
	var all []string
	depth, start := 0, 0
	quoted := false
	for i := 0; i < len(text) && i < 4000; i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '(' || c == '{' || c == '[':
			depth++
		case c == ')' && depth == 0:
			return append(all, strings.TrimSpace(text[start:i]))
		case c == ')' || c == '}' || c == ']':
			depth--
		case c == ',' && depth == 0:
			all, start = append(all, strings.TrimSpace(text[start:i])), i+1
		}
	}
	return nil
}

// literal joins string literals and the names of string macros; ok is false for any other text.
func (f *unit) literal(s string) (string, bool) {
	var out strings.Builder
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] == '"' {
			end := strings.IndexByte(s[1:], '"')
			if end < 0 {
				return "", false
			}
			out.WriteString(s[1 : end+1])
			s = s[end+2:]
			continue
		}
		i := 0
		for i < len(s) && isWord(s[i]) {
			i++
		}
		value, ok := f.macros[s[:i]]
		if s[:i] == "KBUILD_MODNAME" {
			value, ok = f.moduleName(), true
		}
		if i == 0 || !ok {
			return "", false
		}
		out.WriteString(value)
		s = s[i:]
	}
	return out.String(), true
}

func (f *unit) moduleName() string {
	if f.modnameText != "" {
		if value, ok := f.macros[f.modnameText]; ok {
			return value
		}
		return f.modnameText
	}
	return f.object.Module
}

// modulePrefix is what stands before the names of a source's module parameters.
func (f *unit) modulePrefix() string {
	for _, text := range f.prefixText {
		if s, ok := f.literal(text); ok {
			return s
		}
	}
	return f.moduleName() + "."
}

func (f *unit) register(macro string, args []string, needs []string, moduleOnly bool) {
	p := Param{Macro: macro, Source: f.source, Needs: union(f.object.Needs, needs), Gate: f.object.Gate, Arch: f.arch, Built: !f.out}
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	module := func(name, value string) {
		p.Module, p.Macro, p.Value = f.name, "module_param", value
		p.Name = f.prefix + name
	}
	switch macro {
	case "__setup", "__setup_param", "early_param", "early_param_on_off":
		name, ok := f.literal(arg(0))
		if !ok || moduleOnly {
			return
		}
		handler := arg(1)
		if macro == "__setup_param" {
			handler = arg(2)
			if arg(3) == "1" {
				macro = "early_param"
			} else {
				macro = "__setup"
			}
		}
		p.Macro, p.Name = macro, name
		p.Value = f.grammar(handler)
		if strings.HasSuffix(name, "=") {
			p.Name, p.Macro = strings.TrimSuffix(name, "="), "__setup="
		}
	case "core_param", "core_param_unsafe":
		p.Name, p.Macro, p.Value = strings.Trim(arg(0), `"`), "core_param", arg(2)
	case "core_param_cb":
		p.Name, p.Macro = strings.Trim(arg(0), `"`), "core_param"
	case "module_param", "module_param_unsafe", "module_param_hw":
		module(arg(0), arg(1))
	case "module_param_named", "module_param_named_unsafe", "module_param_hw_named":
		module(arg(0), arg(2))
	case "module_param_array", "module_param_hw_array":
		module(arg(0), "array")
	case "module_param_array_named":
		module(arg(0), "array")
	case "module_param_string":
		module(arg(0), "charp")
	case "torture_param":
		module(arg(1), arg(0))
	case "__module_param_call":
		name, ok := f.literal(arg(0))
		if arg(0) == "MODULE_PARAM_PREFIX" {
			name, ok = f.prefix, true
		}
		if !ok {
			return
		}
		module("", "")
		p.Name = name + arg(1)
	default:
		module(arg(0), "")
	}
	p.Name = strings.TrimSpace(p.Name)
	if !isName(p.Name) {
		return
	}
	f.x.found = append(f.x.found, p)
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.,:\-]*$`)

func isName(s string) bool { return len(s) < 80 && goodName.MatchString(s) }

// preprocess follows the conditions of a source.
func preprocess(stack []branch, line string) []branch {
	verb, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	if i := strings.IndexByte(verb, '('); i > 0 {
		verb, rest = verb[:i], verb[i:]+" "+rest
	}
	rest = strings.TrimSpace(rest)
	switch verb {
	case "ifdef":
		b := branch{}
		if name, ok := strings.CutPrefix(rest, "CONFIG_"); ok {
			b.needs = []string{strings.TrimSuffix(name, "_MODULE")}
		}
		b.arch = rest == "MODULE"
		return append(stack, b)
	case "ifndef":
		return append(stack, branch{})
	case "if":
		return append(stack, expression(rest))
	case "elif":
		if len(stack) > 0 {
			return append(stack[:len(stack)-1:len(stack)-1], expression(rest))
		}
	case "else":
		if len(stack) > 0 {
			return append(stack[:len(stack)-1:len(stack)-1], branch{})
		}
	case "endif":
		return stack[:max(len(stack)-1, 0)]
	}
	return stack
}

var option = regexp.MustCompile(`^(?:defined\s*\(?\s*|IS_ENABLED\s*\(\s*|IS_BUILTIN\s*\(\s*)CONFIG_(\w+?)\s*\)?$`)

// expression reads a conjunction of options; anything else needs nothing that is known.
func expression(s string) branch {
	if s == "0" {
		return branch{dead: true}
	}
	var b branch
	for part := range strings.SplitSeq(s, "&&") {
		if m := option.FindStringSubmatch(strings.TrimSpace(part)); m != nil && !strings.Contains(s, "||") {
			b.needs = append(b.needs, m[1])
		}
	}
	return b
}

func isDead(stack []branch) bool {
	return slices.ContainsFunc(stack, func(b branch) bool { return b.dead })
}

func isModuleOnly(stack []branch) bool {
	return slices.ContainsFunc(stack, func(b branch) bool { return b.arch })
}

func needsOf(stack []branch) []string {
	var all []string
	for _, b := range stack {
		all = append(all, b.needs...)
	}
	return all
}

func stripComments(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		switch {
		case s[i] == '"' || s[i] == '\'':
			end := i + 1
			for end < len(s) && s[end] != s[i] && s[end] != '\n' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(s))
			out.WriteString(s[i:end])
			i = end
		case strings.HasPrefix(s[i:], "/*"):
			end := strings.Index(s[i+2:], "*/")
			if end < 0 {
				return out.String()
			}
			// The lines stay lines.
			out.WriteByte(' ')
			out.WriteString(strings.Repeat("\n", strings.Count(s[i:i+end+4], "\n")))
			i += end + 4
		case strings.HasPrefix(s[i:], "//"):
			end := strings.IndexByte(s[i:], '\n')
			if end < 0 {
				return out.String()
			}
			i += end
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	return out.String()
}
