package core_test

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/schema/fuse"
)

// bench is a stream of a device. Its buffers have no padding after the last byte.
type bench struct {
	t *testing.T
	d *core.Device
	s *core.Stream
}

func newBench(t *testing.T) *bench {
	d := openCPU(t)
	return &bench{t, d, stream(t, d)}
}

func upload[T any](b *bench, v []T) core.Region {
	raw, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		b.t.Fatal(err)
	}
	r := b.allocRegion(len(raw))
	copy(r.Buf.Bytes(), raw)
	return r
}

// allocRegion allocates memory that reads as NaN in any float type.
func (b *bench) allocRegion(n int) core.Region {
	buf := alloc(b.t, b.d, max(n, 1), core.MemHost)
	for i := range buf.Bytes() {
		buf.Bytes()[i] = 0xff
	}
	return buf.At(0, n)
}

func (b *bench) run(t rapid.TB, l *core.List) {
	t.Helper()
	err := l.Submit()
	if err == nil {
		err = b.s.Wait(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](t rapid.TB, r core.Region, n int) []T {
	t.Helper()
	out := make([]T, n)
	if _, err := binary.Decode(r.Buf.Bytes()[r.Off:], binary.NativeEndian, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// fromHalf and fromBF16 read 16-bit floats by their definitions.
func fromHalf(h uint16) float64 {
	sign, e, m := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
	switch e {
	case 0:
		return sign * math.Ldexp(m, -24)
	case 31:
		if m != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+m, e-25)
}

func fromBF16(h uint16) float64 { return float64(math.Float32frombits(uint32(h) << 16)) }

// drawFloats returns n random floats between -8 and 8.
func drawFloats(t *rapid.T, label string, n int) []float32 {
	state := rapid.Uint64().Draw(t, label) | 1
	out := make([]float32, n)
	for i := range out {
		state = state*6364136223846793005 + 1442695040888963407
		out[i] = float32(int32(state>>32)) / (1 << 28)
	}
	return out
}

// narrow stores values in a type and returns the stored values.
func narrow(b *bench, t rapid.TB, v []float32, typ core.Type) (core.Region, []float64) {
	t.Helper()
	exact := make([]float64, len(v))
	if typ == core.F32 {
		for i, x := range v {
			exact[i] = float64(x)
		}
		return upload(b, v), exact
	}
	to := b.allocRegion(typ.Bytes() * len(v))
	b.run(t, b.s.List().Convert(to, upload(b, v), core.Region{}, core.ConvertArgs{Out: uint8(typ), N: 1, C: 1, H: 1, W: uint32(len(v)), Scale: 1}))
	return to, widen(t, to, typ, len(v))
}

func widen(t rapid.TB, r core.Region, typ core.Type, n int) []float64 {
	t.Helper()
	out := make([]float64, n)
	switch typ {
	case core.F32:
		for i, v := range get[float32](t, r, n) {
			out[i] = float64(v)
		}
	case core.I8:
		for i, v := range get[int8](t, r, n) {
			out[i] = float64(v)
		}
	case core.U8:
		for i, v := range get[uint8](t, r, n) {
			out[i] = float64(v)
		}
	case core.I32:
		for i, v := range get[int32](t, r, n) {
			out[i] = float64(v)
		}
	default:
		for i, v := range get[uint16](t, r, n) {
			if typ == core.F16 {
				out[i] = fromHalf(v)
			} else {
				out[i] = fromBF16(v)
			}
		}
	}
	return out
}

// unit is the largest relative rounding error of a type.
func unit(typ core.Type) float64 {
	return map[core.Type]float64{core.F32: 0x1p-24, core.F16: 0x1p-11, core.BF16: 0x1p-8}[typ]
}

var floatTypes = []core.Type{core.F32, core.F16, core.BF16}

func TestHalvesRoundToNearestEven(t *testing.T) {
	b := newBench(t)
	var halves []uint16
	for h := range 1 << 16 {
		halves = append(halves, uint16(h))
	}
	for _, typ := range []core.Type{core.F16, core.BF16} {
		wide, back := b.allocRegion(4<<16), b.allocRegion(2<<16)
		args := core.ConvertArgs{In: uint8(typ), Out: uint8(core.F32), N: 1, C: 1, H: 1, W: 1 << 16, Scale: 1}
		reverse := args
		reverse.In, reverse.Out = args.Out, args.In
		b.run(t, b.s.List().Convert(wide, upload(b, halves), core.Region{}, args).Convert(back, wide, core.Region{}, reverse))
		wides := get[float32](t, wide, 1<<16)
		for i, v := range wides {
			want := fromBF16(uint16(i))
			if typ == core.F16 {
				want = fromHalf(uint16(i))
			}
			if !(float64(v) == want || v != v && want != want) {
				t.Fatalf("type %d: %#04x is %g, want %g", typ, i, v, want)
			}
		}
		for i, h := range get[uint16](t, back, 1<<16) {
			if h != uint16(i) && wides[i] == wides[i] {
				t.Fatalf("type %d: %#04x came back as %#04x", typ, i, h)
			}
		}
		// Half way between two neighbours the even one wins; a hair off decides.
		var between []float32
		for i := 0; i < 0x7b00; i += 7 {
			lo, hi := fromHalf(uint16(i)), fromHalf(uint16(i+1))
			if typ == core.BF16 {
				lo, hi = fromBF16(uint16(i)), fromBF16(uint16(i+1))
			}
			mid := float32((lo + hi) / 2)
			between = append(between, math.Nextafter32(mid, 0), mid, math.Nextafter32(mid, math.MaxFloat32))
		}
		to := b.allocRegion(2 * len(between))
		reverse.W = uint32(len(between))
		b.run(t, b.s.List().Convert(to, upload(b, between), core.Region{}, reverse))
		for i, h := range get[uint16](t, to, len(between)) {
			base := uint16(i / 3 * 7)
			want := [3]uint16{base, base + base&1, base + 1}[i%3]
			if h != want {
				t.Fatalf("type %d: %g became %#04x, want %#04x", typ, between[i], h, want)
			}
		}
	}
}

func TestTensorsOfEveryTypeAndLayout(t *testing.T) {
	d := openCPU(t)
	rapid.Check(t, func(t *rapid.T) {
		p := genFrame(t)
		p.Std = [3]float32{1.5 / 255, -2.0 / 255, 0.75 / 255} // spans integers, and beyond
		p.Mean = [3]float32{0.5, 0.25, 0.75}
		p.Type = rapid.SampledFrom([]core.Type{core.F32, core.F16, core.BF16, core.I8, core.U8}).Draw(t, "type")
		p.Layout = rapid.SampledFrom([]core.Layout{core.NCHW, core.NHWC}).Draw(t, "layout")
		n := p.OutLen()
		p.OutBytes = make([]byte, n*p.Type.Bytes())
		p.Out, _ = poisoned(n)
		if err := d.Preprocess(context.Background(), *p); err != nil {
			t.Fatal(err)
		}
		want, area := refPreprocess(p), p.OutW*p.OutH
		for i := range n {
			at, low, high := i, math.Inf(-1), math.Inf(1)
			if p.Layout == core.NHWC {
				at = i%area*(n/area) + i/area
			}
			var got float64
			limit := 0.01
			switch p.Type {
			case core.F32:
				got = float64(p.Out[at])
			case core.F16:
				got, limit = fromHalf(binary.NativeEndian.Uint16(p.OutBytes[2*at:])), limit+math.Abs(want[i])*unit(core.F16)
			case core.BF16:
				got, limit = fromBF16(binary.NativeEndian.Uint16(p.OutBytes[2*at:])), limit+math.Abs(want[i])*unit(core.BF16)
			case core.I8:
				got, low, high, limit = float64(int8(p.OutBytes[at])), -128, 127, 0.51
			case core.U8:
				got, low, high, limit = float64(p.OutBytes[at]), 0, 255, 0.51
			}
			if w := min(max(want[i], low), high); !(math.Abs(got-w) <= limit) {
				t.Fatalf("value %d: %g, reference %g", i, got, w)
			}
		}
	})
}

type refBox struct {
	core.Box
	score float64
}

func TestGatherReadsTheValuesOfBoxes(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		a := core.GatherArgs{
			Head:    rapid.SampledFrom([]uint32{core.HeadPlanes, core.HeadRows, core.HeadObjectness}).Draw(t, "head"),
			Type:    uint32(rapid.SampledFrom([]core.Type{core.F32, core.F16}).Draw(t, "type")),
			Anchors: uint32(rapid.IntRange(1, 200).Draw(t, "anchors")), Values: uint32(rapid.IntRange(1, 60).Draw(t, "values")),
			Max: uint32(rapid.IntRange(1, 20).Draw(t, "max")),
		}
		a.First = uint32(rapid.IntRange(0, int(a.Values)-1).Draw(t, "first"))
		a.Count = uint32(rapid.IntRange(1, int(a.Values-a.First)).Draw(t, "count"))
		src, x := narrow(b, t, drawFloats(t, "output", int(a.Anchors*a.Values)), core.Type(a.Type))
		var list []core.Box
		for range rapid.IntRange(0, int(a.Max)).Draw(t, "boxes") {
			list = append(list, core.Box{Anchor: int32(rapid.IntRange(-2, int(a.Anchors)+1).Draw(t, "anchor"))})
		}
		boxes := b.allocRegion(core.BoxesBytes(int(a.Max)))
		if err := core.PutBoxes(boxes.Buf.Bytes(), list); err != nil {
			t.Fatal(err)
		}
		dst := b.allocRegion(int(4 * a.Max * a.Count))
		b.run(t, b.s.List().Gather(dst, src, boxes, a))
		got := dst.Buf.Float32s()
		for i := range int(a.Max) {
			for k := range int(a.Count) {
				want := 0.0
				if i < len(list) && list[i].Anchor >= 0 && list[i].Anchor < int32(a.Anchors) {
					at := int(list[i].Anchor)*int(a.Values) + int(a.First) + k
					if a.Head == core.HeadPlanes {
						at = (int(a.First)+k)*int(a.Anchors) + int(list[i].Anchor)
					}
					want = x[at]
				}
				if g := float64(got[i*int(a.Count)+k]); g != want && g == g {
					t.Fatalf("value %d of box %d is %g, reference %g", k, i, g, want)
				}
			}
		}
	})
}

func TestDecodeMatchesTheReference(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		a := core.DecodeArgs{
			Head:    rapid.SampledFrom([]uint32{core.HeadPlanes, core.HeadRows, core.HeadObjectness}).Draw(t, "head"),
			Type:    uint32(rapid.SampledFrom([]core.Type{core.F32, core.F16}).Draw(t, "type")),
			Anchors: uint32(rapid.IntRange(1, 1200).Draw(t, "anchors")), Classes: uint32(rapid.IntRange(1, 9).Draw(t, "classes")),
			Max: uint32(rapid.IntRange(1, 80).Draw(t, "max")), Batch: uint32(rapid.IntRange(1, 2).Draw(t, "batch")),
			Threshold: rapid.Float32Range(-1, 7).Draw(t, "threshold"),
			ScaleX:    1.5, ScaleY: 2, ShiftX: -3, ShiftY: 1,
			After: uint32(rapid.IntRange(0, 5).Draw(t, "after")),
		}
		if rapid.Bool().Draw(t, "clamped") {
			a.LimitX, a.LimitY = 9, 11
		}
		first := 4
		if a.Head == core.HeadObjectness {
			first = 5
		}
		vals, n := first+int(a.Classes)+int(a.After), int(a.Anchors)
		v := drawFloats(t, "output", int(a.Batch)*vals*n)
		if rapid.Bool().Draw(t, "coarse") { // many equal scores
			for i := range v {
				v[i] = float32(math.Round(float64(v[i])))
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "NaNs") {
			v[rapid.IntRange(0, len(v)-1).Draw(t, "at")] = nan
		}
		src, x := narrow(b, t, v, core.Type(a.Type))
		dst := b.allocRegion(int(a.Batch) * core.BoxesBytes(int(a.Max)))
		b.run(t, b.s.List().Decode(dst, src, a))
		for image := range int(a.Batch) {
			at := func(anchor, value int) float64 {
				i := anchor*vals + value
				if a.Head == core.HeadPlanes {
					i = value*n + anchor
				}
				return x[image*vals*n+i]
			}
			var want []refBox
			for i := range n {
				best, cls := math.Inf(-1), 0
				for c := range int(a.Classes) {
					s := at(i, first+c)
					if first == 5 {
						s = float64(float32(s) * float32(at(i, 4)))
					}
					if s > best {
						best, cls = s, c
					}
				}
				if best >= float64(a.Threshold) {
					want = append(want, refBox{core.Box{Class: int32(cls), Anchor: int32(i)}, best})
				}
			}
			slices.SortStableFunc(want, func(p, q refBox) int {
				if p.score != q.score {
					return map[bool]int{true: -1, false: 1}[p.score > q.score]
				}
				return int(p.Anchor - q.Anchor)
			})
			got, found, err := readBoxes(dst.Buf.Bytes()[image*core.BoxesBytes(int(a.Max)):])
			if err != nil || found != len(want) || len(got) != min(len(want), int(a.Max)) {
				t.Fatalf("%d boxes of %d (%v), reference %d", len(got), found, err, len(want))
			}
			for i, g := range got {
				w, an := want[i], int(want[i].Anchor)
				if g.Anchor != w.Anchor || g.Class != w.Class || float64(g.Score) != w.score {
					t.Fatalf("box %d is %+v, reference %+v", i, g, w)
				}
				to := func(centre, size, sign, scale, shift, limit float64) float64 {
					v := (centre+sign*size/2)*scale + shift
					if v != v {
						return 0
					}
					if a.LimitX == 0 {
						return min(max(v, -1<<24), 1<<24)
					}
					return min(max(v, 0), limit)
				}
				for k, c := range [4][2]float64{
					{float64(g.X0), to(at(an, 0), at(an, 2), -1, 1.5, -3, 9)}, {float64(g.X1), to(at(an, 0), at(an, 2), 1, 1.5, -3, 9)},
					{float64(g.Y0), to(at(an, 1), at(an, 3), -1, 2, 1, 11)}, {float64(g.Y1), to(at(an, 1), at(an, 3), 1, 2, 1, 11)},
				} {
					if math.Abs(c[0]-c[1]) > 1e-4*max(1, math.Abs(c[1])) {
						t.Fatalf("box %d: edge %d is %g, reference %g", i, k, c[0], c[1])
					}
				}
			}
		}
	})
}

func genBoxes(t *rapid.T) []core.Box {
	n := rapid.IntRange(0, 120).Draw(t, "boxes")
	v := drawFloats(t, "edges", 5*n)
	out := make([]core.Box, n)
	for i := range out {
		x, y := v[5*i]*2, v[5*i+1]*2
		out[i] = core.Box{
			X0: x, Y0: y, X1: x + v[5*i+2], Y1: y + v[5*i+3], // some without area
			Score: float32(math.Round(float64(v[5*i+4]))), Class: int32(i % 3), Anchor: int32(i),
		}
	}
	return out
}

func (b *bench) nms(t rapid.TB, in []core.Box, a core.NMSArgs) ([]core.Box, int) {
	t.Helper()
	a.InMax, a.Batch = uint32(max(len(in), 1)), 1
	src, dst := b.allocRegion(core.BoxesBytes(int(a.InMax))), b.allocRegion(core.BoxesBytes(int(a.Max)))
	if err := core.PutBoxes(src.Buf.Bytes(), in); err != nil {
		t.Fatal(err)
	}
	b.run(t, b.s.List().NMS(dst, src, a))
	out, found, err := readBoxes(dst.Buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return out, found
}

func overlap(a, b core.Box) float64 {
	side := func(p, q float32) float64 { return max(float64(q)-float64(p), 0) }
	inter := side(max(a.X0, b.X0), min(a.X1, b.X1)) * side(max(a.Y0, b.Y0), min(a.Y1, b.Y1))
	union := side(a.X0, a.X1)*side(a.Y0, a.Y1) + side(b.X0, b.X1)*side(b.Y0, b.Y1) - inter
	if union <= 0 {
		return 0
	}
	return inter / union
}

func TestNMSMatchesTheReference(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		in := genBoxes(t)
		a := core.NMSArgs{Max: uint32(rapid.IntRange(1, 130).Draw(t, "max")), IoU: rapid.Float32Range(0, 1).Draw(t, "iou"), Flags: uint32(rapid.IntRange(0, 1).Draw(t, "agnostic"))}
		order := slices.Clone(in)
		slices.SortStableFunc(order, func(p, q core.Box) int {
			if p.Score != q.Score {
				return map[bool]int{true: -1, false: 1}[p.Score > q.Score]
			}
			return int(p.Anchor - q.Anchor)
		})
		var want []core.Box
		for _, c := range order {
			if !slices.ContainsFunc(want, func(k core.Box) bool {
				return (k.Class == c.Class || a.Flags&core.NMSAgnostic != 0) && overlap(k, c) > float64(a.IoU)
			}) {
				want = append(want, c)
			}
		}
		got, found := b.nms(t, in, a)
		if found != len(want) || !slices.Equal(got, want[:min(len(want), int(a.Max))]) {
			t.Fatalf("kept %d of %v, reference %d: %v", found, got, len(want), want)
		}
		// The order of the input does not matter, and what was kept stays.
		shuffled := slices.Clone(in)
		state := rapid.Uint64().Draw(t, "order")
		for i := len(shuffled) - 1; i > 0; i-- {
			state = state*6364136223846793005 + 1442695040888963407
			j := int(state>>33) % (i + 1)
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		}
		if again, _ := b.nms(t, shuffled, a); !slices.Equal(again, got) {
			t.Fatalf("in another order: %v, before %v", again, got)
		}
		if again, _ := b.nms(t, got, a); !slices.Equal(again, got) {
			t.Fatalf("applied to its own result: %v, before %v", again, got)
		}
	})
}

