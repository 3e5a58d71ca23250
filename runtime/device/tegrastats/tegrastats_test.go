package tegrastats_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/tegrastats"
)

// real is a line from a real board.
type real struct{ Board, L4T, From, Line string }

func lines(t testing.TB) []real {
	t.Helper()
	f, err := os.Open("testdata/lines.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []real
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		var r real
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func show(v *int64) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatInt(*v, 10)
}

// The expected values were read from the lines by hand: cores and how many are
// online, load (permille) and clock (Hz) of GPU and memory, the largest free
// block, swap in use, and the numbers of engines, zones and rails.
func TestRealLinesAreParsedCompletely(t *testing.T) {
	want := []string{
		"4/4 gpu 0 76000000 emc 0 204000000 lfb 98x4194304 swap 5242880 engines 1 zones 6 rails 3",
		"4/4 gpu 990 - emc 0 - lfb 19x4194304 swap 45088768 engines 0 zones 6 rails 3",
		"2/4 gpu 0 76000000 emc 0 1600000000 lfb 28x4194304 swap 0 engines 1 zones 6 rails 3",
		"4/4 gpu 0 76000000 emc 30 1600000000 lfb 311x4194304 swap 0 engines 1 zones 7 rails 3",
		"6/6 gpu 0 114000000 emc 10 1866000000 lfb 5x4194304 swap 1704984576 engines 1 zones 8 rails 4",
		"4/6 gpu 0 - emc 0 - lfb 339x4194304 swap 0 engines 0 zones 6 rails 0",
		"4/8 gpu 0 318000000 emc 0 665000000 lfb 7291x4194304 swap 0 engines 1 zones 8 rails 6",
		"8/8 gpu 0 - emc 0 - lfb 3251x4194304 swap - engines 0 zones 8 rails 6",
		"6/6 gpu 620 306000000 emc 100 1600000000 lfb 237x4194304 swap 145752064 engines 1 zones 6 rails 3",
		"4/8 gpu 0 611000000 emc 0 2133000000 lfb 1770x4194304 swap 514850816 engines 2 zones 9 rails 3",
		"12/12 gpu 0 305000000 emc 10 2133000000 lfb 3x4194304 swap 5153751040 engines 10 zones 6 rails 3",
		"12/12 gpu 0 - emc none lfb 2x4194304 swap 0 engines 0 zones 6 rails 3",
		"6/6 gpu 0 - emc none lfb 25x4194304 swap 1591738368 engines 0 zones 6 rails 3",
		"6/6 gpu 0 305000000 emc 0 2133000000 lfb 21x4194304 swap 457179136 engines 6 zones 6 rails 2",
		"12/12 gpu 120 1300000000 emc 30 3199000000 lfb 1x2097152 swap - engines 10 zones 4 rails 3",
		"14/14 gpu - 314000000 emc 0 2750000000 lfb 34x4194304 swap - engines 9 zones 5 rails 4",
	}
	got := lines(t)
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i, r := range got {
		l, err := tegrastats.Parse(r.Line)
		if err != nil {
			t.Errorf("%s: %v", r.Board, err)
			continue
		}
		if len(l.Unknown) > 0 {
			t.Errorf("%s: not understood: %q", r.Board, l.Unknown)
		}
		s := l.Sample
		online := 0
		for _, c := range s.CPUs {
			if c.Online {
				online++
			}
		}
		emc := "none"
		if s.EMC != nil {
			emc = show(s.EMC.Load) + " " + show(s.EMC.Freq)
		}
		if len(s.GPUs) != 1 {
			t.Errorf("%s: %d GPUs", r.Board, len(s.GPUs))
			continue
		}
		line := fmt.Sprintf("%d/%d gpu %s %s emc %s lfb %sx%s swap %s engines %d zones %d rails %d", online, len(s.CPUs),
			show(s.GPUs[0].Load), show(s.GPUs[0].Freq), emc, show(s.Memory.LargestN), show(s.Memory.Largest),
			show(s.Memory.SwapUsed), len(s.Engines), len(s.Zones), len(s.Rails))
		if line != want[i] {
			t.Errorf("%s:\n got %s\nwant %s", r.Board, line, want[i])
		}
	}
}

// A second implementation, with two patterns over the whole line, finds the same temperatures and
// rails.
func TestZonesAndRails(t *testing.T) {
	zone := regexp.MustCompile(`(\S+)@(-?[0-9.]+)C`)
	rail := regexp.MustCompile(`(\S+) (\d+)(?:mW)?/\d+(?:mW)?(?:/\d+mW)?(?: |$)`)
	for _, r := range lines(t) {
		l, err := tegrastats.Parse(r.Line)
		if err != nil {
			t.Fatal(err)
		}
		var zones, rails, wantZones, wantRails []string
		for _, z := range l.Sample.Zones {
			if z.Temp != nil {
				zones = append(zones, fmt.Sprintf("%s %d", z.Name, *z.Temp))
			}
		}
		for _, m := range zone.FindAllStringSubmatch(r.Line, -1) {
			c, _ := strconv.ParseFloat(m[2], 64)
			wantZones = append(wantZones, fmt.Sprintf("%s %d", m[1], int64(math.Round(c*1000))))
		}
		for _, p := range l.Sample.Rails {
			rails = append(rails, fmt.Sprintf("%s %d", p.Label, *p.Power))
		}
		rest := r.Line
		for {
			m := rail.FindStringSubmatchIndex(rest)
			if m == nil {
				break
			}
			wantRails = append(wantRails, rest[m[2]:m[3]]+" "+rest[m[4]:m[5]])
			rest = rest[m[5]:]
		}
		if strings.Join(zones, ",") != strings.Join(wantZones, ",") {
			t.Errorf("%s: zones\n got %s\nwant %s", r.Board, zones, wantZones)
		}
		if strings.Join(rails, ",") != strings.Join(wantRails, ",") {
			t.Errorf("%s: rails\n got %s\nwant %s", r.Board, rails, wantRails)
		}
	}
}

func TestUnparsedValuesAreUnknown(t *testing.T) {
	for line, unknown := range map[string]string{
		"RAM 1/2MB (lfb 1x4MB) CPU [1%@2] GR3D_FREQ 37%@<1300>":       "GR3D_FREQ 37%@<1300>",
		"RAM 1/2MB (lfb 1x4MB) CPU [1%@2] GR3D_FREQ busy":             "GR3D_FREQ busy",
		"RAM 1/2MB (lfb 1x4MB) CPU [x@2] GR3D_FREQ 1%":                "CPU x@2",
		"RAM 1/2MB (lfb 1x4MB) CPU [1%@2] EMC_FREQ ? GR3D_FREQ 1%":    "EMC_FREQ ?",
		"RAM 1/2MB (lfb 1x4MB) CPU [1%@2] GR3D_FREQ 1% VDD_IN n/a":    "VDD_IN n/a",
		"RAM 1/2MB (lfb 1x4MB) CPU [1%@2] GR3D_FREQ 1% tj@hotC":       "tj@hotC",
		"RAM 1/2MB (lfb many) CPU [1%@2] GR3D_FREQ 1%":                "(lfb many",
		"RAM 1/2MB (lfb 1x4MB) CPU [1%@2] GR3D_FREQ 1% NEWTHING 12 %": "%",
	} {
		l, err := tegrastats.Parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if strings.Join(l.Unknown, "|") != unknown {
			t.Errorf("%s: unknown is %q, want %q", line, l.Unknown, unknown)
		}
		for _, v := range l.Sample.Values() {
			if v.Value == 0 {
				t.Errorf("%s: %s is 0", line, v.Name)
			}
		}
	}
}

func TestTwoClusterGPUIsOneGPU(t *testing.T) {
	l, err := tegrastats.Parse("RAM 1/2MB (lfb 1x4MB) CPU [1%@2] GR3D_FREQ 99%@917 GR3D2_FREQ 99%@0 APE 174")
	if err != nil || len(l.Sample.GPUs) != 1 || *l.Sample.GPUs[0].Freq != 917_000_000 || len(l.Unknown) > 0 {
		t.Errorf("%+v %v", l, err)
	}
}

func TestUnpoweredUnitHasNoTemperature(t *testing.T) {
	l, err := tegrastats.Parse("RAM 1/2MB (lfb 1x4MB) CPU [1%@2] CV0@-256C tj@48.875C")
	if err != nil || l.Sample.Zones[0].Temp != nil || *l.Sample.Zones[1].Temp != 48875 {
		t.Errorf("%+v %v", l, err)
	}
	if hot := l.Sample.Hottest(); hot == nil || hot.Name != "tj" {
		t.Errorf("hottest is %+v", hot)
	}
}

func TestOtherTextIsRefused(t *testing.T) {
	for _, line := range []string{"", "hello", "RAM", "RAM x/yMB", "06-18-2025 11:25:24", strings.Repeat("RAM 1/2MB ", 5000)} {
		if _, err := tegrastats.Parse(line); !errors.Is(err, tegrastats.ErrLine) {
			t.Errorf("%.30q: %v", line, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range lines(f) {
		f.Add(r.Line)
	}
	f.Add("RAM 1/2MB (lfb CPU [")
	f.Add("RAM 1/2MB IRAM 0/1kB(lfb 1kB) CPU [off] SWAP 1/2MB (cached")
	f.Fuzz(func(t *testing.T, line string) {
		l, err := tegrastats.Parse(line)
		if err != nil {
			if !errors.Is(err, tegrastats.ErrLine) {
				t.Fatal(err)
			}
			return
		}
		for _, v := range l.Sample.Values() {
			if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
				t.Fatalf("%s is %v", v.Name, v.Value)
			}
		}
		// A recording preserves it.
		b, err := json.Marshal(l.Sample)
		if err != nil {
			t.Fatal(err)
		}
		var again monitor.Sample
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
	})
}
