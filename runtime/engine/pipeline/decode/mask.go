package decode

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// maxMaskSide limits the cells of a mask in each dimension.
const maxMaskSide = 512

// masks draws masks from prototypes: a pixel is inside where the sum of the prototypes,
// weighted by the box's coefficients, is above 0. It asks the device for as many masks at once as fit
// [registry.MaskBytes].
type masks struct {
	args  core.MasksArgs
	grids []core.MaskGrid // of the boxes in work
	boxes []int           // their places
	done  int             // boxes before this one
	bytes int             // of the masks in work
	drawn []result.Mask   // by the place of the box
}

func newMasks(shape []int64, at Picture, boxes uint32) *masks {
	m := &masks{args: core.MasksArgs{Values: uint32(shape[1]), Height: uint32(shape[2]), Width: uint32(shape[3]), Rows: boxes}}
	// From a pixel of the frame to one of the prototypes, whose first centre is 0.
	m.args.ScaleX, m.args.ShiftX = axis(at.ScaleX, at.Crop.X, at.Inner.X, int(shape[3]), at.Width)
	m.args.ScaleY, m.args.ShiftY = axis(at.ScaleY, at.Crop.Y, at.Inner.Y, int(shape[2]), at.Height)
	return m
}

func axis(scale float64, crop, inner, prototypes, tensor int) (by, shift float32) {
	k := float64(prototypes) / float64(tensor)
	return float32(k / scale), float32(k*(float64(inner)-float64(crop)/scale) - 0.5)
}

// begin starts with the first box of a frame.
func (m *masks) begin() { m.done, m.grids, m.boxes = 0, m.grids[:0], m.boxes[:0] }

// next chooses the next masks to draw; false: all are drawn.
func (m *masks) next(d *detector) bool {
	m.grids, m.boxes, m.bytes = m.grids[:0], m.boxes[:0], 0
	m.drawn = slices.Grow(m.drawn[:0], len(d.boxes))[:len(d.boxes)]
	for ; m.done < len(d.boxes); m.done++ {
		b := d.boxes[m.done]
		if d.isOutside(b) {
			continue
		}
		b = d.clip(b)
		out := &m.drawn[m.done]
		out.X, out.Y = int(b.X0), int(b.Y0)
		w, h := int(math.Ceil(float64(b.X1)))-out.X, int(math.Ceil(float64(b.Y1)))-out.Y
		out.Step = max(1, (max(w, h)+maxMaskSide-1)/maxMaskSide)
		out.Width, out.Height = (w+out.Step-1)/out.Step, (h+out.Step-1)/out.Step
		size := (out.Width*out.Height + 31) / 32 * 4
		if m.bytes+size > registry.MaskBytes {
			break
		}
		m.grids = append(m.grids, core.MaskGrid{
			X: int32(out.X), Y: int32(out.Y), Step: uint32(out.Step), Width: uint32(out.Width), Height: uint32(out.Height),
			Row: uint32(m.done), At: uint32(m.bytes),
		})
		m.boxes = append(m.boxes, m.done)
		m.bytes += size
	}
	return len(m.grids) > 0
}

// read turns the bits of masks into runs of cells.
func (m *masks) read(bits []byte) {
	for n, g := range m.grids {
		out := &m.drawn[m.boxes[n]]
		out.Counts = out.Counts[:0]
		run, in := int32(0), uint32(0)
		for i := range g.Width * g.Height {
			if now := binary.NativeEndian.Uint32(bits[g.At+i/32*4:]) >> (i % 32) & 1; now != in {
				out.Counts = append(out.Counts, run)
				run, in = 0, now
			}
			run++
		}
		out.Counts = append(out.Counts, run)
	}
}
