package main

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/bitbake"
)

// place is the kind of file that uses a variable.
type place int

const (
	localConf   place = iota // local.conf.sample
	bitbakeConf              // oe-core's bitbake.conf
	machineFile
	distroFile
	otherConf
	globalClass // a class that every recipe inherits
	recipeClass
	imageRecipe
	recipe
	pythonFile
	places
)

// usage is how the metadata of a release uses a variable.
type usage struct {
	plain, weak, edits [places]int // assignments with = and :=, with ?= and ??=, with += .= :append
	split              bool        // Python splits its value into words
	contains           bool        // Python looks for a word in it, or compares it with one
	words, many        int         // edits that add words, assignments of several words
	image              bool        // a class of images reads it
	bitbake            bool        // bitbake itself reads it
	colon, comma       bool        // words are separated by colons, by commas
	perRecipe          bool        // its default in bitbake.conf depends on the recipe
	perPackage         int         // assignments for one package, NAME:${PN}
	where              string      // a file that uses it: best a class that reads it
	rank               int
	lost               string
	machines           []string
}

// note remembers the file that shows best where a variable acts.
func (u *usage) note(p place, file string, reads bool) {
	rank := 1
	switch {
	case p == recipeClass && reads:
		rank = 6
	case p == globalClass && reads:
		rank = 5
	case p == recipeClass:
		rank = 4
	case p == bitbakeConf:
		rank = 3
	case p == recipe || p == imageRecipe:
		rank = 2
	}
	if rank > u.rank {
		u.where, u.rank = file, rank
	}
}

