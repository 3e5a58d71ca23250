package core_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

func openCPU(t testing.TB) *core.Device {
	t.Helper()
	d, err := core.Open(core.Options{Backend: core.CPU})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, core.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

var nan = float32(math.NaN())

// poisoned returns n NaNs followed by a guard that must stay unchanged.
func poisoned(n int) (out []float32, intact func() bool) {
	const guard = 16
	all := make([]float32, n+guard)
	for i := range all {
		all[i] = nan
	}
	return all[:n], func() bool {
		for _, v := range all[n:] {
			if v == v {
				return false
			}
		}
		return true
	}
}

// genFrame draws a frame of any small shape, with random pitches, crop and
// options, cut from memory that ends with the plane's last byte.
func genFrame(t *rapid.T) *core.Preprocess {
	size := rapid.IntRange(1, 70)
	p := &core.Preprocess{
		Format: rapid.SampledFrom([]core.Format{core.NV12, core.I420, core.YUYV, core.UYVY, core.RGB24, core.BGR24, core.Gray8}).Draw(t, "format"),
		Width:  size.Draw(t, "width"), Height: size.Draw(t, "height"),
		OutW: size.Draw(t, "outW"), OutH: size.Draw(t, "outH"),
		Fit:    rapid.SampledFrom([]core.Fit{core.Stretch, core.Letterbox}).Draw(t, "fit"),
		Color:  rapid.SampledFrom([]core.Color{core.RGB, core.BGR, core.Gray}).Draw(t, "color"),
		Chroma: rapid.SampledFrom([]core.Chroma{core.ChromaNearest, core.ChromaBilinear}).Draw(t, "chroma"),
		Matrix: rapid.SampledFrom([]core.Matrix{core.BT601Limited, core.BT709Limited, core.BT601Full}).Draw(t, "matrix"),
		Pad:    rapid.Byte().Draw(t, "pad"),
	}
	if rapid.Bool().Draw(t, "normalise") {
		unit := rapid.Float32Range(-2, 2)
		p.Mean = [3]float32{unit.Draw(t, "mean0"), unit.Draw(t, "mean1"), unit.Draw(t, "mean2")}
		scale := rapid.Float32Range(0.05, 3)
		p.Std = [3]float32{scale.Draw(t, "std0"), -scale.Draw(t, "std1"), scale.Draw(t, "std2")}
	}
	if rapid.Bool().Draw(t, "crop") {
		p.Crop.X = rapid.IntRange(0, p.Width-1).Draw(t, "cropX")
		p.Crop.Y = rapid.IntRange(0, p.Height-1).Draw(t, "cropY")
		p.Crop.Width = rapid.IntRange(1, p.Width-p.Crop.X).Draw(t, "cropW")
		p.Crop.Height = rapid.IntRange(1, p.Height-p.Crop.Y).Draw(t, "cropH")
	}
	state := rapid.Uint64().Draw(t, "pixels") | 1
	cw, ch := (p.Width+1)/2, (p.Height+1)/2
	rows := [3][2]int{{p.Width, p.Height}, {2 * cw, ch}}
	switch p.Format {
	case core.NV12:
	case core.I420:
		rows[1], rows[2] = [2]int{cw, ch}, [2]int{cw, ch}
	default:
		rows = [3][2]int{{core.FrameBytes(p.Format, p.Width, 1), p.Height}}
	}
	for i, r := range rows {
		if r[0] == 0 {
			continue
		}
		pitch := r[0]
		if rapid.Bool().Draw(t, "padded") {
			pitch += rapid.IntRange(0, 9).Draw(t, "gap")
			p.Pitch[i] = pitch
		}
		p.Planes[i] = make([]byte, pitch*(r[1]-1)+r[0])
		fillRandom(p.Planes[i], &state)
	}
	return p
}

func fillRandom(b []byte, state *uint64) {
	for i := range b {
		*state = *state*6364136223846793005 + 1442695040888963407
		b[i] = byte(*state >> 56)
	}
}

// A hundredth of one step of an 8-bit colour, a hundred times better than the
// documented tolerance: a wrong tap or weight shows, rounding does not.
const tolerance = 0.01 / 255

func TestPreprocessMatchesTheFloat64Reference(t *testing.T) {
	d := openCPU(t)
	rapid.Check(t, func(t *rapid.T) {
		p := genFrame(t)
		out, intact := poisoned(p.OutLen())
		p.Out = out
		if err := d.Preprocess(context.Background(), *p); err != nil {
			t.Fatal(err)
		}
		if !intact() {
			t.Fatal("wrote past the end of the tensor")
		}
		want := refPreprocess(p)
		std := p.Std
		if std == ([3]float32{}) {
			std = [3]float32{1, 1, 1}
		}
		for i, v := range out {
			ch := i / (p.OutW * p.OutH)
			limit := tolerance/math.Abs(float64(std[ch])) + 1e-6
			if !(math.Abs(float64(v)-want[i]) <= limit) {
				t.Fatalf("channel %d, x %d, y %d: %g, reference %g", ch, i%p.OutW, i/p.OutW%p.OutH, v, want[i])
			}
		}
	})
}

// Neither bytes outside the crop nor those between rows reach the tensor.
func TestPreprocessReadsOnlyTheCrop(t *testing.T) {
	d := openCPU(t)
	rapid.Check(t, func(t *rapid.T) {
		p := genFrame(t)
		first, _ := poisoned(p.OutLen())
		p.Out = first
		if err := d.Preprocess(context.Background(), *p); err != nil {
			t.Fatal(err)
		}
		crop := p.Crop
		if crop == (core.Rect{}) {
			crop = core.Rect{Width: p.Width, Height: p.Height}
		}
		for i, plane := range p.Planes {
			x0, x1, y0, y1, step := crop.X, crop.X+crop.Width, crop.Y, crop.Y+crop.Height, 1
			switch p.Format {
			case core.RGB24, core.BGR24:
				step = 3
			case core.YUYV, core.UYVY:
				x0, x1, step = x0/2, (x1+1)/2, 4
			}
			if i > 0 {
				x0, x1, y0, y1 = x0/2, (x1+1)/2, y0/2, (y1+1)/2
				if p.Format == core.NV12 {
					step = 2
				}
			}
			pitch := p.Pitch[i]
			if pitch == 0 {
				pitch = core.FrameBytes(p.Format, p.Width, 1)
				if p.Format <= core.I420 {
					pitch = p.Width
				}
				if i > 0 {
					pitch = (p.Width + 1) / 2 * step
				}
			}
			for at := range plane {
				x, y := at%pitch, at/pitch
				if x < x0*step || x >= x1*step || y < y0 || y >= y1 {
					plane[at] ^= 0xff
				}
			}
		}
		second, _ := poisoned(p.OutLen())
		p.Out = second
		if err := d.Preprocess(context.Background(), *p); err != nil {
			t.Fatal(err)
		}
		for i := range first {
			if first[i] != second[i] {
				t.Fatalf("value %d depends on bytes outside the crop: %g, then %g", i, first[i], second[i])
			}
		}
	})
}

func TestPreprocessOfAConstantFrame(t *testing.T) {
	d := openCPU(t)
	rapid.Check(t, func(t *rapid.T) {
		p := genFrame(t)
		p.Fit = core.Letterbox
		for i, plane := range p.Planes {
			for at := range plane {
				// Grey: luma 126, no colour; NV12 and I420 alike.
				plane[at] = map[bool]byte{true: 126, false: 128}[i == 0]
				column := at
				if p.Pitch[i] != 0 {
					column %= p.Pitch[i]
				}
				if p.Format == core.YUYV && column%2 == 1 || p.Format == core.UYVY && column%2 == 0 {
					plane[at] = 128
				}
			}
		}
		out, _ := poisoned(p.OutLen())
		p.Out = out
		if err := d.Preprocess(context.Background(), *p); err != nil {
			t.Fatal(err)
		}
		g, err := p.Geometry()
		if err != nil {
			t.Fatal(err)
		}
		n := p.OutW * p.OutH
		for ch := range p.OutLen() / n {
			inside := out[ch*n+g.Inner.Y*p.OutW+g.Inner.X]
			outside := float32(math.NaN())
			for at := range n {
				x, y := at%p.OutW-g.Inner.X, at/p.OutW-g.Inner.Y
				v := out[ch*n+at]
				switch {
				case x >= 0 && y >= 0 && x < g.Inner.Width && y < g.Inner.Height:
					if v != inside {
						t.Fatalf("channel %d: frame is not constant: %g and %g", ch, inside, v)
					}
				case outside != outside:
					outside = v
				case v != outside:
					t.Fatalf("channel %d: border is not constant: %g and %g", ch, outside, v)
				}
			}
		}
	})
}

// A known picture, so that reference and backend cannot be wrong together: the
// eight corners of the colour cube in BT.601 limited range.
func TestKnownColours(t *testing.T) {
	d := openCPU(t)
	for _, tc := range []struct {
		name    string
		y, u, v byte
		rgb     [3]float64
	}{
		{"black", 16, 128, 128, [3]float64{0, 0, 0}},
		{"white", 235, 128, 128, [3]float64{255, 255, 255}},
		{"red", 81, 90, 240, [3]float64{255, 0, 0}},
		{"green", 145, 54, 34, [3]float64{0, 255, 0}},
		{"blue", 41, 240, 110, [3]float64{0, 0, 255}},
		{"yellow", 210, 16, 146, [3]float64{255, 255, 0}},
		{"cyan", 170, 166, 16, [3]float64{0, 255, 255}},
		{"magenta", 106, 202, 222, [3]float64{255, 0, 255}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := core.Preprocess{
				Planes: [3][]byte{{tc.y, tc.y, tc.y, tc.y}, {tc.u, tc.v}},
				Width:  2, Height: 2, OutW: 1, OutH: 1, Out: make([]float32, 3),
			}
			if err := d.Preprocess(context.Background(), p); err != nil {
				t.Fatal(err)
			}
			for ch, v := range p.Out {
				// The 8-bit YUV values are themselves rounded by up to half a step.
				if math.Abs(float64(v)*255-tc.rgb[ch]) > 2 {
					t.Errorf("channel %d is %.2f, want %g", ch, v*255, tc.rgb[ch])
				}
			}
		})
	}
}

