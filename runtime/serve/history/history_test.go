package history_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/serve/history"
)

func sample(at time.Time, watts int64) *monitor.Sample {
	return &monitor.Sample{Time: at, Rails: []monitor.Rail{{Label: "VDD_IN", Power: &watts}}}
}

func open(t *testing.T, file string, size int64) (*history.Store, string) {
	t.Helper()
	s, note, err := history.Open(t.Context(), file, size)
	if err != nil {
		t.Fatal(err)
	}
	return s, note
}

func TestHistorySurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "history.db")
	s, note := open(t, file, 1<<20)
	if note != "" {
		t.Error(note)
	}
	begin := time.Unix(1_800_000_000, 0)
	for n := range 10 {
		s.Add(sample(begin.Add(time.Duration(n)*time.Second), int64(n)))
	}
	s.Add(sample(begin, 5)) // the clock was set back
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, _ = open(t, file, 1<<20)
	points, err := s.Query(t.Context(), "rail VDD_IN", begin, begin.Add(time.Minute), 1000)
	if err != nil || len(points) != 10 || points[0].Value != 5 || points[9].Value != 9 || points[9].Time < begin.Add(8970*time.Millisecond).UnixMilli() || points[9].Time > begin.Add(9030*time.Millisecond).UnixMilli() {
		t.Errorf("%v %v", points, err)
	}
	// With fewer points, these are averages.
	points, err = s.Query(t.Context(), "rail VDD_IN", begin, begin.Add(10*time.Second), 2)
	if err != nil || len(points) != 2 || points[1].Value != 7 {
		t.Errorf("%v %v", points, err)
	}
	if points, err := s.Query(t.Context(), "no such", begin, begin.Add(time.Hour), 10); err != nil || len(points) != 0 {
		t.Errorf("%v %v", points, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestValuesAreFoundBeforeTheyAreWritten(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "history.db"), 1<<20)
	begin := time.Unix(1_800_000_000, 0)
	values := func() (out []float64) {
		points, err := s.Query(t.Context(), "rail VDD_IN", begin, begin.Add(time.Minute), 60)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			out = append(out, p.Value)
		}
		return out
	}
	s.Add(sample(begin, 1))
	if names, err := s.Names(t.Context()); err != nil || !slices.Equal(names, []string{"rail VDD_IN"}) || !slices.Equal(values(), []float64{1}) {
		t.Errorf("before the first write: %v %v %v", names, values(), err)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Add(sample(begin.Add(10*time.Second), 2))
	s.Add(sample(begin.Add(2*time.Minute), 3)) // outside
	if got := values(); !slices.Equal(got, []float64{1, 2}) {
		t.Errorf("%v", got)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A chart has one time axis: averages of series with and without gaps lie at the same times.
func TestAveragesOfAllSeriesHaveTheSameTimes(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "history.db"), 1<<20)
	begin := time.Unix(1_800_000_000, 0)
	for n := range 100 {
		v := sample(begin.Add(time.Duration(n)*time.Second), int64(n))
		if n%7 > 0 {
			v.Rails = append(v.Rails, monitor.Rail{Label: "VDD_SOC", Power: new(int64(1))})
		}
		s.Add(v)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	times := func(name string) (out []int64) {
		points, err := s.Query(t.Context(), name, begin, begin.Add(100*time.Second), 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			out = append(out, p.Time)
		}
		return out
	}
	if a, b := times("rail VDD_IN"), times("rail VDD_SOC"); len(a) != 10 || !slices.Equal(a, b) {
		t.Errorf("%v and %v", a, b)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestFileIsBoundedAndKeepsTheNewest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.db")
	const size = 512 << 10
	s, _ := open(t, file, size)
	begin := time.Unix(1_800_000_000, 0)
	const samples = 60_000
	for n := range samples {
		s.Add(sample(begin.Add(time.Duration(n)*time.Second), int64(n)))
		if s.Pending() == 1000 {
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := begin.Add(samples * time.Second)
	points, err := s.Query(t.Context(), "rail VDD_IN", end.Add(-10*time.Second), end, 1000)
	if err != nil || len(points) == 0 || points[len(points)-1].Value != samples-1 {
		t.Errorf("the newest are gone: %v %v", points, err)
	}
	old, err := s.Query(t.Context(), "rail VDD_IN", begin, begin.Add(10*time.Second), 1000)
	if err != nil || len(old) != 0 {
		t.Errorf("the oldest are still there: %v %v", old, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(file)
	if err != nil || st.Size() > size*5/4 {
		t.Errorf("%d bytes, bound %d (%v)", st.Size(), size, err)
	}
}

func TestForeignDatabaseIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	if _, note, err := history.Open(t.Context(), dir, 1<<20); err == nil || note != "" {
		t.Errorf("a folder: %q, %v", note, err)
	}
	t.Chdir(dir)
	s, note, err := history.Open(t.Context(), "history.db", 1<<20)
	if err != nil || note != "" {
		t.Fatalf("a relative path: %q, %v", note, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "other.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.ExecContext(t.Context(), "CREATE TABLE series(of TEXT)"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, note, err := history.Open(t.Context(), "other.db", 1<<20); err == nil || note != "" {
		t.Errorf("the database of another program: %q, %v", note, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.damaged"))
	if err != nil || len(left) != 0 {
		t.Errorf("set aside: %v, %v", left, err)
	}
}

func TestDamagedFileIsMovedAside(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"no database":     func([]byte) []byte { return []byte("hello, this is not a database at all") },
		"cut in half":     func(b []byte) []byte { return b[:len(b)/2] },
		"a page of noise": func(b []byte) []byte { copy(b[4096:], bytes.Repeat([]byte{0xff}, 4096)); return b },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "history.db")
			s, _ := open(t, file, 1<<20)
			for n := range 2000 {
				s.Add(sample(time.Unix(1_800_000_000+int64(n), 0), 1))
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			bad := damage(b)
			if err := os.WriteFile(file, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			s, note := open(t, file, 1<<20)
			if !strings.Contains(note, "damaged") || !strings.Contains(note, file+".damaged") {
				t.Errorf("note %q", note)
			}
			if kept, err := os.ReadFile(file + ".damaged"); err != nil || !bytes.Equal(kept, bad) {
				t.Errorf("the damaged file was not kept: %v", err)
			}
			s.Add(sample(time.Now(), 1))
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
