package image

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
)

// expectation is what the guest compares, one line of /check/expect.
type expectation struct {
	when  string // both: also before yoctuned starts, since a plain file of the layer sets it; late
	kind  string // how guest.sh reads it
	name  string
	where string
	want  string
}

// expectations are what the plan declares, without the settings that this machine cannot have.
// What plain files of the layer hold is in force before yoctuned starts.
func (r *rig) expectations(unsupported map[string]string) []expectation {
	var out []expectation
	if !r.plain {
		out = append(out, expectation{"late", "folder", "tmpfiles-run", "/run/yoctune", "755 root"}, expectation{"late", "folder", "tmpfiles-state", "/var/lib/yoctune", "700 root"})
	}
	for _, s := range r.plan.Settings {
		if e, ok := expect(s); ok && unsupported[s.ID] == "" {
			if r.held[s.ID] || r.plain {
				e.when = "both"
			}
			out = append(out, e)
		}
	}
	for _, u := range r.plan.Units {
		out = append(out, expectUnit(u)...)
	}
	return out
}

// expect is one setting. Devices have the names that this machine gives them.
func expect(s plan.Setting) (expectation, bool) {
	e := expectation{when: "late", kind: "text", name: s.ID, where: s.Select.Path, want: s.Want}
	if s.Domain == plan.DomainModule || s.Domain == plan.DomainKernel || s.ID == "memory.zram" {
		e.when = "both"
	}
	switch class := s.Select.Class; {
	case s.ID == "kernel.preempt":
		e.kind, e.where, e.want = "version", "PREEMPT_RT", "PREEMPT_RT"
	case class == "cmdline":
		e.kind, e.where = "argument", s.Select.Name+"="+s.Want
		if s.Type == plan.TypePresent {
			e.where = s.Select.Name
		}
		e.want = e.where
	case class == "config":
		e.kind, e.where = "option", s.Select.Name
	case class == "block":
		device := strings.NewReplacer("nvme*", "nvme0n1", "mmcblk*", "mmcblk0").Replace(s.Select.Name)
		e.where = "/sys/block/" + device + "/" + s.Select.Attr
	case class == "irq":
		e.kind, e.where = "interrupt", s.Select.Name
	case class != "":
		return e, false
	case s.Domain == plan.DomainModule:
		e.kind = "exists"
	case s.Type == plan.TypeCPUMask:
		e.kind = "mask"
	}
	return e, true
}

// expectUnit is what systemd and the kernel have of a unit.
func expectUnit(u plan.Unit) []expectation {
	var out []expectation
	add := func(kind, what, want string) {
		where := what + "/" + u.Name
		if kind == "task" {
			where = u.Name + "/" + what
		}
		out = append(out, expectation{"late", kind, u.Name + "-" + what, where, want})
	}
	service := strings.HasSuffix(u.Name, ".service")
	add("property", "ActiveState", "active")
	if u.CPUs != "" {
		add("property", "AllowedCPUs", u.CPUs)
		if service {
			add("task", "cpus", u.CPUs)
		}
	}
	if u.MemoryMax > 0 {
		add("property", "MemoryMax", fmt.Sprint(u.MemoryMax))
	}
	if u.Slice != "" {
		add("property", "Slice", strings.TrimSuffix(u.Slice, ".slice")+".slice")
	}
	if u.Nice != nil && u.Scheduling != "fifo" && u.Scheduling != "rr" {
		add("task", "nice", fmt.Sprint(*u.Nice))
	}
	if number, ok := map[string]int{"other": 0, "fifo": 1, "rr": 2, "batch": 3, "idle": 5}[u.Scheduling]; ok {
		add("task", "policy", fmt.Sprintf("%d %d", u.Priority, number))
	}
	return out
}

// readUnsupported reads a list of settings that this machine cannot have: an id and a reason.
func readUnsupported(t *testing.T, file string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, ok := strings.Cut(line, " ")
		if !ok {
			t.Fatalf("%s: %s has no reason", file, id)
		}
		list[id] = strings.TrimSpace(reason)
	}
	return list
}

