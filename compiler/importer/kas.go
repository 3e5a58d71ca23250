package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kasFile is a file of kas: YAML, or JSON, which YAML contains.
type kasFile struct {
	source   Source
	lines    []*Line
	keys     []kasKey
	includes []string
	machine  string
	distro   string
	branches []string // of the repositories
	problem  string
	top      bool // no other file includes it
}

// kasKey is a key of a mapping with the lines that its value takes.
type kasKey struct {
	name       string
	node       *yaml.Node
	line, last int
}

// kasBlock is text for local.conf or bblayers.conf.
type kasBlock struct {
	file *kasFile
	kasKey
}

// isKas reports whether a YAML or JSON file is one for kas: its header has a version.
func isKas(text []byte) bool {
	if !bytes.Contains(text, []byte("header")) || !bytes.Contains(text, []byte("version")) {
		return false
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return bytes.Contains(text, []byte("local_conf_header")) || bytes.Contains(text, []byte("bblayers_conf_header"))
	}
	if len(doc.Content) != 1 {
		return false
	}
	for _, k := range keysOf(doc.Content[0], 0) {
		if k.name == "header" {
			return slices.ContainsFunc(keysOf(k.node, 0), func(h kasKey) bool { return h.name == "version" })
		}
	}
	return false
}

var errNotKas = errors.New("not a file for kas")

// parseKas parses a file. last is its number of lines.
func parseKas(s Source, last int) (*kasFile, error) {
	f := &kasFile{source: s, top: true}
	var doc yaml.Node
	if err := yaml.Unmarshal(s.Text, &doc); err != nil {
		return f, fmt.Errorf("%w: %s", errNotKas, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return f, fmt.Errorf("%w: not a mapping", errNotKas)
	}
	f.keys = keysOf(doc.Content[0], last)
	for _, k := range f.keys {
		switch k.name {
		case "machine":
			f.machine = k.node.Value
		case "distro":
			f.distro = k.node.Value
		case "header":
			for _, h := range keysOf(k.node, k.last) {
				for _, item := range h.node.Content {
					if h.name == "includes" && item.Kind == yaml.ScalarNode {
						f.includes = append(f.includes, item.Value)
					}
				}
			}
		case "repos", "defaults":
			f.branches = append(f.branches, branchesOf(k.node, 0)...)
		}
	}
	return f, nil
}

// branchesOf finds the branches of repositories.
func branchesOf(n *yaml.Node, depth int) []string {
	var out []string
	if depth > 4 {
		return nil
	}
	for _, k := range keysOf(n, 0) {
		if k.name == "branch" || k.name == "refspec" {
			out = append(out, k.node.Value)
		}
		out = append(out, branchesOf(k.node, depth+1)...)
	}
	return out
}

// keysOf lists the keys of a mapping; a value ends before the next key, and the last one at
// the line last.
func keysOf(n *yaml.Node, last int) []kasKey {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	var out []kasKey
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if len(out) > 0 {
			out[len(out)-1].last = max(key.Line-1, out[len(out)-1].line)
		}
		out = append(out, kasKey{key.Value, value, key.Line, last})
	}
	return out
}

// isInline reports whether the value of a key is an alias, or a map in braces: its keys have no
// lines of their own.
func (k kasKey) isInline() bool {
	return k.node.Kind == yaml.AliasNode || k.node.Kind == yaml.MappingNode && k.node.Style&yaml.FlowStyle != 0
}

// readKas keeps a file until all are read: their includes decide which text wins.
func (im *importer) readKas(lines []*Line, s Source) {
	f, err := parseKas(s, len(lines))
	f.lines = lines
	if err != nil {
		f.problem = err.Error()
	}
	im.kas = append(im.kas, f)
}

// readKasFiles imports the files of kas: the one for the machine, with those that it includes.
func (im *importer) readKasFiles() {
	var local, layers []kasBlock
	for _, f := range im.orderKas() {
		for _, k := range f.keys {
			switch k.name {
			case "local_conf_header":
				local = im.addBlocks(local, f, k)
			case "bblayers_conf_header":
				layers = im.addBlocks(layers, f, k)
			default:
				im.readKasKey(f, k)
			}
		}
	}
	for _, blocks := range [][]kasBlock{layers, local} {
		// kas sorts the text of all files by its key.
		slices.SortStableFunc(blocks, func(a, b kasBlock) int { return strings.Compare(a.name, b.name) })
		for _, b := range blocks {
			im.readKasText(b)
		}
	}
	for _, f := range im.kas {
		for _, l := range f.lines {
			if l.Verdict == "" && !l.partial && l.head == nil {
				l.leave(cmp.Or(f.problem, "not a key of kas that yoctune reads"))
			}
		}
	}
}

