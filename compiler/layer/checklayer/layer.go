package checklayer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
	Appends    []bbappend
	Plans      []*plan.Plan // of the machine being checked
	Machines   []string     // of all its plans

	SettingLines map[string][]line // what each of Settings assigns
}

type recipe struct {
	Name string // PN
	File string // relative to the layer
	Text string
}

type bbappend struct {
	Name   string // PN it is for
	File   string // relative to the layer
	Lines  []line // of itself and of the files it may require
	Unused bool   // this machine builds no recipe it applies to (known after the appends step)
}

// namesHashServer tells whether the layer names a hash equivalence server that
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
			return fmt.Errorf("%s is not a regular file: a generated layer holds nothing else", p)
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

// readLayer reads what the checks need to know of the layer in dir.
func readLayer(dir, origin, machine string) (*layer, error) {
	l := &layer{Origin: origin, Dir: dir}
	conf, err := os.ReadFile(filepath.Join(dir, "conf", "layer.conf"))
	if err != nil {
		return nil, err
	}
	for _, a := range assignments(string(conf)) {
		if a.Variable == "BBFILE_COLLECTIONS" {
			l.Collection = strings.TrimSpace(a.Value)
		}
	}
	if !word.MatchString(l.Collection) {
		return nil, fmt.Errorf("%s/conf/layer.conf: BBFILE_COLLECTIONS is %q, want one name", origin, l.Collection)
	}
	for _, group := range []struct {
		folder string
		into   *[]string
	}{{"yoctune", &l.Settings}, {"fragments", &l.Fragments}} {
		files, err := filepath.Glob(filepath.Join(dir, "conf", group.folder, "*.conf"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), ".conf")
			if !word.MatchString(name) {
				return nil, fmt.Errorf("%s/conf/%s: %q is no name for a configuration file", origin, group.folder, name)
			}
			*group.into = append(*group.into, name)
		}
	}
	if l.SettingLines, err = settingLines(dir, l.Settings); err != nil {
		return nil, err
	}
	if len(l.Settings)+len(l.Fragments) == 0 {
		return nil, fmt.Errorf("%s has neither conf/yoctune/*.conf nor conf/fragments/*.conf: there is nothing to switch on (is it a layer made by yoctune build?)", origin)
	}
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(p, dir+string(filepath.Separator)))
		pn, _, _ := strings.Cut(strings.TrimSuffix(d.Name(), path.Ext(d.Name())), "_")
		switch {
		case !strings.HasPrefix(rel, "recipes-"):
		case path.Ext(rel) == ".bb" && word.MatchString(pn):
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			l.Recipes = append(l.Recipes, recipe{Name: pn, File: rel, Text: string(text)})
		case path.Ext(rel) == ".bbappend" && word.MatchString(pn):
			a := bbappend{Name: pn, File: rel}
			if a.Lines, err = appendLines(p, rel); err != nil {
				return err
			}
			l.Appends = append(l.Appends, a)
		case d.Name() == "plan.json":
			doc, err := readPlan(p)
			if err != nil {
				return fmt.Errorf("%s: %w", rel, err)
			}
			l.Machines = append(l.Machines, doc.Machine)
			if doc.Machine == machine {
				l.Plans = append(l.Plans, doc)
			}
		}
		return nil
	})
	return l, err
}

// settingLines reads the assignments of the layer's settings files.
func settingLines(dir string, names []string) (map[string][]line, error) {
	found := map[string][]line{}
	for _, name := range names {
		file := "conf/yoctune/" + name + ".conf"
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		found[name] = named(assignments(string(text)), file)
	}
	return found, nil
}

func readPlan(file string) (*plan.Plan, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return plan.Decode(bytes.NewReader(b))
}

// appendLines returns the assignments of an append and of each file beside it
// that it names: the gate is one line with the name of the real content in it.
func appendLines(file, rel string) ([]line, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := named(assignments(string(text)), rel)
	includes, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.inc"))
	if err != nil {
		return nil, err
	}
	for _, inc := range includes {
		if !bytes.Contains(text, []byte(filepath.Base(inc))) {
			continue
		}
		body, err := os.ReadFile(inc)
		if err != nil {
			return nil, err
		}
		lines = append(lines, named(assignments(string(body)), path.Join(path.Dir(rel), filepath.Base(inc)))...)
	}
	return lines, nil
}

// enableLines switch the layer on, as its README tells its users to.
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

// names reports whether the layer's own recipes spell the name out.
func (l *layer) names(name string) bool {
	spelt := regexp.MustCompile(`(^|[\s"'])` + regexp.QuoteMeta(name) + `($|[\s"'])`)
	return slices.ContainsFunc(l.Recipes, func(r recipe) bool { return spelt.MatchString(r.Text) })
}
