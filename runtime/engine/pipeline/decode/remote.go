package decode

import (
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
)

// Remote decodes boxes in two parts: another device decodes a tensor and suppresses overlapping
// boxes, and only the boxes come here. The registry has the decodes that it can do
// ([registry.Decode.Remote]).
type Remote struct {
	d *detector
}

// BoxesBytes is the memory for boxes: for the candidates, for those found among them, and for the
// copy that this program reads.
func (*Remote) BoxesBytes() int { return core.BoxesBytes(maxCandidates) }

// NewRemote makes the decoder of a postprocess stage. dev is the CPU.
func NewRemote(dev *core.Device, p *plan.Post, in Input, labels []string) (*Remote, func() error, error) {
	threshold, err := thresholdOf(p)
	if err != nil {
		return nil, nil, err
	}
	d, err := newDetector(dev, p, in.Shape, in.More, in.At, labels, threshold)
	if err != nil {
		return nil, nil, err
	}
	return &Remote{d}, d.release, nil
}

// Add adds the device's part to a list: the best boxes of a tensor. found is memory of the device,
// whose part with boxes is copied to boxes.
func (r *Remote) Add(l *core.List, boxes, found, candidates, tensor core.Region) {
	candidates.Len = core.BoxesBytes(int(r.d.args.Max))
	l.Decode(candidates, tensor, r.d.args)
	suppress(l, boxes, found, candidates, r.d.nms)
}

// AddAll adds the suppression among all candidates, which those that Add decoded are.
func (r *Remote) AddAll(l *core.List, boxes, found, candidates core.Region) {
	suppress(l, boxes, found, candidates, r.d.all)
}

func suppress(l *core.List, boxes, found, candidates core.Region, a core.NMSArgs) {
	boxes.Len = core.BoxesBytes(int(a.Max))
	found.Len = boxes.Len
	candidates.Len = core.BoxesBytes(int(a.InMax))
	l.NMS(found, candidates, a)
	l.Copy(boxes, found)
}

// Read reads the boxes that a list has written. It reports whether those of AddAll are needed.
func (r *Remote) Read(boxes []byte) (more bool, err error) {
	r.d.boxes, err = core.AppendBoxes(r.d.boxes[:0], boxes)
	return err == nil && r.d.wantsMore(), err
}

// Results makes results of the boxes that Read has read, and stores them in into[:0].
func (r *Remote) Results(into []result.Result) ([]result.Result, error) {
	return r.d.describe(r.d.inside(r.d.boxes), frame.Tensor{}, into)
}
