package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	facts "github.com/yoctune/yoctune/schema/facts/variable"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// compare finds what changes on a device, most important areas first.
func compare(was, now *target) []Change {
	c := &comparison{was: was, now: now}
	c.compareDevice()
	c.compareKeys()
	c.comparePower()
	c.compareKernel()
	c.compareSettings()
	c.compareServices()
	c.comparePrograms()
	c.comparePackages()
	c.compareModels()
	c.comparePipelines()
	c.comparePipelineUnits()
	c.compareRest()
	return c.out
}

type comparison struct {
	was, now *target
	out      []Change
}

// config is the recipe that carries the files of the plan.
func (c *comparison) config() string { return "yoctune-" + c.now.Layer + "-config" }

// modelsRecipe is the recipe that carries the files of pipelines.
func (c *comparison) modelsRecipe() string { return "yoctune-" + c.now.Layer + "-models" }

// add completes a change with its kind, its origin and its risk. The position is
// that of the new configuration, or of the old one for what is gone.
func (c *comparison) add(ch Change) {
	ch.Kind = kindOf(ch.Was, ch.Now)
	from := []*target{c.now, c.was}
	if ch.Kind == Removed {
		slices.Reverse(from)
	}
	for _, t := range from {
		if ch.Origin == nil {
			ch.Origin = cmp.Or(findOrigin(t.origins, ch.ID), findOrigin(t.in.origins, ch.ID))
		}
	}
	ch.Risk, ch.Why = risk(ch)
	c.out = append(c.out, ch)
}

func kindOf(was, now string) Kind {
	switch {
	case was == "" && now != "":
		return Added
	case now == "" && was != "":
		return Removed
	}
	return Changed
}

// eachKey calls each for the keys of two maps, in order.
func eachKey[V any](a, b map[string]V, each func(key string)) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		each(k)
	}
}

func (c *comparison) compareDevice() {
	for _, f := range []struct{ id, name, was, now string }{
		{"board", "board", c.was.Board, c.now.Board},
		{"machine", "machine", c.was.machine, c.now.machine},
		{"release", "release", c.was.Release, c.now.Release},
		{"release", "L4T", c.was.L4T, c.now.L4T},
	} {
		if f.was != f.now {
			c.add(Change{Area: "device", ID: f.id, Name: f.name, Was: f.was, Now: f.now, Need: reflash, Rebuild: []string{"everything"}})
		}
	}
	if c.was.Serial != c.now.Serial {
		// It is in the version of each recipe with parts of the plan.
		recipes := []string{c.config(), "packagegroup-yoctune-" + c.now.Layer}
		if len(c.now.models) > 0 {
			recipes = append(recipes, c.modelsRecipe())
		}
		c.add(Change{Area: "plan", ID: "layer.serial", Name: "serial", Was: fmt.Sprint(c.was.Serial), Now: fmt.Sprint(c.now.Serial), Rebuild: recipes})
	}
	if c.was.Rollback != c.now.Rollback {
		c.add(Change{Area: "plan", ID: "rollback", Name: "rollback", Was: c.was.Rollback, Now: c.now.Rollback, Rebuild: []string{c.config()}})
	}
}

// compareKeys compares the keys whose plans the device accepts.
func (c *comparison) compareKeys() {
	eachKey(c.was.keys, c.now.keys, func(name string) {
		if a, b := c.was.keys[name], c.now.keys[name]; a != b {
			c.add(Change{Area: "trust", ID: "runtime.keys." + name, Name: "key " + name, Was: a, Now: b, Rebuild: []string{c.config()}})
		}
	})
}

// areas names the domains of settings.
var areas = map[string]string{
	plan.DomainSysctl: "sysctl", plan.DomainCPU: "cpu", plan.DomainGPU: "gpu", plan.DomainDevfreq: "devfreq", plan.DomainMemory: "memory",
	plan.DomainStorage: "storage", plan.DomainIRQ: "interrupts", plan.DomainNetwork: "network",
	plan.DomainKernel: "kernel argument", plan.DomainModule: "module", plan.DomainKnob: "knob",
	plan.DomainThread: "kernel thread", plan.DomainBus: "bus", plan.DomainPower: "power mode", plan.DomainUnit: "service",
}