func TestPreprocessThroughStagingMemory(t *testing.T) {
	direct := openCPU(t)
	for _, shared := range []bool{true, false} {
		staged := openCPU(t)
		staged.Staged(shared)
		rapid.Check(t, func(t *rapid.T) {
			p := genFrame(t)
			p.Out = make([]float32, p.OutLen())
			if err := direct.Preprocess(context.Background(), *p); err != nil {
				t.Fatal(err)
			}
			q := *p
			q.Out, _ = poisoned(p.OutLen())
			if err := staged.Preprocess(context.Background(), q); err != nil {
				t.Fatal(err)
			}
			for i := range p.Out {
				if p.Out[i] != q.Out[i] {
					t.Fatalf("value %d: %g in place, %g staged", i, p.Out[i], q.Out[i])
				}
			}
		})
	}
}

func frame1080() core.Preprocess {
	const w, h = 1920, 1080
	frame := make([]byte, core.FrameBytes(core.NV12, w, h))
	state := uint64(1)
	fillRandom(frame, &state)
	planes, err := core.SplitPlanes(core.NV12, w, h, frame)
	if err != nil {
		panic(err) // sizes are constants
	}
	return core.Preprocess{
		Planes: planes, Width: w, Height: h, OutW: 640, OutH: 640,
		Fit: core.Letterbox, Pad: 114, Out: make([]float32, 3*640*640),
	}
}

