package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func smallGraph(t *testing.T) *Graph {
	t.Helper()
	data, err := os.ReadFile("testdata/task-depends.dot")
	if err != nil {
		t.Fatal(err)
	}
	g, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLongestPathOfASmallBuild(t *testing.T) {
	a := smallGraph(t).Analyse(nil, 2)
	if a.Tasks != 10 || a.Recipes != 3 || a.Edges != 10 {
		t.Errorf("%d tasks of %d recipes, %d edges", a.Tasks, a.Recipes, a.Edges)
	}
	var got []string
	for _, s := range a.Count.Steps {
		got = append(got, s.Task)
	}
	want := "tool-native.do_fetch tool-native.do_compile tool-native.do_populate_sysroot lib.do_compile " +
		"lib.do_populate_sysroot app.do_compile app.do_package_write_ipk app.do_build"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if fmt.Sprint(a.Levels) != "[3 1 1 1 1 1 1 1]" {
		t.Errorf("levels %v", a.Levels)
	}
}

func TestFullCacheKeepsRequestedEntries(t *testing.T) {
	a := smallGraph(t).Analyse(nil, 2)
	for i, want := range []Cache{
		{Name: "nothing", Runs: 10, Path: 8, Length: 8},
		{Name: "native and cross tools", Runs: 8, Restored: 1, Path: 6, Length: 6},
		{Name: "everything", Runs: 2, Restored: 1, Path: 2, Length: 2},
	} {
		if a.Caches[i] != want {
			t.Errorf("got %+v, want %+v", a.Caches[i], want)
		}
	}
}

// stats is what buildstats.bbclass writes, shortened.
func stats(seconds string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("Event: TaskStarted\nStarted: 1700000000.00\nx: do_y\nElapsed time: " + seconds +
		" seconds\nutime: 100\nstime: 50\nrusage ru_utime: 1.0\nrusage ru_stime: 0.5\nChild rusage ru_utime: 2.0\nEnded: 1700000001.00\nStatus: PASSED\n")}
}