// A box that is not a place in a picture has no results, so it must not take those of others either.
func TestAnInfiniteBoxSuppressesNone(t *testing.T) {
	b := newBench(t)
	inf := float32(math.Inf(1))
	good := core.Box{X0: 1, Y0: 1, X1: 5, Y1: 5, Score: 0.5, Anchor: 9}
	for n, far := range []core.Box{
		{X0: -inf, Y0: 0, X1: inf, Y1: 9, Score: 0.9}, {X0: 0, Y0: 0, X1: 1 << 24, Y1: 9, Score: 0.9},
		{X0: 0, Y0: -(1 << 24), X1: 9, Y1: 9, Score: 0.9}, {X1: 9, Y1: 9, Score: inf},
	} {
		for _, flags := range []uint32{0, core.NMSAgnostic} {
			got, _ := b.nms(t, []core.Box{far, good, good}, core.NMSArgs{Max: 3, IoU: 0, Flags: flags})
			if !slices.Equal(got, []core.Box{far, good}) {
				t.Errorf("box %d: kept %+v", n, got)
			}
		}
	}
	near := core.Box{X1: 1<<24 - 1, Y1: 9, Score: 0.9}
	if got, _ := b.nms(t, []core.Box{near, good}, core.NMSArgs{Max: 3, IoU: 0}); !slices.Equal(got, []core.Box{near}) {
		t.Errorf("a large box suppresses: kept %+v", got)
	}
}

