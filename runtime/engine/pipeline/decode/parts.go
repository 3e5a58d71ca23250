package decode

import (
	"context"
	"errors"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Parts is a decoder in two parts: the core computes on the device that has the tensor, and this
// program makes results of the few values that come back. The registry has the decodes that are made
// so ([registry.Decode.Core]).
type Parts interface {
	// Add adds the device's part to a list.
	Add(l *core.List, m Memory, in Source)

	// Read reads what a list has brought back. It reports whether the device has more to do:
	// what AddMore adds.
	Read(back []byte) (more bool, err error)
	AddMore(l *core.List, m Memory, in Source)

	// Results makes results of what Read has read, and stores them in into[:0].
	Results(into []result.Result) ([]result.Result, error)
}

// Source is what a decoder in parts reads: a tensor, and a second one where it has one.
type Source struct{ Tensor, More core.Region }

// Memory is the memory of a decoder in parts, of the sizes of [registry.DecoderSizes].
type Memory struct {
	Back core.Region // what this program reads
	Work core.Region
}

// NewParts makes the decoder of a postprocess stage whose first part may run elsewhere.
func NewParts(p *plan.Post, in Input, labels []string) (Parts, error) {
	threshold, err := thresholdOf(p)
	if err != nil {
		return nil, err
	}
	switch p.Kind {
	case registry.CTC:
		return newCTC(in.shape(), labels, threshold)
	case registry.Argmax:
		return newArgmax(in.shape(), labels, threshold, p.Top)
	case registry.Detect, registry.Segment, registry.Keypoints:
		return newDetector(p, in, labels, threshold)
	}
	return nil, fmt.Errorf("%w: the core does not decode %q", registry.ErrPlan, p.Kind)
}

// local runs both parts here.
type local struct {
	Parts
	m          Memory
	stream     *core.Stream
	list       *core.List
	back, work *core.Buffer
}

// newLocal makes a decoder of one in parts, on dev.
func newLocal(dev *core.Device, parts Parts, p *plan.Post, shape []int64) (*local, error) {
	back, work := registry.DecoderSizes(p, shape)
	l := &local{Parts: parts}
	var err error
	if l.stream, err = dev.NewStream(); err != nil {
		return nil, err
	}
	if l.back, err = dev.Alloc(int(back), core.MemHost); err != nil {
		return nil, err
	}
	l.list, l.m.Back = l.stream.List(), l.back.All()
	if work == 0 {
		return l, nil
	}
	if l.work, err = dev.Alloc(int(work), core.MemHost); err != nil {
		return nil, err
	}
	l.m.Work = l.work.All()
	return l, nil
}

func (l *local) decode(t frame.Tensor, into []result.Result) ([]result.Result, error) {
	in := Source{Tensor: t.Buf.At(t.Off, 4*len(t.Data))}
	if len(t.More) > 0 && t.More[0].Buf != nil {
		in.More = t.More[0].Buf.At(0, 4*len(t.More[0].Data))
	}
	if s, ok := l.Parts.(suppression); ok {
		if err := s.putCandidates(t, l.work.Bytes()); err != nil {
			return into[:0], err
		}
	}
	l.Add(l.list.Reset(), l.m, in)
	for {
		if err := l.list.Submit(); err != nil {
			return into[:0], err
		}
		if err := l.stream.Wait(context.Background()); err != nil {
			return into[:0], err
		}
		more, err := l.Read(l.back.Bytes())
		if err != nil {
			return into[:0], err
		}
		if !more {
			return l.Results(into)
		}
		l.AddMore(l.list.Reset(), l.m, in)
	}
}

func (l *local) release() error {
	var err error
	if l.work != nil {
		err = l.work.Release()
	}
	return errors.Join(err, l.back.Release(), l.stream.Release())
}

// part returns n bytes of a region.
func part(r core.Region, off, n int) core.Region {
	r.Off, r.Len = r.Off+off, n
	return r
}
