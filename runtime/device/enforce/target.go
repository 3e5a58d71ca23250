package enforce

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
	"golang.org/x/sys/unix"
)

// target is one setting on one node.
type target struct {
	setting plan.Setting
	path    string // as selected
	real    string // resolved, "" if absent

	found        knob.Found
	known        bool  // found is valid
	err          error // of the last read or write
	wasSatisfied bool  // it had the wanted value at some time of this run

	// For a line of a power mode: the text to write in place of the wanted value, further
	// accepted values, and whether a change needs a reboot once the GPU has been used.
	write       string
	accepted    []string
	needsReboot bool
	limited     bool // of huge pages: fewer were requested than wanted

	result Result
	done   bool // the result is final
}

// node returns the resolved name.
func (t *target) node() string { return t.real }

// selector resolves selections to nodes. It lists each class once.
type selector struct {
	dev       rootfs.FS
	nodes     map[string][]rootfs.Node
	described map[string]rootfs.Node
	args      []plan.Arg
	argsErr   error
	argsRead  bool
	options   *rootfs.KernelOptions // nil until a setting selects one
	optionErr error
	judged    map[string]*target // options of an earlier selection
	exact     []plan.Setting     // those of the present selection that name one device
}

func newSelector(dev rootfs.FS) *selector {
	return &selector{dev: dev, nodes: map[string][]rootfs.Node{}, described: map[string]rootfs.Node{}}
}

// newTargets returns one target for each node of each setting, in the plan's order. A
// setting without nodes yields one finished target.
func newTargets(dev rootfs.FS, settings []plan.Setting) []*target {
	return newSelector(dev).targetsOf(settings)
}

// planTargets returns the targets of a plan: its settings, the properties of its units and
// irqbalance's list of excluded interrupts.
func planTargets(sel *selector, p *plan.Plan) []*target {
	out := sel.targetsOf(p.Settings)
	for _, t := range sel.targetsOf(append(unitSettings(p.Units), banSettings(sel.dev, out)...)) {
		if t.real != "" { // the unit or irqbalance is running
			out = append(out, t)
		}
	}
	return out
}

func (sel *selector) targetsOf(settings []plan.Setting) []*target {
	sel.exact = slices.DeleteFunc(slices.Clone(settings), func(s plan.Setting) bool { return s.Select.Class == "" || knob.IsPattern(s.Select.Name) })
	var out []*target
	for _, s := range settings {
		out = append(out, sel.settingTargets(s)...)
	}
	return out
}

func (sel *selector) settingTargets(s plan.Setting) []*target {
	if err := checkVocabulary(s); err != nil {
		name := cmp.Or(s.Select.Path, describeSelection(s.Select))
		return newFinished(s, name, outcome.Refused, fmt.Sprintf("%s: %v", outcome.Name(name), err))
	}
	switch {
	case s.Select.Class == rootfs.ClassCmdline:
		return []*target{sel.kernelArgument(s)}
	case s.Select.Class == rootfs.ClassMount:
		return []*target{sel.mount(s)}
	case s.Select.Class == rootfs.ClassConfig:
		return []*target{sel.kernelOption(s)}
	case s.Select.Path == rootfs.RealtimeFile:
		return []*target{sel.realtimeKernel(s)}
	case s.Select.Path != "":
		return []*target{sel.nodeTarget(s, s.Select.Path)}
	}
	nodes, err := sel.listClass(s.Select.Class)
	if err != nil {
		return newFinished(s, describeSelection(s.Select), outcome.Unsupported, err.Error())
	}
	var out []*target
	var overridden []string
	for _, n := range nodes {
		if s.Select.OFNode != "" || s.Select.Driver != "" {
			n = sel.describe(n)
		}
		if !rootfs.Matches(s.Select, n) {
			continue
		}
		if by := sel.overriding(s, n); by != "" {
			overridden = append(overridden, by)
			continue
		}
		out = append(out, sel.attributeTargets(s, n)...)
	}
	if len(out) > 0 {
		return out
	}
	t := &target{setting: s, path: describeSelection(s.Select)}
	if len(overridden) > 0 {
		t.err = errOverridden
		t.finish(outcome.Unsupported, fmt.Sprintf("all its devices have settings of their own: %s", strings.Join(overridden, ", ")))
		t.result.Excused = true
		return []*target{t}
	}
	kind := s.Select.Class + " device"
	help := "; `yoctuned probe` lists its devices"
	switch s.Select.Class {
	case rootfs.ClassIRQ:
		kind = "interrupt"
	case rootfs.ClassKThread:
		kind, help = "kernel thread", "; `ps -e -o pid,cls,rtprio,comm` lists them"
	case rootfs.ClassUSB:
		kind, help = "USB device", "; `lsusb` lists them"
	case rootfs.ClassCPUIdle:
		kind, help = "idle state", "; /sys/devices/system/cpu/cpu0/cpuidle/state*/name has their names"
	}
	msg := fmt.Sprintf("no %s%s on this device%s", kind, describeMatch(s.Select), help)
	if isReadOnly(s) {
		t.finishPending(msg)
	} else {
		t.finish(outcome.Unsupported, msg)
	}
	return []*target{t}
}