func settingsOf(p *plan.Plan) map[string]plan.Setting {
	out := map[string]plan.Setting{}
	for _, s := range p.Settings {
		out[s.ID] = s
	}
	return out
}

func (c *comparison) compareSettings() {
	was, now := settingsOf(c.was.Plan), settingsOf(c.now.Plan)
	eachKey(was, now, func(id string) {
		a, old := was[id]
		b, new := now[id]
		if old && new && a == b || a.Select.Class == "config" || b.Select.Class == "config" {
			return // options are compared where the kernel's recipe gets them
		}
		s := b
		if !new {
			s = a
		}
		ch := Change{Area: areas[s.Domain], ID: id, Name: id[strings.IndexByte(id, '.')+1:], Rebuild: []string{c.config()}}
		switch {
		case strings.HasPrefix(id, "kernel.args."):
			ch.Name = strings.TrimPrefix(ch.Name, "args.")
			ch.Rebuild = append(ch.Rebuild, "the boot image (not in any package)")
		case s.Domain == plan.DomainKernel:
			ch.Area = "kernel"
			if id == "kernel.preempt" {
				ch.Name = "preemption"
			}
			ch.Rebuild = append(ch.Rebuild, c.now.recipes...)
		}
		if old {
			ch.Was = formatSetting(a)
		}
		if new {
			ch.Now = formatSetting(b)
		}
		if s.IsRemoval() { // without the setting, the argument comes back
			ch.Was, ch.Now = cmp.Or(ch.Was, "as the BSP sets it"), cmp.Or(ch.Now, "as the BSP sets it")
		}
		switch {
		case s.Needs != plan.NeedsNothing:
			ch.Need = reboot // a new kernel is among the new files
		case !new && c.now.Rollback != "on-stop":
			ch.Need = reboot // nothing puts the kernel's own value back while it runs
		}
		if old && new {
			for _, d := range []Detail{
				{"compare", a.Compare, b.Compare}, {"policy", a.Policy, b.Policy}, {"needs", a.Needs, b.Needs},
				{"optional", fmt.Sprint(a.Optional), fmt.Sprint(b.Optional)}, {"node", formatNode(a.Select), formatNode(b.Select)},
			} {
				if d.Was != d.Now {
					ch.Details = append(ch.Details, d)
				}
			}
		}
		c.add(ch)
	})
}

// formatSetting writes the value of a setting for people. An argument without a
// value is "present".
func formatSetting(s plan.Setting) string {
	switch {
	case s.Type == plan.TypePresent && s.Want == "1":
		return "present"
	case s.Type == plan.TypePresent:
		return "removed"
	case s.ID == "bus.usb.autosuspend" && s.Want == "-1":
		return "never"
	case strings.HasPrefix(s.ID, "network.") && strings.Contains(s.ID, ".offloads."):
		return map[string]string{"0": "off", "1": "on"}[s.Want]
	case s.Want == "":
		return `""`
	case s.ID == "kernel.preempt":
		return "real time"
	case s.Type == plan.TypeCPUMask:
		return formatCores(s.Want)
	}
	n, err := strconv.ParseInt(s.Want, 10, 64)
	if err != nil {
		return s.Want
	}
	switch {
	case strings.HasPrefix(s.ID, "tmpfs."):
		return showSize(n)
	case s.ID == "bus.usb.memory":
		return showSize(n << 20)
	case s.ID == "bus.usb.autosuspend":
		return (time.Duration(n) * time.Second).String()
	}
	switch s.ID[strings.LastIndexByte(s.ID, '.')+1:] {
	case "zram":
		return showSize(n)
	case "readahead":
		return showSize(n << 10)
	case "maxIdleLatency":
		return (time.Duration(n) * time.Microsecond).String()
	case "mglruMinTTL":
		return (time.Duration(n) * time.Millisecond).String()
	case "groFlushTimeout":
		return time.Duration(n).String()
	case "min", "max":
		switch s.Domain {
		case plan.DomainCPU:
			return showHz(1000 * n)
		case plan.DomainGPU, plan.DomainDevfreq:
			return showHz(n)
		}
	}
	return s.Want
}