func TestPreprocessRefusesInvalidArguments(t *testing.T) {
	d := openCPU(t)
	for _, tc := range []struct {
		name     string
		change   func(*core.Preprocess)
		wantText string
	}{
		{"no width", func(p *core.Preprocess) { p.Width = 0 }, "frame of 0x1080"},
		{"negative width", func(p *core.Preprocess) { p.Width = -1 }, "-1"},
		{"width that wraps 32 bits", func(p *core.Preprocess) { p.Width = 1<<32 + 64 }, "4294967360"},
		{"frame too large", func(p *core.Preprocess) { p.Height = 16385 }, "1920x16385"},
		{"tensor too large", func(p *core.Preprocess) { p.OutW = 1 << 20 }, "tensor of 1048576x640"},
		{"no tensor", func(p *core.Preprocess) { p.OutH = 0 }, "tensor of 640x0"},
		{"luma too short", func(p *core.Preprocess) { p.Planes[0] = p.Planes[0][1:] }, "plane 0 has 2073599 bytes, needs 2073600"},
		{"no chroma", func(p *core.Preprocess) { p.Planes[1] = nil }, "plane 1 has 0 bytes"},
		{"pitch below width", func(p *core.Preprocess) { p.Pitch[0] = 1919 }, "pitch of 1919"},
		{"pitch beyond the plane", func(p *core.Preprocess) { p.Pitch[1] = 1921 }, "plane 1 has 1036800 bytes, needs 1037339"},
		{"I420 without V", func(p *core.Preprocess) { p.Format = core.I420 }, "plane 2"},
		{"crop without size", func(p *core.Preprocess) { p.Crop.X = 1 }, "crop 0x0 at (1, 0)"},
		{"crop past the right edge", func(p *core.Preprocess) { p.Crop = core.Rect{X: 1900, Width: 21, Height: 1} }, "not inside the 1920x1080 frame"},
		{"crop past the bottom", func(p *core.Preprocess) { p.Crop = core.Rect{Y: 1079, Width: 1, Height: 2} }, "crop 1x2 at (0, 1079) is not inside"},
		{"crop that wraps", func(p *core.Preprocess) { p.Crop = core.Rect{X: 1, Width: math.MaxInt32, Height: 1} }, "not inside"},
		{"output too short", func(p *core.Preprocess) { p.Out = p.Out[1:] }, "tensor has 4915200 bytes, the destination 4915196"},
		{"no output", func(p *core.Preprocess) { p.Out = nil }, "Out is empty"},
		{"unknown format", func(p *core.Preprocess) { p.Format = 9 }, "format 9"},
		{"unknown matrix", func(p *core.Preprocess) { p.Matrix = 7 }, "matrix 7"},
		{"std of one channel is zero", func(p *core.Preprocess) { p.Std = [3]float32{1, 0, 1} }, "channel 1"},
		{"std not a number", func(p *core.Preprocess) { p.Std = [3]float32{1, 1, nan} }, "channel 2"},
		{"std so small that its inverse is infinite", func(p *core.Preprocess) { p.Std = [3]float32{1e-45, 1, 1} }, "channel 0"},
		{"mean infinite", func(p *core.Preprocess) { p.Mean[1] = float32(math.Inf(1)) }, "channel 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := frame1080()
			for i := range p.Out {
				p.Out[i] = nan
			}
			out := p.Out
			tc.change(&p)
			err := d.Preprocess(context.Background(), p)
			if !errors.Is(err, core.ErrInvalid) {
				t.Fatalf("got %v, want %v", err, core.ErrInvalid)
			}
			if !strings.Contains(err.Error(), tc.wantText) {
				t.Errorf("message %q does not contain %q", err, tc.wantText)
			}
			for i, v := range out {
				if v == v {
					t.Fatalf("wrote value %d although it refused", i)
				}
			}
		})
	}
}