// errOverridden marks a pattern of which no device is left.
var errOverridden = errors.New("settings with exact names take precedence")

// overriding returns the id of the setting that takes precedence over s on a device, "" for
// none.
func (sel *selector) overriding(s plan.Setting, n rootfs.Node) string {
	for _, e := range sel.exact {
		if knob.Overrides(e.Select, s.Select) && rootfs.Matches(e.Select, n) {
			return e.ID
		}
	}
	return ""
}

// newFinished returns the target of a setting that has no node, with its result.
func newFinished(s plan.Setting, path string, result outcome.Outcome, message string) []*target {
	t := &target{setting: s, path: path}
	t.finish(result, message)
	return []*target{t}
}

// checkVocabulary refuses terms of a newer plan format, which may forbid the write.
func checkVocabulary(s plan.Setting) error {
	if !slices.Contains([]string{plan.Enforce, plan.Once, plan.Report}, s.Policy) {
		return fmt.Errorf("unknown policy %q; this yoctuned is older than the plan", s.Policy)
	}
	if !slices.Contains([]string{plan.NeedsNothing, plan.NeedsReboot, plan.NeedsReflash}, s.Needs) {
		return fmt.Errorf("unknown needs %q; this yoctuned is older than the plan", s.Needs)
	}
	return nil
}

// attributeTargets returns the targets of one device: one, or several for an attribute with a
// pattern such as "queues/rx-*/rps_cpus".
func (sel *selector) attributeTargets(s plan.Setting, n rootfs.Node) []*target {
	name := path.Join(n.Path, s.Select.Attr)
	// "../lo/mtu" would select another device than the one named.
	if slices.Contains(strings.Split(s.Select.Attr, "/"), "..") {
		return []*target{{setting: s, path: name, err: fmt.Errorf("%w: %s", rootfs.ErrPath, s.Select.Attr)}}
	}
	if n.Class == rootfs.ClassCPU && s.Select.Attr != "online" && sel.isOffline(n) {
		offline := newFinished(s, name, outcome.Pending, n.Name+" is offline; its settings are applied when it comes online")
		offline[0].result.Excused = true
		return offline
	}
	if !strings.ContainsAny(s.Select.Attr, "*?[") {
		return []*target{sel.nodeTarget(s, name)}
	}
	var out []*target
	for _, found := range sel.expandPattern(n.Path, strings.Split(s.Select.Attr, "/")) {
		out = append(out, sel.nodeTarget(s, found))
	}
	if len(out) == 0 {
		return newFinished(s, name, outcome.Unsupported, fmt.Sprintf("%s: %s has no %s", outcome.Name(name), n.Name, s.Select.Attr))
	}
	return out
}

// expandPattern returns the files below dir that match a pattern, element by element.
func (sel *selector) expandPattern(dir string, pattern []string) []string {
	first := pattern[0]
	names := []string{first}
	if strings.ContainsAny(first, "*?[") {
		all, err := sel.dev.List(dir)
		if err != nil {
			return nil // the device has no such directory
		}
		names = nil
		for _, n := range all {
			if rootfs.Glob(first, n) {
				names = append(names, n)
			}
		}
	}
	var out []string
	for _, n := range names {
		at := path.Join(dir, n)
		if len(pattern) > 1 {
			out = append(out, sel.expandPattern(at, pattern[1:])...)
		} else {
			out = append(out, at)
		}
	}
	return out
}