// formatCores writes the kernel's mask of processors as their numbers.
func formatCores(mask string) string {
	list, err := knob.ParseCPUMask(mask)
	if err != nil || len(list) == 0 {
		return mask
	}
	return "cores " + cpulist.Format(list)
}

func showSize(bytes int64) string { return units.SpaceUnit(units.Size(bytes)) }

func showHz(hz int64) string { return units.SpaceUnit(units.Frequency(hz)) }

func formatNode(s plan.Select) string {
	if s.Path != "" {
		return s.Path
	}
	return strings.TrimRight(strings.Join([]string{s.Class, s.Name, s.OFNode, s.Driver, s.Attr}, " "), " ")
}

func modesOf(p *plan.Power) map[string]plan.PowerMode {
	out := map[string]plan.PowerMode{}
	for _, m := range p.Modes {
		out[m.Name] = m
	}
	return out
}

func (c *comparison) comparePower() {
	a, b := cmp.Or(c.was.Power, &plan.Power{}), cmp.Or(c.now.Power, &plan.Power{})
	recipes := []string{"tegra-nvpmodel-base", c.config()}
	if a.Table != b.Table {
		c.add(Change{Area: "power table", ID: "power.table", Name: "table", Was: a.Table, Now: b.Table, Need: reboot, Rebuild: recipes})
	}
	was, now := modesOf(a), modesOf(b)
	if a.Default != b.Default {
		need := noNeed
		if slices.Contains(now[b.Default].Reboot, a.Default) || slices.Contains(was[a.Default].Reboot, b.Default) {
			need = reboot
		}
		c.add(Change{Area: "power mode", ID: "power.default", Name: "default", Was: a.Default, Now: b.Default, Need: need, Rebuild: recipes})
	}
	eachKey(was, now, func(name string) {
		details := modeDetails(was[name], now[name])
		if len(details) == 0 {
			return
		}
		ch := Change{Area: "power mode", ID: "power.modes." + name, Name: name, Details: details, Rebuild: recipes}
		a, old := was[name]
		b, new := now[name]
		switch {
		case !old:
			ch.Now = modeSummary(b)
		case !new:
			ch.Was = modeSummary(a)
		case slices.ContainsFunc(details, func(d Detail) bool { return strings.Contains(d.Name, "PG_MASK") }):
			ch.Need = reboot // the GPU takes another mask only before its first use
		}
		c.add(ch)
	})
	if was, now := formatAdaptive(a.Adaptive), formatAdaptive(b.Adaptive); was != now {
		c.add(Change{Area: "power mode", ID: "power.adaptive", Name: "adaptive", Was: was, Now: now, Rebuild: []string{c.config()}})
	}
}

func formatAdaptive(a *plan.Adaptive) string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("%s; up at %d %% for %v, down at %d %% for %v", strings.Join(a.Ladder, " → "),
		a.UpLoad, time.Duration(a.UpFor), a.DownLoad, time.Duration(a.DownFor))
}

// modeSummary is a mode in one line.
func modeSummary(m plan.PowerMode) string {
	online := 0
	out := []string{fmt.Sprintf("id %d", m.ID)}
	seen := map[string]bool{}
	for _, p := range m.Params {
		if p.Param == "CPU_ONLINE" && p.Value == "1" {
			online++
		}
		name, _, _ := strings.Cut(p.Param, "_")
		if p.Arg == "MAX_FREQ" && !seen[name] {
			seen[name] = true
			out = append(out, name+" ≤ "+formatClock(p))
		}
	}
	return strings.Join(slices.Insert(out, 1, count(online, "core")), ", ")
}

// formatClock writes a frequency of nvpmodel.conf; other parameters as they are.
func formatClock(p plan.PowerParam) string {
	n, err := strconv.ParseInt(p.Value, 10, 64)
	if err != nil || !strings.HasSuffix(p.Arg, "_FREQ") {
		return p.Value
	}
	if n < 0 {
		return "no cap"
	}
	if strings.HasPrefix(p.Param, "CPU") {
		n *= 1000
	}
	return showHz(n)
}