// failing returns the units of such a list: they fail on this machine.
func failing(t *testing.T, file string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(readUnsupported(t, file))), func(id string) bool { return !strings.HasSuffix(id, ".service") })
}

// verified is one run of `yoctuned verify --format json` in the guest.
type verified struct {
	exit     string
	outcomes map[string]string // by setting; "ok" only if every node is
	messages map[string]string
}

// parseVerify reads the runs by name.
func parseVerify(console string) map[string]verified {
	runs := map[string]verified{}
	name := ""
	lines := bufio.NewScanner(strings.NewReader(console))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if rest, ok := strings.CutPrefix(line, "VERIFY-BEGIN "); ok {
			name = rest
			runs[name] = verified{outcomes: map[string]string{}, messages: map[string]string{}}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "VERIFY-END "); ok {
			v := runs[name]
			v.exit = rest
			runs[name], name = v, ""
			continue
		}
		var s struct{ Type, ID, Outcome, Message string }
		if name == "" || json.Unmarshal([]byte(line), &s) != nil || s.Type != "setting" {
			continue
		}
		if old := runs[name].outcomes[s.ID]; old == "" || old == "ok" {
			runs[name].outcomes[s.ID], runs[name].messages[s.ID] = s.Outcome, s.Message
		}
	}
	return runs
}

// judgeVerify returns the faults of a run: every setting must be ok, except those that cannot
// be, and each of those must be reported.
func judgeVerify(name string, v verified, unsupported map[string]string) []string {
	var faults []string
	if len(v.outcomes) == 0 || v.exit == "" {
		return []string{name + ": verify printed no setting"}
	}
	for _, id := range slices.Sorted(maps.Keys(v.outcomes)) {
		if o := v.outcomes[id]; o != "ok" && unsupported[id] == "" {
			faults = append(faults, fmt.Sprintf("%s: %s is %s: %s", name, id, o, v.messages[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unsupported)) {
		switch {
		case strings.HasSuffix(id, ".service"):
		case v.outcomes[id] == "":
			faults = append(faults, fmt.Sprintf("%s: %s is listed as unsupported and is not a setting of the plan", name, id))
		case v.outcomes[id] == "ok":
			faults = append(faults, fmt.Sprintf("%s: %s is listed as unsupported and is ok", name, id))
		}
	}
	return faults
}

// checks returns the CHECK lines of a console.
func checks(console string) (passed []string, failed map[string]string) {
	failed = map[string]string{}
	for line := range strings.Lines(console) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if len(f) < 3 || f[0] != "CHECK" {
			continue
		}
		if f[2] == "ok" {
			passed = append(passed, f[1])
		} else {
			failed[f[1]] = strings.Join(f[3:], " ")
		}
	}
	return passed, failed
}

// judge judges the consoles of a guest that is as declared.
func (r *rig) judge(console string, unsupported map[string]string, runs []string) {
	r.Helper()
	passed, failed := checks(console)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		r.Errorf("%s: %s", name, failed[name])
	}
	if len(passed) < 10 {
		r.Errorf("only %d checks:\n%s", len(passed), console)
	}
	all := parseVerify(console)
	for _, name := range runs {
		for _, fault := range judgeVerify(name, all[name], unsupported) {
			r.Error(fault)
		}
	}
	if r.name == "video-analytics" && len(runs) > 0 {
		if fault := judgeLabels(console, r.read("../../examples/video-analytics/media/serials.txt")); fault != "" {
			r.Error(fault)
		}
	}
	r.Logf("RECORD %d checks passed, %d failed", len(passed), len(failed))
	for line := range strings.Lines(console) {
		if m := regexp.MustCompile(`^(KERNEL|TIMES|STATUS|DRIFT|FACT|UPGRADED) `).FindString(line); m != "" {
			r.Log("RECORD " + strings.TrimSpace(line))
		}
	}
	if r.Failed() {
		r.Log(console)
	}
}

// judgeLabels compares the results that the unit of the pipeline printed with the clip's text.
func judgeLabels(console, serials string) string {
	want := strings.Fields(serials)
	var got []string
	for line := range strings.Lines(console) {
		if m := regexp.MustCompile(`^PIPELINE frame \d+ .*"([^"]*)" [0-9.]+$`).FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			got = append(got, m[1])
		}
	}
	if len(got) < pipelineFrames || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
		return fmt.Sprintf("the pipeline's unit printed %q, want the first of %q", got, want)
	}
	return ""
}