// isOffline reports whether a core is offline. Cores without an online node never are.
func (sel *selector) isOffline(n rootfs.Node) bool {
	return rootfs.ReadText(sel.dev, n.Path+"/online") == "0"
}

func (sel *selector) listClass(class string) ([]rootfs.Node, error) {
	if nodes, ok := sel.nodes[class]; ok {
		return nodes, nil
	}
	nodes, err := rootfs.Nodes(sel.dev, class)
	if err == nil {
		sel.nodes[class] = nodes
	}
	return nodes, err
}

func (sel *selector) describe(n rootfs.Node) rootfs.Node {
	if d, ok := sel.described[n.Path]; ok {
		return d
	}
	d := rootfs.Describe(sel.dev, n)
	sel.described[n.Path] = d
	return d
}

// nodeTarget returns the target of a path. It resolves the path and does not read the node.
func (sel *selector) nodeTarget(s plan.Setting, name string) *target {
	t := &target{setting: s, path: name}
	if !strings.HasPrefix(name, "/proc/") && !strings.HasPrefix(name, "/sys/") {
		t.err = fmt.Errorf("%w: %s", rootfs.ErrPath, name)
		return t
	}
	t.real, t.err = sel.dev.Resolve(name)
	return t
}

// kernelArgument returns the target of an argument of the running kernel. The last of
// repeated arguments wins, except for consoles, which accumulate.
func (sel *selector) kernelArgument(s plan.Setting) *target {
	if !sel.argsRead {
		sel.args, sel.argsErr = rootfs.ReadArgs(sel.dev)
		sel.argsRead = true
	}
	t := &target{setting: s, path: "/proc/cmdline"}
	if sel.argsErr != nil {
		t.err = sel.argsErr
		return t
	}
	t.real, t.known = t.path, true
	present := false
	for _, a := range sel.args {
		if a.Name != s.Select.Name {
			continue
		}
		present = true
		t.found.Value = a.Value
		if a.Value == s.Want && a.Name == "console" {
			break
		}
	}
	if s.Type == plan.TypePresent {
		t.found.Value = formatBool(present)
	} else if !present {
		t.known = false
	} else if v, err := knob.Canonical(s.Type, t.found.Value); err == nil {
		t.found.Value = v
	}
	return t
}

// mount returns the target of a file system in memory, which a unit of the layer mounts.
func (sel *selector) mount(s plan.Setting) *target {
	t := &target{setting: s, path: s.Select.Name}
	size, err := rootfs.TmpfsSize(sel.dev, s.Select.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.finishPending("no file system in memory is mounted on " + s.Select.Name)
	case err != nil:
		t.err = err
	default:
		t.real, t.known, t.found = t.path, true, knob.Found{Value: strconv.FormatInt(size, 10)}
	}
	return t
}

// isGiven reports whether the selection itself has read the value.
func (t *target) isGiven() bool {
	return t.setting.Select.Class == rootfs.ClassCmdline || t.setting.Select.Class == rootfs.ClassMount
}

// reset discards the last observation and keeps the selection.
func (t *target) reset() {
	if t.real == "" || t.isGiven() {
		return // does not change before the next selection
	}
	t.found, t.known, t.err, t.wasSatisfied = knob.Found{}, false, nil, false
	t.result, t.done = Result{}, false
}

// observe reads the node.
func (t *target) observe(r *reader) {
	if t.done || t.isGiven() {
		return
	}
	if t.setting.Type == plan.TypePresent && (t.err == nil || t.isAbsent()) {
		t.known, t.err = true, nil
		t.found = knob.Found{Value: formatBool(t.real != "")}
		return
	}
	if t.real == "" {
		return
	}
	var content rootfs.Content
	t.known = false
	if content, t.err = r.read(t.real); t.err != nil {
		return
	}
	if content.Truncated {
		t.err = errTruncated
		return
	}
	t.found, t.err = knob.Parse(t.setting.Type, content.Text)
	t.known = t.err == nil
}

