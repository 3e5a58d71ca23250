package bench

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

func TestABaselineSurvivesSaveAndLoad(t *testing.T) {
	hz, cores := int64(1_500_000_000), 6
	r := &Report{
		Suite: "all", Device: core.Info{Backend: "cpu", Name: "x", Cores: &cores}, Before: State{CPU: &hz},
		References: []string{"libc"}, Missing: []string{},
		Measurements: []Measurement{{Type: "measurement", Suite: "kernels", Name: "n", P50: 3, Times: []int64{1, 3, 5}, ReferenceTimes: []int64{2, 4, 6}}},
	}
	path := filepath.Join(t.TempDir(), "base.json")
	if err := Save(path, r); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%v\n%+v\n%+v", err, got, r)
	}
}

func TestInvalidBaselinesAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty": "", "text": "fast enough", "other": `{"$schema": "yoctune.plan/1"}`, "newer": `{"$schema": "yoctune.bench/2"}`,
		"negative": `{"$schema": "yoctune.bench/1", "measurements": [{"name": "n", "times_ns": [-1]}]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); !errors.Is(err, errBaseline) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestRunsOfAnotherDeviceDriverOrClockAreNotCompared(t *testing.T) {
	number := func(v int64) *int64 { return &v }
	text := func(v string) *string { return &v }
	base := &Report{Device: core.Info{Backend: "cuda", Name: "Orin", Driver: text("12.6")}, After: State{GPUMax: number(918_000_000), PowerMode: text("25W")}}
	if d := Differences(base, base); len(d) != 0 {
		t.Errorf("the same run: %v", d)
	}
	unknown := &Report{Device: core.Info{Backend: "cuda", Name: "Orin"}}
	if d := Differences(base, unknown); len(d) != 0 {
		t.Errorf("an unknown value is compared: %v", d)
	}
	for want, change := range map[string]func(*Report){
		"backend: cuda in the baseline, cpu now":                             func(r *Report) { r.Device.Backend = "cpu" },
		"device: Orin in the baseline, Thor now":                             func(r *Report) { r.Device.Name = "Thor" },
		"driver: 12.6 in the baseline, 13.0 now":                             func(r *Report) { r.Device.Driver = text("13.0") },
		"highest GPU clock in Hz: 918000000 in the baseline, 1020000000 now": func(r *Report) { r.After.GPUMax = number(1_020_000_000) },
		"power mode: 25W in the baseline, MAXN now":                          func(r *Report) { r.After.PowerMode = text("MAXN") },
	} {
		now := *base
		change(&now)
		if d := Differences(base, &now); len(d) != 1 || d[0] != want {
			t.Errorf("%v, want %q", d, want)
		}
	}
}

func FuzzBaseline(f *testing.F) {
	f.Add([]byte(`{"$schema": "yoctune.bench/1", "measurements": [{"name": "n", "p50_ns": 3, "times_ns": [1, 2], "reference": {"name": "r"}}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse(data)
		if err != nil {
			if !errors.Is(err, errBaseline) {
				t.Errorf("%v", err)
			}
			return
		}
		Compare(r.Measurements, r.Measurements, DefaultRule())
		Differences(r, r)
	})
}