// expectFaults judges the guest whose files were removed: each kind of judge must have found it.
func (r *rig) expectFaults(console string, unsupported map[string]string) {
	r.Helper()
	_, failed := checks(console)
	has := func(pattern string) {
		r.Helper()
		if !slices.ContainsFunc(slices.Collect(maps.Keys(failed)), regexp.MustCompile("^boot1-"+pattern).MatchString) {
			r.Errorf("no judge of %q found the fault; found: %v", pattern, slices.Sorted(maps.Keys(failed)))
		}
	}
	has(`early-sysctl\.`)
	if !r.plain {
		has(`late-tmpfiles-state`)
		faults := judgeVerify("boot1-broken", parseVerify(console)["boot1-broken"], unsupported)
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, "sysctl.") && strings.Contains(f, "differs") }) {
			r.Errorf("verify found no setting that differs: %q", faults)
		}
		r.Logf("RECORD verify found %d faults", len(faults))
	}
	declares := func(prefix string) bool {
		return slices.ContainsFunc(r.plan.Settings, func(s plan.Setting) bool {
			// These are the kernel's own values for the disks, which no rule has to set.
			byDefault := s.Domain == plan.DomainStorage && slices.Contains([]string{"none", "mq-deadline", "128"}, s.Want)
			return strings.HasPrefix(s.ID, prefix) && unsupported[s.ID] == "" && !byDefault
		})
	}
	for _, prefix := range []string{"storage.", "modules.", "memory.zram", "kernel.args."} {
		if declares(prefix) {
			has("early-" + regexp.QuoteMeta(prefix))
		}
	}
	if slices.ContainsFunc(r.plan.Units, func(u plan.Unit) bool { return u.CPUs != "" }) {
		has(`late-.*-AllowedCPUs`)
	}
	if slices.ContainsFunc(r.plan.Units, func(u plan.Unit) bool { return u.MemoryMax > 0 }) {
		has(`late-.*-MemoryMax`)
	}
	r.Logf("RECORD the judges found %d faults: %s", len(failed), strings.Join(slices.Sorted(maps.Keys(failed)), " "))
	if r.Failed() {
		r.Log(console)
	}
}

// comparePrediction compares `yoctune kernel predict --format json` with the .config that the
// kernel's own Kconfig made, before and after the fragment: each symbol that was asked for, and
// each that changed without being asked for.
func comparePrediction(predicted, before, after string) (summary string, faults []string) {
	was, is := parseConfig(before), parseConfig(after)
	symbols, effects := 0, map[string]bool{}
	for line := range strings.Lines(predicted) {
		var p struct {
			Type, Symbol, Got string
			Effects           []struct{ Symbol, Before, After string }
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			return "", []string{fmt.Sprintf("prediction: %v: %s", err, line)}
		}
		if p.Type == "symbol" {
			symbols++
			effects[p.Symbol] = true
			if got := is[p.Symbol]; got != p.Got && !(got == "" && p.Got == "n") {
				faults = append(faults, fmt.Sprintf("CONFIG_%s is %q, predicted %q", p.Symbol, got, p.Got))
			}
		}
		for _, e := range p.Effects {
			effects[e.Symbol] = true
			if got := is[e.Symbol]; got != e.After && !(got == "" && e.After == "n") {
				faults = append(faults, fmt.Sprintf("CONFIG_%s is %q, predicted as an effect: %q", e.Symbol, got, e.After))
			}
		}
	}
	if symbols == 0 {
		faults = append(faults, "no symbol was predicted")
	}
	changed := 0
	for name, value := range was {
		if value != is[name] && !effects[name] {
			faults = append(faults, fmt.Sprintf("CONFIG_%s was %q and is %q, which was not predicted", name, value, is[name]))
		} else if value != is[name] {
			changed++
		}
	}
	slices.Sort(faults)
	return fmt.Sprintf("%d options as predicted; %d values that the base had set changed, as predicted", symbols, changed), faults
}

