package track_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/track"
)

const frame = int64(time.Second / 30)

func box(x, y, side float32, class int) track.Box {
	return track.Box{X0: x, Y0: y, X1: x + side, Y1: y + side, Class: class}
}

func TestCrossingObjectsKeepTheirIDs(t *testing.T) {
	tr := track.New(track.Config{})
	rng := rand.New(rand.NewPCG(1, 2))
	var seen [2]uint64
	for n := range int64(90) {
		jitter := func() float32 { return rng.Float32()*4 - 2 }
		// One goes right, one left, on lines so close that they overlap when they meet;
		// the order in which they are found changes.
		boxes := []track.Box{
			box(float32(n)*6+jitter(), 100+jitter(), 60, 0),
			box(540-float32(n)*6+jitter(), 130+jitter(), 60, 0),
		}
		swap := rng.IntN(2)
		if swap == 1 {
			boxes[0], boxes[1] = boxes[1], boxes[0]
		}
		ids := make([]uint64, 2)
		tr.Update(n*frame, boxes, ids)
		if n < 2 {
			continue
		}
		for k := range seen {
			id := ids[k^swap]
			if seen[k] == 0 {
				seen[k] = id
			}
			if id == 0 || id != seen[k] {
				t.Fatalf("frame %d: thing %d is %d, it was %d", n, k, id, seen[k])
			}
		}
	}
	if seen[0] == seen[1] {
		t.Errorf("both are %d", seen[0])
	}
}

// Frames of a live stream arrive in bursts after a delay. Their distance in time is then not that of the pictures, and
// a speed of one pixel in a microsecond loses the object.
func TestAnObjectKeepsItsIDThroughABurst(t *testing.T) {
	tr := track.New(track.Config{Hits: 1})
	at, first := int64(0), uint64(0)
	for n := range int64(40) {
		at += frame
		if n >= 20 && n < 26 { // late, then together
			at += map[bool]int64{true: 5 * frame, false: 1000 - frame}[n == 20]
		}
		ids := make([]uint64, 1)
		tr.Update(at, []track.Box{box(10+3*float32(n), 50, 40, 0)}, ids)
		if first = max(first, 1); ids[0] != first {
			t.Fatalf("frame %d: the object is %d", n, ids[0])
		}
	}
}

func TestABrieflyHiddenObjectKeepsItsID(t *testing.T) {
	for _, c := range []struct {
		gap  time.Duration
		same bool
	}{{400 * time.Millisecond, true}, {2 * time.Second, false}} {
		tr := track.New(track.Config{})
		ids := make([]uint64, 1)
		at := int64(0)
		x := func() float32 { return 100 + 200*float32(at)/1e9 } // 200 a second
		for ; at < int64(time.Second); at += frame {
			tr.Update(at, []track.Box{box(x(), 50, 40, 3)}, ids)
		}
		first := ids[0]
		for end := at + int64(c.gap); at < end; at += frame {
			tr.Update(at, nil, nil)
		}
		for range 3 {
			tr.Update(at, []track.Box{box(x(), 50, 40, 3)}, ids)
			at += frame
		}
		if first == 0 || ids[0] == 0 || (ids[0] == first) != c.same {
			t.Errorf("after %v it is %d, it was %d", c.gap, ids[0], first)
		}
	}
}

func TestIDsNeedSeveralFramesAndOneClass(t *testing.T) {
	tr := track.New(track.Config{})
	ids := make([]uint64, 2)
	tr.Update(0, []track.Box{box(0, 0, 10, 0), box(0, 0, 10, 1)}, ids)
	if !slices.Equal(ids, []uint64{0, 0}) {
		t.Errorf("at once: %v", ids)
	}
	tr.Update(frame, []track.Box{box(0, 0, 10, 1), box(0, 0, 10, 0)}, ids)
	if !slices.Equal(ids, []uint64{2, 1}) { // older tracks are named first
		t.Errorf("numbers %v", ids)
	}
}

func TestTrackerAllocatesNothingAndForgets(t *testing.T) {
	tr := track.New(track.Config{Max: 16})
	boxes, ids := make([]track.Box, 40), make([]uint64, 40)
	at := int64(0)
	rng := rand.New(rand.NewPCG(3, 4))
	step := func() {
		for n := range boxes {
			boxes[n] = box(rng.Float32()*1000, rng.Float32()*1000, 50, n%3)
		}
		tr.Update(at, boxes, ids)
		at += frame
		if tr.Len() > 16 {
			t.Fatalf("%d tracks", tr.Len())
		}
	}
	if n := testing.AllocsPerRun(200, step); n != 0 {
		t.Errorf("an update allocates %v times", n)
	}
	tr.Update(at+int64(time.Minute), nil, nil)
	if tr.Len() != 0 {
		t.Errorf("a minute later there are %d", tr.Len())
	}
}

// For any input, ids are unique within a frame and never reused, and the same input gives the
// same ids.
func TestIDsAreUniqueAndReproducible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.OneOf(rapid.Float32Range(-100, 2000), rapid.Just(float32(math.NaN())), rapid.Just(float32(math.Inf(1))))
		frames := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) track.Box {
			return track.Box{X0: edge.Draw(t, "x0"), Y0: edge.Draw(t, "y0"), X1: edge.Draw(t, "x1"), Y1: edge.Draw(t, "y1"), Class: rapid.IntRange(0, 2).Draw(t, "class")}
		}), 0, 12), 1, 20).Draw(t, "frames")
		gaps := rapid.SliceOfN(rapid.Int64Range(-int64(time.Second), int64(3*time.Second)), len(frames), len(frames)).Draw(t, "gaps")
		a, b := track.New(track.Config{Hits: 1, Max: 8}), track.New(track.Config{Hits: 1, Max: 8})
		at := int64(0)
		for n, boxes := range frames {
			at += gaps[n]
			ids, again := make([]uint64, len(boxes)), make([]uint64, len(boxes))
			a.Update(at, boxes, ids)
			b.Update(at, boxes, again)
			if !slices.Equal(ids, again) {
				t.Fatalf("frame %d: %v and %v", n, ids, again)
			}
			seen := map[uint64]bool{}
			for _, id := range ids {
				if id != 0 && seen[id] {
					t.Fatalf("frame %d: %v", n, ids)
				}
				seen[id] = true
			}
			if a.Len() > 8 {
				t.Fatalf("%d tracks", a.Len())
			}
		}
	})
}
