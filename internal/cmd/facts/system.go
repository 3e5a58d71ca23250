package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/nametable"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/system"
)

const unitTypes = `service|socket|target|timer|mount|automount|path|slice|swap`

var (
	unitInMeson   = regexp.MustCompile(`'(?:[A-Za-z0-9@._-]+/)*([A-Za-z0-9@._-]+\.(?:` + unitTypes + `))(?:\.in)?'`)
	unitForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9@._:\\-]*\.(?:` + unitTypes + `)$`)
	unitInFolder  = regexp.MustCompile(`^(?:.*/)?recipes[^/]*/(?:.*/)?([A-Za-z0-9][A-Za-z0-9@._-]*\.(?:` + unitTypes + `))(?:\.in)?$`)
	accountForm   = regexp.MustCompile(`^[a-z_][a-z0-9_-]*$`)
	accountAdded  = regexp.MustCompile(`(?m)^\+([a-z_][a-z0-9_-]*):`)
	accountLine   = regexp.MustCompile(`(?m)^([a-z_][a-z0-9_-]*):`)
	inlinePython  = regexp.MustCompile(`\$\{@[^}]*\}`)
	unitInText    = regexp.MustCompile(`(?m)^[^#\n]*/([A-Za-z0-9][A-Za-z0-9@_-]*\.(?:` + unitTypes + `))(?:["'\s\\;:]|$)`)
	guardOfText   = regexp.MustCompile(`bb\.utils\.contains\(\s*['"]PACKAGECONFIG['"],\s*['"]([^'"]+)['"],\s*['"](?:true|yes|1)['"],\s*['"](?:false|no|0)?['"],\s*d\)`)
	mesonBlock    = regexp.MustCompile(`\{[^{}]*\}|\[[^\[\]]*\]`)
	mesonOption   = regexp.MustCompile(`-D([a-z0-9-]+)=(?:true|enabled)`)
	condition     = regexp.MustCompile(`\b(?:ENABLE|HAVE)_([A-Z0-9_]+)\b`)
	filtered      = regexp.MustCompile(`bb\.utils\.filter\(\s*['"][A-Z_]+['"],\s*['"]([^'"]*)['"]`)
	onFeatures    = regexp.MustCompile(`\$\{@bb\.utils\.contains\(\s*['"]PACKAGECONFIG['"],\s*['"]([^'"]+)['"],\s*['"]([^'"]*)['"],\s*['"][^'"]*['"],\s*d\)\}`)
	unitInC       = regexp.MustCompile(`"([A-Za-z0-9@._-]+\.(?:` + unitTypes + `))"`)
	unitBuiltInC  = regexp.MustCompile(`unit_name_build\("([a-z0-9-]+)",[^,"]*, *"\.(` + unitTypes + `)"`)
	namedInUnit   = regexp.MustCompile(`(?m)^(?:After|Before|Wants|Requires|Conflicts|BindsTo|PartOf|Alias|Also|OnFailure|Sockets)=(.*)`)
	patchedMaster = regexp.MustCompile(`(?m)^\+\+\+ [^/\n]+/(passwd|group)\.master`)
)

// naming is a value of a variable that names units, users or groups.
type naming struct {
	variable  string
	overrides []string
	value     string
}

// Ranks of what brings a name. A name that several packages bring is that of the lowest rank.
const (
	always    = iota // in every image
	declared         // by a variable of a recipe
	onFeature        // by such a variable, with a word of PACKAGECONFIG that is not set by default
	beside           // a file beside a recipe
	written          // in the text of a recipe, such as a path in FILES or do_install
	named            // in a unit of systemd, for other recipes to bring
)

// bringer is the package that brings a name, and the words that it needs in the PACKAGECONFIG of
// a recipe: a word that is set by default has a "+" before it.
type bringer struct {
	rank   int
	name   string
	recipe string
	words  []string
}

// needs returns b with a word of PACKAGECONFIG more.
func (b bringer) needs(r *reading, words ...string) bringer {
	defaults := strings.Fields(r.expand(r.features))
	b.recipe, b.words = r.vars["PN"], slices.Clone(b.words)
	for _, word := range words {
		switch {
		case word == "systemd": // a distribution without it has no units
		case slices.Contains(defaults, word):
			b.words = append(b.words, "+"+word)
		default:
			b.words = append(b.words, word)
		}
	}
	return b
}

