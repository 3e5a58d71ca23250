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
	withSystemd   = regexp.MustCompile(`DISTRO_FEATURES['"],\s*['"]systemd['"]`)
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

// bringer is the package that brings a name.
type bringer struct {
	rank    int
	name    string
	feature string
}

func (b bringer) String() string { return strings.TrimSpace(b.name + " " + b.feature) }

// systemNames are the names of one release with what brings each.
type systemNames map[system.Kind]map[string]bringer

func (s systemNames) add(kind system.Kind, name string, b bringer) {
	if s[kind] == nil {
		s[kind] = map[string]bringer{}
	}
	if b.feature != "" {
		b.rank = onFeature
	} else if system.IsInEveryImage(b.name) {
		b.rank = always
	}
	if old, known := s[kind][name]; known && cmp.Or(old.rank-b.rank, common(name, b.name)-common(name, old.name), strings.Compare(old.name, b.name)) <= 0 {
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
	defaults := append(strings.Fields(r.expand(r.features)), "systemd") // a distribution without it has no units
	for _, n := range r.system {
		from := bringer{rank: declared, name: r.vars["PN"]}
		for _, o := range n.overrides {
			if p := r.expand(o); strings.HasPrefix(p, r.vars["PN"]) || strings.Contains(o, "PN") {
				from.name = p
			}
		}
		rest := onFeatures.ReplaceAllStringFunc(n.value, func(code string) string {
			m := onFeatures.FindStringSubmatch(code)
			with := from
			if !slices.Contains(defaults, m[1]) {
				with.feature = m[1]
			}
			s.addNames(n.variable, r.expand(m[2]), with)
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

// isGroupOption reports whether a word of useradd's arguments prevents a group of the user's name.
func isGroupOption(word string) bool {
	option, _, _ := strings.Cut(word, "=")
	return slices.Contains([]string{"-g", "--gid", "-N", "--no-user-group"}, option)
}

// addSystemd adds the units of the versions of systemd next to that of a release.
func (s systemNames) addSystemd(trees []string, version string) error {
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
		found := unitInMeson.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			return fmt.Errorf("%s: meson.build names no unit: has it changed its form?", folder)
		}
		for _, m := range found {
			s.add(system.Unit, m[1], bringer{name: "systemd"})
		}
		if err := s.addSpecial(folder); err != nil {
			return err
		}
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
	recipes := newRecipes(files)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(file) == ".bb" {
			all.addRecipe(recipes.readRecipe(file))
		}
		name, _ := recipeName(file)
		for _, m := range unitInText.FindAllStringSubmatch(files[file], -1) {
			if path.Ext(file) != ".bbclass" && !isInstance(m[1]) {
				all.add(system.Unit, m[1], bringer{rank: written, name: name})
			}
		}
	}
	if err := all.addSystemd(trees, rel.Systemd); err != nil {
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