func TestSoftmaxMatchesTheFloat64Reference(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		in, out := rapid.SampledFrom(floatTypes).Draw(t, "in"), rapid.SampledFrom(floatTypes).Draw(t, "out")
		rows, cols := rapid.IntRange(1, 4).Draw(t, "rows"), rapid.IntRange(1, 900).Draw(t, "cols")
		stride := cols + rapid.IntRange(0, 3).Draw(t, "gap")
		n := (rows-1)*stride + cols
		src, x := narrow(b, t, drawFloats(t, "values", n), in)
		dst := b.allocRegion(n * out.Bytes())
		b.run(t, b.s.List().Softmax(dst, src, core.RowsArgs{In: uint32(in), Out: uint32(out), Rows: uint32(rows), Cols: uint32(cols), Stride: uint32(stride)}))
		got := widen(t, dst, out, n)
		for r := range rows {
			row, sum := x[r*stride:r*stride+cols], 0.0
			top := slices.Max(row)
			for _, v := range row {
				sum += math.Exp(v - top)
			}
			for c, v := range row {
				want := math.Exp(v-top) / sum
				if g := got[r*stride+c]; !(math.Abs(g-want) <= want*(4e-6+unit(out))+1e-7*map[bool]float64{true: 1}[out == core.F16]) {
					t.Fatalf("row %d, %d of %d: %g, reference %g", r, c, cols, g, want)
				}
			}
			if r > 0 { // what lies between rows is not touched
				for g := (r-1)*stride + cols; g < r*stride; g++ {
					if got[g] == got[g] {
						t.Fatalf("wrote between rows: %g", got[g])
					}
				}
			}
		}
	})
}