// modeDetails compares two modes parameter by parameter.
func modeDetails(a, b plan.PowerMode) []Detail {
	var origin []Detail
	if a.Name != "" && b.Name != "" && (a.ID != b.ID || a.From != b.From) {
		origin = []Detail{{"id and origin", fmt.Sprintf("%d, from %s", a.ID, a.From), fmt.Sprintf("%d, from %s", b.ID, b.From)}}
	}
	values := func(m plan.PowerMode) map[string]string {
		out := map[string]string{}
		for _, p := range m.Params {
			out[p.Param+" "+p.Arg] = formatClock(p)
		}
		return out
	}
	was, now := values(a), values(b)
	var out []Detail
	for _, p := range slices.Concat(b.Params, a.Params) {
		key := p.Param + " " + p.Arg
		if d := (Detail{key, was[key], now[key]}); d.Was != d.Now && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return append(origin, mergeCores(out)...)
}

var numbered = lazyregexp.New(`^(.*_)(\d+)(.*)$`)

// mergeCores joins the lines of cores that have the same values.
func mergeCores(in []Detail) []Detail {
	type shape struct{ before, after, was, now string }
	at := map[shape]int{}
	numbers := map[int][]int{}
	var out []Detail
	for _, d := range in {
		m := numbered.FindStringSubmatch(d.Name)
		if m == nil {
			out = append(out, d)
			continue
		}
		k := shape{m[1], m[3], d.Was, d.Now}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, d)
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			continue // longer than any core's number
		}
		numbers[i] = append(numbers[i], n)
		out[i].Name = m[1] + cpulist.Format(numbers[i]) + m[3]
	}
	return out
}

func (c *comparison) compareKernel() {
	if c.was.provider != c.now.provider {
		c.add(Change{Area: "kernel", ID: "kernel.preempt", Name: "recipe", Was: cmp.Or(c.was.provider, "the BSP's"), Now: cmp.Or(c.now.provider, "the BSP's"),
			Need: reboot, Rebuild: append(slices.Clone(c.now.recipes), "every kernel module")})
	}
	eachKey(c.was.kernel, c.now.kernel, func(symbol string) {
		a, b := c.was.kernel[symbol], c.now.kernel[symbol]
		if a == b {
			return
		}
		c.add(Change{Area: "kernel option", ID: "kernel.config." + symbol, Name: "CONFIG_" + symbol, Was: a, Now: b, Need: reboot, Rebuild: c.now.recipes})
	})
}

// ofPipeline reports whether a pipeline makes the unit.
func ofPipeline(u unit) bool { return strings.HasPrefix(u.id, "pipelines.") }

func (c *comparison) compareServices() {
	c.compareUnitsOf(func(u unit) bool { return !ofPipeline(u) })
}

// comparePipelineUnits adds what changes in the units of pipelines to the changes of these.
func (c *comparison) comparePipelineUnits() { c.compareUnitsOf(ofPipeline) }

// compareUnitsOf compares the units of the target that are chosen.
func (c *comparison) compareUnitsOf(chosen func(unit) bool) {
	choose := func(all map[string]unit) map[string]unit {
		out := maps.Clone(all)
		maps.DeleteFunc(out, func(_ string, u unit) bool { return !chosen(u) })
		return out
	}
	c.compareUnits(choose(c.was.units), choose(c.now.units), func(u unit) Change {
		area := "service"
		if strings.HasSuffix(u.name, ".slice") {
			area = "slice"
		}
		return Change{Area: area, ID: u.id, Rebuild: []string{c.config()}}
	})
}

