package decode

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Parameters of text detectors with differentiable binarisation, as its authors use them.
const (
	regionInk       = 0.3 // minimum probability of a text pixel
	regionThreshold = 0.6 // minimum mean of a region
	regionTop       = 300
	regionGrow      = 1.5 // distance to grow by, as a fraction of area/perimeter, since the text is larger than its core
	regionSide      = 3   // in pixels of the tensor; smaller regions are noise
)

// regions finds the pieces of text in a probability map, [1 1 height width]. It takes connected
// pixels and the smallest rectangle around them, and grows it, because such models are trained
// to see only the core of a word.
//
// Reference: Liao et al., Real-time Scene Text Detection with Differentiable
// Binarization, 2020.
type regions struct {
	at    Picture
	w, h  int
	score float32
	top   int

	seen  []bool
	stack []int32
	ends  [][2]int32 // first and last pixel in each row of the region
	hull  []point
	found []region
}

type point struct{ x, y float64 }

// region is a rectangle that may be rotated.
type region struct {
	score   float32
	first   int // first pixel, which orders equal scores
	corners [4]point
}

func newRegions(shape []int64, at Picture, score float32, unset bool, top int) (*regions, error) {
	if len(shape) != 4 || shape[0] != 1 || shape[1] != 1 || shape[2]*shape[3] > math.MaxInt32 {
		return nil, fmt.Errorf("%w: regions expects a tensor [1 1 height width], but the model outputs %v", registry.ErrPlan, shape)
	}
	if unset {
		score = regionThreshold
	}
	if top == 0 {
		top = regionTop
	}
	r := &regions{at: at, h: int(shape[2]), w: int(shape[3]), score: score, top: top}
	r.seen, r.stack = make([]bool, r.w*r.h), make([]int32, 0, r.w*r.h)
	r.ends, r.hull = make([][2]int32, r.h), make([]point, 0, 4*r.h+4)
	return r, nil
}

func (r *regions) results(t frame.Tensor, into []result.Result) ([]result.Result, error) {
	r.found = r.found[:0]
	clear(r.seen)
	for i, v := range t.Data {
		if v > regionInk && !r.seen[i] {
			r.collect(t.Data, i)
		}
	}
	slices.SortFunc(r.found, func(a, b region) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.first, b.first))
	})
	into = into[:0]
	for _, g := range r.found {
		if len(into) == r.top {
			break
		}
		var out *result.Result
		into, out = appendEmpty(into, registry.Regions)
		out.Score = g.score
		inf := float32(math.Inf(1))
		out.Box = [4]float32{inf, inf, -inf, -inf}
		for _, c := range g.corners {
			// The map may be smaller than the tensor.
			x, y := r.at.ToFrame(c.x*float64(r.at.Width)/float64(r.w), c.y*float64(r.at.Height)/float64(r.h))
			p := result.Point{X: float32(x), Y: float32(y), Score: g.score}
			out.Points = append(out.Points, p)
			out.Box = [4]float32{min(out.Box[0], p.X), min(out.Box[1], p.Y), max(out.Box[2], p.X), max(out.Box[3], p.Y)}
		}
		if out.Box[0] == out.Box[2] || out.Box[1] == out.Box[3] || math.IsInf(float64(g.score), 0) {
			into = into[:len(into)-1] // in the border of a letterbox, or without a score that JSON has
		}
	}
	return into, nil
}

// collect adds the region of the pixels connected to the first over edges and corners.
func (r *regions) collect(data []float32, first int) {
	upper, lower := r.h, -1
	r.stack = append(r.stack[:0], int32(first))
	r.seen[first] = true
	for len(r.stack) > 0 {
		i := int(r.stack[len(r.stack)-1])
		r.stack = r.stack[:len(r.stack)-1]
		x, y := i%r.w, i/r.w
		if y < upper || y > lower {
			if y < upper {
				upper = y
			}
			lower = max(lower, y)
			r.ends[y] = [2]int32{int32(x), int32(x)}
		}
		e := &r.ends[y]
		e[0], e[1] = min(e[0], int32(x)), max(e[1], int32(x))
		for ny := max(y-1, 0); ny <= min(y+1, r.h-1); ny++ {
			for nx := max(x-1, 0); nx <= min(x+1, r.w-1); nx++ {
				if n := ny*r.w + nx; !r.seen[n] && data[n] > regionInk {
					r.seen[n] = true
					r.stack = append(r.stack, int32(n))
				}
			}
		}
	}
	g, sides, ok := r.rectangle(upper, lower)
	if !ok || min(sides.x, sides.y) < regionSide {
		return
	}
	if g.score = r.mean(data, g.corners); !(g.score >= r.score) {
		return
	}
	g.first = first
	grow := sides.x * sides.y * regionGrow / (2 * (sides.x + sides.y))
	g.corners = growRectangle(g.corners, sides, grow)
	r.found = append(r.found, g)
}