func TestTopK(t *testing.T) {
	b := newBench(t)
	type ranked struct {
		Value float32
		Index int32
	}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SampledFrom(floatTypes).Draw(t, "in")
		rows, cols := rapid.IntRange(1, 3).Draw(t, "rows"), rapid.IntRange(1, 400).Draw(t, "cols")
		k := rapid.IntRange(1, min(cols, 32)).Draw(t, "k")
		v := drawFloats(t, "values", rows*cols)
		for i := range v {
			if v[i] = float32(math.Round(float64(v[i]))); v[i] == 0 && i%2 == 0 {
				v[i] = float32(math.Copysign(0, -1)) // equal to +0
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "NaNs") {
			v[rapid.IntRange(0, len(v)-1).Draw(t, "at")] = nan
		}
		src, x := narrow(b, t, v, in)
		dst := b.allocRegion(8 * k * rows)
		a := core.RowsArgs{In: uint32(in), Rows: uint32(rows), Cols: uint32(cols), K: uint32(k)}
		b.run(t, b.s.List().TopK(dst, src, a))
		got := get[ranked](t, dst, k*rows)
		for r := range rows {
			index := make([]int, cols)
			for i := range index {
				index[i] = i
			}
			row := x[r*cols:]
			slices.SortStableFunc(index, func(i, j int) int {
				p, q := row[i], row[j]
				switch {
				case p != p && q != q || p == q:
					return 0
				case p != p || p > q:
					return -1
				}
				return 1
			})
			for i, g := range got[r*k : (r+1)*k] {
				if w := row[index[i]]; int(g.Index) != index[i] || !(float64(g.Value) == w || w != w && g.Value != g.Value) {
					t.Fatalf("row %d: place %d is %+v, reference %g at %d", r, i, g, w, index[i])
				}
			}
		}
	})
}

