package decode

import (
	"math"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
)

// maxMaskSide limits the cells of a mask in each dimension.
const maxMaskSide = 512

// masks draws masks from prototypes: a pixel is inside where the sum of the prototypes,
// weighted by the box's coefficients, is above 0.
type masks struct {
	at      Picture
	n, w, h int
	weights []float32
	sum     []float32
}

func newMasks(shape []int64, at Picture) *masks {
	m := &masks{at: at, n: int(shape[1]), h: int(shape[2]), w: int(shape[3])}
	m.weights, m.sum = make([]float32, m.n), make([]float32, m.w*m.h)
	return m
}

// draw fills the mask of a box in source pixels.
func (m *masks) draw(prototypes []float32, box [4]float32, out *result.Mask) {
	out.X, out.Y = int(box[0]), int(box[1])
	w, h := int(math.Ceil(float64(box[2])))-out.X, int(math.Ceil(float64(box[3])))-out.Y
	out.Step = max(1, (max(w, h)+maxMaskSide-1)/maxMaskSide)
	out.Width, out.Height = (w+out.Step-1)/out.Step, (h+out.Step-1)/out.Step

	// Only the part of the prototypes below the box is needed.
	step := float64(out.Step)
	left, upper := m.place(float64(out.X), float64(out.Y))
	right, lower := m.place(float64(out.X)+step*float64(out.Width), float64(out.Y)+step*float64(out.Height))
	x0, y0 := clampCell(left, m.w), clampCell(upper, m.h)
	x1, y1 := clampCell(right+1, m.w), clampCell(lower+1, m.h)
	for y := y0; y <= y1; y++ {
		row := m.sum[y*m.w:][:m.w]
		clear(row[x0 : x1+1])
		for k, weight := range m.weights {
			p := prototypes[(k*m.h+y)*m.w:][:m.w]
			for x := x0; x <= x1; x++ {
				row[x] += weight * p[x]
			}
		}
	}
	run, in := int32(0), false
	for y := range out.Height {
		for x := range out.Width {
			px, py := m.place(float64(out.X)+step*(float64(x)+0.5), float64(out.Y)+step*(float64(y)+0.5))
			if now := m.sample(px, py) > 0; now != in {
				out.Counts = append(out.Counts, run)
				run, in = 0, now
			}
			run++
		}
	}
	out.Counts = append(out.Counts, run)
}

// place maps a point of the frame to the prototypes, whose first pixel centre is 0.
func (m *masks) place(x, y float64) (px, py float64) {
	a := &m.at
	tx := (x-float64(a.Crop.X))/a.ScaleX + float64(a.Inner.X)
	ty := (y-float64(a.Crop.Y))/a.ScaleY + float64(a.Inner.Y)
	return tx*float64(m.w)/float64(a.Width) - 0.5, ty*float64(m.h)/float64(a.Height) - 0.5
}

// sample interpolates bilinearly, with the edge repeated outside.
func (m *masks) sample(x, y float64) float32 {
	x, y = min(max(x, 0), float64(m.w-1)), min(max(y, 0), float64(m.h-1))
	x0, y0 := int(x), int(y)
	x1, y1 := min(x0+1, m.w-1), min(y0+1, m.h-1)
	fx, fy := float32(x-float64(x0)), float32(y-float64(y0))
	top := m.sum[y0*m.w+x0]*(1-fx) + m.sum[y0*m.w+x1]*fx
	low := m.sum[y1*m.w+x0]*(1-fx) + m.sum[y1*m.w+x1]*fx
	return top*(1-fy) + low*fy
}

// clampCell returns the cell of a coordinate, clamped to a row of n.
func clampCell(v float64, n int) int { return int(min(max(math.Floor(v), 0), float64(n-1))) }
