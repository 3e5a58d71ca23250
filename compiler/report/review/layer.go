package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/schema/plan"
)

// Files is a generated layer: content by path, slash separated.
type Files map[string][]byte

// Side is one of the two layers that are compared.
type Side struct {
	Label   string // how messages call it: a folder, a revision, a target
	Files   Files
	Origins plan.Origins // of layer.* and build.*, which no file of the layer keeps
}

// layer is what the files of a layer say, read back from them: a layer that was
// committed, or edited, is judged by what it holds and not by what it once came
// from.
type layer struct {
	name    string
	vars    []variable // of the settings file that are for every machine
	targets map[string]*target
	common  map[string]string  // packages of every target, as those of one
	program map[string]program // recipes of yoctune's own programs, by name
	service map[string]unit    // units that come with them
	origins plan.Origins       // of what is the layer's and not a target's
}

// program is what a recipe of one of yoctune's programs builds.
type program struct {
	version string
	sums    string // of what it fetches
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
	units    map[string]unit
	packages map[string]string // name to "install" or "recommend", and where
	blocked  map[string]string // modules that are not loaded by their alias
	models   map[string]string // digest by address
	keys     map[string]string // public keys that the device accepts, by name
	vars     []variable
}

// variable is an assignment in the settings file.
type variable struct{ name, value string }