var (
	capitals    = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	expansion   = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)\}`)
	pythonUse   = regexp.MustCompile(`(?:[gs]etVar(?:Flags?)?|appendVar|prependVar|delVar|renameVar|contains|contains_any|filter|conditional|less_or_equal|vartrue|ifelse|typed_value|both_contain|set_intersect|\.get)\(\s*["']([A-Z][A-Z0-9_]*)["']|\(d,\s*["']([A-Z][A-Z0-9_]*)["']`)
	pythonList  = regexp.MustCompile(`getVar\(["']([A-Z][A-Z0-9_]*)["'](?:, *True)?\)(?: or ["']["'])?\)?\.split\(\)`)
	pythonWord  = regexp.MustCompile(`contains(?:_any)?\(\s*["']([A-Z][A-Z0-9_]*)["']`)
	python      = regexp.MustCompile(`\$\{@[^}]*\}`)
	listDoc     = regexp.MustCompile(`(?i)\b(list|set) of\b`)
	arithmetic  = regexp.MustCompile(`(^|["'])\s*[-+*/]\s`)
	imageFile   = regexp.MustCompile(`(?m)^inherit.*\b(core-image|image)\b`)
	readsFile   = regexp.MustCompile(`^(?:require|include)\s+(\S+)$`)
	glossaryOf  = regexp.MustCompile("(?m)^ {3}:term:`([A-Z][A-Z0-9_]*)`$")
	inherits    = regexp.MustCompile(`^inherit\s+(.*)$`)
	inheritsAny = regexp.MustCompile(`^inherit(?:_defer)?\s+(.*)$`)
	functionOf  = regexp.MustCompile(`^(?:python\b|fakeroot\b)?\s*(?:fakeroot\s+|python\s+)?[A-Za-z0-9_.:${}+/-]*\s*\(\s*\)\s*\{`)
)

// isMetadata reports whether bitbake may read variables from a file.
func isMetadata(name string) bool {
	for _, not := range []string{"oeqa/", "tests/", "toaster/", "meta-selftest/", "meta-skeleton/"} {
		if strings.Contains(name, not) {
			return false
		}
	}
	switch path.Ext(name) {
	case ".conf", ".inc", ".bbclass", ".bb", ".bbappend", ".py":
		return true
	}
	return strings.Contains(path.Base(name), ".conf.sample") || name == bitbakeGlossary
}

// bitbakeGlossary is the glossary of bitbake's variables.
const bitbakeGlossary = "doc/bitbake-user-manual/bitbake-user-manual-ref-variables.rst"

// statements lists the lines of a file outside functions, continuation lines joined.
func statements(text string) []string {
	var out []string
	lines := strings.Split(text, "\n")
	inShell := false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case inShell:
			inShell = line != "}"
		case line == "" || strings.ContainsRune("# \t}", rune(line[0])) || strings.HasPrefix(line, "def "):
			// Indented lines are Python, not assignments.
		case functionOf.MatchString(line):
			inShell = !strings.HasSuffix(strings.TrimSpace(line), "}")
		default:
			for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
				i++
				line = strings.TrimSuffix(line, `\`) + " " + strings.TrimSpace(lines[i])
			}
			out = append(out, strings.TrimRight(line, " \t\r"))
		}
	}
	return out
}

// metadata is what was read for a release.
type metadata struct {
	layers []layerFiles
	global map[string]bool // classes that every recipe inherits
	image  map[string]bool // classes that image.bbclass inherits, and itself
	uses   map[string]*usage
}

type layerFiles struct {
	name  string
	files map[string]string
}

func (m *metadata) use(name string) *usage {
	if m.uses[name] == nil {
		m.uses[name] = &usage{}
	}
	return m.uses[name]
}

func (m *metadata) layer(name string) map[string]string {
	return m.layers[slices.IndexFunc(m.layers, func(l layerFiles) bool { return l.name == name })].files
}

// class returns the text and the path of a class of oe-core.
func (m *metadata) class(name string) (text, file string) {
	core := m.layer("oe-core")
	for _, folder := range []string{"classes-global", "classes-recipe", "classes"} {
		file = "meta/" + folder + "/" + name + ".bbclass"
		if text, ok := core[file]; ok {
			return text, file
		}
	}
	return "", ""
}

// findGlobalClasses follows base.bbclass, and the classes that configuration inherits.
func (m *metadata) findGlobalClasses() {
	setup := m.layer("oe-core")["meta/conf/distro/defaultsetup.conf"] + m.layer("oe-core")["meta/conf/distro/include/default-distrovars.inc"]
	queue := []string{"base", "sanity", "package_ipk"}
	for _, s := range statements(setup) {
		if a, ok := bitbake.ParseAssignment(s); ok && strings.HasPrefix(a.Name, "INHERIT") {
			queue = append(queue, strings.Fields(a.Value)...)
		}
	}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		text, _ := m.class(name)
		if text == "" || m.global[name] {
			continue
		}
		m.global[name] = true
		for _, s := range statements(text) {
			if i := inherits.FindStringSubmatch(s); i != nil {
				queue = append(queue, strings.Fields(i[1])...)
			}
		}
	}
}

// findImageClasses follows image.bbclass. It inherits some classes through variables, to which the
// classes that every recipe inherits add.
func (m *metadata) findImageClasses() {
	values := map[string]string{}
	collect := func(class string) {
		text, _ := m.class(class)
		for _, s := range statements(text) {
			if a, ok := bitbake.ParseAssignment(s); ok {
				name, _, _ := a.Split()
				values[name] += " " + a.Value
			}
		}
	}
	for name := range m.global {
		collect(name)
	}
	queue := []string{"image"}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if v := expansion.FindStringSubmatch(name); v != nil && v[0] == name {
			queue = append(queue, strings.Fields(values[v[1]])...)
			values[v[1]] = ""
			continue
		}
		text, _ := m.class(name)
		if text == "" || m.image[name] || m.global[name] {
			continue
		}
		m.image[name] = true
		collect(name)
		for _, s := range statements(text) {
			if i := inheritsAny.FindStringSubmatch(s); i != nil {
				queue = append(queue, strings.Fields(i[1])...)
			}
		}
	}
}

func (m *metadata) placeOf(layer, name, text string) place {
	base, ext := path.Base(name), path.Ext(name)
	switch {
	case strings.Contains(base, ".conf.sample"):
		return localConf
	case base == "bitbake.conf" && layer == "oe-core":
		return bitbakeConf
	case ext == ".py" || ext == ".rst":
		return pythonFile
	case strings.Contains("/"+name, "/conf/machine"):
		return machineFile
	case strings.Contains("/"+name, "/conf/distro"):
		return distroFile
	case strings.Contains("/"+name, "/conf/"):
		return otherConf
	case ext == ".bbclass" && m.global[strings.TrimSuffix(base, ext)]:
		return globalClass
	case ext == ".bbclass":
		return recipeClass
	case strings.Contains(name, "/images/") || imageFile.MatchString(text):
		return imageRecipe
	}
	return recipe
}

// read counts what the files of every layer do with variables.
func (m *metadata) read() {
	for _, l := range m.layers {
		for _, name := range slices.Sorted(maps.Keys(l.files)) {
			m.readFile(l.name, name, l.files[name])
		}
	}
}

func (m *metadata) readFile(layer, name, text string) {
	p, file := m.placeOf(layer, name, text), layer+"/"+name
	if p == localConf {
		text = strings.ReplaceAll(text, "\n#", "\n") // its examples are comments
	}
	for _, re := range []*regexp.Regexp{expansion, pythonUse, glossaryOf} {
		for _, found := range re.FindAllStringSubmatch(text, -1) {
			u := m.use(strings.Join(found[1:], ""))
			u.note(p, file, true)
			u.bitbake = u.bitbake || layer == "bitbake"
			u.image = u.image || m.image[strings.TrimSuffix(path.Base(name), ".bbclass")] && path.Ext(name) == ".bbclass"
		}
	}
	for _, found := range pythonList.FindAllStringSubmatch(text, -1) {
		m.use(found[1]).split = true
	}
	for _, found := range pythonWord.FindAllStringSubmatch(text, -1) {
		m.use(found[1]).contains = true
	}
	if p == pythonFile {
		return
	}
	for _, s := range statements(text) {
		a, ok := bitbake.ParseAssignment(s)
		if !ok {
			continue
		}
		variable, op, overrides := a.Split()
		if !capitals.MatchString(variable) {
			continue
		}
		u := m.use(variable)
		u.note(p, file, false)
		if a.Flag == "doc" && listDoc.MatchString(a.Value) {
			u.many++
		}
		if slices.Contains(overrides, "${PN}") {
			u.perPackage++
		}
		isPart := slices.ContainsFunc(overrides, func(o string) bool { return strings.HasPrefix(o, "pn-") || strings.HasPrefix(o, "task-") })
		if a.Flag == "" && !isPart {
			u.count(p, op, a.Value, !slices.ContainsFunc(overrides, func(o string) bool { return o != "${PN}" }))
		}
	}
}

func (u *usage) count(p place, op, value string, always bool) {
	switch op {
	case "+=", "=+", ".=", "=.", "append", "prepend", "remove":
		u.edits[p]++
		if addsWords(op, value) {
			u.words++
		}
		u.comma = u.comma || strings.HasPrefix(value, ",")
		u.colon = u.colon || strings.HasPrefix(value, ":") || strings.HasSuffix(value, ":")
	case "?=", "??=":
		u.weak[p]++
		u.countWords(value)
	default:
		u.countWords(value)
		if always {
			u.plain[p]++
		}
	}
}

func (u *usage) countWords(value string) {
	if len(strings.Fields(python.ReplaceAllString(value, ""))) > 1 {
		u.many++
	}
}

// addsWords reports whether an edit adds words to a list: the text that the others add may be a part
// of a word or of an expression.
func addsWords(op, value string) bool {
	switch op {
	case "+=", "=+", "remove":
		return true
	}
	isWord := strings.HasPrefix(value, " ") || strings.HasSuffix(value, " ") || strings.HasPrefix(value, "${@")
	return isWord && !arithmetic.MatchString(value)
}

// findPerRecipe marks the variables of bitbake.conf whose value depends on the recipe.
func (m *metadata) findPerRecipe() {
	values := map[string]string{}
	for _, s := range statements(m.layer("oe-core")["meta/conf/bitbake.conf"]) {
		a, ok := bitbake.ParseAssignment(s)
		if !ok || a.Flag != "" || !capitals.MatchString(a.Name) {
			continue
		}
		// A weak default is for configuration, unless it is a folder of the recipe.
		if _, set := values[a.Name]; a.Op == "=" || a.Op == ":=" || !set && strings.HasPrefix(a.Value, "${WORKDIR}/") {
			values[a.Name] = a.Value
		}
	}
	reads := func(value, name string) bool {
		return strings.Contains(value, "${"+name+"}") || strings.Contains(value, "getVar('"+name+"'") || strings.Contains(value, `getVar("`+name+`"`)
	}
	found := []string{"FILE"}
	for len(found) > 0 {
		from := found[0]
		found = found[1:]
		for name, value := range values {
			if u := m.use(name); !u.perRecipe && reads(value, from) {
				u.perRecipe = true
				found = append(found, name)
			}
		}
	}
}

// later reads files that follow local.conf, in order, and calls set for each variable that
// they assign whatever it was.
func later(files map[string]string, root, file string, known map[string]string, set func(name, file string)) {
	text, ok := files[path.Join(root, file)]
	if !ok {
		return
	}
	for _, s := range statements(text) {
		if r := readsFile.FindStringSubmatch(s); r != nil {
			later(files, root, expand(r[1], known), known, set)
			continue
		}
		a, ok := bitbake.ParseAssignment(s)
		keeps := strings.Contains(a.Value, "${"+a.Name+"}") // NAME := "${NAME}"
		if ok && a.Flag == "" && capitals.MatchString(a.Name) && (a.Op == "=" || a.Op == ":=") && !keeps {
			set(a.Name, path.Join(root, file))
		}
	}
}

func expand(text string, known map[string]string) string {
	for name, value := range known {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	return text
}

// findLost marks the variables that a file assigns after local.conf.
func (m *metadata) findLost() {
	core, tegra := m.layer("oe-core"), m.layer("meta-tegra")
	always := func(layer string) func(name, file string) {
		return func(name, file string) { m.use(name).lost = layer + "/" + file }
	}
	// The layer itself sets INIT_MANAGER.
	known := map[string]string{"TCMODE": "default", "TCLIBC": "glibc", "INIT_MANAGER": "systemd"}
	_, tail, _ := strings.Cut(core["meta/conf/bitbake.conf"], "\ninclude conf/local.conf\n")
	rest := maps.Clone(core)
	rest["meta/conf/bitbake.conf"] = tail
	later(rest, "meta", "conf/bitbake.conf", known, always("oe-core"))
	for name := range m.global {
		_, file := m.class(name)
		later(core, "meta", strings.TrimPrefix(file, "meta/"), known, func(name, file string) {
			if u := m.use(name); u.lost == "" || "oe-core/"+file < u.lost {
				u.lost = "oe-core/" + file
			}
		})
	}
	machines, byMachine := 0, map[string]map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(tegra)) {
		if path.Dir(file) != "conf/machine" || path.Ext(file) != ".conf" {
			continue
		}
		machines++
		both := maps.Clone(tegra)
		for name, text := range core {
			if rest, ok := strings.CutPrefix(name, "meta/"); ok && strings.HasPrefix(rest, "conf/machine/") {
				both[rest] = text
			}
		}
		later(both, "", file, known, func(name, by string) {
			if byMachine[name] == nil {
				byMachine[name] = map[string]string{}
			}
			byMachine[name][strings.TrimSuffix(path.Base(file), ".conf")] = by
		})
	}
	for name, files := range byMachine {
		u := m.use(name)
		if u.lost != "" {
			continue
		}
		set := slices.Sorted(maps.Keys(files))
		by := files[set[0]]
		u.lost = "meta-tegra/" + by
		if _, ok := tegra[by]; !ok {
			u.lost = "oe-core/meta/" + by
		}
		if len(set) < machines {
			u.machines = set
		}
	}
}

// A variable is a recipe's if many recipes assign it, or some add to it and nothing else
// assigns it.
const manyRecipes, someRecipes = 40, 10

func sum(counts [places]int, of ...place) (n int) {
	for _, p := range of {
		n += counts[p]
	}
	return n
}

// scope derives where an assignment acts from who assigns the variable.
func (u *usage) scope() byte {
	conf := []place{localConf, machineFile, distroFile}
	set := sum(u.plain, conf...) + sum(u.weak, conf...) + sum(u.edits, conf...)
	if u.perPackage >= manyRecipes {
		return 'r' // a configuration that sets it names the package
	}
	inRecipes := u.plain[recipe] + u.weak[recipe]
	asDefault := u.weak[bitbakeConf] + u.weak[globalClass] + u.weak[recipeClass] + u.weak[recipe] + u.weak[imageRecipe]
	switch {
	case u.plain[localConf]+u.weak[localConf] > 0:
		return 'g'
	case u.perRecipe, set == 0 && inRecipes >= manyRecipes:
		return 'r'
	case u.image && u.plain[imageRecipe]+sum(u.edits, imageRecipe, recipeClass) > 0 && sum(u.plain, recipe, recipeClass, globalClass)+u.edits[recipe] == 0:
		return 'g' // it describes all images, and some image recipes have a value of their own
	case set == 0 && !u.bitbake && asDefault+u.plain[bitbakeConf]+u.plain[globalClass] == 0 &&
		sum(u.plain, recipe, imageRecipe, recipeClass)+sum(u.edits, recipe, recipeClass)/someRecipes > 0:
		return 'r'
	case sum(u.plain, machineFile)+sum(u.weak, machineFile) > 0 && sum(u.plain, localConf, bitbakeConf, distroFile)+sum(u.weak, localConf, bitbakeConf, distroFile, recipeClass) == 0:
		return 'm'
	}
	return 'g'
}

// encode writes what [variable.Lookup] decodes.
func (u *usage) encode(number func(file string) int) string {
	text := string(u.scope())
	switch {
	case u.colon:
		text += "P"
	case u.comma && !u.split && u.words == 0:
		text += "C"
	case u.split, u.words >= 2, u.contains && u.words+u.many > 0:
		text += "L"
	}
	switch {
	case text[0] == 'r' && u.perRecipe:
		text += fmt.Sprintf("~%d", number("bitbake.conf"))
	case text[0] == 'r':
		text += fmt.Sprintf("~%d", number(shortName(u.where)))
	}
	if u.lost != "" {
		text += fmt.Sprintf("!%d", number(u.lost))
		if u.machines != nil {
			text += "@" + strings.Join(u.machines, ",")
		}
	}
	return text
}

// shortName names a recipe without its version, and any other file by its last part.
func shortName(file string) string {
	base := path.Base(file)
	if ext := path.Ext(base); ext == ".bb" || ext == ".bbappend" {
		name, _, _ := strings.Cut(strings.TrimSuffix(base, ext), "_")
		return name + ".bb"
	}
	return base
}

// metadataSources are the repositories of a release, with the branch or commit of each.
func metadataSources(r release.Release) [][2]string {
	pinned := map[string]string{}
	for part := range strings.SplitSeq(r.Read, ", ") {
		name, commit, _ := strings.Cut(part, " ")
		pinned[name] = commit
	}
	return [][2]string{
		{"bitbake", pinned["bitbake"]}, {"oe-core", pinned["oe-core"]}, {"meta-tegra", pinned["meta-tegra"]},
		{"meta-openembedded", coreBranch(r)}, {"meta-tegra-community", r.Name},
	}
}

// readMetadata reads the layers of a release; it also returns the commits, "NAME@COMMIT".
func readMetadata(r release.Release, repositories map[string]repository) (*metadata, []string, error) {
	m := &metadata{global: map[string]bool{}, image: map[string]bool{}, uses: map[string]*usage{}}
	var commits []string
	for _, s := range metadataSources(r) {
		repo := repositories[s[0]]
		commit, err := repo.git("rev-parse", "--short=12", s[1])
		if err != nil {
			return nil, nil, err
		}
		files, err := repo.readFiles(s[1], isMetadata)
		if err != nil {
			return nil, nil, err
		}
		m.layers = append(m.layers, layerFiles{s[0], files})
		commits = append(commits, s[0]+"@"+strings.TrimSpace(commit))
	}
	m.findGlobalClasses()
	m.findImageClasses()
	m.read()
	m.findPerRecipe()
	m.findLost()
	return m, commits, nil
}

// writeVariables writes the variables of every release.
func writeVariables(repositories map[string]repository, out string) error {
	var head strings.Builder
	var all []map[string]*usage
	files := map[string]bool{}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		m, commits, err := readMetadata(r, repositories)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(&head, "release %s %s\n", name, strings.Join(commits, " "))
		all = append(all, m.uses)
		for _, u := range m.uses {
			u.encode(func(file string) int { files[file] = true; return 0 })
		}
	}
	numbers := map[string]int{}
	for i, file := range slices.Sorted(maps.Keys(files)) {
		numbers[file] = i
		fmt.Fprintf(&head, "file %s\n", file)
	}
	rows := map[string]map[string]int{} // name, facts, releases
	for i, uses := range all {
		for variable, u := range uses {
			if rows[variable] == nil {
				rows[variable] = map[string]int{}
			}
			rows[variable][u.encode(func(file string) int { return numbers[file] })] |= 1 << i
		}
	}
	var text strings.Builder
	text.WriteString(head.String() + "\n")
	for _, variable := range slices.Sorted(maps.Keys(rows)) {
		text.WriteString(variable)
		groups := slices.SortedFunc(maps.Keys(rows[variable]), func(a, b string) int {
			return cmp.Or(cmp.Compare(rows[variable][a], rows[variable][b]), strings.Compare(a, b))
		})
		for _, facts := range groups {
			fmt.Fprintf(&text, " %x:%s", rows[variable][facts], facts)
		}
		text.WriteString("\n")
	}
	return writeFile(out, []byte(text.String()))
}