var errTruncated = errors.New("the node holds more than one page of text, which cannot be compared")

func formatBool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// isAbsent reports whether the node does not exist.
func (t *target) isAbsent() bool {
	return errors.Is(t.err, fs.ErrNotExist) || errors.Is(t.err, unix.ENODEV) || errors.Is(t.err, unix.ENXIO) || errors.Is(t.err, unix.ENOTDIR)
}

// finish sets the result.
func (t *target) finish(result outcome.Outcome, message string) {
	t.done = true
	t.result = Result{
		ID: t.setting.ID, Path: t.path, Wanted: wantedText(t.setting),
		Found: t.found.Value, Known: t.known,
		Outcome: result, Message: message,
	}
	if t.setting.Type == plan.TypePresent {
		t.result.Found = knob.Show(plan.TypePresent, t.found.Value)
	}
	// Optional excuses a missing node, also one that waits for a module.
	if t.setting.Optional && (result == outcome.Unsupported || result == outcome.Pending) && !t.known {
		t.result.Excused = true
	}
}

// finishFault sets the result from an error.
func (t *target) finishFault(dev rootfs.FS, o Options, write bool, err error) {
	f := outcome.Fault{Path: t.path, Write: write, Want: wantedText(t.setting), Offered: t.found.Offered, Root: o.Root, Lacks: o.MissingCaps, Err: err}
	if errors.Is(err, errTruncated) || errors.Is(err, knob.ErrValue) || errors.Is(err, knob.ErrType) {
		t.finish(outcome.Unsupported, fmt.Sprintf("%s: %v", outcome.Name(t.path), err))
		return
	}
	switch {
	case errors.Is(err, unix.EINVAL):
		var outside bool
		if f.Range, outside = acceptedRange(dev, t.path, t.setting.Want); !outside {
			f.Range, f.Against = "", describeLimitingNode(dev, t.real)
		}
	case errors.Is(err, unix.EPERM):
		f.Lockdown = lockdownMode(dev)
	case errors.Is(err, unix.EIO):
		f.Offline = isOfflineCPU(dev, t.real)
	case errors.Is(err, unix.EBUSY):
		f.Holder = describeHolder(dev, t.real)
	}
	if t.real != "" {
		f.Mode, _ = dev.Mode(t.real) // 0 if unknown
	}
	t.finish(outcome.Explain(f))
}

// describeSelection returns a name for a selection without nodes, a path if possible.
func describeSelection(s plan.Select) string {
	name := cmp.Or(s.Name, "*")
	switch s.Class {
	case rootfs.ClassBlock:
		return path.Join("/sys/block", name, s.Attr)
	case rootfs.ClassCPU:
		return path.Join("/sys/devices/system/cpu", name, s.Attr)
	case rootfs.ClassCPUFreq:
		return path.Join("/sys/devices/system/cpu/cpufreq", name, s.Attr)
	case rootfs.ClassCPUIdle:
		return path.Join("/sys/devices/system/cpu/cpu*/cpuidle", name, s.Attr)
	case rootfs.ClassDevFreq, rootfs.ClassNet:
		return path.Join("/sys/class", s.Class, name, s.Attr)
	case rootfs.ClassIRQ:
		return path.Join("/proc/irq", name, s.Attr)
	case rootfs.ClassUSB:
		return path.Join("/sys/bus/usb/devices", name, s.Attr)
	}
	return strings.TrimSpace(s.Class + " " + name)
}

// describeMatch returns the conditions of a selection, to follow the device class.
func describeMatch(s plan.Select) string {
	var b strings.Builder
	if s.Name != "" {
		fmt.Fprintf(&b, " named %q", s.Name)
	}
	if s.OFNode != "" {
		fmt.Fprintf(&b, " with device tree node %q", s.OFNode)
	}
	if s.Driver != "" {
		fmt.Fprintf(&b, " bound to driver %q", s.Driver)
	}
	return b.String()
}