// rectangle returns the rectangle of least area around the centres of the pixels in rows upper
// to lower. One of its sides lies on a side of their convex hull.
func (r *regions) rectangle(upper, lower int) (g region, sides point, ok bool) {
	r.buildHull(upper, lower)
	least := math.Inf(1)
	for i, a := range r.hull {
		b := r.hull[(i+1)%len(r.hull)]
		long := math.Hypot(b.x-a.x, b.y-a.y)
		if long == 0 {
			continue
		}
		u := point{(b.x - a.x) / long, (b.y - a.y) / long}
		low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
		for _, p := range r.hull {
			along, across := p.x*u.x+p.y*u.y, p.y*u.x-p.x*u.y
			low.x, high.x = min(low.x, along), max(high.x, along)
			low.y, high.y = min(low.y, across), max(high.y, across)
		}
		w, h := high.x-low.x, high.y-low.y
		if w*h >= least {
			continue
		}
		least, sides, ok = w*h, point{w, h}, true
		for k, c := range [4]point{{low.x, low.y}, {high.x, low.y}, {high.x, high.y}, {low.x, high.y}} {
			g.corners[k] = point{c.x*u.x - c.y*u.y, c.x*u.y + c.y*u.x}
		}
	}
	return g, sides, ok
}

// buildHull builds the convex hull of the rows' ends (Andrew's monotone chain).
func (r *regions) buildHull(upper, lower int) {
	h := r.hull[:0]
	turn := func(p point, from int) {
		for len(h) >= from+2 {
			a, b := h[len(h)-2], h[len(h)-1]
			if (b.x-a.x)*(p.y-a.y)-(b.y-a.y)*(p.x-a.x) > 0 {
				break
			}
			h = h[:len(h)-1]
		}
		h = append(h, p)
	}
	// In order of y, then x: down along the right, up along the left.
	for y := upper; y <= lower; y++ {
		turn(point{float64(r.ends[y][0]), float64(y)}, 0)
		turn(point{float64(r.ends[y][1]), float64(y)}, 0)
	}
	from := len(h) - 1
	for y := lower; y >= upper; y-- {
		turn(point{float64(r.ends[y][1]), float64(y)}, from)
		turn(point{float64(r.ends[y][0]), float64(y)}, from)
	}
	r.hull = h[:max(len(h)-1, 1)]
}

// mean returns the mean over the pixels whose centres are inside the rectangle.
func (r *regions) mean(data []float32, c [4]point) float32 {
	u, v := point{c[1].x - c[0].x, c[1].y - c[0].y}, point{c[3].x - c[0].x, c[3].y - c[0].y}
	uu, vv := u.x*u.x+u.y*u.y, v.x*v.x+v.y*v.y
	var sum float64
	n := 0
	low, high := c[0], c[0]
	for _, p := range c[1:] {
		low, high = point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
	}
	const slack = 1e-9
	for y := clampCell(low.y, r.h); y <= clampCell(high.y+slack, r.h); y++ {
		for x := clampCell(low.x, r.w); x <= clampCell(high.x+slack, r.w); x++ {
			px, py := float64(x)-c[0].x, float64(y)-c[0].y
			a, b := (px*u.x+py*u.y)/uu, (px*v.x+py*v.y)/vv
			if a >= -slack && a <= 1+slack && b >= -slack && b <= 1+slack {
				sum += float64(data[y*r.w+x])
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return float32(sum / float64(n))
}

// growRectangle moves each side outwards and converts from pixel centres to pixel edges. The first
// corner is the upper left one, where the rotation leaves one.
func growRectangle(c [4]point, sides point, by float64) [4]point {
	u := point{(c[1].x - c[0].x) / sides.x, (c[1].y - c[0].y) / sides.x}
	v := point{(c[3].x - c[0].x) / sides.y, (c[3].y - c[0].y) / sides.y}
	for k, s := range [4]point{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}} {
		c[k].x += by*(s.x*u.x+s.y*v.x) + 0.5
		c[k].y += by*(s.x*u.y+s.y*v.y) + 0.5
	}
	first := 0
	for k := range c {
		if c[k].x+c[k].y < c[first].x+c[first].y {
			first = k
		}
	}
	return [4]point{c[first], c[(first+1)%4], c[(first+2)%4], c[(first+3)%4]}
}

// clampCell returns the cell of a coordinate, clamped to a row of n.
func clampCell(v float64, n int) int { return int(min(max(math.Floor(v), 0), float64(n-1))) }