// isOff reports whether the default PACKAGECONFIG lacks a word.
func (b bringer) isOff() bool {
	return slices.ContainsFunc(b.words, func(w string) bool { return !strings.HasPrefix(w, "+") })
}

func (b bringer) String() string {
	if len(b.words) == 0 {
		return b.name
	}
	return b.name + " " + b.recipe + " " + strings.Join(b.words, " ")
}

// systemNames are the names of one release with what brings each.
type systemNames map[system.Kind]map[string]bringer

func (s systemNames) add(kind system.Kind, name string, b bringer) {
	if s[kind] == nil {
		s[kind] = map[string]bringer{}
	}
	if b.isOff() {
		b.rank = onFeature
	} else if system.IsInEveryImage(b.name) {
		b.rank = always
	}
	if old, known := s[kind][name]; known && cmp.Or(old.rank-b.rank, len(b.words)-len(old.words), common(name, b.name)-common(name, old.name), strings.Compare(old.name, b.name)) <= 0 {
		return
	}
	s[kind][name] = b
}

// common is how many letters at the beginning two names share.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// addRecipe adds what a recipe names in SYSTEMD_SERVICE, USERADD_PARAM and GROUPADD_PARAM.
func (s systemNames) addRecipe(r *reading) {
	for _, n := range r.system {
		from := bringer{rank: declared, name: r.vars["PN"]}
		for _, o := range n.overrides {
			if p := r.expand(o); strings.HasPrefix(p, r.vars["PN"]) || strings.Contains(o, "PN") {
				from.name = p
			}
		}
		rest := onFeatures.ReplaceAllStringFunc(n.value, func(code string) string {
			m := onFeatures.FindStringSubmatch(code)
			s.addNames(n.variable, r.expand(m[2]), from.needs(r, strings.Fields(m[1])...))
			return " "
		})
		s.addNames(n.variable, r.expand(openPython(rest)), from)
	}
}