// compareUnits compares units; start makes the change of one.
func (c *comparison) compareUnits(was, now map[string]unit, start func(unit) Change) {
	eachKey(was, now, func(name string) {
		a, old := was[name]
		b, new := now[name]
		var details []Detail
		for _, key := range append(slices.Clone(b.keys), a.keys...) {
			d := Detail{key, formatLimit(key, strings.Join(a.values[key], "; ")), formatLimit(key, strings.Join(b.values[key], "; "))}
			if d.Was != d.Now && !slices.Contains(details, d) {
				details = append(details, d)
			}
		}
		u := b
		if !new {
			u = a
		}
		if len(details) == 0 {
			return
		}
		if i := slices.IndexFunc(c.out, func(ch Change) bool { return ch.ID == u.id }); i >= 0 && u.id != "" {
			if old && new { // a setting or a pipeline makes the unit
				c.out[i].Details = append(c.out[i].Details, details...)
				c.out[i].Need = max(c.out[i].Need, restart)
			}
			return
		}
		ch := start(u)
		ch.Name, ch.Details, ch.Need = u.name, details, restart
		switch {
		case !old:
			ch.Now = unitSummary(b)
		case !new:
			ch.Was = unitSummary(a)
		}
		c.add(ch)
	})
}

// formatLimit writes the memory limits of units with a unit.
func formatLimit(key, value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && strings.HasPrefix(key, "Service.Memory") {
		return showSize(n)
	}
	return value
}

func unitSummary(u unit) string {
	for _, key := range []string{"Service.ExecStart", "Slice.AllowedCPUs", "Service.AllowedCPUs", "Timer.OnCalendar", "Timer.OnBootSec", "Timer.OnActiveSec", "Timer.OnStartupSec"} {
		if v := u.get(key); v != "" {
			return v
		}
	}
	return "a drop-in"
}

// comparePrograms compares the programs of yoctune that both layers install, and their units.
// One that comes or goes is a package.
func (c *comparison) comparePrograms() {
	was, now := c.was.in, c.now.in
	eachKey(was.program, now.program, func(name string) {
		a, old := was.program[name]
		b, new := now.program[name]
		if !old || !new || a == b {
			return
		}
		ch := Change{Area: "program", ID: "runtime.manifest", Name: name, Was: a.version, Now: b.version, Need: restart, Rebuild: []string{name}}
		if a.version == b.version {
			ch.Details = []Detail{{"sha256", a.sums, b.sums}}
		}
		c.add(ch)
	})
	eachKey(was.service, now.service, func(name string) {
		if len(was.service[name].keys) == 0 || len(now.service[name].keys) == 0 {
			return
		}
		one := func(u unit) map[string]unit { return map[string]unit{name: u} }
		c.compareUnits(one(was.service[name]), one(now.service[name]), func(unit) Change {
			return Change{Area: "program", ID: "runtime.manifest", Rebuild: []string{"yoctuned"}}
		})
	})
}

// compareModels compares what the layer fetches for pipelines.
func (c *comparison) compareModels() {
	recipe := []string{c.modelsRecipe()}
	moved := map[string]string{} // addresses by digest
	for address, sum := range c.was.models {
		if c.now.models[address] == "" {
			moved[sum] = address
		}
	}
	eachKey(c.was.models, c.now.models, func(address string) {
		a, b := c.was.models[address], c.now.models[address]
		ch := Change{Area: "model", ID: c.now.pipelineOf(b), Name: path.Base(address), Was: a, Now: b, Need: restart, Rebuild: recipe}
		switch {
		case a == b:
			return
		case a == "" && moved[b] != "": // the same file from elsewhere
			ch.Was, ch.Now, ch.Need = moved[b], address, build
		case b == "" && slices.Contains(slices.Collect(maps.Values(c.now.models)), a):
			return
		}
		c.add(ch)
	})
}

// pipelineOf returns the pipeline that runs the model of a digest, or the first one:
// labels are installed by name.
func (t *target) pipelineOf(sum string) string {
	names := slices.Sorted(maps.Keys(t.Pipelines))
	for _, name := range names {
		if raw, err := json.Marshal(t.Pipelines[name]); err == nil && sum != "" && strings.Contains(string(raw), sum) {
			return "pipelines." + name
		}
	}
	return "pipelines." + strings.Join(names[:min(1, len(names))], "")
}