func TestFunctionsAtTheirEdges(t *testing.T) {
	d := openCPU(t)
	inf := float32(math.Inf(1))
	for _, tc := range []struct {
		expression string
		x, want    float32
	}{
		{"exp(x)", inf, inf}, {"exp(x)", -inf, 0}, {"exp(x)", 89, inf}, {"exp(x)", -110, 0}, {"exp(x)", 0, 1}, {"exp(x)", nan, nan},
		{"log(x)", 0, -inf}, {"log(x)", -1, nan}, {"log(x)", inf, inf}, {"log(x)", 1, 0}, {"log(x)", nan, nan},
		{"sigmoid(x)", inf, 1}, {"sigmoid(x)", -inf, 0}, {"tanh(x)", inf, 1}, {"tanh(x)", -inf, -1}, {"tanh(x)", nan, nan},
		{"gelu(x)", inf, inf}, {"gelu(x)", -inf, 0}, {"gelu(x)", nan, nan}, {"silu(x)", inf, inf}, {"silu(x)", -inf, 0},
		{"sqrt(x)", -1, nan}, {"sqrt(x)", inf, inf}, {"relu(x)", nan, nan}, {"clamp(x, -1, 1)", nan, nan},
	} {
		chain, err := fuse.Parse(fuse.F32, fuse.F32, tc.expression)
		if err != nil {
			t.Fatal(err)
		}
		f, err := d.Fuse(chain, nil)
		if err != nil {
			t.Fatal(err)
		}
		src, dst := binary.NativeEndian.AppendUint32(nil, math.Float32bits(tc.x)), make([]byte, 4)
		if err := d.Map(context.Background(), f, dst, src, core.Channels{}); err != nil {
			t.Fatal(err)
		}
		if got := math.Float32frombits(binary.NativeEndian.Uint32(dst)); got != tc.want && !(got != got && tc.want != tc.want) {
			t.Errorf("%s of %g is %g, want %g", tc.expression, tc.x, got, tc.want)
		}
	}
}

func TestConvertMatchesTheFloat64Reference(t *testing.T) {
	b := newBench(t)
	limits := map[core.Type][2]float64{core.I8: {-128, 127}, core.U8: {0, 255}, core.I32: {math.MinInt32, math.MaxInt32}}
	rapid.Check(t, func(t *rapid.T) {
		in, out := rapid.SampledFrom(floatTypes).Draw(t, "in"), rapid.SampledFrom([]core.Type{core.F32, core.F16, core.BF16, core.I8, core.U8, core.I32}).Draw(t, "out")
		side := rapid.IntRange(1, 9)
		a := core.ConvertArgs{
			In: uint8(in), Out: uint8(out), N: uint32(side.Draw(t, "n")), C: uint32(rapid.IntRange(1, 40).Draw(t, "c")), H: uint32(side.Draw(t, "h")), W: uint32(side.Draw(t, "w")),
			InLayout: uint8(rapid.IntRange(0, 1).Draw(t, "from")), OutLayout: uint8(rapid.IntRange(0, 1).Draw(t, "to")),
			Scale: rapid.SampledFrom([]float32{0.03125, 1, -0.5, 1e-12}).Draw(t, "scale"), Zero: int32(rapid.IntRange(-200, 200).Draw(t, "zero")),
			Flags: uint32(rapid.IntRange(0, 1).Draw(t, "flags")),
		}
		n, hw := int(a.N*a.C*a.H*a.W), int(a.H*a.W)
		v := drawFloats(t, "values", n)
		v[rapid.IntRange(0, n-1).Draw(t, "at")] = nan
		src, x := narrow(b, t, v, in)
		scales := drawFloats(t, "scales", int(a.C))
		dst := b.allocRegion(n * out.Bytes())
		b.run(t, b.s.List().Convert(dst, src, upload(b, scales), a))
		got := widen(t, dst, out, n)
		for i := range n { // i counts in NCHW
			image, c, at := i/(int(a.C)*hw), i/hw%int(a.C), i%hw
			place := func(layout uint8) int {
				if core.Layout(layout) == core.NHWC {
					return (image*hw+at)*int(a.C) + c
				}
				return i
			}
			v, g, s := x[place(a.InLayout)], got[place(a.OutLayout)], float64(a.Scale)
			if a.Flags != 0 {
				s = float64(scales[c])
			}
			if l, ok := limits[out]; ok {
				want := 0.0
				if v == v {
					want = min(max(math.RoundToEven(float64(float32(v)/float32(s)))+float64(a.Zero), l[0]), l[1])
				}
				if g != want {
					t.Fatalf("%g by %g + %d is %g, reference %g", v, s, a.Zero, g, want)
				}
				continue
			}
			if v != v && g != g {
				continue
			}
			limit := math.Abs(v) * unit(out)
			if out == core.F16 {
				limit += 0x1p-25
			}
			if in == out {
				limit = 0
			}
			if !(math.Abs(g-v) <= limit) {
				t.Fatalf("%g became %g", v, g)
			}
		}
		// Back: dequantise.
		if _, ok := limits[out]; ok && out != core.I32 {
			back := b.allocRegion(4 * n)
			r := a
			r.In, r.Out, r.InLayout = a.Out, uint8(core.F32), a.OutLayout
			b.run(t, b.s.List().Convert(back, dst, upload(b, scales), r))
			for i, v := range get[float32](t, back, n) {
				s := a.Scale
				if a.Flags != 0 {
					c := i / hw % int(a.C)
					if core.Layout(r.OutLayout) == core.NHWC {
						c = i % int(a.C)
					}
					s = scales[c]
				}
				if want := float32(got[i]-float64(a.Zero)) * s; v != want {
					t.Fatalf("%g dequantises to %g, reference %g", got[i], v, want)
				}
			}
		}
	})
}