// parse reads a layer. A file that cannot be read is an error: a review that
// leaves something out is worse than none.
func parse(files Files) (*layer, error) {
	l := &layer{targets: map[string]*target{}, common: map[string]string{}, program: map[string]program{}, service: map[string]unit{}}
	for _, name := range files.paths() {
		if path.Base(name) != "plan.json" {
			continue
		}
		p, err := plan.Decode(bytes.NewReader(files[name]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		machine := machineOf(name)
		t := &target{Plan: p, machine: machine, in: l, kernel: map[string]string{}, units: map[string]unit{}, packages: map[string]string{},
			blocked: map[string]string{}, models: map[string]string{}, keys: map[string]string{}}
		if raw, ok := files[strings.TrimSuffix(name, ".json")+".origins.json"]; ok {
			if err := json.Unmarshal(raw, &t.origins); err != nil {
				return nil, fmt.Errorf("%s: %w", strings.TrimSuffix(name, ".json")+".origins.json", err)
			}
		}
		l.targets[machine] = t
		l.name = p.Layer
	}
	for _, name := range files.paths() {
		l.file(name, files[name])
	}
	for _, t := range l.targets {
		t.recipes = t.kernelRecipes(files)
		for name, how := range l.common {
			if t.packages[name] == "" {
				t.packages[name] = how
			}
		}
	}
	return l, nil
}

// machineOf is the folder below files/ that a file lies in, directly or in a
// folder that is taken whole.
func machineOf(name string) string {
	dir := path.Dir(name)
	if folder := path.Base(dir); (folder == "plan" || folder == "keys") && path.Base(path.Dir(path.Dir(dir))) == "files" {
		dir = path.Dir(dir)
	}
	return path.Base(dir)
}

// paths lists the files in order.
func (f Files) paths() []string {
	out := make([]string, 0, len(f))
	for name := range f {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (l *layer) file(name string, data []byte) {
	t := l.targets[machineOf(name)]
	base := path.Base(name)
	switch {
	case strings.HasPrefix(name, "recipes-kernel/") && strings.HasSuffix(name, ".cfg") && t != nil:
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if symbol, ok := strings.CutSuffix(strings.TrimPrefix(line, "# CONFIG_"), " is not set"); ok && strings.HasPrefix(line, "# CONFIG_") {
				t.kernel[symbol] = "n"
			} else if symbol, value, ok := strings.Cut(line, "="); ok && strings.HasPrefix(symbol, "CONFIG_") {
				t.kernel[strings.TrimPrefix(symbol, "CONFIG_")] = value
			}
		}
	case strings.HasSuffix(base, ".pub") && path.Base(path.Dir(name)) == "keys" && t != nil:
		if k, err := signature.ParseKey(data); err == nil {
			t.keys[strings.TrimSuffix(base, ".pub")] = k.ID()
		} else {
			t.keys[strings.TrimSuffix(base, ".pub")] = "no key"
		}
	case unitFile(base) && t != nil:
		t.units[base] = parseUnit(string(data))
	case strings.HasPrefix(name, "conf/yoctune/") && strings.HasSuffix(name, ".conf"):
		l.settings(string(data))
	case strings.HasPrefix(base, "packagegroup-") && strings.HasSuffix(base, ".bb"):
		l.packages(string(data), "")
	case strings.HasPrefix(name, "dynamic-layers/") && strings.HasSuffix(base, ".bbappend"):
		l.packages(string(data), strings.Split(name, "/")[1])
	case base == "yoctune-modprobe.conf" && t != nil:
		for line := range strings.Lines(string(data)) {
			if module, ok := strings.CutPrefix(strings.TrimSpace(line), "blacklist "); ok {
				t.blocked[module] = "blacklist"
			}
		}
	case strings.HasSuffix(path.Dir(name), "-models") && strings.HasSuffix(base, ".bb"):
		l.models(string(data))
	case slices.Contains(programs, path.Base(path.Dir(name))) && strings.HasSuffix(base, ".bb"):
		l.recipe(strings.TrimSuffix(base, ".bb"), string(data))
	case strings.HasPrefix(name, "recipes-yoctune/yoctuned/files/") && strings.HasSuffix(base, ".service"):
		l.service[base] = parseUnit(string(data))
	}
}

// programs are the folders of the recipes of yoctune's own programs.
var programs = []string{"yoctuned", "yoctune-cuda"}

// recipe reads what a program's recipe fetches.
func (l *layer) recipe(name, text string) {
	pn, version, _ := strings.Cut(name, "_")
	p := program{version: version}
	for v := range assignments(text) {
		if strings.HasPrefix(v.name, "SRC_URI[") {
			p.sums += v.value
		}
	}
	l.program[pn] = p
}

// models reads the addresses and digests of the models recipe.
func (l *layer) models(text string) {
	for v := range assignments(text) {
		t := l.override(v.name)
		if t == nil || !strings.HasPrefix(v.name, "SRC_URI:append:") {
			continue
		}
		for _, uri := range strings.Fields(v.value) {
			address, rest, _ := strings.Cut(uri, ";downloadfilename=yoctune-")
			sum, _, _ := strings.Cut(rest, ";")
			t.models[address] = sum
		}
	}
}

// settings reads the assignments of conf/yoctune/<layer>.conf: of a machine
// where the last override names one, otherwise of the build.
func (l *layer) settings(text string) {
	for v := range assignments(text) {
		t := l.override(v.name)
		switch {
		case t == nil:
			l.vars = append(l.vars, v)
		case strings.HasPrefix(v.name, "PREFERRED_PROVIDER_virtual/kernel:"):
			t.provider = v.value
		case strings.HasPrefix(v.name, "KERNEL_ARGS:append:"):
			// the plan has the arguments one by one
		default:
			t.vars = append(t.vars, variable{v.name[:strings.LastIndexByte(v.name, ':')], v.value})
		}
	}
}

// override is the target that the last override of a variable means. Layers of
// before there were overrides of one machine alone name the machine itself.
func (l *layer) override(name string) *target {
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return nil
	}
	return l.targets[strings.TrimPrefix(name[i+1:], quote.OverridePrefix)]
}

// packages reads a package group, or the append to it that is read where a
// collection is present.
func (l *layer) packages(text, collection string) {
	for v := range assignments(text) {
		into := l.common
		if t := l.override(v.name); t != nil {
			into = t.packages
		}
		how := ""
		switch {
		case strings.HasPrefix(v.name, "RDEPENDS:"):
			how = "install"
		case strings.HasPrefix(v.name, "RRECOMMENDS:"):
			how = "recommend"
		default:
			continue
		}
		if collection != "" {
			how += where + collection
		}
		for _, p := range strings.Fields(v.value) {
			into[p] = how
		}
	}
}

// where stands between what is done with a package and the collection that must be
// present for it.
const where = " with the layer "

// assignments reads `NAME = "value"` and `NAME[flag] = "value"` in any of
// bitbake's operators, with the lines a backslash joins.
func assignments(text string) func(func(variable) bool) {
	return func(yield func(variable) bool) {
		joined := strings.ReplaceAll(text, "\\\n", " ")
		for line := range strings.Lines(joined) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") {
				continue
			}
			left, right, ok := strings.Cut(line, "=")
			if !ok || len(right) < 2 {
				continue
			}
			name := strings.TrimRight(left, " +?:.")
			value := strings.TrimSpace(right)
			value = strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`)
			if !yield(variable{name, strings.TrimSpace(value)}) {
				return
			}
		}
	}
}

// kernelRecipes lists the recipes whose appends build this target's kernel.
func (t *target) kernelRecipes(files Files) []string {
	if t.provider != "" {
		return []string{t.provider}
	}
	var plain, rt []string
	for _, name := range files.paths() {
		if !strings.HasPrefix(name, "recipes-kernel/") || !strings.HasSuffix(name, ".bbappend") {
			continue
		}
		pn, _, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".bbappend"), "_")
		if strings.HasSuffix(pn, "-rt") {
			rt = append(rt, pn)
		} else {
			plain = append(plain, pn)
		}
	}
	if len(plain) == 0 {
		plain = rt
	}
	return plain
}

// unit is a systemd unit: values by section and key, in order of appearance.
type unit struct {
	keys   []string // "Service.Nice"
	values map[string][]string
}

func unitFile(name string) bool {
	// Files of the runtime itself follow from other settings and from pipelines.
	return !strings.HasPrefix(name, "yoctune-") && !strings.HasPrefix(name, "yoctuned") && (strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".slice") ||
		strings.Contains(name, ".service.d-") || strings.Contains(name, ".slice.d-"))
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

// addition is the name of a unit as people call it: what is added to one of somebody
// else's lies in a file of another name.
func addition(name string) string {
	if base, _, ok := strings.Cut(name, ".d-"); ok {
		return base + ", drop-in"
	}
	return name
}

func (u unit) get(key string) string { return strings.Join(u.values[key], " ") }

// origin finds the line that asked for a part: its own, or that of the nearest
// part around it.
func origin(o plan.Origins, id string) *plan.Position {
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
