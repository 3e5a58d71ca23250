package kernelsource

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Object is a source file as the Makefiles build it.
type Object struct {
	Source string   // path of the .c file
	Module string   // KBUILD_MODNAME
	Needs  []string // options, all of which the object needs
	// Gate is the option that decides between built in and module: that of the obj- list.
	// It is empty for obj-y and obj-m.
	Gate string
	// Loadable: the object is a module of its own, or part of one, when Gate is m.
	Loadable bool
}

// word is a value of a Makefile variable with the options under which it is added.
type word struct {
	text  string
	needs []string
}

type makefile struct {
	tree   *Tree
	dir    string
	vars   map[string][]word
	depth  int
	visits map[string]bool
}

type builder struct {
	tree    *Tree
	objects []Object
	seen    map[string]bool
}

// Objects follows the Makefiles of the kernel and its overlays from the folders that an
// arm64 kernel is linked from.
func (t *Tree) Objects() []Object {
	b := &builder{tree: t, seen: map[string]bool{}}
	for _, root := range t.roots {
		for _, dir := range []string{
			"init", "usr", "kernel", "certs", "mm", "fs", "ipc", "security", "crypto", "block", "io_uring", "drivers", "sound", "net", "virt", "lib",
			"arch/arm64/kernel", "arch/arm64/mm", "arch/arm64/net", "arch/arm64/lib", "arch/arm64/hyperv",
		} {
			b.visit(path.Join(root, dir), nil, "", false)
		}
		for dir, option := range map[string]string{"kvm": "KVM", "xen": "XEN", "crypto": "CRYPTO"} {
			b.visit(path.Join(root, "arch/arm64", dir), []string{option}, "", false)
		}
	}
	slices.SortFunc(b.objects, func(x, y Object) int {
		return strings.Compare(x.Source+" "+x.Module+" "+strings.Join(x.Needs, " "), y.Source+" "+y.Module+" "+strings.Join(y.Needs, " "))
	})
	return b.objects
}

// visit reads the Makefile of a folder that is built under the options in needs.
func (b *builder) visit(dir string, needs []string, gate string, standalone bool) {
	key := dir + " " + strings.Join(needs, " ")
	if b.seen[key] || strings.Count(dir, "/") > 16 {
		return
	}
	b.seen[key] = true
	m := &makefile{tree: b.tree, dir: dir, vars: map[string][]word{}, visits: map[string]bool{}}
	name := path.Join(dir, "Kbuild")
	if b.tree.files[name] == nil {
		name = path.Join(dir, "Makefile")
	}
	if b.tree.files[name] == nil {
		return
	}
	m.read(name, nil)
	for _, w := range m.list("obj") {
		all := union(needs, w.needs)
		rest, only, _ := strings.Cut(w.text, gateMark)
		if folder, ok := strings.CutSuffix(rest, "/"); ok {
			b.visit(path.Join(dir, folder), all, only, standalone)
			continue
		}
		if object, ok := strings.CutSuffix(rest, ".o"); ok {
			b.add(m, object, all, only)
		}
	}
}

func (b *builder) add(m *makefile, object string, needs []string, gate string) {
	module := strings.NewReplacer("-", "_", ",", "_").Replace(path.Base(object))
	parts := m.list(object)
	if len(parts) == 0 {
		parts = []word{{text: object + ".o"}}
	}
	for _, p := range parts {
		text, _, _ := strings.Cut(p.text, gateMark)
		part, ok := strings.CutSuffix(text, ".o")
		if !ok {
			continue
		}
		if nested := m.list(part); len(nested) > 0 && part != object {
			for _, n := range nested {
				text, _, _ := strings.Cut(n.text, gateMark)
				b.objects = append(b.objects, Object{Source: path.Join(m.dir, strings.TrimSuffix(text, ".o")+".c"), Module: module, Needs: union(needs, p.needs, n.needs), Gate: gate, Loadable: gate != ""})
			}
			continue
		}
		b.objects = append(b.objects, Object{Source: path.Join(m.dir, part+".c"), Module: module, Needs: union(needs, p.needs), Gate: gate, Loadable: gate != ""})
	}
}

// gateMark separates a word of an obj- list from the option of the list.
const gateMark = "\x00"

// list returns the values of NAME-y, NAME-m, NAME-objs and NAME-$(CONFIG_...).
func (m *makefile) list(name string) []word { return m.expand(m.vars["-"+name], 0) }

