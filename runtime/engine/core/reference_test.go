package core_test

import (
	"math"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// refPreprocess is Preprocess as its documentation reads, in float64, one pixel
// at a time. It shares no code with the backends.
func refPreprocess(p *core.Preprocess) []float64 {
	crop := p.Crop
	if crop == (core.Rect{}) {
		crop = core.Rect{Width: p.Width, Height: p.Height}
	}
	w, h := p.OutW, p.OutH
	if p.Fit == core.Letterbox {
		if p.OutW*crop.Height <= p.OutH*crop.Width {
			h = max(1, int(math.Floor(float64(crop.Height*p.OutW)/float64(crop.Width)+0.5)))
		} else {
			w = max(1, int(math.Floor(float64(crop.Width*p.OutH)/float64(crop.Height)+0.5)))
		}
	}
	x0, y0 := (p.OutW-w)/2, (p.OutH-h)/2

	std := p.Std
	if std == ([3]float32{}) {
		std = [3]float32{1, 1, 1}
	}
	out := make([]float64, p.OutLen())
	for y := range p.OutH {
		for x := range p.OutW {
			rgb := [3]float64{float64(p.Pad), float64(p.Pad), float64(p.Pad)}
			if x >= x0 && x < x0+w && y >= y0 && y < y0+h {
				rgb = refPixel(p, crop, x-x0, y-y0, w, h)
			}
			if p.Color == core.BGR {
				rgb[0], rgb[2] = rgb[2], rgb[0]
			}
			if p.Color == core.Gray {
				out[y*p.OutW+x] = (rgb[0]/255 - float64(p.Mean[0])) / float64(std[0])
				continue
			}
			for ch, v := range rgb {
				out[(ch*p.OutH+y)*p.OutW+x] = (v/255 - float64(p.Mean[ch])) / float64(std[ch])
			}
		}
	}
	return out
}

func refPixel(p *core.Preprocess, crop core.Rect, i, j, w, h int) [3]float64 {
	// Distances from the frame's edges, in luma samples.
	ex := float64(crop.X) + float64((2*i+1)*crop.Width)/float64(2*w)
	ey := float64(crop.Y) + float64((2*j+1)*crop.Height)/float64(2*h)
	full := func(off, step int) float64 {
		at := func(x, y int) float64 { return refSample(p, 0, off, step, x, y) }
		return refBilinear(at, ex-0.5, ey-0.5, crop.X, crop.Y, crop.X+crop.Width-1, crop.Y+crop.Height-1)
	}
	lumaOff, lumaStep := 0, 1
	switch p.Format {
	case core.Gray8:
		v := full(0, 1)
		return [3]float64{v, v, v}
	case core.RGB24, core.BGR24:
		rgb := [3]float64{full(0, 3), full(1, 3), full(2, 3)}
		if p.Format == core.BGR24 {
			rgb[0], rgb[2] = rgb[2], rgb[0]
		}
		if p.Color == core.Gray {
			v := 0.299*rgb[0] + 0.587*rgb[1] + 0.114*rgb[2]
			return [3]float64{v, v, v}
		}
		return rgb
	case core.YUYV:
		lumaStep = 2
	case core.UYVY:
		lumaOff, lumaStep = 1, 2
	}
	yy := full(lumaOff, lumaStep)

	var uv [2]float64
	for c := range uv {
		plane, off, step := 1, c, 2
		if p.Format == core.I420 {
			plane, off, step = 1+c, 0, 1
		}
		packed := lumaStep == 2
		if packed {
			plane, off, step = 0, 1-lumaOff+2*c, 4
		}
		at := func(x, y int) float64 { return refSample(p, plane, off, step, x, y) }
		if packed { // all rows have chroma
			x, minX, maxX := ex/2-0.5, crop.X/2, (crop.X+crop.Width-1)/2
			y := ey - 0.5
			if p.Chroma == core.ChromaNearest {
				x, y = float64(int(math.Floor(ex))/2), math.Floor(ey)
			}
			uv[c] = refBilinear(at, x, y, minX, crop.Y, maxX, crop.Y+crop.Height-1)
			continue
		}
		if p.Chroma == core.ChromaNearest {
			uv[c] = at(int(math.Floor(ex))/2, int(math.Floor(ey))/2)
		} else {
			uv[c] = refBilinear(at, ex/2-0.5, ey/2-0.5, crop.X/2, crop.Y/2, (crop.X+crop.Width-1)/2, (crop.Y+crop.Height-1)/2)
		}
	}

	kr, kb, y0, ys, cs := 0.299, 0.114, 16.0, 255.0/219, 255.0/224
	switch p.Matrix {
	case core.BT709Limited:
		kr, kb = 0.2126, 0.0722
	case core.BT601Full:
		y0, ys, cs = 0, 1, 1
	}
	kg := 1 - kr - kb
	l, u, v := (yy-y0)*ys, (uv[0]-128)*cs, (uv[1]-128)*cs
	clamp := func(x float64) float64 { return math.Min(255, math.Max(0, x)) }
	if p.Color == core.Gray {
		return [3]float64{clamp(l), clamp(l), clamp(l)}
	}
	return [3]float64{
		clamp(l + 2*(1-kr)*v),
		clamp(l - 2*(1-kb)*kb/kg*u - 2*(1-kr)*kr/kg*v),
		clamp(l + 2*(1-kb)*u),
	}
}

func refSample(p *core.Preprocess, plane, off, step, x, y int) float64 {
	pitch := p.Pitch[plane]
	if pitch == 0 {
		pitch = p.Width * step
		if plane > 0 || step == 4 {
			pitch = (p.Width + 1) / 2 * step
		} else if step == 2 {
			pitch = (p.Width + 1) / 2 * 4
		}
	}
	return float64(p.Planes[plane][y*pitch+x*step+off])
}

func refBilinear(at func(x, y int) float64, x, y float64, minX, minY, maxX, maxY int) float64 {
	x = math.Min(math.Max(x, float64(minX)), float64(maxX))
	y = math.Min(math.Max(y, float64(minY)), float64(maxY))
	ix, iy := int(math.Floor(x)), int(math.Floor(y))
	fx, fy := x-float64(ix), y-float64(iy)
	jx, jy := min(ix+1, maxX), min(iy+1, maxY)
	return (at(ix, iy)*(1-fx)+at(jx, iy)*fx)*(1-fy) + (at(ix, jy)*(1-fx)+at(jx, jy)*fx)*fy
}