// parseConfig returns the options of a .config that are set.
func parseConfig(text string) map[string]string {
	set := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "CONFIG_") {
			set[strings.TrimPrefix(name, "CONFIG_")] = value
		}
	}
	return set
}

func TestJudgesFindFaults(t *testing.T) {
	const predicted = `{"type":"symbol","symbol":"A","got":"y"}
{"type":"symbol","symbol":"B","got":"n"}
{"type":"summary","effects":[{"symbol":"C","before":"y","after":""}]}
`
	const before = "CONFIG_C=y\nCONFIG_D=m\n"
	for after, want := range map[string]string{
		"CONFIG_A=y\nCONFIG_D=m\n":             "",
		"CONFIG_A=m\nCONFIG_D=m\n":             `CONFIG_A is "m", predicted "y"`,
		"CONFIG_A=y\nCONFIG_B=y\nCONFIG_D=m\n": `CONFIG_B is "y", predicted "n"`,
		"CONFIG_A=y\nCONFIG_C=y\nCONFIG_D=m\n": `CONFIG_C is "y", predicted as an effect: ""`,
		"CONFIG_A=y\n# CONFIG_D is not set\n":  `CONFIG_D was "m" and is "", which was not predicted`,
	} {
		if _, faults := comparePrediction(predicted, before, after); strings.Join(faults, "; ") != want {
			t.Errorf("%q: %q, want %q", after, faults, want)
		}
	}
	if _, faults := comparePrediction("", before, before); len(faults) == 0 {
		t.Error("an empty prediction passes")
	}

	const run = "VERIFY-BEGIN one\n{\"type\":\"setting\",\"id\":\"a\",\"outcome\":\"ok\"}\n{\"type\":\"setting\",\"id\":\"a\",\"outcome\":%q}\n{\"type\":\"setting\",\"id\":\"gpu\",\"outcome\":%q}\nVERIFY-END 3\n"
	list := map[string]string{"gpu": "none in qemu"}
	for _, c := range []struct{ a, gpu, want string }{
		{"ok", "unsupported", ""},
		{"forbidden", "unsupported", "one: a is forbidden: "},
		{"ok", "ok", "one: gpu is listed as unsupported and is ok"},
	} {
		got := judgeVerify("one", parseVerify(fmt.Sprintf(run, c.a, c.gpu))["one"], list)
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if got := judgeVerify("one", verified{}, list); len(got) != 1 {
		t.Errorf("a run that printed nothing: %q", got)
	}
	if got := judgeVerify("one", parseVerify(fmt.Sprintf(run, "ok", "unsupported"))["one"], map[string]string{"gpu": "x", "fan": "y"}); len(got) != 1 {
		t.Errorf("a listed setting that the plan lacks: %q", got)
	}

	const results = "PIPELINE frame 0  8.3 ms  \"%s\" 0.998\nPIPELINE frame 1  8 ms  \"B\" 0.9\nPIPELINE frame 2  9.1 ms  \"C\" 0.9\n"
	if fault := judgeLabels(fmt.Sprintf(results, "A"), "A\nB\nC\nD\n"); fault != "" {
		t.Error(fault)
	}
	for _, console := range []string{fmt.Sprintf(results, "X"), "PIPELINE frame 0  8.3 ms  \"A\" 0.998\n", ""} {
		if judgeLabels(console, "A\nB\nC\nD\n") == "" {
			t.Errorf("%q passes", console)
		}
	}
	if _, failed := checks("CHECK a ok\nCHECK b FAIL 'x', wanted 'y'\n"); failed["b"] != "'x', wanted 'y'" || len(failed) != 1 {
		t.Errorf("%v", failed)
	}
}