var (
	configName = regexp.MustCompile(`CONFIG_(\w+)`)
	reference  = regexp.MustCompile(`\$[({]([^$(){}]*)[)}]`)
	braces     = regexp.MustCompile(`\$\{([^${}]*)\}`)
)

// splitAssignment splits a line at its operator outside of references.
func splitAssignment(line string) (left, op, right string, ok bool) {
	depth := 0
	for i, r := range line {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth > 0:
		case r == '=':
			left = strings.TrimRight(line[:i], "+:?")
			return strings.TrimSpace(left), line[len(left) : i+1], strings.TrimSpace(line[i+1:]), strings.TrimSpace(left) != ""
		case r == ':' && !strings.HasPrefix(strings.TrimLeft(line[i:], ":"), "="):
			return "", "", "", false // a rule
		}
	}
	return "", "", "", false
}

// branch is one level of ifdef and its relatives.
type branch struct {
	needs []string
	arch  bool // the condition is about the architecture
	dead  bool
}

func (m *makefile) read(file string, outer []string) {
	if m.visits[file] || m.depth > 8 {
		return
	}
	m.visits[file] = true
	m.depth++
	defer func() { m.depth-- }()
	var stack []branch
	for _, line := range joinLines(string(m.tree.files[file])) {
		trimmed := strings.TrimSpace(line)
		verb, rest, _ := strings.Cut(trimmed, " ")
		if next, ok := step(stack, verb, strings.TrimSpace(rest), trimmed); ok {
			stack = next
			continue
		}
		if slices.ContainsFunc(stack, func(b branch) bool { return b.dead }) {
			continue
		}
		needs := outer
		for _, b := range stack {
			needs = union(needs, b.needs)
		}
		if verb == "include" || verb == "-include" || verb == "sinclude" {
			m.include(rest, needs)
			continue
		}
		if strings.HasPrefix(line, "\t") && !strings.Contains(trimmed, "=") {
			continue
		}
		if left, op, right, ok := splitAssignment(braces.ReplaceAllString(trimmed, "$$($1)")); ok {
			m.assign(left, op, right, needs)
		}
	}
}

// step follows conditions; ok is false for any other line.
func step(stack []branch, verb, rest, line string) ([]branch, bool) {
	switch verb {
	case "ifdef", "ifndef", "ifeq", "ifneq":
		return append(stack, condition(verb, rest)), true
	case "endif":
		return stack[:max(len(stack)-1, 0)], true
	case "else":
		if len(stack) == 0 {
			return stack, true
		}
		next := branch{}
		if inner, arg, ok := strings.Cut(rest, " "); ok && strings.HasPrefix(inner, "if") {
			next = condition(inner, arg)
		}
		if last := stack[len(stack)-1]; last.arch && !next.arch {
			next = branch{arch: true, dead: !last.dead}
		}
		return append(stack[:len(stack)-1:len(stack)-1], next), true
	}
	if strings.HasPrefix(line, "endif") {
		return stack[:max(len(stack)-1, 0)], true
	}
	return stack, false
}

// condition reads what a branch needs; only conditions on single options count.
func condition(verb, rest string) branch {
	switch verb {
	case "ifdef":
		if name, ok := strings.CutPrefix(rest, "CONFIG_"); ok {
			return branch{needs: []string{name}}
		}
	case "ifeq", "ifneq":
		left, right, ok := splitPair(rest)
		if !ok {
			return branch{}
		}
		if isArch(left) || isArch(right) {
			value := strings.Trim(right, `"' `)
			if isArch(right) {
				value = strings.Trim(left, `"' `)
			}
			return branch{arch: true, dead: (value == "arm64") != (verb == "ifeq")}
		}
		names := configName.FindAllStringSubmatch(left, -1)
		if len(names) != 1 || strings.Contains(left, "filter") {
			return branch{}
		}
		right = strings.TrimSpace(right)
		if verb == "ifeq" && (right == "y" || right == "m") || verb == "ifneq" && (right == "" || right == "n") {
			return branch{needs: []string{names[0][1]}}
		}
	}
	return branch{}
}

func isArch(s string) bool {
	s = strings.TrimSpace(s)
	return s == "$(ARCH)" || s == "$(SRCARCH)" || s == "${ARCH}"
}

