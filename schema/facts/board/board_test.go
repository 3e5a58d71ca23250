package board

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/release"
)

func forEachBoard(t *testing.T, check func(t *testing.T, b *Board)) {
	t.Helper()
	ids := IDs()
	if len(ids) == 0 {
		t.Fatal("no boards embedded")
	}
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			b, ok := Lookup(id)
			if !ok || b.ID != id {
				t.Fatal("does not decode to itself")
			}
			check(t, b)
		})
	}
}

func TestBoardFilesAreConsistent(t *testing.T) {
	forEachBoard(t, func(t *testing.T, b *Board) {
		for _, problem := range b.Check() {
			t.Error(problem)
		}
	})
}

func TestCheckFindsEachFault(t *testing.T) {
	mode := func(id int, settings ...[3]string) Mode {
		return Mode{ID: id, Name: "M" + strconv.Itoa(id), Default: id == 0, Settings: settings}
	}
	table := func(modes ...Mode) *Board {
		return &Board{
			ID: "x", Cores: 4, Policies: []Policy{{First: 0, CPUs: "0-1"}, {First: 2, CPUs: "2-3"}},
			Evidence: map[string]Evidence{"cores": {Source: "s"}, "policies": {Source: "s"}, "tables": {Source: "s"}, "releases": {Source: "s"}},
			Releases: map[string]Release{"scarthgap": {Machines: []string{"m"}, NVPModel: "f", Table: "t", Verified: true}},
			Tables: map[string]Table{"t": {Source: "s", Modes: modes, Params: []Param{
				{Name: "CPU_ONLINE", Type: "FILE", Args: []string{"CORE_0", "CORE_2", "CORE_3"}},
				{Name: "CPU_A78_1", Type: "CLOCK", Args: []string{"MIN_FREQ", "MAX_FREQ"}, Paths: map[string]string{"MAX_FREQ": "/sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq"}},
			}}},
		}
	}
	for name, c := range map[string]struct {
		board *Board
		want  string
	}{
		"core 0 off":                  {table(mode(0, [3]string{"CPU_ONLINE", "CORE_0", "0"})), "core 0"},
		"gap in the ids":              {table(mode(0), mode(2)), "id 2"},
		"undeclared":                  {table(mode(0, [3]string{"GPU", "MAX_FREQ", "1"})), "undeclared"},
		"no number":                   {table(mode(0, [3]string{"CPU_A78_1", "MAX_FREQ", "fast"})), "is not a number"},
		"min above max":               {table(mode(0, [3]string{"CPU_A78_1", "MIN_FREQ", "2"}, [3]string{"CPU_A78_1", "MAX_FREQ", "1"})), "above"},
		"clock of an offline cluster": {table(mode(0, [3]string{"CPU_ONLINE", "CORE_2", "0"}, [3]string{"CPU_ONLINE", "CORE_3", "0"}, [3]string{"CPU_A78_1", "MAX_FREQ", "1"})), "offline"},
		"core that is not there":      {table(mode(0, [3]string{"CPU_ONLINE", "CORE_4", "1"})), "CORE_4"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.board.Check()
			if !slices.ContainsFunc(got, func(e error) bool { return strings.Contains(e.Error(), c.want) }) {
				t.Errorf("Check() = %v, want a problem with %q", got, c.want)
			}
		})
	}
}