func (c *comparison) comparePackages() {
	eachKey(c.was.packages, c.now.packages, func(name string) {
		a, b := c.was.packages[name], c.now.packages[name]
		if a == b {
			return
		}
		c.add(Change{Area: "package", ID: cmp.Or(c.now.ids[name], c.was.ids[name]), Name: name, Was: a, Now: b,
			Rebuild: []string{"packagegroup-yoctune-" + c.now.Layer}})
	})
	eachKey(c.was.blocked, c.now.blocked, func(name string) {
		if a, b := c.was.blocked[name], c.now.blocked[name]; a != b {
			c.add(Change{Area: "module", ID: "modules." + name, Name: name, Was: a, Now: b, Need: reboot, Rebuild: []string{c.config()}})
		}
	})
}

func (c *comparison) comparePipelines() {
	eachKey(c.was.Pipelines, c.now.Pipelines, func(name string) {
		a, old := c.was.Pipelines[name]
		b, new := c.now.Pipelines[name]
		was, now := map[string]string{}, map[string]string{}
		ch := Change{Area: "pipeline", ID: "pipelines." + name, Name: name, Need: restart, Rebuild: []string{c.config()}}
		if old {
			flatten("", decodeJSON(a), was)
			joinRate(was)
			ch.Was = pipelineSummary(a)
		}
		if new {
			flatten("", decodeJSON(b), now)
			joinRate(now)
			ch.Now = pipelineSummary(b)
		}
		eachKey(was, now, func(key string) {
			if was[key] != now[key] {
				ch.Details = append(ch.Details, Detail{fieldName(key), formatField(key, was[key]), formatField(key, now[key])})
			}
		})
		if len(ch.Details) == 0 {
			return
		}
		if old && new {
			ch.Was, ch.Now = "", ""
		}
		c.add(ch)
	})
}

// joinRate replaces the two numbers of a frame rate by one, as the configuration has it.
func joinRate(fields map[string]string) {
	const key = "source.fps"
	rate, den := fields[key+"_num"], fields[key+"_den"]
	if rate == "" {
		return
	}
	if den != "" && den != "1" {
		rate += "/" + den
	}
	delete(fields, key+"_num")
	delete(fields, key+"_den")
	fields[key] = rate
}

// fieldName is the name of a plan's field in the configuration: max_age is maxAge.
func fieldName(key string) string {
	if strings.Contains(key, "environment.") {
		return key // names of the user's
	}
	last := strings.LastIndexByte(key, '.') + 1 // before it may be the name of a stage
	head, rest, _ := strings.Cut(key[last:], "_")
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			head += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return key[:last] + head
}

// formatField writes a value of a plan that is in base units with its unit.
func formatField(key, value string) string {
	switch key[strings.LastIndexByte(key, '.')+1:] {
	case "latency_p95", "max_age", "deadline", "delay", "up_dwell", "max_dwell", "timeout":
		if ns, err := strconv.ParseInt(value, 10, 64); err == nil {
			return time.Duration(ns).String()
		}
	case "workspace", "slot_size", "rotate_size":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return showSize(n)
		}
	}
	return value
}

func pipelineSummary(p plan.Pipeline) string {
	steps := []string{p.Source.Kind}
	for _, s := range p.Stages {
		steps = append(steps, s.ID)
	}
	return strings.Join(append(steps, p.Sink.Kind), " → ")
}

// decodeJSON returns a struct as its JSON reads.
func decodeJSON(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // plain structs of strings and integers
	}
	var out any
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// flatten writes a JSON value as dotted names; list elements that have an id go
// by it.
func flatten(at string, v any, into map[string]string) {
	join := func(key string) string {
		if at == "" {
			return key
		}
		return at + "." + key
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			flatten(join(k), e, into)
		}
	case []any:
		plain := make([]string, 0, len(v))
		for i, e := range v {
			if m, ok := e.(map[string]any); ok {
				key := strconv.Itoa(i)
				if id, ok := m["id"].(string); ok {
					key = id
				}
				flatten(join(key), m, into)
				continue
			}
			plain = append(plain, fmt.Sprint(e))
		}
		if len(plain) > 0 {
			into[at] = strings.Join(plain, ", ")
		}
	case float64:
		into[at] = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		into[at] = fmt.Sprint(v)
	}
}