// splitPair reads (a,b), "a" "b" and 'a' 'b'.
func splitPair(s string) (left, right string, ok bool) {
	s = strings.TrimSpace(s)
	if inner, found := strings.CutPrefix(s, "("); found {
		depth := 0
		for i, r := range inner {
			switch {
			case r == '(':
				depth++
			case r == ')' && depth == 0:
				return "", "", false
			case r == ')':
				depth--
			case r == ',' && depth == 0:
				return strings.TrimSpace(inner[:i]), strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner[i+1:]), ")")), true
			}
		}
		return "", "", false
	}
	fields := strings.Fields(s)
	if len(fields) != 2 {
		return "", "", false
	}
	return strings.Trim(fields[0], `"'`), strings.Trim(fields[1], `"'`), true
}

func (m *makefile) include(args string, needs []string) {
	for _, w := range m.expand([]word{{text: args}}, 0) {
		name := path.Clean(strings.TrimPrefix(w.text, "/"))
		for _, candidate := range []string{name, path.Join(m.dir, name), path.Join(m.tree.rootOf(m.dir), name)} {
			if m.tree.files[candidate] != nil {
				m.read(candidate, union(needs, w.needs))
				break
			}
		}
	}
}

func (t *Tree) rootOf(dir string) string {
	for _, r := range t.roots {
		if r != "" && strings.HasPrefix(dir, r+"/") {
			return r
		}
	}
	return ""
}

// listing is one way in which a list such as obj-$(CONFIG_NAME) adds its words.
type listing struct {
	options []string
	gate    string // the option that decides between built in and module; "" where the words are built in
}

// listings reads what stands in place of y or m in the name of a list.
func listings(suffix string) []listing {
	var options []string
	for _, c := range configName.FindAllStringSubmatch(suffix, -1) {
		options = append(options, c[1])
	}
	each := func(all []string, built bool) (ways []listing) {
		for _, o := range options {
			way := listing{options: all, gate: o}
			if all == nil {
				way.options = []string{o}
			}
			if built {
				way.gate = ""
			}
			ways = append(ways, way)
		}
		return ways
	}
	compact := strings.ReplaceAll(suffix, " ", "")
	switch {
	case len(options) == 0:
		return []listing{{}}
	case strings.HasPrefix(compact, "$(substm,y,"), strings.Contains(compact, ":m=y"):
		return []listing{{options: options}}
	case strings.HasPrefix(compact, "$(findstringy,"), strings.HasPrefix(compact, "$(filtery,"):
		return each(nil, true)
	case strings.HasPrefix(compact, "$(substy,"): // y of one stands for the value of the other
		return each(options, false)
	case strings.Contains(compact, ")$("): // one of them is empty
		return each(nil, false)
	}
	return []listing{{options: options, gate: options[len(options)-1]}}
}

// assign records a line. A list that ends in -y, -m, -objs or an option becomes "-NAME";
// any other variable keeps its name.
func (m *makefile) assign(left, op, right string, needs []string) {
	name, list := left, false
	ways := []listing{{}}
	if i := strings.Index(left, "-$("); i >= 0 {
		name, list = strings.TrimSuffix(left[:i], "-objs"), true
		ways = listings(left[i+1:])
	} else if configName.MatchString(left) {
		return // a variable whose name holds an option
	}
	for _, suffix := range []string{"-y", "-m", "-objs"} {
		if short, ok := strings.CutSuffix(name, suffix); ok && !list {
			name, list = short, true
			break
		}
	}
	if list {
		switch name {
		case "lib", "core", "drivers", "net", "libs", "virt":
			name = "obj"
		}
		name = "-" + m.text(name)
	}
	if (op == ":=" || op == "=" || op == "::=") && !list && len(needs) == 0 {
		m.vars[name] = nil
	}
	if op == "?=" && len(m.vars[name]) > 0 {
		return
	}
	for _, way := range ways {
		all := union(needs, way.options)
		for _, text := range fieldsOutside(right) {
			// What a variable brings has the list's gate too.
			if list && name == "-obj" && (way.gate != "" || !strings.HasPrefix(text, "$")) {
				text += gateMark + way.gate
			}
			m.vars[name] = append(m.vars[name], word{text, all})
		}
	}
}

// fieldsOutside splits at blanks that are outside of $(...).
func fieldsOutside(s string) []string {
	var all []string
	depth, start := 0, -1
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		}
		blank := (r == ' ' || r == '\t') && depth <= 0
		if blank && start >= 0 {
			all, start = append(all, s[start:i]), -1
		}
		if !blank && start < 0 {
			start = i
		}
	}
	if start >= 0 {
		all = append(all, s[start:])
	}
	return all
}

