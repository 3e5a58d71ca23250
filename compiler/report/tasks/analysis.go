package tasks

import (
	"cmp"
	"slices"
)

// Analysis is what follows from a graph about a build. Lengths are in tasks, or in
// nanoseconds where Measured.
type Analysis struct {
	Tasks, Recipes, Edges int
	Stats                 *Stats // nil without buildstats

	Count    Path   // the longest path when every task counts as one
	Time     *Path  // the longest by measured time; nil without buildstats
	Levels   []int  // tasks at each depth: level 0 has no dependencies
	Limits   []Gain // recipes on the path that decides, what a build without them would save
	Threads  []Run  // by BB_NUMBER_THREADS
	Caches   []Cache
	Chosen   int // the number of threads that Caches are computed for
	Measured bool
}

// Path is a chain of tasks that wait for each other.
type Path struct {
	Steps  []Step
	Length int64
}

// Step is one task of a path.
type Step struct {
	Task   string
	Recipe string
	Start  int64 // earliest
	Took   int64
}

// Gain is what a recipe costs: how much shorter the longest path is when all of
// the recipe's tasks take no time, because they are restored or not needed.
type Gain struct {
	Recipe string
	Steps  int   // its tasks on the path
	Took   int64 // of these
	Gain   int64
}

// Run is a simulated build.
type Run struct {
	Threads int
	Length  int64
	Busy    float64 // share of the threads' time that tasks fill, 0 to 1
}

// Cache is a simulated build with a part of the shared-state cache filled.
type Cache struct {
	Name     string // what the cache has
	Runs     int    // tasks that are run or restored
	Restored int    // of these, from the cache
	Path     int64
	Length   int64 // on Analysis.Chosen threads
}

// MaxThreads bounds what is simulated.
const MaxThreads = 1024

// Analyse computes everything. threads is the BB_NUMBER_THREADS that matters to
// the user.
func (g *Graph) Analyse(stats *Stats, threads int) *Analysis {
	threads = min(max(threads, 1), MaxThreads)
	a := &Analysis{Tasks: len(g.Tasks), Recipes: len(g.Recipes), Edges: g.Edges, Stats: stats,
		Measured: stats != nil, Chosen: threads}
	ones := g.weights(false)
	depth, _ := g.finish(ones)
	for _, d := range depth {
		for int64(len(a.Levels)) < d {
			a.Levels = append(a.Levels, 0)
		}
		a.Levels[d-1]++
	}
	a.Count = g.path(ones)
	w, path := ones, a.Count
	if stats != nil {
		w = g.weights(true)
		p := g.path(w)
		a.Time, path = &p, p
	}
	a.Limits = g.findLimits(w, path)
	g.addSimulations(a, w)
	return a
}

func (g *Graph) path(w []int64) Path {
	var p Path
	for _, t := range g.longest(w) {
		p.Steps = append(p.Steps, Step{Task: g.Tasks[t].Name, Recipe: g.Recipes[g.Tasks[t].Recipe].Name, Start: p.Length, Took: w[t]})
		p.Length = add(p.Length, w[t])
	}
	return p
}

// findLimits computes the gain of each recipe on the path, greatest first.
func (g *Graph) findLimits(w []int64, p Path) []Gain {
	on := map[string]*Gain{}
	var names []string
	for _, s := range p.Steps {
		if on[s.Recipe] == nil {
			on[s.Recipe] = &Gain{Recipe: s.Recipe}
			names = append(names, s.Recipe)
		}
		on[s.Recipe].Steps++
		on[s.Recipe].Took += s.Took
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(on[b].Took, on[a].Took) })
	// Each gain is a pass over the graph; a recipe cannot save more than it takes,
	// so the long tail of small ones is skipped.
	const most = 40
	tasks := g.groupByRecipe()
	without := slices.Clone(w)
	out := make([]Gain, 0, min(len(names), most))
	for _, n := range names[:min(len(names), most)] {
		i := slices.IndexFunc(g.Recipes, func(r Recipe) bool { return r.Name == n })
		for _, t := range tasks[i] {
			without[t] = 0
		}
		_, shorter := g.finish(without)
		for _, t := range tasks[i] {
			without[t] = w[t]
		}
		gain := *on[n]
		gain.Gain = p.Length - shorter
		out = append(out, gain)
	}
	slices.SortStableFunc(out, func(a, b Gain) int { return cmp.Compare(b.Gain, a.Gain) })
	return out
}

// addSimulations fills Threads and Caches.
func (g *Graph) addSimulations(a *Analysis, w []int64) {
	rank := g.rankTasks()
	whole := build{runs: make([]bool, len(g.Tasks)), restored: make([]bool, len(g.Tasks))}
	var work int64
	for t := range g.Tasks {
		whole.runs[t] = true
		work = add(work, w[t])
	}
	counts := []int{1, 2, 4, 8, 16, 32, 64, 128}
	if !slices.Contains(counts, a.Chosen) {
		counts = append(counts, a.Chosen)
		slices.Sort(counts)
	}
	for _, n := range counts {
		r := Run{Threads: n, Length: g.simulate(n, w, rank, whole)}
		if r.Length > 0 {
			r.Busy = float64(work) / float64(r.Length) / float64(n)
		}
		a.Threads = append(a.Threads, r)
	}
	for _, c := range []struct {
		name string
		hit  func(recipe string) bool
	}{
		{"nothing", func(string) bool { return false }},
		{"native and cross tools", isTool},
		{"everything", func(string) bool { return true }},
	} {
		b := g.neededTasks(c.hit)
		cache := Cache{Name: c.name}
		times := slices.Clone(w)
		for t := range g.Tasks {
			if b.runs[t] {
				cache.Runs++
			}
			if b.restored[t] {
				cache.Restored++
				if a.Measured && !g.Tasks[t].Hit {
					times[t] = 0 // restoring takes a moment; what was measured is the making
				}
			}
		}
		cache.Path, cache.Length = g.longestWithin(times, b), g.simulate(a.Chosen, times, rank, b)
		a.Caches = append(a.Caches, cache)
	}
}
