package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

// Side is one of the two layers that are compared.
type Side struct {
	Label   string          // how messages call it: a folder, a revision, a target
	Files   []emitters.File // with what they mean; see [manifest.Describe]
	Origins plan.Origins    // of layer.* and build.*; nil where only the layer is available
}

// layer is what the files of a layer mean, target by target. The plan has most of
// it; the manifest has the rest.
type layer struct {
	name    string
	files   map[string]emitters.File // with what they mean, by path
	vars    []variable               // of the settings file that are for every machine
	targets map[string]*target
	common  map[string]string  // packages of every target, as those of one
	program map[string]program // yoctune's own programs, by name
	service map[string]unit    // units that come with them
	origins plan.Origins       // of what is the layer's and not a target's
}

// Folders of the settings file, and of the units that come with the programs.
const (
	settingsFiles = "conf/yoctune/"
	programFiles  = "recipes-yoctune/yoctuned/files/"
)

// program is one of yoctune's programs, as a recipe installs it.
type program struct {
	version string
	sums    string // of what is fetched
}

// target is one machine of a layer.
type target struct {
	*plan.Plan
	origins  plan.Origins
	machine  string
	in       *layer
	kernel   map[string]string // symbol to value
	recipes  []string          // kernel recipes that the layer appends to
	provider string
	units    map[string]unit   // by file
	packages map[string]string // name to "install" or "recommend", and where
	ids      map[string]string // part of the configuration behind each package
	blocked  map[string]string // modules that are not loaded by their alias
	models   map[string]string // digest by address
	keys     map[string]string // public keys that the device accepts, by name
	vars     []variable
	other    map[string]emitters.Meaning // of kinds that have no field here, by kind and name
}

// variable is an assignment in the settings file.
type variable struct{ name, value, id string }

