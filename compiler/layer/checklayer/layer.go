package checklayer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/plan"
)

// layer is the layer under test, read from its snapshot.
type layer struct {
	Origin     string // as the user named it
	Dir        string // snapshot in the work folder
	Collection string
	Settings   []string // names of conf/yoctune/<name>.conf
	Fragments  []string // names of conf/fragments/<name>.conf
	Recipes    []recipe
	Packages   []string // that images get
	Appends    []bbappend
	Plans      []*plan.Plan // of the machine being checked
	Machines   []string     // of all its plans
	NeedsTegra bool         // LAYERDEPENDS has the collection of meta-tegra

	SettingLines map[string][]line // what each of Settings assigns
}

type recipe struct {
	Name    string // PN
	File    string // relative to the layer
	Classes []string
	Lines   []line
}

type bbappend struct {
	Name   string // PN it is for
	File   string // relative to the layer
	Lines  []line // of the append and of the file it requires
	Unused bool   // this machine builds no recipe it applies to (known after the appends step)
}

// namesHashServer reports whether the layer sets the address of a hash equivalence server that
// runs somewhere, so that bitbake starts none.
func (l *layer) namesHashServer() bool {
	for _, lines := range l.SettingLines {
		for _, s := range lines {
			if s.Variable == "BB_HASHSERVE" && s.Value != "auto" {
				return true
			}
		}
	}
	return false
}

// word is what may stand in a name that is written into a configuration file.
var word = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9+._-]*$`)

// snapshot copies the regular files of from into to.
func snapshot(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file: a generated layer contains only regular files", p)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return copyFile(p, filepath.Join(to, rel), 0o644|info.Mode().Perm()&0o111)
	})
}

func copyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// readLayer reads the layer in dir as its manifest describes it.
func readLayer(dir, origin, machine string) (*layer, error) {
	files, err := readFiles(dir)
	if err != nil {
		return nil, err
	}
	l := &layer{Origin: origin, Dir: dir, SettingLines: map[string][]line{}}
	byPath := map[string]emitters.File{}
	for _, f := range files {
		byPath[f.Path] = f
	}
	for _, f := range files {
		switch base := path.Base(f.Path); {
		case f.Path == "conf/layer.conf":
			for _, a := range linesOf(f) {
				if a.Variable == "BBFILE_COLLECTIONS" {
					l.Collection = strings.TrimSpace(a.Value)
				}
				if strings.HasPrefix(a.Variable, "LAYERDEPENDS_") {
					l.NeedsTegra = l.NeedsTegra || slices.Contains(strings.Fields(a.Value), "tegra")
				}
			}
		case path.Dir(f.Path) == "conf/yoctune" && path.Ext(base) == ".conf":
			name := strings.TrimSuffix(base, ".conf")
			l.Settings, l.SettingLines[name] = append(l.Settings, name), linesOf(f)
		case path.Dir(f.Path) == "conf/fragments" && path.Ext(base) == ".conf":
			l.Fragments = append(l.Fragments, strings.TrimSuffix(base, ".conf"))
		case !strings.HasPrefix(f.Path, "recipes-"):
		case base == "plan.json":
			doc, err := plan.Decode(bytes.NewReader(f.Data))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
			l.Machines = append(l.Machines, doc.Machine)
			if doc.Machine == machine {
				l.Plans = append(l.Plans, doc)
			}
		default:
			l.recipes(f, byPath)
		}
	}
	if !word.MatchString(l.Collection) {
		return nil, fmt.Errorf("%s/conf/layer.conf: BBFILE_COLLECTIONS is %q, want one name", origin, l.Collection)
	}
	for _, name := range slices.Concat(l.Settings, l.Fragments) {
		if !word.MatchString(name) {
			return nil, fmt.Errorf("%s/conf: %q is not a valid name for a configuration file", origin, name)
		}
	}
	if len(l.Settings)+len(l.Fragments) == 0 {
		return nil, fmt.Errorf("%s has neither conf/yoctune/*.conf nor conf/fragments/*.conf, so nothing can switch it on; name a folder that yoctune build wrote", origin)
	}
	return l, nil
}

// readFiles reads the files of a layer, by path, with what they mean.
func readFiles(dir string) ([]emitters.File, error) {
	var files []emitters.File
	var listing *manifest.Manifest
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(p, dir+string(filepath.Separator)))
		if rel == manifest.Name {
			listing, err = manifest.Decode(b)
			return err
		}
		files = append(files, emitters.File{Path: rel, Data: b})
		return nil
	})
	files = manifest.Describe(files, listing)
	for _, f := range files {
		err = cmp.Or(err, manifest.CheckSize(f))
	}
	return files, err
}

// recipes takes in the recipes and appends that a file is, and the packages that
// it names.
func (l *layer) recipes(f emitters.File, all map[string]emitters.File) {
	for _, m := range f.Means {
		switch {
		case m.Kind == emitters.Package:
			l.Packages = append(l.Packages, m.Name)
		case !word.MatchString(m.Name):
		case m.Kind == emitters.Recipe:
			l.Recipes = append(l.Recipes, recipe{Name: m.Name, File: f.Path, Classes: strings.Fields(m.Value), Lines: linesOf(f)})
		case m.Kind == emitters.Append:
			lines := linesOf(f)
			if inc, ok := all[path.Join(path.Dir(f.Path), m.Value)]; ok && m.Value != "" {
				lines = append(lines, linesOf(inc)...)
			}
			l.Appends = append(l.Appends, bbappend{Name: m.Name, File: f.Path, Lines: lines})
		}
	}
}

func readPlan(file string) (*plan.Plan, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return plan.Decode(bytes.NewReader(b))
}

// enableLines returns the configuration that enables the layer, as in its README.
func (l *layer) enableLines(fragments bool) []string {
	var lines []string
	if fragments && len(l.Fragments) > 0 {
		for _, name := range l.Fragments {
			lines = append(lines, fmt.Sprintf("OE_FRAGMENTS += \"%s/%s\"", l.Collection, name))
		}
		return lines
	}
	for _, name := range l.Settings {
		lines = append(lines, "require conf/yoctune/"+name+".conf")
	}
	return lines
}

// appended are the recipes of others that the layer changes.
func (l *layer) appended() []string {
	var names []string
	for _, a := range l.Appends {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// owns reports whether a recipe or package name comes from the layer itself.
func (l *layer) owns(name string) bool {
	return slices.ContainsFunc(l.Recipes, func(r recipe) bool {
		return name == r.Name || strings.HasPrefix(name, r.Name+"-")
	})
}

// requests reports whether the layer itself depends on a package or recipe.
func (l *layer) requests(name string) bool {
	return slices.Contains(l.Packages, name) || slices.ContainsFunc(l.Recipes, func(r recipe) bool {
		return slices.ContainsFunc(r.Lines, func(a line) bool { return slices.Contains(strings.Fields(a.Value), name) })
	})
}
