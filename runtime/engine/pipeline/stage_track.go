package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/track"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// buildTrack builds a stage that gives boxes the same id from frame to frame. All levels share
// one tracker, because boxes are in source pixels on each level.
func buildTrack(b stageBuilder) (work, error) {
	if t := b.trackers[b.s.ID]; t != nil {
		return t, nil
	}
	p := b.s.Track
	if p.Hits < 0 || p.MaxLost < 0 || p.Max < 0 || p.Max > track.MaxBoxes {
		return nil, fmt.Errorf("%w: hits %d, max lost %v and max %d must not be negative, and at most %d tracks are allowed",
			ErrPlan, p.Hits, time.Duration(p.MaxLost), p.Max, track.MaxBoxes)
	}
	c := track.Config{Hits: p.Hits, MaxLost: time.Duration(p.MaxLost), Max: p.Max}
	if p.IoU != "" {
		var err error
		if c.IoU, err = registry.Fraction("iou", p.IoU); err != nil {
			return nil, err
		}
	}
	t := track.New(c)
	boxes, ids := make([]track.Box, 0, track.MaxBoxes), make([]uint64, track.MaxBoxes)
	w := func(_ context.Context, _ int, batch []*frame.Frame) error {
		for _, f := range batch {
			boxes = boxes[:0]
			for i := range f.Results {
				if len(boxes) == cap(boxes) {
					break
				}
				r := &f.Results[i]
				boxes = append(boxes, track.Box{X0: r.Box[0], Y0: r.Box[1], X1: r.Box[2], Y1: r.Box[3], Class: r.Class})
			}
			t.Update(f.Moment, boxes, ids[:len(boxes)])
			for i := range boxes {
				f.Results[i].ID = ids[i]
			}
		}
		return nil
	}
	if b.trackers == nil {
		b.trackers = map[string]work{}
	}
	b.trackers[b.s.ID] = w
	return w, nil
}