func TestGemmMatchesTheFloat64Reference(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]core.Type{core.F32, core.F16, core.BF16, core.I8}).Draw(t, "type")
		size := rapid.OneOf(rapid.IntRange(1, 40), rapid.SampledFrom([]int{64, 65, 127, 129, 257}))
		m, n, k := size.Draw(t, "m"), size.Draw(t, "n"), size.Draw(t, "k")
		a := core.GemmArgs{
			M: uint32(m), N: uint32(n), K: uint32(k), Type: uint8(typ), Alpha: 1, Act: uint8(rapid.IntRange(0, core.ActSilu).Draw(t, "act")),
			Flags: uint32(rapid.SampledFrom([]int{0, core.GemmTransA, core.GemmTransB, core.GemmTransA | core.GemmTransB, core.GemmOwn}).Draw(t, "flags")),
			Batch: uint32(rapid.IntRange(1, 2).Draw(t, "batch")),
		}
		out := rapid.SampledFrom(floatTypes).Draw(t, "out")
		if typ == core.I8 {
			out = rapid.SampledFrom([]core.Type{core.F32, core.I32}).Draw(t, "int out")
		} else {
			a.Alpha, a.Beta = rapid.SampledFrom([]float32{1, -0.5}).Draw(t, "alpha"), rapid.SampledFrom([]float32{0, 0.5}).Draw(t, "beta")
		}
		a.Out = uint8(out)
		ta, tb := a.Flags&core.GemmTransA != 0, a.Flags&core.GemmTransB != 0
		rows := func(r, c int, t bool) (int, int) {
			if t {
				return c, r
			}
			return r, c
		}
		ar, ac := rows(m, k, ta)
		br, bc := rows(k, n, tb)
		gap := rapid.IntRange(0, 3).Draw(t, "gap")
		lda, ldb, ldc := ac+gap, bc+gap, n+gap
		a.LDA, a.LDB, a.LDC = uint32(lda), uint32(ldb), uint32(ldc)
		a.StrideA, a.StrideB, a.StrideC = uint64(ar*lda), uint64(br*ldb), uint64(m*ldc)
		batch := int(a.Batch)
		load := func(label string, n int) (core.Region, []float64) {
			v := drawFloats(t, label, n)
			if typ != core.I8 {
				return narrow(b, t, v, typ)
			}
			q, e := make([]int8, n), make([]float64, n)
			for i := range v {
				q[i] = int8(v[i] * 16)
				e[i] = float64(q[i])
			}
			return upload(b, q), e
		}
		x, ex := load("x", batch*ar*lda)
		y, ey := load("y", batch*br*ldb)
		bias, ebias := core.Region{}, make([]float64, n)
		if rapid.Bool().Draw(t, "bias") {
			bias, ebias = narrow(b, t, drawFloats(t, "bias values", n), core.F32)
		}
		total := batch * m * ldc
		dst, before := b.allocRegion(total*out.Bytes()), make([]float64, total)
		if a.Beta != 0 { // else what was there is NaN and must not matter
			dst, before = narrow(b, t, drawFloats(t, "c", total), out)
		}
		b.run(t, b.s.List().Gemm(dst, x, y, bias, a))
		got := widen(t, dst, out, total)
		act := func(x float64) float64 {
			switch a.Act {
			case core.ActRelu:
				return max(x, 0)
			case core.ActGelu:
				return x * math.Erfc(-x/math.Sqrt2) / 2
			case core.ActSilu:
				return x / (1 + math.Exp(-x))
			}
			return x
		}
		for p := range batch {
			for i := range m {
				for j := range n {
					sum, size := 0.0, 0.0
					for q := range k {
						xi, yi := i*lda+q, q*ldb+j
						if ta {
							xi = q*lda + i
						}
						if tb {
							yi = j*ldb + q
						}
						u, v := ex[p*ar*lda+xi], ey[p*br*ldb+yi]
						sum += u * v
						size += math.Abs(u * v)
					}
					at := p*m*ldc + i*ldc + j
					want := act(float64(a.Alpha)*sum + float64(a.Beta)*before[at] + ebias[j])
					limit := size*2e-6 + math.Abs(want)*2*unit(out) + 1e-5
					if out == core.I32 {
						want, limit = math.RoundToEven(want), limit+1
						if bias == (core.Region{}) && a.Act == core.ActNone {
							limit = 0
						}
					}
					if out == core.F16 && math.Abs(want) >= 65504 {
						continue
					}
					if !(math.Abs(got[at]-want) <= limit) {
						t.Fatalf("product %d, row %d, column %d: %g, reference %g ± %g", p, i, j, got[at], want, limit)
					}
				}
			}
		}
	})
}

// (A + A')·B = A·B + A'·B, exactly, with small whole numbers.
func TestGemmIsLinear(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		m, n, k := rapid.IntRange(1, 40).Draw(t, "m"), rapid.IntRange(1, 300).Draw(t, "n"), rapid.IntRange(1, 200).Draw(t, "k")
		whole := func(label string, n int) []float32 {
			v := drawFloats(t, label, n)
			for i := range v {
				v[i] = float32(math.Round(float64(v[i])))
			}
			return v
		}
		x, z, y := whole("x", m*k), whole("z", m*k), whole("y", k*n)
		sum := make([]float32, m*k)
		for i := range sum {
			sum[i] = x[i] + z[i]
		}
		mul := func(x []float32) []float32 {
			dst := b.allocRegion(4 * m * n)
			b.run(t, b.s.List().Gemm(dst, upload(b, x), upload(b, y), core.Region{}, core.GemmArgs{M: uint32(m), N: uint32(n), K: uint32(k), Alpha: 1}))
			return get[float32](t, dst, m*n)
		}
		p, q, both := mul(x), mul(z), mul(sum)
		for i := range both {
			if both[i] != p[i]+q[i] {
				t.Fatalf("value %d: %g, and %g + %g", i, both[i], p[i], q[i])
			}
		}
	})
}

