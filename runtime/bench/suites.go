package bench

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/core"
)

const (
	cached   = 256 << 10 // fits the second-level cache of every supported CPU
	uncached = 64 << 20  // fits no cache
)

func bandwidth(r *rig) ([]benchmark, error) {
	onCPU := r.d.Backend() == core.CPU
	var list []benchmark

	paths := []struct {
		name     string
		from, to core.Mode
	}{
		{"host to device", core.MemPinned, core.MemDevice},
		{"device to host", core.MemDevice, core.MemPinned},
		{"device to device", core.MemDevice, core.MemDevice},
	}
	if onCPU {
		paths = paths[:1]
		paths[0].name, paths[0].from, paths[0].to = "host to host", core.MemHost, core.MemHost
	}
	for _, n := range []int{cached, uncached} {
		for _, p := range paths {
			src, err := r.alloc(n, p.from)
			if err != nil {
				return nil, err
			}
			dst, err := r.alloc(n, p.to)
			if err != nil {
				return nil, err
			}
			fill, err := r.filled(src)
			if err != nil {
				return nil, fmt.Errorf("fill %s: %w", p.name, err)
			}
			b := benchmark{
				name:  fmt.Sprintf("copy %s, %s", p.name, size(n)),
				bytes: count(2 * n),
				run:   r.timed(func(l *core.List) { l.Copy(dst.All(), src.All()) }),
			}
			if onCPU && haveReferences {
				to := make([]byte, n)
				b.reference, b.runReference = "memcpy of libc", since(func() { refMemcpy(to, fill) })
			}
			list = append(list, b)
		}
	}

	b, err := r.alloc(uncached, core.MemAuto)
	if err != nil {
		return nil, err
	}
	set := benchmark{
		name: "fill, " + size(uncached), bytes: count(uncached),
		run: r.timed(func(l *core.List) { l.Memset(b.All(), 0x55) }),
	}
	if onCPU && haveReferences {
		to := make([]byte, uncached)
		set.reference, set.runReference = "memset of libc", since(func() { refMemset(to, 0x55) })
	}
	list = append(list, set)

	// What a list costs beside its work: one call from Go into the backend.
	for _, n := range []int{1, 16, 64} {
		l := r.stream.List()
		for range n {
			l.Memset(b.At(0, 1), 1)
		}
		const calls = 200
		list = append(list, benchmark{
			name: fmt.Sprintf("submit a list of %d", n),
			run: func(ctx context.Context) (time.Duration, error) {
				t := time.Now()
				for range calls {
					if err := l.Submit(); err != nil {
						return 0, err
					}
				}
				took := time.Since(t) / calls
				return took, r.stream.Wait(ctx)
			},
		})
	}
	return list, nil
}

// filled writes something to a buffer, so that its pages exist, and returns the
// same bytes in Go memory.
func (r *rig) filled(b *core.Buffer) ([]byte, error) {
	data := make([]byte, b.Len())
	state := uint64(1)
	for i := range data {
		state = state*6364136223846793005 + 1442695040888963407
		data[i] = byte(state >> 56)
	}
	return data, r.upload(b, data)
}

func (r *rig) upload(b *core.Buffer, data []byte) error {
	if host := b.Bytes(); host != nil {
		copy(host, data)
		return nil
	}
	up, err := r.d.Alloc(len(data), core.MemPinned)
	if err != nil {
		return err
	}
	copy(up.Bytes(), data)
	if err := r.stream.List().Copy(b.At(0, len(data)), up.All()).Submit(); err != nil {
		return err
	}
	if err := r.stream.Wait(context.Background()); err != nil {
		return err
	}
	return up.Release()
}

// picture is a smooth NV12 frame with a little noise. On pure noise every clamp
// of the references would be a mispredicted branch, and they would look ten
// times slower than on what cameras see.
func picture(w, h int) []byte {
	frame := make([]byte, core.FrameBytes(core.NV12, w, h))
	state := uint64(1)
	for i := range frame {
		state = state*6364136223846793005 + 1442695040888963407
		noise := int(state >> 62)
		if x, y := i%w, i/w; y < h {
			frame[i] = byte(40 + 160*x/w + noise)
		} else {
			frame[i] = byte(110 + 30*(y-h)/(h/2) + noise)
		}
	}
	return frame
}

