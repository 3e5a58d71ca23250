// Package tasks reads the task graph that `bitbake -g` writes and finds what
// determines the duration of a build: the longest chain of tasks that wait for
// each other, how many could run at once, which recipes hold the others up, and
// what more threads or a fuller shared-state cache would gain.
//
// An edge a -> b means that a waits for b. Without measurements every task counts
// as one; buildstats, which bitbake writes of a build, give times.
package tasks

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Graph is the tasks of a build and their dependencies.
type Graph struct {
	Tasks   []Task
	Recipes []Recipe
	Edges   int // different ones

	deps  adjacency // what a task waits for
	users adjacency // tasks that wait for a task
	order []int32   // each task after everything it waits for
}

// Task is one node of the graph.
type Task struct {
	Name   string // glibc.do_compile, mc:initrd:busybox.do_install
	Kind   string // do_compile
	Recipe int32  // index in Graph.Recipes

	Took time.Duration // measured; 0 without Ran
	CPU  time.Duration // user and system time of the task and its children
	Ran  bool          // buildstats has it
	Hit  bool          // buildstats has its setscene variant: it came from shared state
}

// Recipe is what tasks belong to.
type Recipe struct {
	Name    string // PN, with the multiconfig in front as bitbake writes it
	Version string // [epoch:]PV-PR, "" where the file has no labels
	File    string
}

// adjacency holds the neighbours of every task in one slice: tens of thousands
// of small slices would cost more than what they hold.
type adjacency struct {
	first []int32
	all   []int32
}

func (a adjacency) neighbours(t int32) []int32 { return a.all[a.first[t]:a.first[t+1]] }

// describe takes version and file from a label, "pn task\n:version\nfile".
func (g *Graph) describe(t int32, label string) {
	r := &g.Recipes[g.Tasks[t].Recipe]
	if r.Version != "" || r.File != "" {
		return
	}
	if parts := strings.Split(label, `\n`); len(parts) == 3 {
		// A version without epoch starts with the colon that would follow it.
		r.Version, r.File = strings.Clone(strings.TrimPrefix(parts[1], ":")), strings.Clone(parts[2])
	}
}

// link builds both directions and the order of the graph.
func (g *Graph) link(from, to []int32) error {
	n := len(g.Tasks)
	g.deps = neighbours(n, from, to)
	g.users = neighbours(n, g.deps.all, g.deps.sources())
	g.Edges = len(g.deps.all)
	return g.sort()
}

// neighbours groups edges by where they start; an edge given twice counts once.
func neighbours(n int, from, to []int32) adjacency {
	a := adjacency{first: make([]int32, n+1), all: make([]int32, len(from))}
	for _, f := range from {
		a.first[f+1]++
	}
	for i := range n {
		a.first[i+1] += a.first[i]
	}
	next := slices.Clone(a.first)
	for i, f := range from {
		a.all[next[f]] = to[i]
		next[f]++
	}
	out := a.all[:0]
	for i := range n {
		part := a.all[a.first[i]:a.first[i+1]]
		slices.Sort(part)
		part = slices.Compact(part)
		a.first[i] = int32(len(out))
		out = append(out, part...)
	}
	a.first[n] = int32(len(out))
	a.all = out
	return a
}

// sources lists where each edge of all starts.
func (a adjacency) sources() []int32 {
	out := make([]int32, len(a.all))
	for t := range len(a.first) - 1 {
		for i := a.first[t]; i < a.first[t+1]; i++ {
			out[i] = int32(t)
		}
	}
	return out
}

// sort orders the tasks so that each comes after what it waits for (Kahn).
func (g *Graph) sort() error {
	n := len(g.Tasks)
	left := make([]int32, n)
	g.order = make([]int32, 0, n)
	for t := range n {
		left[t] = int32(len(g.deps.neighbours(int32(t))))
		if left[t] == 0 {
			g.order = append(g.order, int32(t))
		}
	}
	for i := 0; i < len(g.order); i++ {
		for _, u := range g.users.neighbours(g.order[i]) {
			if left[u]--; left[u] == 0 {
				g.order = append(g.order, u)
			}
		}
	}
	if len(g.order) < n {
		return g.cycle(left)
	}
	return nil
}

// cycle names one circle among the tasks that could not be ordered. Each of them
// waits for another such task, so walking on must come back.
func (g *Graph) cycle(left []int32) error {
	t := int32(slices.IndexFunc(left, func(l int32) bool { return l > 0 }))
	seen := map[int32]int{}
	var walk []int32
	for {
		if at, ok := seen[t]; ok {
			walk = append(walk[at:], t)
			break
		}
		seen[t] = len(walk)
		walk = append(walk, t)
		for _, d := range g.deps.neighbours(t) {
			if left[d] > 0 {
				t = d
				break
			}
		}
	}
	const most = 12
	names := make([]string, 0, most)
	for i, w := range walk {
		if i == most-2 && len(walk) > most {
			names = append(names, fmt.Sprintf("… %d more …", len(walk)-most))
		}
		if i < most-2 || i >= len(walk)-2 {
			names = append(names, g.Tasks[w].Name)
		}
	}
	return fmt.Errorf("%w: %s", errCycle, strings.Join(names, " -> "))
}

// weights is how long each task takes in the unit of an analysis: nanoseconds
// when measured, otherwise one.
func (g *Graph) weights(measured bool) []int64 {
	w := make([]int64, len(g.Tasks))
	for i, t := range g.Tasks {
		if measured {
			w[i] = int64(t.Took)
		} else {
			w[i] = 1
		}
	}
	return w
}

// finish returns the end of each task if it only waits for its dependencies, and the end of
// the last task.
func (g *Graph) finish(w []int64) (ends []int64, last int64) {
	ends = make([]int64, len(g.Tasks))
	for _, t := range g.order {
		var start int64
		for _, d := range g.deps.neighbours(t) {
			start = max(start, ends[d])
		}
		ends[t] = add(start, w[t])
		last = max(last, ends[t])
	}
	return ends, last
}

// add saturates: times come from files.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// longest returns the tasks of the longest path, in the order they run. Of equal
// ones it takes the first by name, so that two runs agree.
func (g *Graph) longest(w []int64) []int32 {
	if len(g.Tasks) == 0 {
		return nil
	}
	ends, _ := g.finish(w)
	better := func(a, b int32) bool {
		return ends[a] > ends[b] || ends[a] == ends[b] && g.Tasks[a].Name < g.Tasks[b].Name
	}
	t := int32(0)
	for i := range g.Tasks {
		if better(int32(i), t) {
			t = int32(i)
		}
	}
	path := []int32{t}
	for {
		deps := g.deps.neighbours(t)
		if len(deps) == 0 {
			break
		}
		t = deps[0]
		for _, d := range deps[1:] {
			if better(d, t) {
				t = d
			}
		}
		path = append(path, t)
	}
	slices.Reverse(path)
	return path
}
