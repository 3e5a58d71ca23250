package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// node is a box of a layered graph.
type node struct {
	id    string
	lines []string // the first is the name
	class string
	title string

	rank    int
	x, y, w float64
	place   float64 // order inside its rank
	virtual bool    // a bend of a long edge
}

type edge struct {
	from, to int
	class    string // edge, weak
}

const (
	boxHeight = 40.0 // of a name and a line below it

	lineHeight = 15.0 // of each further line
	rowGap     = 18.0
	rankGap    = 56.0
	margin     = 8.0
)

// drawLayered draws nodes in columns so that edges run from left to right
// (Sugiyama's steps: ranks by longest path, bends for edges that skip ranks,
// order by the mean of the neighbours). Edges that close a circle are drawn but
// do not count for ranks.
func (d *Drawing) drawLayered(nodes []node, edges []edge) {
	if len(nodes) == 0 {
		return
	}
	acyclic(nodes, edges)
	paths := make([][]int, len(edges))
	var short []edge
	for i, e := range edges {
		paths[i] = []int{e.from}
		at := e.from
		for r := nodes[e.from].rank + 1; r < nodes[e.to].rank; r++ {
			nodes = append(nodes, node{rank: r, virtual: true})
			short = append(short, edge{from: at, to: len(nodes) - 1})
			at = len(nodes) - 1
			paths[i] = append(paths[i], at)
		}
		paths[i] = append(paths[i], e.to)
		short = append(short, edge{from: at, to: e.to})
	}
	ranks := order(nodes, short)
	d.position(nodes, ranks)
	for i, e := range edges {
		d.curve(nodes, paths[i], e.class)
	}
	for _, n := range nodes {
		if !n.virtual {
			d.node(n)
		}
	}
}

// acyclic sets ranks by the longest path, leaving out edges that lead back.
func acyclic(nodes []node, edges []edge) {
	out := make([][]int, len(nodes))
	for i, e := range edges {
		out[e.from] = append(out[e.from], i)
	}
	back := make([]bool, len(edges))
	state := make([]int, len(nodes)) // 1: on the way, 2: done
	var done []int
	var visit func(n int)
	visit = func(n int) {
		state[n] = 1
		for _, i := range out[n] {
			switch to := edges[i].to; state[to] {
			case 0:
				visit(to)
			case 1:
				back[i] = true
			}
		}
		state[n] = 2
		done = append(done, n)
	}
	for n := range nodes {
		if state[n] == 0 {
			visit(n)
		}
	}
	for _, n := range slices.Backward(done) {
		for _, i := range out[n] {
			if !back[i] {
				nodes[edges[i].to].rank = max(nodes[edges[i].to].rank, nodes[n].rank+1)
			}
		}
	}
}

// order places the nodes of each rank by the mean place of their neighbours, to
// and fro a few times.
func order(nodes []node, edges []edge) [][]int {
	last := 0
	for _, n := range nodes {
		last = max(last, n.rank)
	}
	ranks := make([][]int, last+1)
	for i, n := range nodes {
		nodes[i].place = float64(len(ranks[n.rank]))
		ranks[n.rank] = append(ranks[n.rank], i)
	}
	before, after := make([][]int, len(nodes)), make([][]int, len(nodes))
	for _, e := range edges {
		after[e.from] = append(after[e.from], e.to)
		before[e.to] = append(before[e.to], e.from)
	}
	sweep := func(r int, neighbours [][]int) {
		mean := map[int]float64{}
		for _, n := range ranks[r] {
			mean[n] = nodes[n].place
			if len(neighbours[n]) > 0 {
				sum := 0.0
				for _, o := range neighbours[n] {
					sum += nodes[o].place
				}
				mean[n] = sum / float64(len(neighbours[n]))
			}
		}
		slices.SortStableFunc(ranks[r], func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
		for i, n := range ranks[r] {
			nodes[n].place = float64(i)
		}
	}
	for range 4 {
		for r := 1; r <= last; r++ {
			sweep(r, before)
		}
		for r := last - 1; r >= 0; r-- {
			sweep(r, after)
		}
	}
	return ranks
}

func (d *Drawing) position(nodes []node, ranks [][]int) {
	tallest := 0.0
	heights := make([]float64, len(ranks))
	for r, rank := range ranks {
		for _, n := range rank {
			heights[r] += nodes[n].height() + rowGap
		}
		tallest = max(tallest, heights[r])
	}
	x := margin
	for r, rank := range ranks {
		widest := 0.0
		for _, n := range rank {
			for i, l := range nodes[n].lines {
				w := textWidth(l) + 24
				if i == 0 {
					w += 8 // bold
				}
				nodes[n].w = max(nodes[n].w, w)
			}
			widest = max(widest, nodes[n].w)
		}
		y := margin + (tallest-heights[r])/2
		for _, n := range rank {
			if nodes[n].virtual {
				nodes[n].w = widest
			}
			nodes[n].x = x + (widest-nodes[n].w)/2
			nodes[n].y = y
			y += nodes[n].height() + rowGap
		}
		x += widest + rankGap
	}
	d.extendTo(x-rankGap+margin, margin+tallest)
}

func (n node) height() float64 {
	if n.virtual {
		return 10
	}
	return boxHeight + lineHeight*float64(max(len(n.lines)-2, 0))
}

func (d *Drawing) node(n node) {
	d.rect(n.class, n.x, n.y, n.w, n.height(), 6, n.title)
	if len(n.lines) == 1 {
		d.text("strong", "middle", n.x+n.w/2, n.y+boxHeight/2+4, n.lines[0])
		return
	}
	d.text("strong", "middle", n.x+n.w/2, n.y+17, n.lines[0])
	for i, l := range n.lines[1:] {
		d.text("soft small", "middle", n.x+n.w/2, n.y+32+lineHeight*float64(i), l)
	}
}

// curve draws an edge through its bends, with a head at its end.
func (d *Drawing) curve(nodes []node, path []int, class string) {
	first, last := nodes[path[0]], nodes[path[len(path)-1]]
	x, y := first.x+first.w, first.y+first.height()/2
	fmt.Fprintf(&d.body, "<path class=\"%s\" d=\"M%.1f %.1f", class, x, y)
	for _, p := range path[1:] {
		n := nodes[p]
		tx, ty := n.x, n.y+n.height()/2
		if p == path[len(path)-1] {
			tx -= 7
		}
		bend := max(math.Abs(tx-x)/2, 24)
		fmt.Fprintf(&d.body, " C%.1f %.1f %.1f %.1f %.1f %.1f", x+bend, y, tx-bend, ty, tx, ty)
		x, y = tx, ty
		if n.virtual {
			x += n.w
			fmt.Fprintf(&d.body, " L%.1f %.1f", x, y)
		}
	}
	ty := last.y + last.height()/2
	fmt.Fprintf(&d.body, "\"/>\n<path class=\"head\" d=\"M%.1f %.1f l-8 -4 v8 z\"/>\n", last.x, ty)
}