func TestPreprocessEndsWithItsContext(t *testing.T) {
	d := openCPU(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Preprocess(ctx, frame1080()); !errors.Is(err, core.ErrCancelled) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), -1)
	defer cancel()
	if err := d.Preprocess(ctx, frame1080()); !errors.Is(err, core.ErrTimeout) {
		t.Errorf("past the deadline: got %v", err)
	}
}

func TestPreprocessFromManyGoroutines(t *testing.T) {
	d := openCPU(t)
	want := frame1080()
	if err := d.Preprocess(context.Background(), want); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			p := frame1080()
			for range 3 {
				if err := d.Preprocess(context.Background(), p); err != nil {
					t.Error(err)
					return
				}
			}
			for i := range p.Out {
				if p.Out[i] != want.Out[i] {
					t.Errorf("value %d differs", i)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFramePathDoesNotAllocate(t *testing.T) {
	d := openCPU(t)
	p := frame1080()
	ctx := context.Background()
	if n := testing.AllocsPerRun(5, func() {
		if err := d.Preprocess(ctx, p); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%g allocations per frame", n)
	}
}

func TestGeometryMapsBoxesToTheFrame(t *testing.T) {
	p := core.Preprocess{Width: 1920, Height: 1080, OutW: 640, OutH: 640, Fit: core.Letterbox}
	g, err := p.Geometry()
	if err != nil {
		t.Fatal(err)
	}
	if want := (core.Rect{Y: 140, Width: 640, Height: 360}); g.Inner != want {
		t.Errorf("frame lands at %+v, want %+v", g.Inner, want)
	}
	for _, tc := range [][4]float64{
		{0, 140, 0, 0}, {640, 500, 1920, 1080}, {320, 320, 960, 540},
		{-5, 0, 0, 0}, {700, 639, 1920, 1080}, // outside: the nearest point of the frame
	} {
		if x, y := g.ToFrame(tc[0], tc[1]); x != tc[2] || y != tc[3] {
			t.Errorf("(%g, %g) goes to (%g, %g), want (%g, %g)", tc[0], tc[1], x, y, tc[2], tc[3])
		}
	}
	if _, err := (&core.Preprocess{Width: 10, Height: 10}).Geometry(); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("without a tensor: %v", err)
	}
}

func TestSplitPlanesRefusesAShortFrame(t *testing.T) {
	if n := core.FrameBytes(core.NV12, 3, 3); n != 9+8 {
		t.Errorf("a 3x3 frame has %d bytes, want 17", n)
	}
	if _, err := core.SplitPlanes(core.NV12, 3, 3, make([]byte, 16)); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("one byte short: %v", err)
	}
	planes, err := core.SplitPlanes(core.I420, 3, 3, make([]byte, 17))
	if err != nil || len(planes[0]) != 9 || len(planes[1]) != 4 || len(planes[2]) != 4 {
		t.Errorf("I420 planes of %d, %d, %d bytes, error %v", len(planes[0]), len(planes[1]), len(planes[2]), err)
	}
}

func BenchmarkPreprocess1080pTo640(b *testing.B) {
	d := openCPU(b)
	for name, chroma := range map[string]core.Chroma{"nearest": core.ChromaNearest, "bilinear": core.ChromaBilinear} {
		b.Run(name, func(b *testing.B) {
			p := frame1080()
			p.Chroma = chroma
			b.SetBytes(int64(len(p.Planes[0]) + len(p.Planes[1]) + 4*len(p.Out)))
			for b.Loop() {
				if err := d.Preprocess(context.Background(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A batch of frames of several sizes and formats in one list gives each tensor the bits
// that the frame alone gives.
func TestBatchOfMixedFramesEqualsSingleFrames(t *testing.T) {
	d := openCPU(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		first := genFrame(t)
		frames := []*core.Preprocess{first}
		for range rapid.IntRange(1, 5).Draw(t, "more") {
			p := genFrame(t)
			p.OutW, p.OutH = first.OutW, first.OutH
			if first.Color == core.Gray || p.Color == core.Gray {
				p.Color = first.Color
			}
			frames = append(frames, p)
		}
		size := 4 * first.OutLen()
		tensor, err := d.Alloc(size*len(frames), core.MemHost)
		if err != nil {
			t.Fatal(err)
		}
		defer tensor.Release()
		l := s.List()
		for i, p := range frames {
			var planes [3]core.Region
			for j, plane := range p.Planes {
				if len(plane) == 0 {
					continue
				}
				b, err := d.Alloc(len(plane), core.MemHost)
				if err != nil {
					t.Fatal(err)
				}
				defer b.Release()
				copy(b.Bytes(), plane)
				planes[j] = b.All()
			}
			l.Preprocess(tensor.At(i*size, size), planes, p)
		}
		if err := errors.Join(l.Submit(), s.Wait(context.Background())); err != nil {
			t.Fatal(err)
		}
		for i, p := range frames {
			out, _ := poisoned(p.OutLen())
			p.Out = out
			if err := d.Preprocess(context.Background(), *p); err != nil {
				t.Fatal(err)
			}
			for k, v := range tensor.Float32s()[i*first.OutLen() : (i+1)*first.OutLen()] {
				if math.Float32bits(v) != math.Float32bits(out[k]) {
					t.Fatalf("frame %d, value %d: %g in the batch, %g alone", i, k, v, out[k])
				}
			}
		}
	})
}
