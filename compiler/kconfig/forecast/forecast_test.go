package forecast

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/internal/cache"
)

func requestedLines() []kconfig.Line {
	return []kconfig.Line{{Symbol: "TCP_CONG_BBR", Value: "y"}, {Symbol: "PSI", Value: "y"}}
}

func open(t testing.TB, dir string) (*Book, *Kernel) {
	t.Helper()
	b := NewBook(dir)
	k, err := b.Open("5.15", requestedLines())
	if err != nil {
		t.Fatal(err)
	}
	return b, k
}

func findCacheFile(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.answer"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache has %d files, want 1 (%v)", len(files), err)
	}
	return files[0]
}

func TestSecondRunUsesTheCache(t *testing.T) {
	dir := t.TempDir()
	b, k := open(t, dir)
	first := k.Predictions()
	_, known := k.Value("RT_GROUP_SCHED")
	if !k.IsEnabled("PSI") || k.IsEnabled("TCP_CONG_BBR") || !known || k.IsEnabled("RT_GROUP_SCHED") {
		t.Error("wrong predictions for PSI, TCP_CONG_BBR or RT_GROUP_SCHED")
	}
	if _, known := k.Value("NO_SUCH_OPTION"); known || k.IsEnabled("NO_SUCH_OPTION") {
		t.Error("an option that does not exist has a value")
	}
	b.Save()

	_, again := open(t, dir)
	if !reflect.DeepEqual(withoutPlaces(again.Predictions()), withoutPlaces(first)) || again.IsEnabled("TCP_CONG_BBR") || !again.IsEnabled("PSI") {
		t.Errorf("from the cache: %+v, want %+v", again.Predictions(), first)
	}
	if again.full != nil {
		t.Error("the kernel was evaluated again")
	}
	if !again.IsEnabled("KSM") || again.full == nil {
		t.Error("an uncached option did not evaluate the kernel")
	}
}

// withoutPlaces formats predictions without what the cache omits: positions and parsed fixes.
func withoutPlaces(ps []kconfig.Prediction) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Symbol+" "+string(p.Outcome)+" "+p.Cause)
	}
	return out
}

func TestDamagedCacheIsIgnored(t *testing.T) {
	for name, damage := range map[string]func(key string, raw []byte) []byte{
		"cut short":      func(_ string, raw []byte) []byte { return raw[:len(raw)/2] },
		"one byte":       func(_ string, raw []byte) []byte { raw[len(raw)-10] ^= 1; return raw },
		"empty":          func(string, []byte) []byte { return nil },
		"another format": func(key string, _ []byte) []byte { return cache.Seal(key, []byte("[]")) },
	} {
		dir := t.TempDir()
		b, k := open(t, dir)
		want := withoutPlaces(k.Predictions())
		b.Save()
		file := findCacheFile(t, dir)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, damage(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), raw), 0o600); err != nil {
			t.Fatal(err)
		}
		b, k = open(t, dir)
		if got := withoutPlaces(k.Predictions()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		b.Save() // repairs the cache
		if _, k = open(t, dir); len(k.Predictions()) != 2 || k.full != nil {
			t.Errorf("%s: the cache was not written again", name)
		}
	}
}

func TestPredictionsWithoutACache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", filepath.Join(file, "below")} {
		b, k := open(t, dir)
		if len(k.Predictions()) != 2 {
			t.Errorf("%q: no predictions", dir)
		}
		b.Save()
	}
}

func BenchmarkEvaluated(b *testing.B) {
	for b.Loop() {
		_, k := open(b, "")
		k.Predictions()
	}
}

func BenchmarkRemembered(b *testing.B) {
	dir := b.TempDir()
	book, k := open(b, dir)
	k.Predictions()
	book.Save()
	for b.Loop() {
		_, k := open(b, dir)
		k.Predictions()
	}
}
