package main

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/nametable"
	fact "github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/bitbake"
)

// The names of recipes, and of the packages that each makes, are read from the text of the
// recipes, their includes, appends and classes. What Python computes is a pattern.

// wild stands for the part of a name that only bitbake can compute.
const wild = "\x00"

const pythonManifest = "python3-manifest.json"

var (
	recipeWord     = regexp.MustCompile(`[A-Za-z0-9_+.-]+`)
	packageForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9.+_-]*$`)
	anyExpansion   = regexp.MustCompile(`\$\{(@[^}]*|[A-Za-z0-9_-]+)\}`)
	quotedText     = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	quotedName     = regexp.MustCompile(`["']([a-z0-9][a-z0-9.+_-]{3,})["']`)
	packagesByCode = regexp.MustCompile(`(set|append|prepend)Var\(["']PACKAGES["'],\s*(?:["']([^"']*)["'])?`)
	providesByCode = regexp.MustCompile(`Var\(["']RPROVIDES\b`)
	manifestMember = regexp.MustCompile(`(?m)^    "([a-z0-9-]+)": \{`)
)

// recipes is what was read of the recipes of a release.
type recipes struct {
	files    map[string]string // texts of every layer, by LAYER/PATH
	classes  map[string]string // file of each class, by name
	byName   map[string][]string
	appends  map[string][]string
	defaults map[string]string // of bitbake.conf
	cache    map[string][]string
}

func isRecipeFile(name string) bool {
	for _, not := range []string{"lib/", "meta-selftest/", "meta-skeleton/"} {
		if strings.HasPrefix(name, not) || strings.HasPrefix(name, "meta/"+not) {
			return false
		}
	}
	switch path.Ext(name) {
	case ".inc", ".bbclass", ".bb", ".bbappend":
		return true
	}
	return path.Base(name) == pythonManifest || name == "meta/conf/bitbake.conf"
}

// recipeName is the name and the version in the name of a recipe's file.
func recipeName(file string) (name, version string) {
	base := path.Base(file)
	name, version, _ = strings.Cut(strings.TrimSuffix(base, path.Ext(base)), "_")
	version, _, _ = strings.Cut(version, "_")
	return name, version
}

func newRecipes(files map[string]string) *recipes {
	r := &recipes{files: files, classes: map[string]string{}, byName: map[string][]string{}, appends: map[string][]string{}, defaults: map[string]string{}, cache: map[string][]string{}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		r.byName[path.Base(file)] = append(r.byName[path.Base(file)], file)
		name, _ := recipeName(file)
		switch path.Ext(file) {
		case ".bbclass":
			r.classes[strings.TrimSuffix(path.Base(file), ".bbclass")] = file
		case ".bbappend":
			r.appends[name] = append(r.appends[name], file)
		}
	}
	for _, s := range r.statements("oe-core/meta/conf/bitbake.conf") {
		if a, ok := bitbake.ParseAssignment(s); ok && a.Flag == "" && (a.Op == "=" || a.Op == "?=" || a.Op == "??=") {
			r.defaults[a.Name] = a.Value
		}
	}
	return r
}

func (r *recipes) statements(file string) []string {
	if _, ok := r.cache[file]; !ok {
		r.cache[file] = statements(r.files[file])
	}
	return r.cache[file]
}

// reading is one recipe with what it includes and inherits.
type reading struct {
	*recipes
	vars   map[string]string
	words  []assigned
	system []naming // of variables that name units, users and groups
	// features are the words of PACKAGECONFIG that depend on no other variable.
	features string
	seen     map[string]bool
	inherit  map[string]bool
	options  []string          // of PACKAGECONFIG
	values   map[string]string // of these options
}

// assigned is a value of a variable that names packages.
type assigned struct{ variable, value string }

// isNaming reports whether the words of a variable are names, or patterns, of packages.
func isNaming(variable string) bool {
	switch variable {
	case "PACKAGES", "PACKAGE_BEFORE_PN", "PACKAGES_DYNAMIC", "RPROVIDES":
		return true
	}
	return false
}