// orderKas returns the files that take part in the order in which kas merges them, so that a
// later one wins, and gives the others their reason.
func (im *importer) orderKas() []*kasFile {
	for _, f := range im.kas {
		for _, name := range f.includes {
			if g := im.findKas(f, name); g != nil {
				g.top = false
			}
		}
	}
	var order, tops []*kasFile
	for _, f := range im.kas {
		if f.top && f.problem == "" {
			tops = append(tops, f)
		}
	}
	var add func(f *kasFile)
	add = func(f *kasFile) {
		if slices.Contains(order, f) || f.problem != "" {
			return
		}
		f.problem = "kas includes the file in itself" // until its turn
		for _, name := range f.includes {
			if g := im.findKas(f, name); g != nil {
				add(g)
			}
		}
		f.problem = ""
		order = append(order, f)
	}
	for _, f := range tops {
		switch machine := im.kasMachine(f, 0); {
		case machine == im.machine, f.source.Given, len(tops) == 1:
			add(f)
		}
	}
	for _, f := range im.kas {
		switch machine := im.kasMachine(f, 0); {
		case f.problem != "" || slices.Contains(order, f):
		case machine != "" && machine != im.machine:
			f.problem = "the file is for the machine " + clean(machine) + ", not for " + im.machine
		default:
			f.problem = "no file for " + im.machine + " includes it; name both files to import both"
		}
	}
	return order
}

// findKas finds the file that another includes.
func (im *importer) findKas(from *kasFile, name string) *kasFile {
	for _, f := range im.kas {
		// kas takes a name relative to the repository, and older files one relative to themselves.
		if f != from && (f.source.Name == path.Join(path.Dir(from.source.Name), name) || f.source.Name == name || strings.HasSuffix(f.source.Name, "/"+path.Clean(name))) {
			return f
		}
	}
	return nil
}

// kasMachine is the machine of a file, or of those it includes.
func (im *importer) kasMachine(f *kasFile, depth int) string {
	if f.machine != "" || depth > 20 {
		return f.machine
	}
	machine := ""
	for _, name := range f.includes {
		if g := im.findKas(f, name); g != nil {
			machine = cmp.Or(im.kasMachine(g, depth+1), machine)
		}
	}
	return machine
}

// linesOf are the lines of a key that have no verdict yet.
func (f *kasFile) linesOf(k kasKey) []*Line {
	first, last := max(k.line-1, 0), min(k.last, len(f.lines))
	if first >= last {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.lines[first:last]), func(l *Line) bool { return l.Verdict != "" })
}

// addBlocks adds the text of a file; text with the same key of an earlier file gives way.
func (im *importer) addBlocks(blocks []kasBlock, f *kasFile, k kasKey) []kasBlock {
	lines := f.linesOf(k)
	if k.isInline() {
		leaveRest(lines, "only text in literal blocks (|), each below a key of its own, is read")
		return blocks
	}
	if len(lines) > 0 && lines[0].Line == k.line {
		lines[0].markUnderstood("")
	}
	for _, key := range keysOf(k.node, k.last) {
		if i := slices.IndexFunc(blocks, func(b kasBlock) bool { return b.name == key.name }); i >= 0 {
			old := blocks[i]
			leaveRest(old.file.linesOf(old.kasKey), fmt.Sprintf("%s:%d has the same key and replaces the text", path.Base(f.source.Name), key.line))
			blocks = slices.Delete(blocks, i, i+1)
		}
		blocks = append(blocks, kasBlock{f, key})
	}
	return blocks
}