func TestROIsEqualCropsOfTheFrame(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		p := genFrame(t)
		p.Type = rapid.SampledFrom([]core.Type{core.F32, core.U8}).Draw(t, "type")
		p.Layout = rapid.SampledFrom([]core.Layout{core.NCHW, core.NHWC}).Draw(t, "layout")
		p.OutW, p.OutH = rapid.IntRange(1, 20).Draw(t, "w"), rapid.IntRange(1, 20).Draw(t, "h")
		v := drawFloats(t, "edges", 4*5)
		var boxes []core.Box
		for i := range rapid.IntRange(0, 5).Draw(t, "boxes") {
			e := v[4*i:]
			boxes = append(boxes, core.Box{X0: e[0] * 10, Y0: e[1] * 10, X1: e[0]*10 + e[2]*9, Y1: e[1]*10 + e[3]*9})
		}
		const limit = 6
		list := b.allocRegion(core.BoxesBytes(limit))
		if err := core.PutBoxes(list.Buf.Bytes(), boxes); err != nil {
			t.Fatal(err)
		}
		var planes [3]core.Region
		for i, plane := range p.Planes {
			if len(plane) > 0 {
				planes[i] = upload(b, plane)
			}
		}
		one := p.OutLen() * p.Type.Bytes()
		dst := b.allocRegion(limit * one)
		b.run(t, b.s.List().ROI(dst, planes, list, limit, p))
		for i := range limit {
			got, want := dst.Buf.Bytes()[i*one:][:one], make([]byte, one)
			if i < len(boxes) {
				q := *p
				e := boxes[i]
				clip := func(v float32, limit int) float64 { return min(max(float64(v), 0), float64(limit)) }
				x0, x1 := int(math.Floor(clip(e.X0, p.Width))), int(math.Ceil(clip(e.X1, p.Width)))
				y0, y1 := int(math.Floor(clip(e.Y0, p.Height))), int(math.Ceil(clip(e.Y1, p.Height)))
				empty := !(clip(e.X1, p.Width) > clip(e.X0, p.Width) && clip(e.Y1, p.Height) > clip(e.Y0, p.Height))
				q.Crop = core.Rect{X: x0, Y: y0, Width: x1 - x0, Height: y1 - y0}
				if empty { // a black frame, so that only the border is visible
					q.Crop = core.Rect{}
					q.Format, q.Width, q.Height, q.Pitch, q.Color = core.Gray8, 1, 1, [3]int{}, p.Color
					q.Planes = [3][]byte{{p.Pad}}
				}
				q.Out, q.OutBytes = make([]float32, p.OutLen()), make([]byte, one)
				if err := b.d.Preprocess(context.Background(), q); err != nil {
					t.Fatal(err)
				}
				want = q.OutBytes
				if p.Type == core.F32 {
					want, _ = binary.Append(nil, binary.NativeEndian, q.Out)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("tensor %d of %d boxes is not the crop's", i, len(boxes))
			}
		}
	})
}

func TestDiffCountsChanges(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 90).Draw(t, "w"), rapid.IntRange(1, 50).Draw(t, "h")
		a := core.DiffArgs{
			Width: uint32(w), Height: uint32(h), Pitch: [2]uint32{uint32(w + rapid.IntRange(0, 5).Draw(t, "gap")), 0},
			Threshold: uint32(rapid.IntRange(0, 255).Draw(t, "threshold")), Block: uint32(rapid.SampledFrom([]int{0, 4, 7, 16, 256}).Draw(t, "block")),
		}
		pitch := int(a.Pitch[0])
		x, y := make([]byte, pitch*(h-1)+w), make([]byte, w*h)
		state := rapid.Uint64().Draw(t, "pixels") | 1
		fillRandom(x, &state)
		fillRandom(y, &state)
		side := max(int(a.Block), 1)
		across, blocks := (w+side-1)/side, 0
		if a.Block != 0 {
			blocks = across * ((h + side - 1) / side)
		}
		dst := b.allocRegion(16 + 4*blocks)
		b.run(t, b.s.List().Diff(dst, upload(b, x), upload(b, y), a))
		var sum, changed, peak int
		sums := make([]int, blocks)
		for i := range h {
			for j := range w {
				d := int(x[i*pitch+j]) - int(y[i*w+j])
				d = max(d, -d)
				sum, peak = sum+d, max(peak, d)
				if d > int(a.Threshold) {
					changed++
				}
				if blocks > 0 {
					sums[i/side*across+j/side] += d
				}
			}
		}
		raw := dst.Buf.Bytes()
		if binary.NativeEndian.Uint64(raw) != uint64(sum) || binary.NativeEndian.Uint32(raw[8:]) != uint32(changed) || binary.NativeEndian.Uint32(raw[12:]) != uint32(peak) {
			t.Fatalf("got % x, reference sum %d, changed %d, peak %d", raw[:16], sum, changed, peak)
		}
		for i, want := range sums {
			if got := binary.NativeEndian.Uint32(raw[16+4*i:]); got != uint32(want) {
				t.Fatalf("block %d: %d, reference %d", i, got, want)
			}
		}
	})
}