// compareRest compares the monitor and the variables of the settings file that are for one
// machine.
func (c *comparison) compareRest() {
	monitor := func(m *plan.Monitor) string {
		if m == nil {
			return ""
		}
		if m.Metrics {
			return fmt.Sprintf("every %v, metrics served", time.Duration(m.Interval))
		}
		return fmt.Sprintf("every %v", time.Duration(m.Interval))
	}
	if was, now := monitor(c.was.Monitor), monitor(c.now.Monitor); was != now {
		c.add(Change{Area: "monitor", ID: "monitor", Name: "sampling", Was: was, Now: now, Need: restart, Rebuild: []string{c.config()}})
	}
	if was, now := fanSummary(c.was.Fan), fanSummary(c.now.Fan); was != now {
		c.add(Change{Area: "fan", ID: "fan", Name: "nvfancontrol", Was: was, Now: now, Need: reboot, Rebuild: []string{"tegra-nvfancontrol", c.config()}})
	}
	partitions := func(p *plan.Plan) map[string]string {
		out := map[string]string{}
		for _, u := range p.Units {
			if u.CPUPartition != "" {
				out[u.Name] = u.CPUPartition
			}
		}
		return out
	}
	c.comparePlanParts()
	before, after := partitions(c.was.Plan), partitions(c.now.Plan)
	eachKey(before, after, func(name string) {
		if before[name] != after[name] {
			c.add(Change{Area: "cpu", ID: "services." + name, Name: "partition of " + name, Was: before[name], Now: after[name], Rebuild: []string{c.config()}})
		}
	})
	// Whatever an emitter adds that has no comparison of its own.
	eachKey(c.was.other, c.now.other, func(key string) {
		a, b := c.was.other[key], c.now.other[key]
		if was, now := cmp.Or(a.Value, a.SHA256, a.Name), cmp.Or(b.Value, b.SHA256, b.Name); was != now {
			m := cmp.Or(b, a)
			c.add(Change{Area: string(m.Kind), ID: m.Part(), Name: m.Name, Was: was, Now: now, Rebuild: []string{c.config()}})
		}
	})
	was, now := joinByName(c.was.vars), joinByName(c.now.vars)
	eachKey(was, now, func(name string) {
		if was[name] == now[name] {
			return
		}
		ch := Change{Area: "image", ID: "packages", Name: name, Was: was[name], Now: now[name], Need: reflash, Rebuild: []string{"the image"}}
		for _, p := range strings.Fields(cmp.Or(now[name], was[name])) {
			ch.ID = "packages." + p // of the last: they mostly have one
		}
		c.add(ch)
	})
}

// comparedParts are the parts of plans that have a comparison of their own, and those that follow from others.
var comparedParts = []string{"$schema", "board", "machine", "release", "l4t", "layer", "target", "serial", "digest", "rollback", "settings", "power", "units",
	"pipelines", "monitor", "fan"}

// comparePlanParts compares the other parts of the plans, such as the cluster, field by field.
func (c *comparison) comparePlanParts() {
	parts := func(p *plan.Plan) map[string]any {
		out, _ := decodeJSON(p).(map[string]any)
		maps.DeleteFunc(out, func(name string, _ any) bool { return slices.Contains(comparedParts, name) })
		return out
	}
	a, b := parts(c.was.Plan), parts(c.now.Plan)
	eachKey(a, b, func(name string) {
		was, now := map[string]string{}, map[string]string{}
		if a[name] != nil {
			flatten("", a[name], was)
		}
		if b[name] != nil {
			flatten("", b[name], now)
		}
		ch := Change{Area: "plan part", ID: name, Name: name, Need: restart, Rebuild: []string{c.config()}}
		eachKey(was, now, func(key string) {
			if was[key] != now[key] {
				ch.Details = append(ch.Details, Detail{fieldName(key), was[key], now[key]})
			}
		})
		if len(ch.Details) > 0 {
			c.add(ch)
		}
	})
}