// readKasText reads text for local.conf. Its lines are those of the file below the key.
func (im *importer) readKasText(b kasBlock) {
	lines := b.file.linesOf(b.kasKey)
	if len(lines) == 0 {
		return
	}
	if b.node.Style&yaml.LiteralStyle == 0 {
		text := strings.TrimSpace(b.node.Value)
		if len(lines) > 1 || strings.Contains(text, "\n") || b.node.Kind != yaml.ScalarNode {
			leaveRest(lines, "only text in a literal block (|) is read, whose lines are those of the file")
			return
		}
		lines[0].Text = text
	} else {
		lines[0].markUnderstood("")
		lines = lines[1:]
	}
	r := &recipe{im: im, source: Source{Name: "conf/local.conf", Kind: BitBake}, column: 1}
	if len(lines) > 0 {
		r.column = lines[0].Column
	}
	r.readAll(lines)
}

// readKasKey reads a key other than text.
func (im *importer) readKasKey(f *kasFile, k kasKey) {
	lines := f.linesOf(k)
	if len(lines) == 0 {
		return
	}
	head := lines[0]
	switch k.name {
	case "header":
		head.markUnderstood("")
		for _, l := range lines[1:] {
			im.readKasInclude(f, l)
		}
	case "machine":
		if k.node.Value == im.machine {
			head.markUnderstood("the target's machine is %s", im.machine)
		} else {
			head.leavef("the target's machine is %s", im.machine)
		}
	case "distro":
		im.setField(head, quoteCUE(k.node.Value), "build", "kas", "distro")
	case "target":
		im.readKasTarget(k, lines)
	case "env":
		if k.isInline() {
			leaveRest(lines, keptEnvironment)
			return
		}
		head.markUnderstood("")
		for _, key := range keysOf(k.node, k.last) {
			im.readKasEnvironment(f, key)
		}
	case "repos", "defaults", "overrides":
		leaveRest(lines, "repositories stay in this file; the one that yoctune writes (build.kas) has those that the layer needs")
	default:
		leaveRest(lines, "yoctune has no field for "+clean(k.name)+" of kas")
	}
}

func (im *importer) readKasInclude(f *kasFile, l *Line) {
	item, isItem := strings.CutPrefix(l.Text, "-")
	name := strings.Trim(strings.TrimSpace(item), `"'`)
	g := im.findKas(f, name)
	switch {
	case !isItem && (strings.HasPrefix(l.Text, "version") || strings.HasPrefix(l.Text, "includes") || strings.Trim(l.Text, "{}[],") == ""):
		l.markUnderstood("")
	case isItem && g != nil:
		l.markUnderstood("%s is imported as well", g.source.Name)
	case strings.HasPrefix(name, "repo:") || strings.HasPrefix(name, "file:") || !isItem:
		l.leave("a file of another repository")
	default:
		l.leavef("%s is not among these files; give it as well", clean(name))
	}
}

// readKasTarget reads what kas builds: one image becomes that of build.kas.
func (im *importer) readKasTarget(k kasKey, lines []*Line) {
	names := []*yaml.Node{k.node}
	if k.node.Kind == yaml.SequenceNode {
		names = k.node.Content
	}
	if len(names) != 1 || !isWord(names[0].Value) || strings.Contains(names[0].Value, ":") {
		leaveRest(lines, "build.kas builds one image")
		return
	}
	at := lines[0]
	if i := slices.IndexFunc(lines, func(l *Line) bool { return l.Line == names[0].Line }); i >= 0 {
		at = lines[i]
	}
	im.setField(at, quoteCUE(names[0].Value), "build", "kas", "image")
	for _, l := range lines {
		if l != at {
			l.markUnderstood("")
		}
	}
}

const keptEnvironment = "a variable of bitbake's environment; it stays in this file"

// readKasEnvironment reads a variable that kas passes to bitbake through the environment.
func (im *importer) readKasEnvironment(f *kasFile, k kasKey) {
	lines := f.linesOf(k)
	if len(lines) == 0 {
		return
	}
	head := lines[0]
	a, ok := parseAssignment(k.name + ` ?= "` + k.node.Value + `"`)
	if !ok || setters()[a.base] == nil || k.node.Kind != yaml.ScalarNode {
		leaveRest(lines, keptEnvironment)
		return
	}
	r := &recipe{im: im, source: Source{Name: "conf/local.conf", Kind: BitBake}, column: 1}
	head.markAdjusted("from the environment, which a configuration file overrides")
	r.readAssignment(head, a)
	copyVerdict(lines)
}
