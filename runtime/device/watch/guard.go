package watch

import "time"

// Limits of repairing one node.
const (
	Repairs = 3                // in one Window; the next drift makes the node contested
	Window  = time.Minute      //
	Truce   = 10 * time.Minute // without a foreign write, after which a contested node is tried again
)

// Verdict is what is to be done about a node that is not as wanted.
type Verdict int

// Verdicts.
const (
	Repair Verdict = iota
	Yield          // somebody insists: stop, and say so
	Leave          // already yielded
)

// Guard decides how long to insist on a node. Two programs that each restore
// their own value would otherwise do so for ever, each time with side effects.
// Times are since an arbitrary start.
type Guard struct {
	nodes map[string]*budget
}

type budget struct {
	repairs   []time.Duration // within the last Window
	contested bool
	last      time.Duration // of a foreign write or a failed truce, while contested
}

// NewGuard returns a guard that has seen nothing.
func NewGuard() *Guard { return &Guard{nodes: map[string]*budget{}} }

// Drifted is told that somebody changed a node, and answers what to do. Repair
// counts as done.
func (g *Guard) Drifted(now time.Duration, node string) Verdict {
	b := g.nodes[node]
	if b == nil {
		b = &budget{}
		g.nodes[node] = b
	}
	if b.contested {
		b.last = now
		return Leave
	}
	recent := b.repairs[:0]
	for _, t := range b.repairs {
		if now-t < Window {
			recent = append(recent, t)
		}
	}
	if b.repairs = recent; len(recent) >= Repairs {
		b.contested, b.last = true, now
		return Yield
	}
	b.repairs = append(b.repairs, now)
	return Repair
}

// Kept is told that a node is as wanted. It reports whether that ends a contest.
func (g *Guard) Kept(node string) bool {
	b := g.nodes[node]
	if b == nil || !b.contested {
		return false
	}
	delete(g.nodes, node)
	return true
}

// Contested reports whether the node was yielded.
func (g *Guard) Contested(node string) bool {
	b := g.nodes[node]
	return b != nil && b.contested
}

// Due returns contested nodes whose truce is over, and starts their next one:
// each may be repaired once. When the other writer still insists, the next
// drift yields again.
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

// Next returns when Due has something, and false when it has nothing to wait
// for.
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