func TestStatsMatchTheDefinition(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.OneOf(rapid.IntRange(1, 90), rapid.IntRange(2040, 2060)).Draw(t, "w"), rapid.IntRange(1, 20).Draw(t, "h")
		format := rapid.SampledFrom([]core.Format{core.NV12, core.I420, core.YUYV, core.UYVY, core.RGB24, core.BGR24, core.Gray8}).Draw(t, "format")
		row := w
		switch format {
		case core.YUYV, core.UYVY:
			row = (w + 1) / 2 * 4
		case core.RGB24, core.BGR24:
			row = 3 * w
		}
		pitch := row + rapid.IntRange(0, 5).Draw(t, "gap")
		a := core.StatsArgs{
			Format: uint32(format), Width: uint32(w), Height: uint32(h), Pitch: uint32(pitch),
			Low: uint32(rapid.IntRange(0, 255).Draw(t, "low")), High: uint32(rapid.IntRange(0, 255).Draw(t, "high")),
		}
		x := make([]byte, pitch*(h-1)+row)
		state := rapid.Uint64().Draw(t, "pixels") | 1
		fillRandom(x, &state)
		at := func(i, j int) int64 { // row i, column j, mirrored
			mirror := func(v, n int) int {
				switch {
				case n == 1:
					return 0
				case v < 0:
					return -v
				case v >= n:
					return 2*n - 2 - v
				}
				return v
			}
			p := x[mirror(i, h)*pitch:]
			j = mirror(j, w)
			switch format {
			case core.YUYV:
				return int64(p[2*j])
			case core.UYVY:
				return int64(p[2*j+1])
			case core.RGB24:
				return (9798*int64(p[3*j]) + 19235*int64(p[3*j+1]) + 3735*int64(p[3*j+2]) + 1<<14) >> 15
			case core.BGR24:
				return (9798*int64(p[3*j+2]) + 19235*int64(p[3*j+1]) + 3735*int64(p[3*j]) + 1<<14) >> 15
			}
			return int64(p[j])
		}
		var sum, low, high, laplace, squares int64
		for i := range h {
			for j := range w {
				v := at(i, j)
				l := at(i-1, j) + at(i+1, j) + at(i, j-1) + at(i, j+1) - 4*v
				sum, laplace, squares = sum+v, laplace+l, squares+l*l
				if v <= int64(a.Low) {
					low++
				}
				if v >= int64(a.High) {
					high++
				}
			}
		}
		dst := b.allocRegion(32)
		b.run(t, b.s.List().Stats(dst, upload(b, x), a))
		raw := dst.Buf.Bytes()
		u64 := func(n int) int64 { return int64(binary.NativeEndian.Uint64(raw[n:])) }
		u32 := func(n int) int64 { return int64(binary.NativeEndian.Uint32(raw[n:])) }
		if got, want := []int64{u64(0), u32(8), u32(12), u64(16), u64(24)}, []int64{sum, low, high, laplace, squares}; !slices.Equal(got, want) {
			t.Fatalf("got %d, reference %d", got, want)
		}
	})
}

// readBoxes reads a list of boxes and the number of boxes found before the list was cut
// to its capacity.
func readBoxes(b []byte) (boxes []core.Box, found int, err error) {
	if boxes, err = core.AppendBoxes(nil, b); err != nil {
		return nil, 0, err
	}
	return boxes, int(binary.NativeEndian.Uint32(b[4:])), nil
}

func TestMasksMatchTheReference(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		a := core.MasksArgs{
			Type:   uint32(rapid.SampledFrom([]core.Type{core.F32, core.F16}).Draw(t, "type")),
			Values: uint32(rapid.IntRange(1, 9).Draw(t, "values")), Width: uint32(rapid.IntRange(1, 30).Draw(t, "width")),
			Height: uint32(rapid.IntRange(1, 30).Draw(t, "height")), Rows: uint32(rapid.IntRange(1, 4).Draw(t, "rows")),
			ScaleX: 0.25, ScaleY: 0.5, ShiftX: -0.5, ShiftY: 1,
		}
		area := int(a.Width * a.Height)
		src, x := narrow(b, t, drawFloats(t, "prototypes", int(a.Values)*area), core.Type(a.Type))
		rows, w := narrow(b, t, drawFloats(t, "weights", int(a.Rows*a.Values)), core.F32)
		var grids []core.MaskGrid
		end := uint32(4) // what no grid covers
		for range rapid.IntRange(1, 4).Draw(t, "grids") {
			g := core.MaskGrid{
				X: int32(rapid.IntRange(-9, 90).Draw(t, "x")), Y: int32(rapid.IntRange(-9, 50).Draw(t, "y")),
				Step:  uint32(rapid.IntRange(1, 3).Draw(t, "step")),
				Width: uint32(rapid.IntRange(0, 40).Draw(t, "w")), Height: uint32(rapid.IntRange(0, 40).Draw(t, "h")),
				Row: uint32(rapid.IntRange(0, int(a.Rows)-1).Draw(t, "row")), At: end,
			}
			end += (g.Width*g.Height + 31) / 32 * 4
			grids = append(grids, g)
		}
		a.Count = uint32(len(grids))
		list := b.allocRegion(core.GridBytes * len(grids))
		if err := core.PutGrids(list.Buf.Bytes(), grids); err != nil {
			t.Fatal(err)
		}
		dst := b.allocRegion(int(end))
		b.run(t, b.s.List().Masks(dst, src, rows, list, a))
		got := dst.Buf.Bytes()
		if binary.NativeEndian.Uint32(got) != 0 {
			t.Fatal("bits outside the grids")
		}
		sample := func(row, px, py int) (sum, size float64) {
			for k := range int(a.Values) {
				v := w[row*int(a.Values)+k] * x[k*area+py*int(a.Width)+px]
				sum, size = sum+v, size+math.Abs(v)
			}
			return sum, size
		}
		for _, g := range grids {
			for i := range int(g.Width * g.Height) {
				place := func(first int32, cell uint32, scale, shift float64, n uint32) (int, int, float64) {
					v := (float64(first)+float64(g.Step)*(float64(cell)+0.5))*scale + shift
					v = min(max(v, 0), float64(n-1))
					return int(v), min(int(v)+1, int(n)-1), v - math.Floor(v)
				}
				x0, x1, fx := place(g.X, uint32(i)%g.Width, 0.25, -0.5, a.Width)
				y0, y1, fy := place(g.Y, uint32(i)/g.Width, 0.5, 1, a.Height)
				var v, size float64
				for _, p := range [4]struct {
					x, y int
					part float64
				}{{x0, y0, (1 - fx) * (1 - fy)}, {x1, y0, fx * (1 - fy)}, {x0, y1, (1 - fx) * fy}, {x1, y1, fx * fy}} {
					sum, magnitude := sample(int(g.Row), p.x, p.y)
					v, size = v+p.part*sum, size+magnitude
				}
				in := binary.NativeEndian.Uint32(got[g.At+uint32(i)/32*4:])>>(i%32)&1 != 0
				if in != (v > 0) && !(math.Abs(v) <= 1e-4*size) && v == v {
					t.Fatalf("cell %d of %+v is inside: %t, reference %g", i, g, in, v)
				}
			}
		}
	})
}