func TestBuildstatsGiveTimes(t *testing.T) {
	g := smallGraph(t)
	s, err := g.Measure(fstest.MapFS{
		"20250101000000/build_stats":                                   {Data: []byte("Elapsed time: 1.00 seconds\n")},
		"20250102000000/build_stats":                                   {Data: []byte("Host Info: Linux\nElapsed time: 100.00 seconds\n")},
		"20250102000000/app-1.0-r0/do_fetch":                           stats("90.00"),
		"20250102000000/app-1.0-r0/do_compile":                         stats("10.00"),
		"20250102000000/lib-1_2.3-r1/do_compile":                       stats("20.00"),
		"20250102000000/tool-native-4-r0/do_populate_sysroot_setscene": stats("0.50"),
		"20250102000000/stranger-1-r0/do_compile":                      stats("5.00"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Build != "20250102000000" || s.Ran != 3 || s.Hits != 1 || s.Unknown != 6 || s.Strangers != 1 ||
		s.Elapsed != 100*time.Second || s.Work != 120500*time.Millisecond || s.CPU != 14*time.Second {
		t.Errorf("%+v", *s)
	}
	a := g.Analyse(s, 2)
	if a.Time.Length != int64(100*time.Second) || a.Time.Steps[0].Task != "app.do_fetch" {
		t.Errorf("the long download is not the longest path: %+v", *a.Time)
	}
	// Two threads are enough: the other path is shorter.
	if a.run(1).Length != int64(120500*time.Millisecond) || a.run(2).Length != int64(100*time.Second) {
		t.Errorf("1 thread %d, 2 threads %d", a.run(1).Length, a.run(2).Length)
	}
}

func TestBuildstatsOfAnotherBuildAreRefused(t *testing.T) {
	for name, fsys := range map[string]fstest.MapFS{
		"strangers only": {"b/build_stats": {}, "b/other-1-r0/do_compile": stats("1")},
		"empty":          {},
		"another folder": {"src/main.c": {}},
	} {
		if _, err := smallGraph(t).Measure(fsys); !errors.Is(err, errNoStats) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBrokenFilesAreRefusedWithPosition(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `1:1: got the end of the file, want "digraph" at the start; give the task-depends.dot that bitbake -g writes`},
		{"no task", "digraph depends {\n}\n", "3:1: the graph has no tasks; give the task-depends.dot that bitbake -g writes"},
		{"not dot", "BBFILES += \"x\"\n", `1:1: got "BBFILES", want "digraph" at the start; give the task-depends.dot that bitbake -g writes`},
		{"undirected", "graph g {\n}", `1:1: got "graph", want "digraph" at the start; give the task-depends.dot that bitbake -g writes`},
		{"cut short", "digraph depends {\n\"a.do_x\" -> \"b.do_x\"\n", "3:1: the file ends inside the graph; run bitbake -g again"},
		{"cut in a name", "digraph depends {\n\"a.do_x\" -> \"b.do", "2:13: a quoted name that does not end"},
		{"missing quote", "digraph depends {\n\"a.do_x -> \n\"b.do_x\"\n}", "2:1: a quoted name that does not end on its line"},
		{"missing task", "digraph depends {\n\"a.do_x\" -> ;\n}", `2:13: got ";", want a task after "->"`},
		{"bare dash", "digraph depends {\na - b\n}", `2:3: unexpected "-"; quote names that contain it`},
		{"no direction", "digraph depends {\na -- b\n}", `2:3: an edge without direction; bitbake -g writes "->"`},
		{"subgraph", "digraph d {\n\tsubgraph s { a }\n}", "2:2: unsupported subgraph; bitbake -g writes none"},
		{"html", "digraph d {\na [label=<b>]\n}", "2:10: an HTML label; bitbake -g writes none"},
		{"attribute", "digraph d {\na [label=]\n}", `2:10: got "]", want the value of "label"`},
		{"a name that reaches the terminal", "digraph d {\na -> \"b\x1b[2J.do_x\"\n}", `2:6: task name "b\x1b[2J.do_x" has unprintable characters`},
		{"a name that reads backwards", "digraph d {\n\"a\u202eb\"\n}", `2:1: task name "a\u202eb" has unprintable characters`},
		{"no name", "digraph d {\n\"\" -> a\n}", "2:1: a task without a name"},
		{"after the end", "digraph d {\n}\nmore", `3:1: unexpected "more" after the end of the graph`},
		{"byte", "digraph d {\n  \x00\n}", `2:3: unexpected "\x00"`},
		{"comment", "digraph d {\n /* never\n", "2:2: a comment that does not end"},
	} {
		_, err := Read(strings.NewReader(c.text))
		if !errors.Is(err, errSyntax) || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
	_, err := Read(strings.NewReader("digraph d {\n\"" + strings.Repeat("x", maxToken+1) + "\"\n}"))
	if !errors.Is(err, errLimit) {
		t.Errorf("a name without end: %v", err)
	}
}

func TestTaskCyclesAreNamed(t *testing.T) {
	_, err := Read(strings.NewReader("digraph d { z -> a; a -> b; b -> c -> a; c -> d }"))
	if !errors.Is(err, errCycle) || !strings.HasSuffix(err.Error(), "a -> b -> c -> a") {
		t.Errorf("%v", err)
	}
}

// What graph tools make of bitbake's file is the same graph.
func TestOtherDotDialectsAreParsed(t *testing.T) {
	g, err := Read(strings.NewReader("strict digraph {\r\n// by hand\nnode [shape=box]; rankdir=LR\n" +
		"a -> b -> \"c\\\"d\" [color=red, weight=2]; a -> b /* twice */\n# done\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Tasks) != 3 || g.Edges != 2 || g.Tasks[2].Name != `c"d` {
		t.Errorf("%+v, %d edges", g.Tasks, g.Edges)
	}
}

func TestTaskNamesAreSplit(t *testing.T) {
	for name, want := range map[string][2]string{
		"glibc.do_compile":             {"glibc", "do_compile"},
		"gtk+3.0.do_fetch":             {"gtk+3.0", "do_fetch"},
		"mc:initrd:busybox.do_install": {"mc:initrd:busybox", "do_install"},
		"python3-a.do_b.do_package":    {"python3-a.do_b", "do_package"},
		"nothing":                      {"nothing", ""},
	} {
		if r, k := split(name); r != want[0] || k != want[1] {
			t.Errorf("%s: %q %q", name, r, k)
		}
	}
}

// On random graphs the path is as long as the levels are many, no schedule beats
// its bounds, and all keep to the rule that nothing starts before what it needs.
func TestSchedulesStayWithinBounds(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 50 {
		n := 2 + rng.Intn(60)
		var b strings.Builder
		b.WriteString("digraph d {\n")
		for i := range n {
			fmt.Fprintf(&b, "\"r%d.do_x\"\n", i)
			for j := range i {
				if rng.Intn(8) == 0 {
					fmt.Fprintf(&b, "\"r%d.do_x\" -> \"r%d.do_x\"\n", i, j)
				}
			}
		}
		b.WriteString("}\n")
		g, err := Read(strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		a := g.Analyse(nil, 3)
		if int(a.Count.Length) != len(a.Levels) || len(a.Count.Steps) != len(a.Levels) {
			t.Fatalf("path %d, levels %d", a.Count.Length, len(a.Levels))
		}
		for i, r := range a.Threads {
			fair := (int64(n) + int64(r.Threads) - 1) / int64(r.Threads)
			// Graham's bound for list scheduling.
			if r.Length < max(fair, a.Count.Length) || r.Length > fair+a.Count.Length {
				t.Fatalf("%d threads: %d of %d tasks, path %d", r.Threads, r.Length, n, a.Count.Length)
			}
			if i == 0 && r.Length != int64(n) {
				t.Fatalf("one thread takes %d for %d tasks", r.Length, n)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("testdata/task-depends.dot")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("strict digraph { a -> b -> c [label=\"x\\\"\"]; node [x=y] /* */ // \n}"))
	f.Add([]byte("digraph d { a -> a }"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Read(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, errSyntax) && !errors.Is(err, errLimit) && !errors.Is(err, errCycle) {
				t.Errorf("an error without a sentinel: %v", err)
			}
			return
		}
		a := g.Analyse(nil, 2)
		if len(a.Levels) != len(a.Count.Steps) {
			t.Errorf("%d levels, a path of %d", len(a.Levels), len(a.Count.Steps))
		}
	})
}
