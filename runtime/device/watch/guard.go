package watch

import (
	"slices"
	"time"
)

// Limits of repairing one node.
const (
	Repairs = 3                // in one Window; the next drift makes the node contested
	Window  = time.Minute      //
	Truce   = 10 * time.Minute // without a foreign write, after which a contested node is repaired again
)

// Verdict is what to do with a node that is not as wanted.
type Verdict int

// Verdicts.
const (
	Repair Verdict = iota
	Yield          // another program keeps changing it: stop repairing and report
	Leave          // already reported
)

// Guard limits how often a node is repaired. Two programs that each restore their own
// value would otherwise do so for ever, each time with side effects. Times count from an
// arbitrary start.
type Guard struct {
	nodes map[string]*budget
}

type budget struct {
	repairs   []time.Duration // within the last Window
	contested bool
	last      time.Duration // of a foreign write or a failed truce, while contested
}

// NewGuard returns a guard without history.
func NewGuard() *Guard { return &Guard{nodes: map[string]*budget{}} }

// HandleDrift records that a node was changed and returns what to do. A repair that it
// returns counts as done.
func (g *Guard) HandleDrift(now time.Duration, node string) Verdict {
	b := g.nodes[node]
	if b == nil {
		b = &budget{}
		g.nodes[node] = b
	}
	if b.contested {
		b.last = now
		return Leave
	}
	b.repairs = slices.DeleteFunc(b.repairs, func(t time.Duration) bool { return now-t >= Window })
	if len(b.repairs) >= Repairs {
		b.contested, b.last = true, now
		return Yield
	}
	b.repairs = append(b.repairs, now)
	return Repair
}

// EndContest records that a node is as wanted. It reports whether the node was contested.
func (g *Guard) EndContest(node string) bool {
	b := g.nodes[node]
	if b == nil || !b.contested {
		return false
	}
	delete(g.nodes, node)
	return true
}

// Contested reports whether the node is contested.
func (g *Guard) Contested(node string) bool {
	b := g.nodes[node]
	return b != nil && b.contested
}

// Due returns the contested nodes whose truce is over. Each may be repaired once: at the
// next drift it is contested again.
func (g *Guard) Due(now time.Duration) []string {
	var out []string
	for node, b := range g.nodes {
		if b.contested && now-b.last >= Truce {
			b.contested = false
			b.repairs = []time.Duration{now, now, now}
			out = append(out, node)
		}
	}
	return out
}

// Next returns when Due will return a node, and false if it will not.
func (g *Guard) Next() (time.Duration, bool) {
	var next time.Duration
	found := false
	for _, b := range g.nodes {
		if b.contested && (!found || b.last+Truce < next) {
			next, found = b.last+Truce, true
		}
	}
	return next, found
}