// The numbers of NVIDIA's modules as a reader would look them up.
func TestSpotChecks(t *testing.T) {
	for _, c := range []struct {
		board             string
		sm, cores         int
		policies          int
		cpu, gpu, emc     int64 // upper ends
		dla               int
		line, gpuPath     string
		release, defaults string
	}{
		{"nano-4gb", 53, 4, 1, 1479000, 921600000, 1600000000, 0, "R32", "/sys/devices/gpu.0/devfreq/57000000.gpu", "kirkstone-l4t-r32.7.x", "MAXN"},
		{"tx2", 62, 6, 2, 2035000, 1300500000, 1866000000, 0, "R32", "/sys/devices/17000000.gp10b/devfreq/17000000.gp10b", "kirkstone-l4t-r32.7.x", "MAXP_CORE_ALL"},
		{"agx-xavier", 72, 8, 4, 2265600, 1377000000, 2133000000, 2, "R35", "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b", "kirkstone", "MODE_15W_DESKTOP"},
		{"xavier-nx", 72, 6, 3, 1907200, 1109250000, 1866000000, 2, "R35", "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b", "kirkstone", "MODE_10W_DESKTOP"},
		{"agx-orin-64gb", 87, 12, 3, 2201600, 1300500000, 3199000000, 2, "R36", "/sys/devices/platform/17000000.gpu/devfreq_dev", "scarthgap", "MODE_30W"},
		{"orin-nx-16gb", 87, 8, 2, 1984000, 1173000000, 3199000000, 2, "R36", "/sys/devices/platform/17000000.gpu/devfreq_dev", "scarthgap", "40W"},
		{"orin-nx-8gb", 87, 6, 2, 1984000, 1173000000, 3199000000, 2, "R36", "/sys/devices/platform/17000000.gpu/devfreq_dev", "walnascar", "40W"},
		{"orin-nano-8gb", 87, 6, 2, 1728000, 1020000000, 3199000000, 0, "R36", "/sys/devices/platform/17000000.gpu/devfreq_dev", "scarthgap", "25W"},
		{"orin-nano-4gb", 87, 6, 2, 1728000, 1020000000, 3199000000, 0, "R36", "/sys/devices/platform/17000000.gpu/devfreq_dev", "whinlatter", "25W"},
		{"thor-t5000", 110, 14, 7, 2601000, 1575000000, 4266000000, 0, "R39", "/sys/class/devfreq/gpu-gpc-0", "wrynose", "120W"},
	} {
		t.Run(c.board, func(t *testing.T) {
			b, ok := Lookup(c.board)
			if !ok {
				t.Fatal("unknown board")
			}
			if b.SM != c.sm || b.Cores != c.cores || len(b.Policies) != c.policies || b.DLA != c.dla {
				t.Errorf("sm %d, %d cores, %d policies, %d DLA; want %d, %d, %d, %d",
					b.SM, b.Cores, len(b.Policies), b.DLA, c.sm, c.cores, c.policies, c.dla)
			}
			for _, l := range []struct {
				name string
				got  *int64
				want int64
			}{{"CPU", b.CPU.Max, c.cpu}, {"GPU", b.GPU.Max, c.gpu}, {"EMC", b.EMC.Max, c.emc}} {
				if l.got == nil || *l.got != l.want {
					t.Errorf("%s: upper end %v, want %d", l.name, l.got, l.want)
				}
			}
			if paths := b.GPUDevfreq[c.line]; len(paths) == 0 || paths[0] != c.gpuPath {
				t.Errorf("GPU on %s: %v, want %s first", c.line, paths, c.gpuPath)
			}
			table, _, err := b.StockTable(c.release)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range table.Modes {
				if m.Default != (m.Name == c.defaults) {
					t.Errorf("%s: mode %s: default %t", c.release, m.Name, m.Default)
				}
			}
		})
	}
}

func TestOrinNanoOnScarthgapIsVerified(t *testing.T) {
	b, _ := Lookup("orin-nano-8gb")
	table, verified, err := b.StockTable("scarthgap")
	if err != nil || !verified || table.ParamsByUse {
		t.Fatalf("verified %t, by use %t, err %v", verified, table.ParamsByUse, err)
	}
	m, ok := table.Mode("25W")
	if !ok || m.ID != 1 {
		t.Fatalf("25W: %+v", m)
	}
	for _, want := range [][3]string{
		{"TPC_POWER_GATING", "TPC_PG_MASK", "240"}, {"CPU_A78_5", "MAX_FREQ", "1344000"},
		{"GPU", "MAX_FREQ", "918000000"}, {"EMC", "MAX_FREQ", "3199000000"},
	} {
		if !slices.Contains(m.Settings, want) {
			t.Errorf("25W does not set %v", want)
		}
	}
}

