// Package track follows boxes from frame to frame: the same object keeps its id.
//
// It predicts the position of each track by its speed and pairs boxes with predictions by their
// overlap, the largest first, and never across classes. It is deterministic: equal overlaps go
// to the older track, then to the earlier box. All memory is allocated at the start, and the
// number of tracks is limited.
//
// Reference: Bewley et al., Simple Online and Realtime Tracking, 2016, with a smoothed speed
// instead of a Kalman filter, and greedy pairing instead of the Hungarian method.
package track

import (
	"cmp"
	"slices"
	"time"
)

// Defaults of a [Config].
const (
	iou     = 0.3
	hits    = 2
	maxLost = time.Second
	most    = 256
)

// MaxBoxes is the maximum number of boxes considered per frame.
const MaxBoxes = 1024

// Config of a tracker; zero values select the defaults.
type Config struct {
	IoU     float32       // minimum overlap of a box and a prediction
	Hits    int           // frames before a track gets an id
	MaxLost time.Duration // how long a track without a box is kept
	Max     int           // maximum number of tracks
}

// Box is one detection: edges in any unit.
type Box struct {
	X0, Y0, X1, Y1 float32
	Class          int
}

// Tracker is the state of one stream of frames.
type Tracker struct {
	c      Config
	tracks []trace
	nextID uint64
	last   int64 // time of the latest frame
	pairs  []pair
	taken  []bool // by box
}

// trace is one tracked object.
type trace struct {
	id    uint64 // 0: seen in too few frames
	class int
	box   [4]float32 // at the last detection
	speed [4]float32 // of each edge, per second
	seen  int64      // ns
	hits  int
	hit   bool // matched by a box of this frame
}

type pair struct {
	track, box int
	overlap    float32
}

// New makes a tracker.
func New(c Config) *Tracker {
	if c.IoU <= 0 {
		c.IoU = iou
	}
	if c.Hits <= 0 {
		c.Hits = hits
	}
	if c.MaxLost <= 0 {
		c.MaxLost = maxLost
	}
	if c.Max <= 0 {
		c.Max = most
	}
	return &Tracker{
		c: c, nextID: 1, tracks: make([]trace, 0, c.Max),
		pairs: make([]pair, 0, 4*c.Max), taken: make([]bool, MaxBoxes),
	}
}

// Update takes the boxes of the frame captured at a time in ns and writes the id of each into
// ids, which is as long: 0 for tracks without an id yet. Frames must come in order; the time of
// a frame older than the latest is replaced by the latest.
func (t *Tracker) Update(at int64, boxes []Box, ids []uint64) {
	clear(ids)
	if len(boxes) > MaxBoxes {
		boxes = boxes[:MaxBoxes]
	}
	at = max(at, t.last)
	t.last = at
	t.tracks = slices.DeleteFunc(t.tracks, func(r trace) bool { return at-r.seen > int64(t.c.MaxLost) })
	taken := t.taken[:len(boxes)]
	clear(taken)
	t.match(at, boxes, ids)
	for n, b := range boxes {
		if taken[n] || len(t.tracks) == t.c.Max {
			continue
		}
		r := trace{class: b.Class, box: edges(b), seen: at, hits: 1}
		t.assignID(&r)
		ids[n] = r.id
		t.tracks = append(t.tracks, r)
	}
}

// match pairs boxes with tracks, best overlap first.
func (t *Tracker) match(at int64, boxes []Box, ids []uint64) {
	t.pairs = t.pairs[:0]
	for k := range t.tracks {
		r := &t.tracks[k]
		r.hit = false
		where := r.predict(at)
		for n, b := range boxes {
			if b.Class != r.class {
				continue
			}
			if o := overlap(where, edges(b)); o >= t.c.IoU && len(t.pairs) < cap(t.pairs) {
				t.pairs = append(t.pairs, pair{k, n, o})
			}
		}
	}
	slices.SortFunc(t.pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.overlap, a.overlap), cmp.Compare(a.track, b.track), cmp.Compare(a.box, b.box))
	})
	for _, p := range t.pairs {
		r := &t.tracks[p.track]
		if r.hit || t.taken[p.box] {
			continue
		}
		r.hit, t.taken[p.box] = true, true
		r.update(at, edges(boxes[p.box]))
		t.assignID(r)
		ids[p.box] = r.id
	}
}

// assignID gives an id to a track that was seen often enough.
func (t *Tracker) assignID(r *trace) {
	if r.id == 0 && r.hits >= t.c.Hits {
		r.id = t.nextID
		t.nextID++
	}
}

// predict returns the box at a time.
func (r *trace) predict(at int64) [4]float32 {
	dt := float32(at-r.seen) / 1e9
	b := r.box
	for i := range b {
		b[i] += r.speed[i] * dt
	}
	return b
}

// smooth is the weight of a new speed.
const smooth = 0.5

// shortest is the shortest time that a speed is computed over. Frames that are closer were delivered
// late, and their distance is not the time between the pictures.
const shortest = 4 * time.Millisecond

func (r *trace) update(at int64, b [4]float32) {
	if at > r.seen {
		dt := float32(max(at-r.seen, int64(shortest))) / 1e9
		part := float32(smooth)
		if r.hits == 1 {
			part = 1 // there was no speed yet
		}
		for i := range b {
			r.speed[i] += part * ((b[i]-r.box[i])/dt - r.speed[i])
		}
	}
	r.box, r.seen = b, at
	r.hits++
}

func edges(b Box) [4]float32 { return [4]float32{b.X0, b.Y0, b.X1, b.Y1} }

// overlap returns intersection over union; 0 for boxes without area.
func overlap(a, b [4]float32) float32 {
	w := min(a[2], b[2]) - max(a[0], b[0])
	h := min(a[3], b[3]) - max(a[1], b[1])
	if !(w > 0 && h > 0) { // also false for NaN
		return 0
	}
	both := w * h
	return both / ((a[2]-a[0])*(a[3]-a[1]) + (b[2]-b[0])*(b[3]-b[1]) - both)
}
