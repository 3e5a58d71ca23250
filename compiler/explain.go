package compiler

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/plan"
)

// Page returns the explanation of a diagnostic or rule.
func Page(id string) (diag.Explanation, bool) {
	if r, ok := check.Find(id); ok {
		return r.Page(), true
	}
	if id == check.SharedMachine {
		return diag.Explanation{
			ID: id, Title: "two targets of a release have the same MACHINE", Severity: "warning, or error when both are built into one layer",
			Cause: "Everything a layer does is chosen by MACHINE, so it can hold one target for each.",
			Fix:   "Build them one at a time with --target, or give one a different machine.",
		}, true
	}
	return diag.Page(id)
}

// PageIDs lists the ids that have a page, sorted.
func PageIDs() []string {
	ids := append(diag.IDs(), check.SharedMachine)
	for _, r := range check.Rules() {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// Account describes one field: its value, where it was set, and its effects.
type Account struct {
	Path     string         `json:"path"`
	Doc      string         `json:"doc,omitempty"`
	Expected string         `json:"expected,omitempty"`
	See      string         `json:"see,omitempty"`
	Value    string         `json:"value,omitempty"`
	Pos      *plan.Position `json:"position,omitempty"`
	Profile  string         `json:"profile,omitempty"` // that gave the value
	Replaced []string       `json:"replaced,omitempty"`
	Notes    []string       `json:"notes,omitempty"`   // from the facts
	Implies  []string       `json:"implies,omitempty"` // what else the field sets
	Touches  []string       `json:"touches,omitempty"` // nodes and files that it affects
	Kernel   string         `json:"kernel,omitempty"`  // predicted outcome of a kernel option
	Settings []plan.Setting `json:"settings,omitempty"`
	Files    []string       `json:"files,omitempty"`
	Rules    []string       `json:"rules,omitempty"` // current diagnostics of the field
}

// ErrNoField is returned for the path of a field that does not exist.
var ErrNoField = errors.New("there is no such field in the configuration or the language")

// Explain describes the field at a path such as targets.cam.sysctl."vm.swappiness".
// Quotes may be left out where the configuration or the language makes the split
// unambiguous.
func (p *Project) Explain(path string) (Account, error) {
	names, err := p.splitPath(path)
	if err != nil {
		return Account{}, err
	}
	a := Account{}
	for _, n := range names {
		a.Path = load.PathOf(a.Path, n)
	}
	doc, known := p.Language.Describe(names)
	if known {
		a.Doc, a.Expected, a.See = doc.Text, doc.Expected, doc.See
	}
	if p.Project == nil {
		return a, nil
	}
	n := p.Root.At(names...)
	if len(names) >= 2 && names[0] == "targets" {
		for _, t := range p.Targets {
			if t.Name == names[1] {
				n = t.Node.At(names[2:]...)
				p.describeTargetField(&a, t, names[2:], n)
				if n == nil && len(a.Settings) > 0 {
					if pos, ok := t.Origins[a.Settings[0].ID]; ok {
						a.Pos = &pos
						a.Notes = append([]string{"the field that is written there implies it"}, a.Notes...)
					}
				}
			}
		}
	}
	if len(names) == 3 && names[0] == "build" && names[1] == "variables" && len(p.Targets) > 0 {
		a.Notes = append(a.Notes, describeVariable(p.Targets[0].Release.Name, names[2])...)
	}
	if names[0] == "build" && n != nil {
		id := strings.Join(names, ".")
		p.addFiles(&a, Selection{}, func(f emitters.File) bool {
			return slices.ContainsFunc(f.Means, func(m emitters.Meaning) bool { return m.ID == id || strings.HasPrefix(m.ID, id+".") })
		})
	}
	if n != nil {
		a.Value = n.Show()
		pos := n.Pos
		a.Pos = &pos
	}
	for _, d := range p.Report.All() {
		if d.Path == a.Path || strings.HasPrefix(d.Path, a.Path+".") {
			a.Rules = append(a.Rules, d.Severity.String()+" "+d.ID+": "+d.Message)
		}
	}
	if n == nil && !known {
		return a, fmt.Errorf("%q: %w", path, ErrNoField)
	}
	if n == nil {
		return a, p.unknownMember(names)
	}
	return a, nil
}

// unknownMember returns an error when a path begins with a target, profile or board that
// the configuration does not have.
func (p *Project) unknownMember(names []string) error {
	if len(names) < 2 || !slices.Contains([]string{"targets", "profiles", "boards"}, names[0]) {
		return nil
	}
	var have []string
	for _, f := range p.Root.Get(names[0]).Members() {
		if f.Name == names[1] {
			return nil
		}
		have = append(have, f.Name)
	}
	err := fmt.Errorf("the configuration has no %s called %q", strings.TrimSuffix(names[0], "s"), names[1])
	if hint := diag.DidYouMean(names[1], have); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// splitPath splits a path into names. Quoted names are literal. Others end at a dot,
// unless the configuration has a name with dots there or a sysctl name follows.
func (p *Project) splitPath(path string) ([]string, error) {
	bad := fmt.Errorf("%q is not a path: write it as in the configuration, names with dots in quotes", path)
	var words []string
	var quoted []bool // by word
	for rest := path; ; {
		if strings.HasPrefix(rest, `"`) {
			text, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, bad
			}
			word, err := strconv.Unquote(text)
			if err != nil {
				return nil, bad
			}
			words, quoted, rest = append(words, word), append(quoted, true), rest[len(text):]
		} else {
			end := strings.IndexByte(rest, '.')
			if end < 0 {
				end = len(rest)
			}
			words, quoted, rest = append(words, rest[:end]), append(quoted, false), rest[end:]
		}
		if words[len(words)-1] == "" {
			return nil, bad
		}
		if rest == "" {
			break
		}
		if rest[0] != '.' || rest == "." {
			return nil, bad
		}
		rest = rest[1:]
	}
	return p.joinWords(words, quoted), nil
}

// joinWords joins unquoted words that form one name.
func (p *Project) joinWords(words []string, quoted []bool) []string {
	var names []string
	for i := 0; i < len(words); {
		take := 1
		for j := len(words); j > i+1; j-- {
			if !slices.Contains(quoted[i:j], true) && p.hasField(append(slices.Clone(names), strings.Join(words[i:j], "."))) {
				take = j - i
				break
			}
		}
		if take == 1 && len(names) > 0 && names[len(names)-1] == "sysctl" && !slices.Contains(quoted[i:], true) {
			take = len(words) - i // the configuration does not set it, and sysctls have no fields
		}
		names = append(names, strings.Join(words[i:i+take], "."))
		i += take
	}
	return names
}

// hasField reports whether the configuration has a value at a path.
func (p *Project) hasField(names []string) bool {
	if p.Config == nil || p.Config.Root == nil {
		return false
	}
	if p.Config.Root.At(names...) != nil {
		return true
	}
	if p.Project == nil || len(names) < 3 || names[0] != "targets" {
		return false
	}
	for _, t := range p.Targets {
		if t.Name == names[1] && t.Node.At(names[2:]...) != nil {
			return true
		}
	}
	return false
}

// describeTargetField adds what a target's field replaces, implies and makes.
func (p *Project) describeTargetField(a *Account, t *resolve.Target, names []string, n *load.Node) {
	id := strings.Join(names, ".")
	if id == "" {
		return
	}
	for _, f := range p.Root.Get("profiles").Members() {
		if n != nil && f.Value.At(names...) == n {
			a.Profile = f.Name
		}
	}
	within := func(other string) bool { return other == id || strings.HasPrefix(other, id+".") }
	// A field is the origin of what has its name, and of what carries its position.
	causes := func(other string) bool { return within(other) || n != nil && t.Origins[other] == n.Pos }
	for _, o := range t.Replaced {
		if within(o.ID) {
			a.Replaced = append(a.Replaced, fmt.Sprintf("%s: profile %s sets %s at %s", o.ID, o.Profile, o.Was, FormatPosition(o.Position)))
		}
	}
	p.addFacts(a, t, names)
	p.addImplied(a, t, id, n)
	for _, s := range t.Plan.Settings {
		if causes(s.ID) {
			a.Settings = append(a.Settings, s)
		}
	}
	// The file of a service or a mount has all its fields.
	isFileOf := func(other string) bool {
		return (strings.HasPrefix(other, "services.") || strings.HasPrefix(other, "tmpfs.")) && strings.HasPrefix(id, other+".")
	}
	p.addFiles(a, Selection{Target: t.Name}, func(f emitters.File) bool {
		return slices.ContainsFunc(f.Origins, func(o emitters.Ref) bool { return o.Target == t.Name && (causes(o.ID) || isFileOf(o.ID)) })
	})
}

// addFiles adds the files of the selected targets that a field makes, with their places on the device.
func (p *Project) addFiles(a *Account, of Selection, makes func(emitters.File) bool) {
	for _, l := range p.Outlines(of) {
		for _, f := range l.Files {
			if !makes(f) {
				continue
			}
			where := f.Path
			if f.Install != nil {
				where += " -> " + f.Install.DevicePath()
			}
			if !slices.Contains(a.Files, where) {
				a.Files = append(a.Files, where)
			}
		}
	}
}

// addImplied adds the kernel options and arguments that a field implies.
func (p *Project) addImplied(a *Account, t *resolve.Target, id string, n *load.Node) {
	if n == nil || strings.HasPrefix(id, "kernel.config") || strings.HasPrefix(id, "kernel.args") {
		return
	}
	for _, o := range t.Kernel.Config {
		if t.Origins["kernel.config."+o.Symbol] == n.Pos || n.At("algorithm") != nil && t.Origins["kernel.config."+o.Symbol] == n.At("algorithm").Pos {
			a.Implies = append(a.Implies, "kernel.config."+o.Symbol+" = "+o.Value)
		}
	}
	for _, arg := range t.Kernel.Args {
		if t.Origins["kernel.args."+arg.Name] == n.Pos {
			a.Implies = append(a.Implies, strings.TrimSuffix("kernel.args."+arg.Name+" = "+arg.Value, " = "))
		}
	}
}

// addFacts adds the facts about the thing that a field names.
func (p *Project) addFacts(a *Account, t *resolve.Target, names []string) {
	last := names[len(names)-1]
	switch parent := strings.Join(names[:len(names)-1], "."); {
	case parent == "sysctl":
		addSysctlFacts(a, t, last)
	case parent == "kernel.config":
		a.Kernel = p.predictOption(t, last)
	case parent == "kernel.args":
		a.Notes = append(a.Notes, describeArg(t.Release.Kernel, last)...)
		addArgFacts(a, t, last)
	case parent == "modules":
		a.Notes = append(a.Notes, describeModule(t.Release.Kernel, last)...)
	case parent == "" && last == "board":
		a.Notes = append(a.Notes, describeBoard(t.Board.ID)...)
	case parent == "" && last == "release":
		a.Notes = append(a.Notes, describeRelease(t.Release.Name)...)
	case len(names) >= 2 && names[0] == "power" && names[1] == "modes":
		addModeFacts(a, t, names[2:])
	case parent == "cpu" && (last == "min" || last == "max"), parent == "gpu" && last != "governor":
		a.Touches = append(a.Touches, "the same files as the power mode's clock limits")
	}
}

// addModeFacts describes the switches to and from a power mode, or all modes of the target.
func addModeFacts(a *Account, t *resolve.Target, field []string) {
	for _, m := range t.Plan.Power.Modes {
		switch {
		case len(field) > 0 && field[0] != m.Name:
		case len(m.Reboot) == 0:
			a.Touches = append(a.Touches, m.Name+": switching to or from any other mode works while the device runs")
		default:
			a.Touches = append(a.Touches, m.Name+": needs a reboot from or to "+strings.Join(m.Reboot, ", ")+", whose GPU mask differs")
		}
	}
}

// addArgFacts describes how a kernel argument reaches the target's kernel.
func addArgFacts(a *Account, t *resolve.Target, name string) {
	way := t.Release.ArgPath(t.Board.SoC)
	a.Notes = append(a.Notes, "reaches the kernel by "+way.Text(), "is appended to "+way.Variable+", after the machine's own arguments")
	for _, c := range way.Carriers {
		a.Notes = append(a.Notes, c.Name+": meta-tegra "+c.Source)
	}
	if way.Reads(name) {
		a.Notes = append(a.Notes, "the BSP's initial file system reads it; root is "+way.Root)
	}
}

// addSysctlFacts adds the facts about a kernel parameter.
func addSysctlFacts(a *Account, t *resolve.Target, key string) {
	f, ok := sysctl.Lookup(key)
	if !ok {
		a.Notes = append(a.Notes, "no facts about this sysctl")
		return
	}
	in := f.PresenceIn(t.Release.Kernel)
	if in.State == sysctl.Present {
		a.Expected = check.DescribeSysctl(f, in)
	}
	a.Doc = f.Note
	a.Notes = append(a.Notes, fmt.Sprintf("%s in kernel %s (%s), from %s", in.State, t.Release.Kernel, in.Tree, f.Source))
	if f.Config != "" {
		a.Notes = append(a.Notes, "needs "+f.Config+" in the kernel")
	}
	if f.Module != "" {
		a.Notes = append(a.Notes, "module "+f.Module)
	}
	for _, tag := range f.Tags {
		a.Notes = append(a.Notes, sysctlTrait(tag))
	}
	if value, ok := release.LaterSysctl(key); ok {
		a.Notes = append(a.Notes, release.LaterSysctlFile+" of procps-sysctl, which is read later, sets it to "+value)
	}
	for _, other := range f.Excludes {
		a.Touches = append(a.Touches, other+": writing one sets the other to 0")
	}
	switch key {
	case "net.core.default_qdisc":
		a.Touches = append(a.Touches, "interfaces that come up afterwards; those that are up keep their queue")
	case "vm.swappiness":
		a.Touches = append(a.Touches, "the balance between swapping and dropping caches, for every process")
	}
}

// predictOption describes the predicted outcome of a kernel option of the target.
func (p *Project) predictOption(t *resolve.Target, symbol string) string {
	for _, q := range check.Predictions(t, p.book) {
		if q.Symbol != symbol {
			continue
		}
		text := string(q.Outcome) + " in kernel " + t.Release.Kernel
		if q.Cause != "" {
			text += ": " + q.Cause
		}
		if q.Note != "" {
			text += " (" + q.Note + ")"
		}
		return text
	}
	return ""
}

// FormatPosition formats a position as FILE:LINE:COLUMN, which editors understand.
func FormatPosition(p plan.Position) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// PathsAt lists the fields written on a line of the configuration, such as
// config.cue:12, as paths; fields of profiles as well.
func (p *Project) PathsAt(place string) []string {
	file, number, _ := strings.Cut(place, ":")
	line, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	var paths []string
	p.walkFields(func(path string, n *load.Node) {
		if n.Pos.File == file && n.Pos.Line == line {
			paths = append(paths, path)
		}
	})
	return paths
}

// LinesOf lists the lines of a file of the configuration on which fields are set.
func (p *Project) LinesOf(file string) []int {
	var lines []int
	p.walkFields(func(_ string, n *load.Node) {
		if n.Pos.File == file {
			lines = append(lines, n.Pos.Line)
		}
	})
	slices.Sort(lines)
	return slices.Compact(lines)
}

// Paths lists the fields that the configuration sets.
func (p *Project) Paths() []string {
	var paths []string
	p.walkFields(func(path string, _ *load.Node) { paths = append(paths, path) })
	return paths
}

// walkFields calls f for each field of the configuration that holds a value.
func (p *Project) walkFields(f func(path string, n *load.Node)) {
	var walk func(n *load.Node, path string)
	walk = func(n *load.Node, path string) {
		for _, field := range n.Fields {
			sub := load.PathOf(path, field.Name)
			if field.Value.Kind != load.Struct {
				f(sub, field.Value)
			}
			walk(field.Value, sub)
		}
	}
	if p.Config != nil && p.Config.Root != nil {
		walk(p.Config.Root, "")
	}
}

// sysctlTrait describes a tag of the facts.
func sysctlTrait(tag string) string {
	switch tag {
	case sysctl.WriteOnly:
		return "cannot be read back"
	case sysctl.ReadOnly:
		return "can only be read"
	case sysctl.OneShot:
		return "takes effect at the time of the write, as far as the kernel can"
	case sysctl.Sticky:
		return "cannot be reverted before the next boot"
	case sysctl.NetNS:
		return "one for each network namespace: a container with its own network starts with the kernel's default"
	case sysctl.IPCNS:
		return "one for each IPC namespace: a container with its own IPC namespace starts with the kernel's default"
	case sysctl.UserNS:
		return "one for each user namespace"
	case sysctl.Vector:
		return "several numbers in one file"
	case sysctl.Mask:
		return "a set of bits or CPUs"
	case sysctl.Moved:
		return "newer kernels have it elsewhere"
	case sysctl.FromMod:
		return "appears when its module is loaded"
	case sysctl.AutoLoad:
		return "writing a name loads the module of that name, if the image has it"
	}
	return tag
}
