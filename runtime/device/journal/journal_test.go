package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"pgregory.net/rapid"
)

func load(t testing.TB, st rootfs.State) *journal.Journal {
	t.Helper()
	j, err := journal.Load(st, "boot-a")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func root(t testing.TB, dir string) *rootfs.Root {
	t.Helper()
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

func original(n int) journal.Original {
	p := fmt.Sprintf("/proc/sys/vm/k%d", n)
	return journal.Original{ID: fmt.Sprintf("sysctl.vm.k%d", n), Path: p, Name: p, Type: "int", Value: fmt.Sprint(n)}
}

func TestStartedRecordsSurviveARestart(t *testing.T) {
	st := root(t, t.TempDir())
	want := []journal.Original{original(1), original(2)}
	if err := load(t, st).Begin(journal.Plan{Target: "a", Serial: 7}, want); err != nil {
		t.Fatal(err)
	}
	j := load(t, st)
	if !slices.Equal(j.Originals, want) || j.Plan == nil || j.Plan.Serial != 7 || !j.HasOriginal(want[0].Path) {
		t.Errorf("%+v", j)
	}
}

// After a power loss at any byte, the complete records are read, and new ones can be appended.
func TestTornTailKeepsEarlierRecords(t *testing.T) {
	full := root(t, t.TempDir())
	for n := range 4 {
		if err := load(t, full).Begin(journal.Plan{Target: "a", Serial: int64(n)}, []journal.Original{original(n)}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := full.ReadState(journal.File)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range data {
		// The count is written before the first record.
		st := memory{journal.CountFile: []byte(`{"boot":"boot-a","records":0}`), journal.File: bytes.Clone(data[:cut])}
		j := load(t, st)
		whole := slices.Clone(j.Originals)
		// Each Begin wrote a line for the plan and one for its original.
		if lines := bytes.Count(data[:cut], []byte("\n")); len(whole) != lines/2 {
			t.Fatalf("cut at %d: %d of %d originals", cut, len(whole), lines/2)
		}
		for n, o := range whole {
			if o != original(n) {
				t.Fatalf("cut at %d: record %d is %+v", cut, n, o)
			}
		}
		if err := j.Begin(journal.Plan{Target: "b"}, []journal.Original{original(9)}); err != nil {
			t.Fatal(err)
		}
		after := load(t, st)
		if after.Damaged != 0 || !slices.Equal(after.Originals, append(whole, original(9))) {
			t.Fatalf("cut at %d: %+v", cut, after)
		}
	}
}

// A journal that was cut or emptied after its records were complete has lost some, which are
// counted until a rollback has reported them.
func TestMissingRecordsAreCounted(t *testing.T) {
	full := memory{}
	for n := range 3 {
		if err := load(t, full).Begin(journal.Plan{Target: "a", Serial: int64(n)}, []journal.Original{original(n)}); err != nil {
			t.Fatal(err)
		}
	}
	data := full[journal.File]
	for cut := range len(data) + 1 {
		for _, kept := range [][]byte{data[:cut], append(bytes.Clone(data[:cut]), make([]byte, len(data)-cut)...)} { // cut off, or zeroed
			st := maps.Clone(full)
			st[journal.File] = bytes.Clone(kept)
			j := load(t, st)
			whole := bytes.Count(data[:cut], []byte("\n"))
			if j.Damaged != 6-whole || len(j.Originals) != whole/2 {
				t.Fatalf("cut at %d: %d lost, %d originals; of %d records", cut, j.Damaged, len(j.Originals), whole)
			}
			if whole == 6 {
				continue
			}
			if err := j.Begin(journal.Plan{Target: "b"}, []journal.Original{original(9)}); err != nil {
				t.Fatal(err)
			}
			if again := load(t, st); again.Damaged != 6-whole || !again.HasOriginal(original(9).Path) {
				t.Fatalf("cut at %d, appended: %+v", cut, again)
			}
		}
	}
	delete(full, journal.File)
	j := load(t, full)
	if j.Damaged != 6 {
		t.Errorf("a removed journal: %+v", j)
	}
	if err := j.ReplaceOriginals(nil); err != nil || len(full) != 0 {
		t.Errorf("%v, %q", err, full)
	}
	full[journal.File] = data
	if j := load(t, full); j.Damaged != 1 || len(j.Originals) != 3 {
		t.Errorf("a removed count: %+v", j)
	}
	delete(full, journal.File)
	full[journal.CountFile] = []byte("{")
	if j := load(t, full); j.Damaged != 1 {
		t.Errorf("a damaged count: %+v", j)
	}
}

// Damaged lines are lost records, which are counted until a rollback has reported them.
func TestDamagedRecordsAreCounted(t *testing.T) {
	st := memory{}
	if err := load(t, st).Begin(journal.Plan{}, []journal.Original{original(1), original(2)}); err != nil {
		t.Fatal(err)
	}
	st[journal.File] = bytes.Replace(st[journal.File], []byte(original(1).Path), []byte("/proc/sys/other"), 1)
	for n := range 2 { // once as loaded, once rewritten
		j := load(t, st)
		if j.Damaged != 1 || len(j.Originals) != n+1 || !j.HasOriginal(original(2).Path) {
			t.Fatalf("round %d: %+v", n, j)
		}
		if err := j.Begin(journal.Plan{}, []journal.Original{original(3)}); err != nil {
			t.Fatal(err)
		}
	}
	j := load(t, st)
	if err := j.ReplaceOriginals(j.Originals); err != nil {
		t.Fatal(err)
	}
	if j := load(t, st); j.Damaged != 0 || len(j.Originals) != 2 {
		t.Errorf("%+v", j)
	}
}

func TestRecordsOfAnotherBootAreRemoved(t *testing.T) {
	st := root(t, t.TempDir())
	old, err := journal.Load(st, "boot-before")
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Begin(journal.Plan{Target: "a"}, []journal.Original{original(1)}); err != nil {
		t.Fatal(err)
	}
	j := load(t, st)
	if len(j.Originals) != 0 || j.Plan != nil || j.Foreign != 2 {
		t.Fatalf("%+v", j)
	}
	if err := j.Begin(journal.Plan{Target: "a"}, []journal.Original{original(2)}); err != nil {
		t.Fatal(err)
	}
	if j := load(t, st); j.Foreign != 0 || len(j.Originals) != 1 {
		t.Errorf("%+v", j)
	}
}

func TestJournalOfNewerVersionIsRefused(t *testing.T) {
	st := root(t, t.TempDir())
	if err := st.WriteState(journal.File, []byte("dc441264 {\"v\":2}\n")); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Load(st, "boot-a")
	if err == nil && j.Damaged == 1 {
		t.Fatal("the checksum of the test is wrong")
	}
	if !errors.Is(err, journal.ErrVersion) {
		t.Errorf("%v, want ErrVersion", err)
	}
}

func TestNotesSurviveTheRemovalOfForeignRecords(t *testing.T) {
	st := root(t, t.TempDir())
	j := load(t, st)
	if err := j.AddNotes([]journal.Note{{Path: "/p", Want: "130", Found: "128"}}); err != nil {
		t.Fatal(err)
	}
	if j := load(t, st); !j.Explains("/p", "130", "128") || j.Explains("/p", "130", "64") {
		t.Errorf("%+v", j)
	}
}

func TestBeginWithoutChangesWritesNothing(t *testing.T) {
	st := memory{}
	j := load(t, st)
	for range 3 {
		if err := j.Begin(journal.Plan{Target: "a"}, []journal.Original{original(1)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := bytes.Count(st[journal.File], []byte("\n")); n != 2 {
		t.Errorf("%d records, want a plan and an original: a year of repairs must not fill /run", n)
	}
}

func TestLeaseCoverIsRecordedUntilUncovered(t *testing.T) {
	st := root(t, t.TempDir())
	j := load(t, st)
	if err := j.Begin(journal.Plan{Target: "a"}, []journal.Original{original(1)}); err != nil {
		t.Fatal(err)
	}
	second := original(2)
	second.Value = "changed meanwhile"
	for _, before := range [][]journal.Original{{original(2)}, {second, original(3)}} {
		if err := j.AddCovered(before); err != nil {
			t.Fatal(err)
		}
	}
	again := load(t, st)
	if !slices.Equal(again.Covered, []journal.Original{original(2), original(3)}) {
		t.Errorf("%+v", again.Covered)
	}
	if err := again.RemoveCovered(); err != nil {
		t.Fatal(err)
	}
	if end := load(t, st); len(end.Covered) != 0 || len(end.Originals) != 1 || end.Plan == nil {
		t.Errorf("%+v", end)
	}
}

func TestFirstOriginalSurvivesAnySequence(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		st := memory{}
		first := map[string]string{}
		for range rapid.IntRange(1, 8).Draw(rt, "applies") {
			var batch []journal.Original
			for range rapid.IntRange(0, 4).Draw(rt, "knobs") {
				o := original(rapid.IntRange(0, 5).Draw(rt, "knob"))
				o.Value = rapid.StringN(0, 12, -1).Draw(rt, "value")
				batch = append(batch, o)
				if _, ok := first[o.Path]; !ok {
					first[o.Path] = o.Value
				}
			}
			if err := load(t, st).Begin(journal.Plan{}, batch); err != nil {
				rt.Fatal(err)
			}
		}
		got := map[string]string{}
		for _, o := range load(t, st).Originals {
			got[o.Path] = o.Value
		}
		for p, v := range first {
			if got[p] != v {
				rt.Fatalf("%s: %q, first was %q", p, got[p], v)
			}
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("dc441264 {\"v\":2}\n"))
	f.Add([]byte("00000000 {}\n\n \nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		st := memory{journal.File: data}
		j, err := journal.Load(st, "boot-a")
		if err != nil {
			return
		}
		if err := j.Begin(journal.Plan{}, []journal.Original{original(1)}); err != nil {
			t.Fatal(err)
		}
		again, err := journal.Load(st, "boot-a")
		if err != nil || !again.HasOriginal(original(1).Path) || again.Damaged > 0 && j.Damaged == 0 {
			t.Fatalf("%v %+v", err, again)
		}
	})
}

// memory is a state in memory.
type memory map[string][]byte

func (m memory) ReadState(name string) ([]byte, error) {
	if data, ok := m[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}
func (m memory) WriteState(name string, data []byte) error { m[name] = data; return nil }
func (m memory) AppendState(name string, data []byte) error {
	m[name] = append(m[name], data...)
	return nil
}
func (m memory) RemoveState(name string) error { delete(m, name); return nil }