func TestEveryMachineOfABoardExistsOnItsBranch(t *testing.T) {
	owner := map[string]string{}
	forEachBoard(t, func(t *testing.T, b *Board) {
		for name, r := range b.Releases {
			rel, ok := release.Lookup(name)
			if !ok {
				t.Errorf("release %s is unknown", name)
				continue
			}
			for i, machine := range r.Machines {
				m, ok := rel.Machine(machine)
				if !ok {
					t.Errorf("%s has no machine %s", name, machine)
				}
				if i == 0 && m.NVPModel != r.NVPModel {
					t.Errorf("%s: %s installs %s, not %s", name, machine, m.NVPModel, r.NVPModel)
				}
				if other := owner[name+machine]; other != "" {
					t.Errorf("%s: %s is also a machine of %s", name, machine, other)
				}
				owner[name+machine] = b.ID
			}
		}
	})
	for _, name := range release.Names() {
		rel, _ := release.Lookup(name)
		for _, m := range rel.Machines() {
			if owner[name+m.Name] == "" {
				t.Errorf("%s: machine %s belongs to no board", name, m.Name)
			}
		}
	}
}

func TestUnknownIsNeverZero(t *testing.T) {
	forEachBoard(t, func(t *testing.T, b *Board) {
		for _, l := range []Limits{b.CPU, b.GPU, b.EMC} {
			for _, v := range []*int64{l.Min, l.Max, l.BootMin, l.MaxNonSuper} {
				if v != nil && *v <= 0 {
					t.Errorf("a limit is %d", *v)
				}
			}
		}
		if b.DLA == 0 && !b.IsKnown("dla") && b.IsVerified("dla") {
			t.Error("dla is verified and not known")
		}
	})
	b, _ := Lookup("thor-t4000")
	if b.CPU.Max != nil || b.IsKnown("cpu") {
		t.Error("thor-t4000: its CPU clock is unknown")
	}
}

func TestBoardWithoutStockFactsIsReported(t *testing.T) {
	b, _ := Lookup("tx1")
	if _, _, err := b.StockTable("kirkstone-l4t-r32.7.x"); !errors.Is(err, ErrNoTable) {
		t.Errorf("tx1: %v, want ErrNoTable", err)
	}
	if _, _, err := b.StockTable("wrynose"); err == nil || errors.Is(err, ErrNoTable) {
		t.Errorf("tx1 on wrynose: %v, want an error that there are no facts", err)
	}
}

func TestCPULabelMapsToCoreOrCluster(t *testing.T) {
	for _, c := range []struct {
		board, table, param string
		want                []int
	}{
		{"orin-nano-8gb", "R36.4 Super", "CPU_A78_1", []int{1}},
		{"orin-nano-8gb", "R35.3.1", "CPU_A78_1", []int{4, 5}},
		{"agx-orin-64gb", "R35.3.1", "CPU_A78_2", []int{8, 9, 10, 11}},
		{"agx-xavier", "R35.3.1", "CPU_DENVER_3", []int{6, 7}},
		{"tx2", "R32", "CPU_DENVER", []int{1, 2}},
		{"tx2", "R32", "CPU_A57", []int{0, 3, 4, 5}},
		{"tx2", "R32", "GPU", nil},
		{"tx2", "R32", "CPU_ONLINE", nil},
	} {
		b, _ := Lookup(c.board)
		if got := b.CoresOf(b.Tables[c.table], c.param); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %s stands for %v, want %v", c.board, c.table, c.param, got, c.want)
		}
	}
}

func TestLookupRefusesPathsAndUnknownBoards(t *testing.T) {
	for _, id := range []string{"", "nope", "../board", "data/orin-nano-8gb", "orin-nano-8gb.json"} {
		if _, ok := Lookup(id); ok {
			t.Errorf("Lookup(%q) found a board", id)
		}
	}
}

func BenchmarkLookupOfTheLargestBoard(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Lookup("xavier-nx"); !ok {
			b.Fatal("unknown board")
		}
	}
}