func (m *makefile) text(s string) string {
	w := m.expand([]word{{text: s}}, 0)
	if len(w) != 1 {
		return s
	}
	return w[0].text
}

// expand replaces references to variables and the few functions that object lists use.
func (m *makefile) expand(words []word, depth int) []word {
	var out []word
	for _, w := range words {
		text, gate, gated := strings.Cut(w.text, gateMark)
		if !strings.Contains(text, "$") {
			out = append(out, w)
			continue
		}
		if depth > 8 {
			continue
		}
		for _, e := range m.expandOne(text, depth) {
			e.needs = union(w.needs, e.needs)
			if gated && !strings.Contains(e.text, gateMark) {
				e.text += gateMark + gate
			}
			out = append(out, e)
		}
	}
	return out
}

func (m *makefile) expandOne(text string, depth int) []word {
	place := reference.FindStringSubmatchIndex(text)
	if place == nil {
		return nil
	}
	before, inner, after := text[:place[0]], text[place[2]:place[3]], text[place[1]:]
	var values []word
	call, args, isCall := strings.Cut(inner, " ")
	switch {
	case isCall:
		values = m.call(call, args, depth)
	case inner == "src" || inner == "obj" || inner == "srctree" || inner == "objtree" || inner == "SRCARCH" || inner == "ARCH":
		value := ""
		switch inner {
		case "src", "obj":
			value = m.dir
			if before == "" && !strings.Contains(after, "Makefile") {
				value = "." // objects are named from the folder
			}
		case "SRCARCH", "ARCH":
			value = "arm64"
		}
		values = []word{{text: value}}
	default:
		name, change, substituted := strings.Cut(inner, ":")
		values = m.variable(name, depth)
		if from, to, ok := strings.Cut(change, "="); ok && substituted {
			for i := range values {
				if short, ok := strings.CutSuffix(values[i].text, from); ok {
					values[i].text = short + to
				}
			}
		}
	}
	var out []word
	for _, v := range values {
		out = append(out, m.expand([]word{{text: before + v.text + after, needs: v.needs}}, depth+1)...)
	}
	return out
}

func (m *makefile) variable(name string, depth int) []word {
	for _, suffix := range []string{"-y", "-m", "-objs"} {
		if short, ok := strings.CutSuffix(name, suffix); ok {
			return slices.Clone(m.expand(m.vars["-"+short], depth+1))
		}
	}
	return slices.Clone(m.expand(m.vars[name], depth+1))
}

func (m *makefile) call(name, args string, depth int) []word {
	parts := strings.Split(args, ",")
	list := func(i int) []word {
		if i >= len(parts) {
			return nil
		}
		var words []word
		for _, f := range strings.Fields(parts[i]) {
			words = append(words, word{text: f})
		}
		return m.expand(words, depth+1)
	}
	switch {
	case name == "addprefix" && len(parts) == 2, name == "addsuffix" && len(parts) == 2:
		fix := strings.TrimSpace(parts[0])
		out := slices.Clone(list(1))
		for i := range out {
			if name == "addprefix" {
				out[i].text = fix + out[i].text
			} else {
				out[i].text += fix
			}
		}
		return out
	case name == "patsubst" && len(parts) == 3:
		from, to := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1])
		head, tail, _ := strings.Cut(from, "%")
		out := slices.Clone(list(2))
		for i := range out {
			if inner, ok := strings.CutPrefix(out[i].text, head); ok {
				if inner, ok := strings.CutSuffix(inner, tail); ok {
					out[i].text = strings.Replace(to, "%", inner, 1)
				}
			}
		}
		return out
	case name == "sort" || name == "strip":
		return list(0)
	case name == "dir" || name == "notdir" || name == "basename":
		return list(0)
	}
	return nil
}

// joinLines joins continued lines and drops comments.
func joinLines(text string) []string {
	var out []string
	pending := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if i := strings.IndexByte(line, '#'); i >= 0 && (i == 0 || line[i-1] != '\\') {
			continued := strings.HasSuffix(strings.TrimRight(line, " \t"), "\\")
			line = line[:i]
			if continued && pending != "" {
				line += "\\"
			}
		}
		if head, ok := strings.CutSuffix(strings.TrimRight(line, " \t"), "\\"); ok {
			pending += head + " "
			continue
		}
		out = append(out, pending+line)
		pending = ""
	}
	return append(out, pending)
}

// union returns the sorted union of lists.
func union(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
