package tasks

import (
	"container/heap"
	"math/big"
	"slices"
	"strings"
)

// precision of a task's weight, in bits.
const precision = 128

// rankTasks ranks the tasks as bitbake's default scheduler ("speed") does; 0 is the
// heaviest. A task weighs one, or ten if no task waits for it, plus the weights of all tasks
// that wait for it. The heaviest runnable task starts first. In the worst case weights double
// with every level. Their precision is therefore limited to 128 bits, which is exact for
// bitbake's own graphs.
func (g *Graph) rankTasks() []int32 {
	weight := make([]big.Float, len(g.Tasks))
	for _, t := range slices.Backward(g.order) {
		w := weight[t].SetPrec(precision)
		users := g.users.neighbours(t)
		if len(users) == 0 {
			w.SetInt64(10)
			continue
		}
		w.SetInt64(1)
		for _, u := range users {
			// Far apart, Add would keep every bit in between.
			switch far := w.MantExp(nil) - weight[u].MantExp(nil); {
			case far > precision:
			case far < -precision:
				w.Set(&weight[u])
			default:
				w.Add(w, &weight[u])
			}
		}
	}
	by := make([]int32, len(g.Tasks))
	for i := range by {
		by[i] = int32(i)
	}
	slices.SortFunc(by, func(a, b int32) int {
		if c := weight[b].Cmp(&weight[a]); c != 0 {
			return c
		}
		return strings.Compare(g.Tasks[a].Name, g.Tasks[b].Name)
	})
	rank := make([]int32, len(g.Tasks))
	for i, t := range by {
		rank[t] = int32(i)
	}
	return rank
}

// build records for each task whether a build runs or restores it.
type build struct {
	runs     []bool // run or restored; the other tasks are not needed
	restored []bool // taken from the cache, without waiting for dependencies
}

// eachDependency lists what a task waits for, as far as it runs.
func (b build) eachDependency(g *Graph, t int32, yield func(int32)) {
	if b.restored[t] {
		return
	}
	for _, d := range g.deps.neighbours(t) {
		if b.runs[d] {
			yield(d)
		}
	}
}

// simulate runs a build on a number of threads and returns when the last task
// ends. It is list scheduling: a free thread takes the heaviest task whose dependencies are
// done.
func (g *Graph) simulate(threads int, w []int64, rank []int32, b build) int64 {
	waitsFor := make([]int32, len(g.Tasks))
	ready := &queue{less: func(a, b entry) bool { return rank[a.task] < rank[b.task] }}
	busy := &queue{less: func(a, b entry) bool { return a.end < b.end || a.end == b.end && rank[a.task] < rank[b.task] }}
	for t := range g.Tasks {
		if !b.runs[t] {
			continue
		}
		b.eachDependency(g, int32(t), func(int32) { waitsFor[t]++ })
		if waitsFor[t] == 0 {
			ready.all = append(ready.all, entry{task: int32(t)})
		}
	}
	heap.Init(ready)
	var now int64
	for ready.Len() > 0 || busy.Len() > 0 {
		for ready.Len() > 0 && busy.Len() < threads {
			e := heap.Pop(ready).(entry)
			heap.Push(busy, entry{e.task, add(now, w[e.task])})
		}
		done := heap.Pop(busy).(entry)
		now = done.end
		for _, u := range g.users.neighbours(done.task) {
			if !b.runs[u] || b.restored[u] {
				continue
			}
			if waitsFor[u]--; waitsFor[u] == 0 {
				heap.Push(ready, entry{task: u})
			}
		}
	}
	return now
}

type entry struct {
	task int32
	end  int64
}

type queue struct {
	all  []entry
	less func(a, b entry) bool
}

func (q *queue) Len() int           { return len(q.all) }
func (q *queue) Less(i, j int) bool { return q.less(q.all[i], q.all[j]) }
func (q *queue) Swap(i, j int)      { q.all[i], q.all[j] = q.all[j], q.all[i] }
func (q *queue) Push(x any)         { q.all = append(q.all, x.(entry)) }
func (q *queue) Pop() any {
	last := q.all[len(q.all)-1]
	q.all = q.all[:len(q.all)-1]
	return last
}

// isShared reports whether openembedded-core keeps what a task makes in the
// shared-state cache (SSTATETASKS of its classes).
func isShared(kind string) bool {
	switch kind {
	case "do_populate_sysroot", "do_package", "do_packagedata", "do_package_qa", "do_package_write_ipk",
		"do_package_write_rpm", "do_package_write_deb", "do_populate_lic", "do_deploy", "do_recipe_qa",
		"do_deploy_source_date_epoch", "do_create_spdx", "do_create_package_spdx", "do_create_runtime_spdx":
		return true
	}
	return false
}

// isTool reports whether a recipe builds a program for the build machine. All machines and
// images of a team share these.
func isTool(recipe string) bool {
	return strings.HasSuffix(recipe, "-native") || strings.Contains(recipe, "-cross") ||
		strings.Contains(recipe, "nativesdk-")
}

// neededTasks returns the tasks that run when the cache has those for which hit is true:
// the dependencies of a restored task need not run.
func (g *Graph) neededTasks(hit func(recipe string) bool) build {
	b := build{runs: make([]bool, len(g.Tasks)), restored: make([]bool, len(g.Tasks))}
	var stack []int32
	for t := range g.Tasks {
		if len(g.users.neighbours(int32(t))) == 0 {
			b.runs[t] = true
			stack = append(stack, int32(t))
		}
	}
	for len(stack) > 0 {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if isShared(g.Tasks[t].Kind) && hit(g.Recipes[g.Tasks[t].Recipe].Name) {
			b.restored[t] = true
			continue
		}
		for _, d := range g.deps.neighbours(t) {
			if !b.runs[d] {
				b.runs[d] = true
				stack = append(stack, d)
			}
		}
	}
	return b
}

// longestWithin returns the length of the longest path through the tasks that a build runs.
func (g *Graph) longestWithin(w []int64, b build) int64 {
	ends := make([]int64, len(g.Tasks))
	var last int64
	for _, t := range g.order {
		if !b.runs[t] {
			continue
		}
		var start int64
		b.eachDependency(g, t, func(d int32) { start = max(start, ends[d]) })
		ends[t] = add(start, w[t])
		last = max(last, ends[t])
	}
	return last
}
