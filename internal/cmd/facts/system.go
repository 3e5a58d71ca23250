package main

import (
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
	patchedMaster = regexp.MustCompile(`(?m)^\+\+\+ [^/\n]+/(passwd|group)\.master`)
)

// systemNames are the names of one release with the recipe that brings each.
type systemNames map[system.Kind]map[string]string

// add records a name. What every image has takes precedence over other recipes.
func (s systemNames) add(kind system.Kind, name, recipe string) {
	if s[kind] == nil {
		s[kind] = map[string]string{}
	}
	if old, known := s[kind][name]; known && (system.IsInEveryImage(old) || !system.IsInEveryImage(recipe) && old <= recipe) {
		return
	}
	s[kind][name] = recipe
}

// addRecipe adds what a recipe names in SYSTEMD_SERVICE, USERADD_PARAM and GROUPADD_PARAM.
func (s systemNames) addRecipe(r *reading) {
	for _, a := range r.system {
		value := strings.ReplaceAll(r.expand(a.value), `\`, " ")
		if a.variable == "SYSTEMD_SERVICE" {
			for word := range strings.FieldsSeq(value) {
				if unitForm.MatchString(word) {
					s.add(system.Unit, word, r.vars["PN"])
				}
			}
			continue
		}
		kind := system.User
		if a.variable == "GROUPADD_PARAM" {
			kind = system.Group
		}
		for command := range strings.SplitSeq(value, ";") {
			words := strings.Fields(command)
			if len(words) < 2 || !accountForm.MatchString(words[len(words)-1]) {
				continue
			}
			name := words[len(words)-1]
			s.add(kind, name, r.vars["PN"])
			if kind == system.User && !slices.Contains(words, "-g") && !slices.Contains(words, "--gid") && !slices.Contains(words, "-N") && !slices.Contains(words, "--no-user-group") {
				s.add(system.Group, name, r.vars["PN"])
			}
		}
	}
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
			s.add(system.Unit, m[1], "systemd")
		}
	}
	return nil
}

// addAccounts adds the users and groups of base-passwd and of the recipe's patches.
func (s systemNames) addAccounts(folder string, patches map[string]string) error {
	for kind, name := range map[system.Kind]string{system.User: "passwd", system.Group: "group"} {
		text, err := os.ReadFile(filepath.Join(folder, name+".master"))
		if err != nil {
			return err
		}
		for _, m := range accountLine.FindAllStringSubmatch(string(text), -1) {
			s.add(kind, m[1], "base-passwd")
		}
		for _, patch := range patches {
			if target := patchedMaster.FindStringSubmatch(patch); target != nil && target[1] == name {
				for _, m := range accountAdded.FindAllStringSubmatch(patch, -1) {
					s.add(kind, m[1], "base-passwd")
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
				all.add(system.Unit, m[1], ownerOf(file, texts))
			}
		}
	}
	recipes := newRecipes(files)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(file) == ".bb" {
			all.addRecipe(recipes.readRecipe(file))
		}
	}
	if err := all.addSystemd(trees, rel.Systemd); err != nil {
		return nil, nil, err
	}
	return all, commits, all.addAccounts(passwd, patches)
}

// ownerOf returns the recipe in the nearest folder above a file, else the name of its folder.
func ownerOf(file string, texts map[string]string) string {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		best := ""
		for name := range texts {
			if path.Dir(name) == dir && path.Ext(name) == ".bb" && (best == "" || name < best) {
				best = name
			}
		}
		if best != "" {
			name, _ := recipeName(best)
			return name
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
			for name, recipe := range names {
				t.add(string(kind)+" "+name, recipe, n)
			}
		}
	}
	data, err := nametable.Encode(t.lines())
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(out, "system.bin"), data)
}