func (s systemNames) addNames(variable, value string, from bringer) {
	value = strings.ReplaceAll(value, `\`, " ")
	if variable == "SYSTEMD_SERVICE" {
		for word := range strings.FieldsSeq(value) {
			if unitForm.MatchString(word) {
				s.add(system.Unit, word, from)
			}
		}
		return
	}
	kind := system.User
	if variable == "GROUPADD_PARAM" {
		kind = system.Group
	}
	for command := range strings.SplitSeq(value, ";") {
		words := strings.Fields(command)
		if len(words) == 0 || !accountForm.MatchString(words[len(words)-1]) {
			continue
		}
		name := words[len(words)-1]
		s.add(kind, name, from)
		if kind == system.User && !slices.ContainsFunc(words, isGroupOption) {
			s.add(system.Group, name, from)
		}
	}
}

// addInstalled adds the units that a recipe installs for a word of PACKAGECONFIG only.
func (s systemNames) addInstalled(r *reading, text string) {
	guarded, free := map[string]string{}, map[string]bool{}
	var guards []string // of the conditions around a line, "" for another condition
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "if "):
			word := ""
			if m := guardOfText.FindStringSubmatch(line); m != nil {
				word = m[1]
			}
			guards = append(guards, word)
		case line == "}":
			guards = nil
		case len(guards) > 0 && (line == "fi" || strings.HasPrefix(line, "fi ")):
			guards = guards[:len(guards)-1]
		case len(guards) > 0 && (line == "else" || strings.HasPrefix(line, "elif ")):
			guards[len(guards)-1] = ""
		case strings.HasPrefix(line, "install ") && !strings.HasPrefix(line, "install -d"):
			guard := strings.TrimSpace(strings.Join(guards, " "))
			for _, m := range unitInText.FindAllStringSubmatch(line, -1) {
				if guard == "" {
					free[m[1]] = true
				} else {
					guarded[m[1]] = guard
				}
			}
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(guarded)) {
		from, known := s[system.Unit][unit]
		switch {
		case !known || from.rank > onFeature: // of no variable
			from = bringer{rank: beside, name: r.vars["PN"]}
		case !strings.HasPrefix(from.name, r.vars["PN"]) || len(from.words) > 0:
			continue // of another recipe, or with its words
		}
		if from = from.needs(r, strings.Fields(guarded[unit])...); !free[unit] && len(from.words) > 0 && !isInstance(unit) {
			delete(s[system.Unit], unit) // it comes on no other way
			s.add(system.Unit, unit, from)
		}
	}
}

// isGroupOption reports whether a word of useradd's arguments prevents a group of the user's name.
func isGroupOption(word string) bool {
	option, _, _ := strings.Cut(word, "=")
	return slices.Contains([]string{"-g", "--gid", "-N", "--no-user-group"}, option)
}

// addSystemd adds the units of the versions of systemd next to that of a release.
func (s systemNames) addSystemd(r *reading, trees []string, version string) error {
	number := func(v string) int {
		major, _, _ := strings.Cut(v, ".")
		n, err := strconv.Atoi(major)
		if err != nil {
			return 0
		}
		return n
	}
	var before, after string // the newest that is not newer, and the oldest that is not older
	for _, tree := range trees {
		v, folder, _ := strings.Cut(tree, "=")
		if number(v) <= number(version) {
			before = folder
		}
		if number(v) >= number(version) && after == "" {
			after = folder
		}
	}
	for _, folder := range []string{before, after} {
		text, err := os.ReadFile(filepath.Join(folder, "units", "meson.build"))
		if err != nil {
			return err
		}
		if err := s.addMeson(r, string(text)); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		if err := s.addSpecial(folder); err != nil {
			return err
		}
	}
	return nil
}

// addMeson adds the units of systemd's meson.build, whose conditions are words of the recipe's
// PACKAGECONFIG.
func (s systemNames) addMeson(r *reading, text string) error {
	words := map[string]string{} // by the option of meson that each switches on
	for word, value := range r.values {
		on, _, _ := strings.Cut(value, ",")
		for _, m := range mesonOption.FindAllStringSubmatch(on, -1) {
			words[strings.ToUpper(strings.ReplaceAll(m[1], "-", "_"))] = word
		}
	}
	names, conditions := 0, 0
	add := func(block string, from bringer) {
		for _, m := range unitInMeson.FindAllStringSubmatch(block, -1) {
			s.add(system.Unit, m[1], from)
			names++
		}
	}
	rest := mesonBlock.ReplaceAllStringFunc(text, func(block string) string {
		from := bringer{name: "systemd"}
		for _, m := range condition.FindAllStringSubmatch(block, -1) {
			if word := words[m[1]]; word != "" {
				from = from.needs(r, word)
				conditions++
			}
		}
		add(block, from)
		return ""
	})
	add(rest, bringer{name: "systemd"})
	if names == 0 || conditions == 0 {
		return fmt.Errorf("meson.build names %d units with %d known conditions: has it changed its form?", names, conditions)
	}
	return nil
}

// addSpecial adds the units that systemd's programs name, generate, or wait for.
func (s systemNames) addSpecial(folder string) error {
	special, err := os.ReadFile(filepath.Join(folder, "src", "basic", "special.h"))
	if err != nil {
		return err
	}
	for _, m := range unitInC.FindAllStringSubmatch(string(special), -1) {
		s.add(system.Unit, m[1], bringer{rank: named})
	}
	generators, err := filepath.Glob(filepath.Join(folder, "src", "*", "*-generator.c"))
	if err != nil {
		return err
	}
	for _, file := range generators {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range unitBuiltInC.FindAllStringSubmatch(string(text), -1) {
			s.add(system.Unit, m[1]+"@."+m[2], bringer{name: "systemd"})
		}
	}
	units, err := filepath.Glob(filepath.Join(folder, "units", "*"))
	if err != nil {
		return err
	}
	for _, file := range units {
		if path.Base(file) == "meson.build" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		for _, m := range namedInUnit.FindAllStringSubmatch(string(text), -1) {
			for word := range strings.FieldsSeq(m[1]) {
				if unitForm.MatchString(word) && !isInstance(word) {
					s.add(system.Unit, word, bringer{rank: named})
				}
			}
		}
	}
	return nil
}

// isInstance reports whether a unit is one of a template, which has nothing between "@" and the type.
func isInstance(unit string) bool {
	_, instance, ok := strings.Cut(unit, "@")
	return ok && !strings.HasPrefix(instance, ".")
}

// addAccounts adds the users and groups of base-passwd and of the recipe's patches.
func (s systemNames) addAccounts(folder string, patches map[string]string) error {
	for kind, name := range map[system.Kind]string{system.User: "passwd", system.Group: "group"} {
		text, err := os.ReadFile(filepath.Join(folder, name+".master"))
		if err != nil {
			return err
		}
		for _, m := range accountLine.FindAllStringSubmatch(string(text), -1) {
			s.add(kind, m[1], bringer{name: "base-passwd"})
		}
		for _, patch := range patches {
			if target := patchedMaster.FindStringSubmatch(patch); target != nil && target[1] == name {
				for _, m := range accountAdded.FindAllStringSubmatch(patch, -1) {
					s.add(kind, m[1], bringer{name: "base-passwd"})
				}
			}
		}
	}
	return nil
}

// readSystem reads the names of one release, and the commits that it was read at.
func readSystem(rel release.Release, repositories map[string]repository, trees []string, passwd string) (systemNames, []string, error) {
	all, files, patches := systemNames{}, map[string]string{}, map[string]string{}
	var commits []string
	for _, s := range packageSources(rel, repositories) {
		repo := repositories[s[0]]
		commit, err := repo.git("rev-parse", "--short=12", s[1])
		if err != nil {
			return nil, nil, err
		}
		commits = append(commits, s[0]+"@"+strings.TrimSpace(commit))
		texts, err := repo.readFiles(s[1], func(name string) bool {
			return isRecipeFile(name) || strings.HasPrefix(name, "meta/recipes-core/base-passwd/base-passwd/") && path.Ext(name) == ".patch"
		})
		if err != nil {
			return nil, nil, err
		}
		for file, text := range texts {
			if path.Ext(file) == ".patch" {
				patches[file] = text
				continue
			}
			files[s[0]+"/"+file] = text
		}
		list, err := repo.git("ls-tree", "-r", "--name-only", s[1])
		if err != nil {
			return nil, nil, err
		}
		for file := range strings.FieldsSeq(list) {
			if m := unitInFolder.FindStringSubmatch(file); m != nil && isMetadata(path.Dir(file)+"/x.bb") {
				all.add(system.Unit, m[1], bringer{rank: beside, name: ownerOf(file, m[1], texts)})
			}
		}
	}
	recipes, systemd, read := newRecipes(files), (*reading)(nil), map[string]*reading{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(file) == ".bb" {
			r := recipes.readRecipe(file)
			all.addRecipe(r)
			if r.vars["PN"] == "systemd" {
				systemd = r
			}
			read[file] = r
		}
		name, _ := recipeName(file)
		for _, m := range unitInText.FindAllStringSubmatch(files[file], -1) {
			if path.Ext(file) != ".bbclass" && !isInstance(m[1]) {
				all.add(system.Unit, m[1], bringer{rank: written, name: name})
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(read)) {
		for _, part := range slices.Sorted(maps.Keys(read[file].seen)) {
			if path.Ext(part) != ".bbclass" {
				all.addInstalled(read[file], files[part])
			}
		}
	}
	if systemd == nil {
		return nil, nil, fmt.Errorf("no recipe of systemd")
	}
	if err := all.addSystemd(systemd, trees, rel.Systemd); err != nil {
		return nil, nil, err
	}
	return all, commits, all.addAccounts(passwd, patches)
}

// ownerOf returns the recipe in the nearest folder above a unit's file that names the unit, or
// the folder; else the only recipe there, else the name of the folder with recipes.
func ownerOf(file, unit string, texts map[string]string) string {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		recipes := map[string]bool{}
		for name, text := range texts {
			if path.Dir(name) == dir && path.Ext(name) != ".bbclass" {
				recipe, _ := recipeName(name)
				recipes[recipe] = recipes[recipe] || strings.Contains(text, unit)
			}
		}
		sorted := slices.Sorted(maps.Keys(recipes))
		for _, recipe := range sorted {
			if recipes[recipe] {
				return recipe
			}
		}
		switch {
		case len(sorted) == 1:
			return sorted[0]
		case len(sorted) > 1:
			return path.Base(dir)
		}
	}
	return path.Base(path.Dir(file))
}

// writeSystem writes the units, users and groups of every release.
func writeSystem(repositories map[string]repository, trees []string, passwd, out string) error {
	t := nameTable{}
	for n, name := range release.Names() {
		rel, _ := release.Lookup(name)
		all, commits, err := readSystem(rel, repositories, trees, passwd)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range commits {
			t.add("!source "+c, "", n)
		}
		for kind, names := range all {
			for name, from := range names {
				t.add(string(kind)+" "+name, from.String(), n)
			}
		}
	}
	data, err := nametable.Encode(t.lines())
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(out, "system.bin"), data)
}