func (r *reading) read(file string) {
	if r.seen[file] {
		return
	}
	r.seen[file] = true
	for _, s := range r.statements(file) {
		verb, rest, _ := strings.Cut(s, " ")
		switch verb {
		case "require", "include", "include_all":
			if f := r.find(file, r.expand(strings.TrimSpace(rest))); f != "" {
				r.read(f)
			}
		case "inherit", "inherit_defer":
			for _, word := range recipeWord.FindAllString(r.expandKeeping(rest), -1) {
				if class := r.classes[word]; class != "" {
					r.inherit[word] = true
					r.read(class)
				}
			}
		default:
			r.assign(s)
		}
	}
}

func (r *reading) assign(s string) {
	a, ok := bitbake.ParseAssignment(s)
	if ok && a.Flag != "" && a.Name == "PACKAGECONFIG" {
		r.options = append(r.options, a.Flag)
		r.values[a.Flag] = a.Value
	}
	if !ok || a.Flag != "" {
		return
	}
	variable, op, overrides := a.Split()
	switch {
	case op == "remove":
	case variable == "PACKAGECONFIG" && len(overrides) == 0:
		// What a distribution or a machine may switch on counts as switched on.
		r.features += " " + inlinePython.ReplaceAllStringFunc(a.Value, openFilter)
	case variable == "SYSTEMD_SERVICE" || variable == "USERADD_PARAM" || variable == "GROUPADD_PARAM":
		r.system = append(r.system, naming{variable, overrides, a.Value})
	case isNaming(variable):
		r.words = append(r.words, assigned{variable, openPython(a.Value)})
	case len(overrides) > 0:
	case op == "+=" || op == "=+" || op == "append" || op == "prepend":
		if !strings.Contains(r.vars[variable], a.Value) {
			r.vars[variable] += " " + openPython(a.Value)
		}
	case op == "=" || op == ":=":
		r.vars[variable] = openPython(a.Value)
	case (op == "?=" || op == "??=") && r.vars[variable] == "":
		r.vars[variable] = openPython(a.Value)
	}
}

// openPython replaces an inline Python expression that is a word of its own by the words that
// it may yield: those in quotes, without the variable and the value that it looks for.
func openPython(text string) string {
	for {
		start := strings.Index(text, "${@")
		if start < 0 {
			return text
		}
		end, depth := start+2, 1
		for end < len(text) && depth > 0 {
			switch text[end] {
			case '{':
				depth++
			case '}':
				depth--
			}
			end++
		}
		code := text[start+2 : end]
		quoted := quotedText.FindAllString(code, -1)
		words := wild
		if strings.Contains(code, "contains") && len(quoted) > 2 && isSpace(text, start-1) && isSpace(text, end) {
			quoted = quoted[2:]
			words = strings.NewReplacer(`"`, " ", "'", " ").Replace(strings.Join(quoted, " "))
		}
		text = text[:start] + words + text[end:]
	}
}

// openFilter replaces a Python expression by the words that it may yield.
func openFilter(code string) string {
	if m := filtered.FindStringSubmatch(code); m != nil {
		return m[1]
	}
	return openPython(" " + code + " ")
}

// isSpace reports whether a word ends at a place of a text.
func isSpace(text string, i int) bool {
	return i < 0 || i >= len(text) || text[i] == ' ' || text[i] == '\t'
}

// find returns the file that a recipe includes: beside it, or below the top of a layer.
func (r *reading) find(from, name string) string {
	if strings.Contains(name, wild) {
		return ""
	}
	if beside := path.Join(path.Dir(from), name); r.files[beside] != "" {
		return beside
	}
	for _, file := range r.byName[path.Base(name)] {
		if strings.HasSuffix(file, "/"+name) {
			return file
		}
	}
	return ""
}