// fanSummary describes the fan settings in one line.
func fanSummary(f *plan.Fan) string {
	if f == nil {
		return ""
	}
	var parts []string
	if f.Profile != "" {
		parts = append(parts, "profile "+f.Profile)
	}
	for _, p := range f.Curve {
		part := fmt.Sprintf("%d C: %d", p.Temp/1000, p.PWM)
		if p.RPM > 0 {
			part += fmt.Sprintf(" (%d rpm)", p.RPM)
		}
		if p.Hysteresis > 0 {
			part += fmt.Sprintf(" -%d C", p.Hysteresis/1000)
		}
		parts = append(parts, part)
	}
	for _, word := range []string{f.Governor, f.Control} {
		if word != "" {
			parts = append(parts, word)
		}
	}
	return strings.Join(parts, ", ")
}

// joinByName collects assignments by name: a variable may be appended to many times.
func joinByName(vars []variable) map[string]string {
	out := map[string]string{}
	for _, v := range vars {
		out[v.name] = strings.TrimSpace(out[v.name] + " " + strings.TrimSpace(v.value))
	}
	return out
}

func buildChanges(was, now *layer) []Change {
	a, b := joinByName(was.vars), joinByName(now.vars)
	var out []Change
	eachKey(a, b, func(name string) {
		if a[name] == b[name] {
			return
		}
		ch := Change{Area: "build", Name: name, Kind: kindOf(a[name], b[name]), Was: a[name], Now: b[name], Need: build}
		from := now
		if ch.Kind == Removed {
			from = was
		}
		ch.ID = buildID(name, from.vars)
		if name == "INHERIT" && strings.Contains(a[name], "rm_work") == strings.Contains(b[name], "rm_work") {
			ch.ID = "build.downloads.own"
		}
		ch.Origin = findOrigin(from.origins, ch.ID)
		recipe, ofRecipe := strings.CutPrefix(ch.ID, "build.packageConfig.")
		switch {
		case isProcess(ch.ID, name):
		case ofRecipe:
			recipe, _, _ = strings.Cut(recipe, ".")
			ch.Need, ch.Rebuild = reflash, []string{recipe}
		case strings.HasPrefix(ch.ID, "build.image."):
			ch.Need, ch.Rebuild = reflash, []string{"the image"}
		case strings.HasPrefix(ch.ID, "build.distroFeatures"), strings.HasPrefix(ch.ID, "build.machineFeatures"):
			ch.Need, ch.Rebuild = reflash, []string{"every recipe that reads it", "the image"}
		default:
			ch.Need, ch.Rebuild = reflash, []string{"every recipe that reads it"}
		}
		ch.Risk, ch.Why = risk(ch)
		out = append(out, ch)
	})
	return out
}

// process are the parts of build that decide how an image is built. All others decide what is in it.
var process = []string{"parallel", "pressure", "rmWork", "rmWorkExclude", "sstate", "downloads", "hashserve", "diskMonitor"}

// isProcess reports whether a variable of the settings file only decides how images are built.
func isProcess(id, name string) bool {
	field, ok := strings.CutPrefix(id, "build.")
	field, _, _ = strings.Cut(field, ".")
	return ok && (slices.Contains(process, field) || field == "variables" && strings.HasPrefix(name, "BB_"))
}

// buildID is the field that a variable of the settings file comes from: the one
// that the manifest has for its assignments, where they have one in common.
func buildID(name string, vars []variable) string {
	id := ""
	for _, v := range vars {
		if v.name == name && id != "" && v.id != id {
			id = id[:max(0, strings.LastIndexByte(id, '.'))]
		} else if v.name == name {
			id = v.id
		}
	}
	if id != "" {
		return id
	}
	switch base, _, _ := strings.Cut(name, ":"); {
	case strings.HasPrefix(name, "PARALLEL_MAKE:pn-"):
		return "build.parallel.recipes." + strings.TrimPrefix(name, "PARALLEL_MAKE:pn-")
	case name == "INHERIT":
		return "build.rmWork"
	case name == "do_fetch[number_threads]":
		return "build.parallel.downloads"
	case facts.Field(base) != "":
		return facts.Field(base)
	}
	return "build.variables." + name
}
