package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/processes"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// The screens of the built program are tested in tests/screens; these tests are about
// samples that no synthetic device has.

func sampleOf(t *testing.T, board string) *monitor.Sample {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, board); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return monitor.New(dev).Take()
}

// draw draws the pages of a sample.
func draw(s *monitor.Sample, width int) []string {
	t := trends{}
	for range 50 {
		t.add(s)
	}
	f := frame{host: "bench-7", sample: s, choice: &choice{}, trends: &t, processes: []processes.Process{{PID: 812, Name: strings.Repeat("x", 40), Pipeline: "door"}}}
	var all []string
	for _, page := range pages {
		f.press(page.key)
		all = append(all, f.lines(width, 40, false)...)
	}
	return append(all, (&screen{last: f}).footer(width, false, 3))
}

func TestNoLineIsLongerThanTheTerminal(t *testing.T) {
	s := sampleOf(t, "agx-orin-64gb")
	s.Zones[0].Name = strings.Repeat("x", 300)
	for _, width := range []int{1, 10, 20, 40, 80, 200} {
		for _, line := range slices.Concat(draw(s, width), helpLines(width, false, frame{}.keys())) {
			if n := utf8.RuneCountInString(line); n > max(width, labelWidth) {
				t.Errorf("%d columns: %d in %q", width, n, line)
			}
		}
	}
}

func TestTextOfADeviceIsEscapedForTheTerminal(t *testing.T) {
	s := sampleOf(t, "orin-nano-8gb")
	evil := "\x1b[2Jx\n"
	s.PowerMode, s.Rails[0].Label, s.Zones[0].Name, s.CPUs[0].Governor = &evil, evil, evil, &evil
	f := frame{host: evil, board: evil, sample: s, choice: &choice{}, processes: []processes.Process{{Name: evil, Pipeline: evil}}}
	if text := strings.Join(f.lines(200, 0, false), "\n"); strings.ContainsRune(text, 27) {
		t.Errorf("%q", text)
	}
	if line := printable.Line(logLine(s)); strings.ContainsRune(line, 27) {
		t.Errorf("%q", line)
	}
}

func TestTemperaturesAreMarkedAtTheirLimits(t *testing.T) {
	s := monitor.NewSample()
	for _, z := range []struct {
		name string
		temp int64
	}{{"cool", 40_000}, {"warm", 95_000}, {"hot", 99_000}} {
		s.Zones = append(s.Zones, monitor.Zone{Name: z.name, Temp: &z.temp, Passive: new(int64(99_000)), Critical: new(int64(104_500))})
	}
	text := strings.Join(frame{sample: s, choice: &choice{}}.lines(100, 0, false), "\n")
	for _, want := range []string{"cool 40.0  warm 95.0 near limit  hot 99.0 LIMIT", "slowed at 99 °C, off at 104.5 °C"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s.Zones[0].Passive = new(int64(80_000))
	text = strings.Join(frame{sample: s, choice: &choice{}}.lines(100, 0, false), "\n")
	if !strings.Contains(text, "cool slowed at 80 °C, off at 104.5 °C  warm slowed at 99 °C") {
		t.Error(text)
	}
}

func TestUnknownValueIsAGapInTheHistory(t *testing.T) {
	var list trends
	for n := range 5 {
		s := monitor.NewSample()
		if n != 2 {
			s.Rails = []monitor.Rail{{Label: "VDD_IN", Power: new(int64(1000 * n))}}
		}
		list.add(s)
	}
	values := list.values["power"]
	if len(values) != 5 || !math.IsNaN(values[2]) || sparkline(values, 0, 4000) != "▁▂ ▆█" {
		t.Errorf("%v %q", values, sparkline(values, 0, 4000))
	}
	for range 2 * maxTrend {
		list.add(monitor.NewSample())
	}
	if n := len(list.values["power"]); n != maxTrend {
		t.Errorf("%d values are kept", n)
	}
}

func TestKeysOfATerminal(t *testing.T) {
	for in, want := range map[string][]string{
		"q": {"q"}, "\x03": {"ctrl-c"}, "\x1b": {"escape"}, "\x1b[A": {"up"}, "\x1bOB": {"down"}, "\x1b[5~?": {"page up", "?"},
		"\x1b[1;5A2": {"2"}, "\t": {"tab"}, "mé": {"m", "é"}, "\x1b[<0;1": nil,
	} {
		if got := decodeKeys([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzDecodeKeys(f *testing.F) {
	f.Add([]byte("\x1b[1;5A\x1bO\x1b[\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if keys := decodeKeys(b); len(keys) > len(b) {
			t.Error(fmt.Sprint(keys))
		}
	})
}