// The usual first stage of a detector: a 1080p camera, a square model.
func preprocess1080(chroma core.Chroma) *core.Preprocess {
	return &core.Preprocess{
		Format: core.NV12, Width: 1920, Height: 1080, OutW: 640, OutH: 640,
		Fit: core.Letterbox, Pad: 114, Chroma: chroma,
	}
}

func kernels(r *rig) ([]benchmark, error) {
	onCPU := r.d.Backend() == core.CPU
	var list []benchmark

	p := preprocess1080(core.ChromaNearest)
	luma, chroma := p.Width*p.Height, p.Width*p.Height/2
	frame, err := r.alloc(luma+chroma, core.MemAuto)
	if err != nil {
		return nil, err
	}
	tensor, err := r.alloc(4*p.OutLen(), core.MemAuto)
	if err != nil {
		return nil, err
	}
	pixels := picture(p.Width, p.Height)
	if err := r.upload(frame, pixels); err != nil {
		return nil, fmt.Errorf("fill the frame: %w", err)
	}
	g, err := p.Geometry()
	if err != nil {
		return nil, err
	}
	inner := g.Inner.Width * g.Inner.Height
	rgb := make([]byte, 3*p.Width*p.Height) // between the reference's passes
	const scalar, twoPass = "plain C, one pass, pixel by pixel", "plain C, two passes: to RGB, then resize"
	runTwoPass := func(out []float32) { refTwoPass(p, pixels, rgb, out) }
	runScalar := func(out []float32) { refScalar(p, pixels, out) }
	for _, v := range []struct {
		chroma    core.Chroma
		name      string
		flops     int // per pixel, counted in yt_math.h: interpolation, colour, clamp, normalise
		reference string
		run       func(out []float32)
	}{
		{core.ChromaNearest, "nearest chroma", 35, twoPass, runTwoPass},
		{core.ChromaNearest, "nearest chroma, again", 35, scalar, runScalar},
		{core.ChromaBilinear, "bilinear chroma", 53, twoPass, runTwoPass},
	} {
		if !onCPU && v.reference == scalar {
			continue // the same kernel again, for a reference that only the CPU has
		}
		args := preprocess1080(v.chroma)
		b := benchmark{
			name: "preprocess NV12 1920x1080 to 640x640, " + v.name,
			// Every frame byte is near some tap; the tensor is written in full.
			bytes: count(luma + chroma + 4*p.OutLen()), flops: count(v.flops * inner),
			run: r.timed(func(l *core.List) {
				l.Preprocess(tensor.All(), [3]core.Region{frame.At(0, luma), frame.At(luma, chroma)}, args)
			}),
		}
		if onCPU && haveReferences {
			out := make([]float32, p.OutLen())
			b.reference, b.runReference = v.reference, since(func() { v.run(out) })
		}
		list = append(list, b)
	}

	const n = 16 << 20
	values, err := r.alloc(4*n, core.MemAuto)
	if err != nil {
		return nil, err
	}
	result, err := r.alloc(4, core.MemAuto)
	if err != nil {
		return nil, err
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%1000) * 0.001
	}
	if err := r.upload(values, bytesOf(x)); err != nil {
		return nil, err
	}
	for _, v := range []struct {
		name string
		op   core.Reduction
		ref  func([]float32) float32
	}{{"sum", core.Sum, refSum}, {"minimum", core.Min, refMin}, {"maximum", core.Max, refMax}} {
		b := benchmark{
			name: fmt.Sprintf("%s of %d Mi float32", v.name, n>>20), bytes: count(4 * n), flops: count(n),
			run: r.timed(func(l *core.List) { l.Reduce(result.All(), values.All(), v.op) }),
		}
		if onCPU && haveReferences {
			b.reference, b.runReference = "plain C loop", since(func() { v.ref(x) })
		}
		list = append(list, b)
	}
	return list, nil
}

func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

func size(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