// expand replaces the variables of a text, and what only Python can compute by [wild].
func (r *reading) expand(text string) string {
	for range 12 {
		next := anyExpansion.ReplaceAllStringFunc(text, func(e string) string {
			name := e[2 : len(e)-1]
			if value, ok := r.vars[name]; ok {
				return value
			}
			if value, ok := r.defaults[name]; ok && !strings.HasPrefix(name, "TARGET_") && !strings.HasPrefix(name, "MACHINE") {
				return value
			}
			return wild
		})
		if next == text {
			break
		}
		text = next
	}
	return anyExpansion.ReplaceAllString(text, wild)
}

// expandKeeping expands a line with classes, and keeps the Python that chooses among them.
func (r *reading) expandKeeping(text string) string {
	return anyExpansion.ReplaceAllStringFunc(text, func(e string) string {
		if strings.HasPrefix(e, "${@") {
			return e
		}
		return r.expand(e)
	})
}

// readRecipe reads a recipe and what belongs to it.
func (r *recipes) readRecipe(file string) *reading {
	name, version := recipeName(file)
	one := &reading{recipes: r, vars: map[string]string{"PN": name, "BPN": name, "PV": version}, seen: map[string]bool{}, inherit: map[string]bool{}, values: map[string]string{}}
	for range 2 { // a variable may be assigned after its use
		one.seen, one.features, one.words, one.system = map[string]bool{}, "", []assigned{{"PACKAGES", r.defaults["PACKAGES"]}}, nil
		one.read(file)
		for _, a := range r.appends[name] {
			one.read(a)
		}
	}
	if pn := one.expand(one.vars["PN"]); !strings.Contains(pn, wild) {
		one.vars["PN"] = pn
	}
	return one
}

// buildTools are the classes of recipes that make no packages for the device.
var buildTools = []string{"native", "nativesdk", "cross", "crosssdk", "cross-canadian", "nopackages", "populate_sdk", "image"}

