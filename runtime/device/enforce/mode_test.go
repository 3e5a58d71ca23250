package enforce_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	facts "github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/plan"
	"golang.org/x/sys/unix"
)

const nanoGPU = "/sys/devices/platform/bus@0/17000000.gpu"

// boardOf returns a synthetic board with an imitated kernel, and its directory.
func boardOf(t *testing.T, id string) (*devicetest.Kernel, string) {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, id); err != nil {
		t.Fatal(err)
	}
	return devicetest.NewKernel(open(t, dir)), dir
}

func inMode(name string, settings ...plan.Setting) *plan.Plan {
	p := planOf(settings...)
	p.Power = &plan.Power{Table: "stock", Default: name, Modes: []plan.PowerMode{}}
	return p
}

func readNode(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func writeText(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Values of a mode, copied by hand from the board's facts.
func TestModeIsEnteredByName(t *testing.T) {
	for _, c := range []struct {
		board, mode, status string
		nodes               map[string]string
	}{
		{"orin-nano-8gb", "15W", "pmode:0000", map[string]string{
			"/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "1497600",
			"/sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq": "1497600",
			nanoGPU + "/devfreq/17000000.gpu/max_freq":                 "612000000",
			nanoGPU + "/devfreq/17000000.gpu/min_freq":                 "306000000", // 0 is the lowest of the table
			nanoGPU + "/power/control":                                 "auto",
			"/sys/kernel/nvpmodel_clk_cap/emc":                         "2133000000",
		}},
		{"orin-nano-8gb", "MAXN_SUPER", "pmode:0002", map[string]string{
			"/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "1728000", // -1 is the highest
			nanoGPU + "/devfreq/17000000.gpu/max_freq":                 "1020000000",
			"/sys/kernel/nvpmodel_clk_cap/emc":                         "3199000000", // -1 means no cap; none was in force
		}},
		{"agx-orin-64gb", "MODE_15W", "pmode:0001", map[string]string{
			"/sys/devices/system/cpu/cpu3/online": "1",
			"/sys/devices/system/cpu/cpu4/online": "0",
			nanoGPU + "/tpc_pg_mask":              "248", // the GPU has not been used yet
		}},
		{"agx-xavier", "MODE_15W", "pmode:0002", map[string]string{
			"/sys/devices/system/cpu/cpu4/online":                                         "0",
			"/sys/devices/17000000.gv11b/devfreq/17000000.gv11b/max_freq":                 "670000000",
			"/sys/kernel/nvpmodel_emc_cap/emc_iso_cap":                                    "1331200000",
			"/sys/devices/platform/13e10000.host1x/15880000.nvdla0/acm/clk_cap/nafll_dla": "750000000",
			"/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq":                    "1200000",
			"/sys/devices/platform/13e10000.host1x/16800000.pva1/acm/clk_cap/pva1_axi":    "385000000",
		}},
	} {
		t.Run(c.board+" "+c.mode, func(t *testing.T) {
			dev, dir := boardOf(t, c.board)
			before := readState(t, dir)
			status := readNode(t, dir, "var/lib/nvpmodel/status")
			r := findResult(t, apply(t, dev, inMode(c.mode)), "power.default")
			if r.Outcome != outcome.OK || r.Found != c.mode {
				t.Errorf("%+v", r)
			}
			for name, want := range c.nodes {
				if got := readNode(t, dir, name); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			if got := readNode(t, dir, "var/lib/nvpmodel/status"); got != c.status {
				t.Errorf("the next boot: %s, want %s", got, c.status)
			}
			if results := enforce.Verify(dev, inMode(c.mode), options()); !enforce.Satisfied(results) {
				t.Errorf("verify: %+v", findResult(t, results, "power.default"))
			}
			if results, err := enforce.Rollback(dev, options()); err != nil || !enforce.Satisfied(results) {
				t.Errorf("rollback: %v %+v", err, results)
			}
			compareStates(t, before, readState(t, dir))
			if got := readNode(t, dir, "var/lib/nvpmodel/status"); got != status {
				t.Errorf("after rollback the next boot: %s, was %s", got, status)
			}
		})
	}
}

func TestEveryStockModeTransition(t *testing.T) {
	for _, id := range devicetest.Boards() {
		dev, _ := boardOf(t, id)
		known, _ := facts.Lookup(id)
		table := known.Tables["R35.3.1"]
		if id == "orin-nano-8gb" {
			table = known.Tables["R36.4 Super"]
		}
		for i, a := range table.Modes {
			for _, b := range table.Modes[i:] {
				for _, m := range []facts.Mode{b, a} {
					if r := findResult(t, apply(t, dev, inMode(m.Name)), "power.default"); r.Outcome != outcome.OK {
						t.Fatalf("%s, %s and %s: %s: %+v", id, a.Name, b.Name, m.Name, r)
					}
				}
			}
		}
		if _, err := enforce.Rollback(dev, options()); err != nil {
			t.Error(err)
		}
	}
}

func TestModeChangeOrder(t *testing.T) {
	dev, _ := boardOf(t, "agx-xavier")
	apply(t, dev, inMode("MAXN"))
	var order []string
	for _, w := range dev.Writes {
		name, _, _ := strings.Cut(w, "=")
		kind := filepath.Base(name)
		if kind != "online" && kind != "control" {
			kind = "clock"
		}
		if len(order) == 0 || order[len(order)-1] != kind {
			order = append(order, kind)
		}
	}
	// The GPU is awake while its clocks are set.
	if want := []string{"online", "control", "clock", "control"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v\n%s", order, want, strings.Join(dev.Writes, "\n"))
	}
}

func TestMissingNodeSkipsOneLineOfTheMode(t *testing.T) {
	dev, dir := newBoard(t)
	if err := os.RemoveAll(filepath.Join(dir, "sys/kernel/nvpmodel_clk_cap")); err != nil {
		t.Fatal(err)
	}
	results := apply(t, dev, inMode("15W"))
	r := findResult(t, results, "power.default")
	if r.Outcome != outcome.Partial || r.Satisfied() || !strings.Contains(r.Message, "lines of 15W are in force; ") {
		t.Errorf("%+v", r)
	}
	if got := readNode(t, dir, nanoGPU+"/devfreq/17000000.gpu/max_freq"); got != "612000000" {
		t.Errorf("the other lines were not written: %s", got)
	}
	if !slices.ContainsFunc(results, func(r enforce.Result) bool {
		return r.Outcome == outcome.Unsupported && strings.Contains(r.Path, "nvpmodel_emc_cap")
	}) {
		t.Error("the message has no name of the missing node")
	}
}

func TestRebootOnlyMaskIsStaged(t *testing.T) {
	for name, hinder := range map[string]func(t *testing.T, dev *devicetest.Kernel, dir string){
		"the GPU was used": func(t *testing.T, _ *devicetest.Kernel, dir string) {
			writeText(t, dir, nanoGPU+"/golden_img_status", "1\n")
		},
		"EBUSY":  failWrites(nanoGPU+"/tpc_pg_mask", unix.EBUSY),
		"ENODEV": failWrites(nanoGPU+"/tpc_pg_mask", unix.ENODEV),
	} {
		t.Run(name, func(t *testing.T) {
			dev, dir := boardOf(t, "agx-orin-64gb")
			hinder(t, dev, dir)
			r := findResult(t, apply(t, dev, inMode("MODE_15W")), "power.default")
			if r.Outcome != outcome.Pending || r.Satisfied() || !strings.Contains(r.Message, "in force after a reboot") {
				t.Errorf("%+v", r)
			}
			if got := readNode(t, dir, nanoGPU+"/tpc_pg_mask"); got != "240" {
				t.Errorf("the mask is %s", got)
			}
			if got := readNode(t, dir, "var/lib/nvpmodel/status"); got != "pmode:0001" {
				t.Errorf("not staged for the next boot: %s", got)
			}
			if got := readNode(t, dir, "/sys/devices/system/cpu/cpu4/online"); got != "0" {
				t.Error("the other lines were not written")
			}
			if r := findResult(t, enforce.Verify(dev, inMode("MODE_15W"), options()), "power.default"); r.Outcome != outcome.Pending {
				t.Errorf("verify: %+v", r)
			}
		})
	}
}

func TestUnknownModeIsAResult(t *testing.T) {
	for _, name := range []string{"NO_SUCH", "15W; reboot", "../../etc/passwd", "0"} {
		dev, dir := newBoard(t)
		before := readState(t, dir)
		r := findResult(t, apply(t, dev, inMode(name)), "power.default")
		if r.Outcome != outcome.Pending || r.Found != "25W" || !strings.Contains(r.Message, "does not define "+name) {
			t.Errorf("%+v", r)
		}
		compareStates(t, before, readState(t, dir))
		if r := findResult(t, enforce.Verify(dev, inMode(name), options()), "power.default"); r.Satisfied() {
			t.Error("verify is satisfied")
		}
	}
}

func TestBrokenStatusOrConfigurationFailsOnlyTheMode(t *testing.T) {
	dev, dir := newBoard(t)
	writeText(t, dir, "var/lib/nvpmodel/status", "NVPM ERROR: what?\n")
	r := findResult(t, apply(t, dev, inMode("15W")), "power.default")
	if r.Outcome != outcome.Differs || !strings.Contains(r.Message, "the mode of the next boot is unknown") {
		t.Errorf("%+v", r)
	}
	writeText(t, dir, "etc/nvpmodel.conf", "garbage")
	results := apply(t, dev, inMode("15W", sysctl("vm.swappiness", "10")))
	if r := findResult(t, results, "power.default"); r.Outcome != outcome.Unsupported || !strings.Contains(r.Message, "not an nvpmodel configuration") {
		t.Errorf("%+v", r)
	}
	if r := findResult(t, results, "sysctl.vm.swappiness"); r.Outcome != outcome.OK {
		t.Errorf("%+v", r)
	}
	if err := os.Remove(filepath.Join(dir, "etc/nvpmodel.conf")); err != nil {
		t.Fatal(err)
	}
	if r := findResult(t, apply(t, dev, inMode("15W")), "power.default"); r.Outcome != outcome.Unsupported {
		t.Errorf("%+v", r)
	}
}

func TestSettingOverridesTheMode(t *testing.T) {
	dev, dir := newBoard(t)
	limit := plan.Setting{
		ID: "cpu.max", Domain: plan.DomainCPU, Type: plan.TypeInt, Want: "1190400",
		Select:  plan.Select{Class: "cpufreq", Attr: "scaling_max_freq"},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	if results := apply(t, dev, inMode("15W", limit)); !enforce.Satisfied(results) {
		t.Errorf("%+v", results)
	}
	if got := readNode(t, dir, "/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"); got != "1190400" {
		t.Error(got)
	}
}

func TestTrialDoesNotChangeTheNextBoot(t *testing.T) {
	const status = "var/lib/nvpmodel/status"
	for _, confirmed := range []bool{false, true} {
		dev, dir := newBoard(t)
		before := readState(t, dir)
		s, err := enforce.Open(dev, inMode("MAXN_SUPER"), options())
		if err != nil {
			t.Fatal(err)
		}
		results, err := s.ApplyTrial()
		if err != nil || !enforce.Satisfied(results) {
			t.Fatalf("%v %+v", err, results)
		}
		if got := readNode(t, dir, nanoGPU+"/devfreq/17000000.gpu/max_freq"); got != "1020000000" {
			t.Error(got)
		}
		if got := readNode(t, dir, status); got != "pmode:0001" {
			t.Errorf("in the trial: %s", got)
		}
		want := "pmode:0001"
		if confirmed {
			want = "pmode:0002"
			if err := enforce.ConfirmTrial(dev); err != nil {
				t.Fatal(err)
			}
		} else if results, err := enforce.RevertTrial(dev, options()); err != nil || !enforce.Satisfied(results) {
			t.Fatalf("%v %+v", err, results)
		} else {
			compareStates(t, before, readState(t, dir))
		}
		if got := readNode(t, dir, status); got != want {
			t.Errorf("confirmed %t: %s, want %s", confirmed, got, want)
		}
	}
}

func TestModeIsRestoredAfterKillAtAnyStep(t *testing.T) {
	const status = "var/lib/nvpmodel/status"
	p := inMode("MODE_10W")
	dev, dir := boardOf(t, "agx-xavier")
	before, was := readState(t, dir), readNode(t, dir, status)
	apply(t, dev, p)
	steps := dev.Clock
	if _, err := enforce.Rollback(dev, options()); err != nil {
		t.Fatal(err)
	}
	for kill := 1; kill <= steps; kill += 9 {
		for _, torn := range []bool{false, true} {
			dying := devicetest.NewKernel(dev.Device)
			dying.KillAt, dying.Torn = kill, torn
			_, _ = enforce.Apply(dying, p, options())
			if results, err := enforce.Rollback(dev, options()); err != nil || !enforce.Satisfied(results) {
				t.Fatalf("killed at %d: %v %+v", kill, err, results)
			}
			compareStates(t, before, readState(t, dir))
			if got := readNode(t, dir, status); got != was {
				t.Fatalf("killed at %d: status %s, was %s", kill, got, was)
			}
		}
	}
}

// stateClock records the changes that write persistent files of yoctuned.
type stateClock struct {
	*devicetest.Kernel
	at []int
}

func (s *stateClock) WriteState(name string, data []byte) error {
	if strings.HasPrefix(name, "/var/lib/") {
		s.at = append(s.at, s.Clock+1)
	}
	return s.Kernel.WriteState(name, data)
}

// nvpmodel's status and its original persist over a boot.
func TestNvpmodelStatusIsRestoredAfterPowerLossAtAnyWrite(t *testing.T) {
	const status, original = "var/lib/nvpmodel/status", "var/lib/yoctune/nvpmodel.json"
	p := inMode("MODE_10W")
	dev, _ := boardOf(t, "agx-xavier")
	seen := &stateClock{Kernel: dev}
	apply(t, seen, p)
	if len(seen.at) < 2 { // the original, then the status
		t.Fatalf("persistent files were written %d times", len(seen.at))
	}
	var kills []int
	for _, at := range seen.at {
		for kill := max(at-1, 1); kill <= at+1; kill++ {
			if !slices.Contains(kills, kill) {
				kills = append(kills, kill)
			}
		}
	}
	for _, kill := range kills {
		dev, dir := boardOf(t, "agx-xavier")
		was := readNode(t, dir, status)
		dev.KillAt = kill
		_, _ = enforce.Apply(dev, p, options())
		writeText(t, dir, "proc/sys/kernel/random/boot_id", "7b1c9d52-0f4e-4f0a-9a57-aa54e2a4c001\n")
		// Power fails again, at each change of the restoration.
		for again := 1; ; again++ {
			dying := devicetest.NewKernel(dev.Device)
			dying.KillAt = again
			_, _ = enforce.Rollback(dying, options())
			if dying.Clock < again {
				break
			}
		}
		if results, err := enforce.Rollback(devicetest.NewKernel(dev.Device), options()); err != nil || !enforce.Satisfied(results) {
			t.Errorf("killed at %d: %v %+v", kill, err, results)
		}
		if got := readNode(t, dir, status); got != was {
			t.Errorf("killed at %d: status %s, was %s", kill, got, was)
		}
		if _, err := os.Stat(filepath.Join(dir, original)); !os.IsNotExist(err) {
			t.Errorf("killed at %d: %s is left: %v", kill, original, err)
		}
	}
}