// read collects what a layer means. A file that cannot be read is an error: a
// review with gaps would mislead.
func read(side Side) (*layer, error) {
	files := manifest.Describe(side.Files, nil)
	slices.SortFunc(files, func(a, b emitters.File) int { return strings.Compare(a.Path, b.Path) })
	l := &layer{files: map[string]emitters.File{}, targets: map[string]*target{}, common: map[string]string{}, program: map[string]program{}, service: map[string]unit{},
		origins: maps.Clone(side.Origins)}
	for _, f := range files {
		if path.Base(f.Path) != "plan.json" {
			continue
		}
		p, err := plan.Decode(bytes.NewReader(f.Data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		t := &target{Plan: p, machine: f.Machine, in: l, kernel: map[string]string{}, units: map[string]unit{}, packages: map[string]string{},
			ids: map[string]string{}, blocked: map[string]string{}, models: map[string]string{}, keys: map[string]string{},
			other: map[string]emitters.Meaning{}}
		name := strings.TrimSuffix(f.Path, ".json") + ".origins.json"
		if i := slices.IndexFunc(files, func(f emitters.File) bool { return f.Path == name }); i >= 0 {
			if err := json.Unmarshal(files[i].Data, &t.origins); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		l.targets[f.Machine] = t
		l.name = p.Layer
	}
	var kernels []string
	for _, f := range files {
		l.files[f.Path] = f
		if err := manifest.CheckSize(f); err != nil {
			return nil, err
		}
		for _, m := range f.Means {
			if m.Machine == "" {
				m.Machine = f.Machine
			}
			l.add(f, m)
			if m.Kind == emitters.Append && strings.HasPrefix(f.Path, "recipes-kernel/") {
				kernels = append(kernels, m.Name)
			}
		}
	}
	for _, t := range l.targets {
		t.recipes = kernelRecipes(t.provider, kernels)
		for name, how := range l.common {
			if t.packages[name] == "" {
				t.packages[name] = how
			}
		}
	}
	return l, nil
}

// add takes in one meaning of a file.
func (l *layer) add(f emitters.File, m emitters.Meaning) {
	t := l.targets[m.Machine]
	l.keepOrigin(t, m)
	switch {
	case m.Kind == emitters.Unit:
		l.addUnit(t, f, m)
	case m.Kind == emitters.Package:
		l.addPackage(t, m)
	case m.Kind == emitters.Program, m.Kind == emitters.Licences:
		p := l.program[m.Name]
		if m.Kind == emitters.Program {
			p.version = m.Value
		}
		p.sums += m.SHA256
		l.program[m.Name] = p
	case m.Kind == emitters.Variable:
		if strings.HasPrefix(f.Path, settingsFiles) {
			l.addVariable(t, m)
		}
	case slices.Contains(elsewhere, m.Kind):
	case t == nil:
		for _, t := range l.targets {
			t.other[string(m.Kind)+" "+m.Name] = m
		}
	case m.Kind == emitters.Option:
		t.kernel[m.Name] = m.Value
	case m.Kind == emitters.Key:
		t.keys[m.Name] = m.Value
	case m.Kind == emitters.Module:
		if m.Value == "blacklist" {
			t.blocked[m.Name] = m.Value
		}
	case m.Kind == emitters.Model:
		t.models[m.Value] = m.SHA256
	default:
		t.other[string(m.Kind)+" "+m.Name] = m
	}
}

// elsewhere are the kinds that the plan has in full, and those about the build of
// the layer itself.
var elsewhere = []emitters.Kind{emitters.Setting, emitters.Argument, emitters.Mode, emitters.Profile, emitters.Pipeline, emitters.Plan,
	emitters.Recipe, emitters.Append, emitters.Layer}

// keepOrigin keeps the line of a meaning whose part has no origin.
func (l *layer) keepOrigin(t *target, m emitters.Meaning) {
	i := strings.LastIndexByte(m.From, ':')
	n, err := strconv.Atoi(m.From[i+1:])
	if i < 0 || err != nil {
		return
	}
	into := &l.origins
	if t != nil {
		into = &t.origins
	}
	if *into == nil {
		*into = plan.Origins{}
	}
	if _, known := (*into)[m.Part()]; !known {
		(*into)[m.Part()] = plan.Position{File: m.From[:i], Line: n}
	}
}

// addUnit takes in a unit of a target, or of one of yoctune's programs.
func (l *layer) addUnit(t *target, f emitters.File, m emitters.Meaning) {
	base := path.Base(f.Path)
	var u unit
	switch m.Value {
	case "enabled": // the file is the recipe that does it
		base = m.Name
		u = unit{keys: []string{"starts"}, values: map[string][]string{"starts": {"at boot"}}}
	default:
		u = parseUnit(string(f.Data))
	}
	u.name, u.id = m.Name, m.ID
	if m.Value == "drop-in" {
		u.name += ", drop-in"
	}
	switch {
	case t != nil:
		t.units[base] = u
	case t == nil && strings.HasPrefix(f.Path, programFiles):
		l.service[base] = u
	}
}

// where joins the action on a package and the collection that must be present for it.
const where = " with the layer "

func (l *layer) addPackage(t *target, m emitters.Meaning) {
	how := m.Value
	switch {
	case how == "exclude": // the variable of the settings file shows it
		return
	case m.With != "":
		how += where + m.With
	}
	if t == nil {
		l.common[m.Name] = how
		for _, t := range l.targets {
			t.ids[m.Name] = m.Part()
		}
		return
	}
	t.packages[m.Name], t.ids[m.Name] = how, m.Part()
}

// addVariable adds an assignment of conf/yoctune/<layer>.conf.
func (l *layer) addVariable(t *target, m emitters.Meaning) {
	switch {
	case t == nil:
		l.vars = append(l.vars, variable{m.Name, m.Value, m.ID})
	case strings.HasPrefix(m.Name, "PREFERRED_PROVIDER_virtual/kernel:"):
		t.provider = m.Value
	case strings.HasPrefix(m.Name, "KERNEL_ARGS:append:"), strings.HasPrefix(m.Name, "KERNEL_ARGS:remove:"):
		// the plan has the arguments one by one
	default:
		t.vars = append(t.vars, variable{m.Name[:strings.LastIndexByte(m.Name, ':')], m.Value, m.ID})
	}
}

// kernelRecipes lists the recipes whose appends build a target's kernel.
func kernelRecipes(provider string, appended []string) []string {
	if provider != "" {
		return []string{provider}
	}
	var plain, rt []string
	for _, pn := range appended {
		if strings.HasSuffix(pn, "-rt") {
			rt = append(rt, pn)
		} else {
			plain = append(plain, pn)
		}
	}
	if len(plain) == 0 {
		return rt
	}
	return plain
}

// unit is a systemd unit: values by section and key, in order of appearance.
type unit struct {
	name   string   // as the review calls it
	id     string   // part of the configuration
	keys   []string // "Service.Nice"
	values map[string][]string
}

func parseUnit(text string) unit {
	u := unit{values: map[string][]string{}}
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			key, value, _ := strings.Cut(line, "=")
			key = section + "." + key
			if _, ok := u.values[key]; !ok {
				u.keys = append(u.keys, key)
			}
			u.values[key] = append(u.values[key], value)
		}
	}
	return u
}

func (u unit) get(key string) string { return strings.Join(u.values[key], " ") }

// findOrigin returns the position of a part: its own, or that of the nearest part
// around it.
func findOrigin(o plan.Origins, id string) *plan.Position {
	for id != "" {
		if p, ok := o[id]; ok {
			return &p
		}
		i := strings.LastIndexByte(id, '.')
		if i < 0 {
			return nil
		}
		id = id[:i]
	}
	return nil
}