// names lists the packages of a recipe, and the patterns of those that Python makes.
func (r *reading) names() (packages, patterns []string) {
	if slices.ContainsFunc(buildTools, func(c string) bool { return r.inherit[c] }) {
		return nil, nil
	}
	for _, w := range r.words {
		value := r.expand(w.value)
		for word := range strings.FieldsSeq(value) {
			if w.variable == "PACKAGES_DYNAMIC" {
				patterns = append(patterns, "^"+strings.TrimPrefix(strings.ReplaceAll(word, wild, ".*"), "^"))
				continue
			}
			if word == wild { // a variable that Python sets
				word = r.vars["PN"] + "-" + wild
			}
			packages, patterns = sortOut(word, packages, patterns)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(r.seen)) {
		for _, m := range packagesByCode.FindAllStringSubmatch(r.files[file], -1) {
			name := r.expand(strings.ReplaceAll(m[2], "%s", wild))
			if strings.TrimSpace(name) == "" {
				if path.Ext(file) == ".bbclass" || strings.Contains(r.files[file], pythonManifest) {
					continue
				}
				name = r.vars["PN"] + "-" + wild
			}
			for word := range strings.FieldsSeq(name) {
				if !strings.HasPrefix(word, wild) {
					packages, patterns = sortOut(word, packages, patterns)
				}
			}
		}
		if path.Ext(file) != ".bbclass" && providesByCode.MatchString(r.files[file]) {
			for _, m := range quotedName.FindAllStringSubmatch(r.files[file], -1) {
				packages, patterns = sortOut(m[1], packages, patterns)
			}
		}
		if strings.Contains(r.files[file], pythonManifest) {
			for _, f := range r.byName[pythonManifest] {
				for _, m := range manifestMember.FindAllStringSubmatch(r.files[f], -1) {
					packages = append(packages, r.vars["PN"]+"-"+m[1])
				}
			}
		}
	}
	return packages, patterns
}

// sortOut adds a word to the names, or to the patterns where a part of it is computed.
func sortOut(word string, packages, patterns []string) ([]string, []string) {
	const fewest = 4 // letters of a pattern that still distinguishes names
	switch {
	case strings.HasSuffix(word, "-native"):
	case packageForm.MatchString(word):
		packages = append(packages, word)
	case len(strings.ReplaceAll(word, wild, "")) >= fewest && packageForm.MatchString(strings.ReplaceAll(word, wild, "x")):
		patterns = append(patterns, "^"+strings.ReplaceAll(regexp.QuoteMeta(word), regexp.QuoteMeta(wild), ".*")+"$")
	}
	return packages, patterns
}

// standardSuffixes are those that bitbake.conf gives the packages of every recipe.
func (r *recipes) standardSuffixes() []string {
	var all []string
	for word := range strings.FieldsSeq(r.defaults["PACKAGES"]) {
		if suffix, ok := strings.CutPrefix(word, "${PN}-"); ok {
			all = append(all, suffix)
		}
	}
	return all
}

// addRecipes adds the names of one release to the table.
func (r *recipes) addRecipes(t, options nameTable, features map[string]string, n int) {
	suffixes := r.standardSuffixes()
	for _, s := range suffixes {
		t.add("!suffix -"+s, "", n)
	}
	kinds := map[string]string{}
	mark := func(name string, kind fact.Kind) {
		if !strings.Contains(kinds[name], string(kind)) {
			kinds[name] += string(kind)
		}
	}
	addFeatures(features, mark)
	optionsOf := map[string][]string{}
	for _, file := range slices.Sorted(maps.Keys(r.files)) {
		if path.Ext(file) != ".bb" {
			continue
		}
		one := r.readRecipe(file)
		name := one.vars["PN"]
		mark(name, fact.Recipe)
		if one.inherit["image"] {
			mark(name, fact.Image)
		}
		optionsOf[name] = append(optionsOf[name], one.optionNames()...)
		packages, patterns := one.names()
		for _, p := range packages {
			if suffix, ok := strings.CutPrefix(p, name+"-"); !ok || !slices.Contains(suffixes, suffix) {
				mark(p, fact.Package)
				if one.inherit["cuda"] {
					mark(p, fact.CUDA)
				}
			}
		}
		for _, p := range patterns {
			if _, err := regexp.Compile(p); err == nil {
				t.add("!pattern "+p, "", n)
			}
		}
	}
	for name, all := range optionsOf {
		slices.Sort(all)
		if all = slices.Compact(all); len(all) > 0 {
			options.add(name, strings.Join(all, " "), n)
		}
	}
	for name, kind := range kinds {
		letters := []byte(kind)
		slices.Sort(letters)
		t.add(name, string(letters), n)
	}
}

// packageSources are the layers of a release that make packages, with the branch or commit of each.
func packageSources(rel release.Release, repositories map[string]repository) [][2]string {
	containers := [2]string{"meta-virtualization", coreBranch(rel)}
	if _, err := repositories[containers[0]].git("rev-parse", "--verify", "--quiet", containers[1]+"^{commit}"); err != nil {
		containers[1] = "master"
	}
	return append(metadataSources(rel)[1:], containers)
}

// writePackages writes the names of recipes and packages of every release.
func writePackages(repositories map[string]repository, out string) error {
	t, options := nameTable{}, nameTable{}
	for n, name := range release.Names() {
		rel, _ := release.Lookup(name)
		files, features := map[string]string{}, map[string]string{}
		for _, s := range packageSources(rel, repositories) {
			commit, err := repositories[s[0]].git("rev-parse", "--short=12", s[1])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			t.add("!source "+s[0]+"@"+strings.TrimSpace(commit), "", n)
			layer, err := repositories[s[0]].readFiles(s[1], isFeatureFile)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for file, text := range layer {
				features[s[0]+"/"+file] = text
				if isRecipeFile(file) {
					files[s[0]+"/"+file] = text
				}
			}
		}
		newRecipes(files).addRecipes(t, options, features, n)
	}
	for file, table := range map[string]nameTable{"recipes.bin": t, "options.bin": options} {
		data, err := nametable.Encode(table.lines())
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(out, file), data); err != nil {
			return err
		}
	}
	return nil
}
