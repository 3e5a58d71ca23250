package bench

import (
	"errors"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// preprocess1080 is the usual first stage of a detector: a 1080p camera, a square model.
func preprocess1080(chroma core.Chroma) *core.Preprocess {
	return &core.Preprocess{
		Format: core.NV12, Width: 1920, Height: 1080, OutW: 640, OutH: 640,
		Fit: core.Letterbox, Pad: 114, Chroma: chroma,
	}
}

// picture returns a smooth frame with a little noise, similar to a camera's. On pure noise
// the branches of the references are mispredicted, which makes them ten times slower.
func picture(f core.Format, w, h int) []byte {
	frame := make([]byte, core.FrameBytes(f, w, h))
	state := uint64(1)
	row := max(len(frame)/h, 1)
	for i := range frame {
		state = state*6364136223846793005 + 1442695040888963407
		noise := int(state >> 62)
		if planar := f == core.NV12 || f == core.I420; !planar {
			frame[i] = byte(40 + 160*(i%row)/row + noise)
		} else if y := i / w; y < h {
			frame[i] = byte(40 + 160*(i%w)/w + noise)
		} else {
			frame[i] = byte(110 + 30*(y-h)/(h/2) + noise)
		}
	}
	return frame
}

// planePitch returns the bytes per row and per sample of plane i of a tight frame.
func planePitch(f core.Format, width, i int) (pitch, step int) {
	switch f {
	case core.NV12:
		if i == 1 {
			return 2 * ((width + 1) / 2), 2
		}
	case core.I420:
		if i > 0 {
			return (width + 1) / 2, 1
		}
	case core.YUYV, core.UYVY:
		return 4 * ((width + 1) / 2), 2
	case core.RGB24, core.BGR24:
		return 3 * width, 3
	}
	return width, 1
}

// frame uploads a picture for p, each plane to its own buffer.
func (r *rig) frame(p *core.Preprocess) (planes [3]*core.Buffer, pixels []byte) {
	pixels = picture(p.Format, p.Width, p.Height)
	parts, err := core.SplitPlanes(p.Format, p.Width, p.Height, pixels)
	r.check(err)
	for i, part := range parts {
		if len(part) > 0 {
			planes[i] = r.tensor(part)
		}
	}
	return planes, pixels
}

func regionsOf(planes [3]*core.Buffer) (out [3]core.Region) {
	for i, b := range planes {
		if b != nil {
			out[i] = b.All()
		}
	}
	return out
}

// frameKernels measures preprocessing of the usual formats and sizes.
func frameKernels(r *rig) []benchmark {
	type variant struct {
		kernel, name, ffmpeg string // name of the format in FFmpeg
		set                  func(*core.Preprocess)
	}
	hd := func(f core.Format) func(*core.Preprocess) {
		return func(p *core.Preprocess) { p.Format = f }
	}
	var list []benchmark
	for _, v := range []variant{
		{"K1", "NV12 1920x1080 to 640x640 f32, nearest chroma", "nv12", func(*core.Preprocess) {}},
		{"K1", "NV12 1920x1080 to 640x640 f32, bilinear chroma", "nv12", func(p *core.Preprocess) { p.Chroma = core.ChromaBilinear }},
		{"K1h", "NV12 1920x1080 to 640x640 f16", "nv12", func(p *core.Preprocess) { p.Type = core.F16 }},
		{"K2", "I420 1920x1080 to 640x640 f32", "yuv420p", hd(core.I420)},
		{"K2", "YUYV 1920x1080 to 640x640 f32", "yuyv422", hd(core.YUYV)},
		{"K2", "RGB 1920x1080 to 640x640 f32", "rgb24", hd(core.RGB24)},
		{"K2", "gray 1920x1080 to 640x640 f32", "gray", func(p *core.Preprocess) { p.Format, p.Color = core.Gray8, core.Gray }},
		{"K2", "NV12 3840x2160 to 640x640 f16", "nv12", func(p *core.Preprocess) { p.Width, p.Height, p.Type = 3840, 2160, core.F16 }},
	} {
		p := preprocess1080(core.ChromaNearest)
		v.set(p)
		b := r.preprocess(v.kernel, v.name, v.ffmpeg, p)
		list = append(list, b)
	}
	b := r.batch()
	return append(list, b)
}

func (r *rig) preprocess(kernel, name, ffmpeg string, p *core.Preprocess) benchmark {
	planes, pixels := r.frame(p)
	g, err := p.Geometry()
	r.check(err)
	bytes := p.OutLen() * p.Type.Bytes()
	out := r.alloc(bytes, core.MemAuto)
	perPixel := 35
	switch {
	case p.Chroma == core.ChromaBilinear:
		perPixel = 53
	case p.Format == core.Gray8:
		perPixel = 12
	}
	b := benchmark{
		kernel: kernel, name: "preprocess " + name, numbers: "f32",
		// All bytes of the frame are read, all bytes of the tensor are written.
		bytes: count(len(pixels) + bytes), flops: count(perPixel * g.Inner.Width * g.Inner.Height),
		run: r.time(func(l *core.List) { l.Preprocess(out.All(), regionsOf(planes), p) }),
	}
	if !r.onCPU() {
		return b
	}
	tensor := make([]float32, 3*p.OutW*p.OutH)
	if r.libraries.sws != nil {
		if s := r.libraries.sws.newScaler(ffmpeg, p, planes); s != nil {
			r.cleanup = append(r.cleanup, s.release)
			b.reference = r.foreignReference(r.libraries.sws.name()+" fast_bilinear to RGB24, then a loop to float32 planes", func() { s.tensor(tensor) })
			return b
		}
	}
	if p.Format == core.NV12 {
		rgb := make([]byte, 3*p.Width*p.Height) // between its passes
		b.reference = r.plainReference("plain C, two passes: to RGB, then resize", func() { refTwoPass(p, pixels, rgb, tensor) })
	}
	return b
}

// batch preprocesses frames of several sizes into one tensor, in one list.
func (r *rig) batch() benchmark {
	n := 4
	if !r.onCPU() {
		n = 32
	}
	var args []*core.Preprocess
	var planes [][3]*core.Buffer
	total := 0
	for i := range n {
		p := preprocess1080(core.ChromaNearest)
		p.Type = core.F16
		if i%2 == 1 {
			p.Width, p.Height = 1280, 720
		}
		frame, pixels := r.frame(p)
		args, planes, total = append(args, p), append(planes, frame), total+len(pixels)
	}
	each := args[0].OutLen() * 2
	out := r.alloc(n*each, core.MemAuto)
	all := r.time(func(l *core.List) {
		for i, p := range args {
			l.Preprocess(out.At(i*each, each), regionsOf(planes[i]), p)
		}
	})
	return benchmark{
		kernel: "K1b", name: fmt.Sprintf("preprocess a batch of %d, 1080p and 720p, to 640x640 f16", n),
		bytes: count(total + n*each), run: all,
	}
}

// regionKernels measures the second stage of a pipeline: 16 boxes of a 1080p frame, for a
// classifier. The reference scales them one after another.
func regionKernels(r *rig) []benchmark {
	const n, side = 16, 112
	p := preprocess1080(core.ChromaNearest)
	p.OutW, p.OutH, p.Fit = side, side, core.Stretch
	planes, _ := r.frame(p)
	boxes := make([]core.Box, n)
	for i := range boxes {
		x, y := float32(80*i), float32(40*i)
		boxes[i] = core.Box{X0: x, Y0: y, X1: x + 200, Y1: y + 240, Score: 1, Anchor: int32(i)}
	}
	packed := make([]byte, core.BoxesBytes(n))
	r.check(core.PutBoxes(packed, boxes))
	list := r.tensor(packed)
	dst := r.alloc(4*n*p.OutLen(), core.MemAuto)
	b := benchmark{
		kernel: "K14", name: fmt.Sprintf("%d regions of NV12 1920x1080 to %dx%d f32", n, side, side), numbers: "f32",
		bytes: count(n * (200*240*3/2 + 4*p.OutLen())), flops: count(35 * n * side * side),
		run: r.time(func(l *core.List) { l.ROI(dst.All(), regionsOf(planes), list.All(), n, p) }),
	}
	if r.onCPU() && r.libraries.sws != nil {
		var all []*scaler
		for _, box := range boxes {
			part := *p
			part.Crop = core.Rect{X: int(box.X0), Y: int(box.Y0), Width: 200, Height: 240}
			s := r.libraries.sws.newScaler("nv12", &part, planes)
			if s == nil {
				r.check(errors.New("libswscale cannot scale a region of an NV12 frame"))
			}
			r.cleanup = append(r.cleanup, s.release)
			all = append(all, s)
		}
		out := make([]float32, 3*side*side)
		b.reference = r.foreignReference(r.libraries.sws.name()+" fast_bilinear, region by region", func() {
			for _, s := range all {
				s.tensor(out)
			}
		})
	}
	return []benchmark{b}
}

// motionKernels measures the difference of two frames.
func motionKernels(r *rig) []benchmark {
	const w, h = 1920, 1088 // whole blocks of 32
	x, y := picture(core.Gray8, w, h), noise(w*h)
	a := r.tensor(x)
	b := r.tensor(y)
	const block = 64
	bytes := 16 + 4*(w/block)*(h/block)
	out := r.alloc(bytes, core.MemAuto)
	args := core.DiffArgs{Width: w, Height: h, Threshold: 16, Block: block}
	m := benchmark{
		kernel: "K15", name: fmt.Sprintf("difference of two frames of %dx%d", w, h), bytes: count(2*w*h + bytes),
		run:       r.time(func(l *core.List) { l.Diff(out.All(), a.All(), b.All(), args) }),
		reference: r.plainReference("plain C, the sum alone", func() { refDiff(x, y) }),
	}
	if s := r.libraries.sws; s != nil && s.hasSAD() {
		m.reference = r.foreignReference("av_pixelutils SAD of libavutil, the sum alone", func() { s.sad(x, y, w, h) })
	}
	return []benchmark{m}
}
