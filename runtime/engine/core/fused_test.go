package core_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/schema/fuse"
)

// node is an expression under test: text for the parser, and a function that computes the
// value in float64 with a bound of the float32 error.
type node struct {
	text string
	rank int // 0 sum, 1 product, 2 atom
	eval func(env) bounded
}

type env struct{ x, in, y, p, q bounded }

// bounded is a value and how far float32 may be from it; bad: further than can be said.
type bounded struct {
	v, e float64
	bad  bool
}

const rounding = 1.0 / (1 << 23) // twice that of a float32

func rounded(v, e float64) bounded {
	e += math.Abs(v)*rounding + 1e-44
	return bounded{v, e, !(e < math.MaxFloat32) || !(math.Abs(v) < math.MaxFloat32/2)}
}

func (n node) parenthesise(rank int) string {
	if n.rank < rank {
		return "(" + n.text + ")"
	}
	return n.text
}

func newBinary(a, b node, sign string, rank int, f func(a, b bounded) bounded) node {
	return node{a.parenthesise(rank) + " " + sign + " " + b.parenthesise(rank+1), rank, func(w env) bounded {
		x, y := a.eval(w), b.eval(w)
		r := f(x, y)
		r.bad = r.bad || x.bad || y.bad
		return r
	}}
}

// monotone is a function whose slope within the bound decides its error.
func monotone(name string, a node, f func(float64) float64, own float64) node {
	return node{name + "(" + a.text + ")", 2, func(w env) bounded {
		x := a.eval(w)
		v := f(x.v)
		low, high := f(x.v-x.e), f(x.v+x.e)
		e := math.Max(math.Abs(low-v), math.Abs(high-v)) + math.Abs(v)*own + 1e-7
		if math.IsNaN(low + high) {
			return bounded{v, 0, true}
		}
		r := rounded(v, e)
		r.bad = r.bad || x.bad
		return r
	}}
}

func genNode(t *rapid.T, depth int, names []string) node {
	if depth == 0 || rapid.IntRange(0, 5).Draw(t, "leaf") == 0 {
		if rapid.IntRange(0, 2).Draw(t, "number") == 0 {
			f := float64(rapid.IntRange(1, 400).Draw(t, "value")) / 64
			text := fmt.Sprint(f)
			return node{text, 2, func(env) bounded { return bounded{v: f} }}
		}
		name := rapid.SampledFrom(names).Draw(t, "name")
		return node{name, 2, func(w env) bounded {
			return map[string]bounded{"x": w.x, "in": w.in, "y": w.y, "p": w.p, "q": w.q}[name]
		}}
	}
	a := genNode(t, depth-1, names)
	kind := rapid.IntRange(0, 15).Draw(t, "kind")
	if kind <= 5 {
		b := genNode(t, depth-1, names)
		switch kind {
		case 0:
			return newBinary(a, b, "+", 0, func(x, y bounded) bounded { return rounded(x.v+y.v, x.e+y.e) })
		case 1:
			return newBinary(a, b, "-", 0, func(x, y bounded) bounded { return rounded(x.v-y.v, x.e+y.e) })
		case 2:
			return newBinary(a, b, "*", 1, func(x, y bounded) bounded {
				return rounded(x.v*y.v, math.Abs(x.v)*y.e+math.Abs(y.v)*x.e+x.e*y.e)
			})
		case 3:
			return newBinary(a, b, "/", 1, func(x, y bounded) bounded {
				least := math.Abs(y.v) - y.e
				if least <= 0 {
					return bounded{bad: true}
				}
				return rounded(x.v/y.v, (x.e+math.Abs(x.v/y.v)*y.e)/least)
			})
		}
		// min and max of two numbers are refused: one side is an element's.
		f, name := math.Min, "min"
		if kind == 5 {
			f, name = math.Max, "max"
		}
		return node{name + "(" + a.text + ", x + " + b.parenthesise(1) + ")", 2, func(w env) bounded {
			x, y := a.eval(w), b.eval(w)
			y = bounded{w.x.v + y.v, rounded(w.x.v+y.v, w.x.e+y.e).e, y.bad || w.x.bad}
			return bounded{f(x.v, y.v), math.Max(x.e, y.e), x.bad || y.bad}
		}}
	}
	// Functions of numbers alone need no element; adding x keeps them from being refused.
	a = newBinary(a, node{"x", 2, func(w env) bounded { return w.x }}, "+", 0, func(x, y bounded) bounded { return rounded(x.v+y.v, x.e+y.e) })
	switch kind {
	case 6:
		return node{"-" + a.parenthesise(2), 1, func(w env) bounded { x := a.eval(w); x.v = -x.v; return x }}
	case 7:
		return node{"abs(" + a.text + ")", 2, func(w env) bounded { x := a.eval(w); x.v = math.Abs(x.v); return x }}
	case 8:
		return monotone("sqrt", a, math.Sqrt, rounding)
	case 9:
		return monotone("exp", a, math.Exp, 8*rounding)
	case 10:
		return monotone("log", a, math.Log, 8*rounding)
	case 11:
		return monotone("sigmoid", a, func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }, 16*rounding)
	case 12:
		return monotone("tanh", a, math.Tanh, 16*rounding)
	case 13:
		return monotone("relu", a, func(v float64) float64 { return math.Max(v, 0) }, 0)
	case 14:
		return node{"clamp(" + a.text + ", -2.5, 3)", 2, func(w env) bounded {
			x := a.eval(w)
			return bounded{math.Min(math.Max(x.v, -2.5), 3), x.e, x.bad}
		}}
	}
	return monotone("leaky", node{a.text + ", 0.125", 0, a.eval}, func(v float64) float64 {
		if v < 0 {
			return v * 0.125
		}
		return v
	}, rounding)
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// runFused puts each tensor into a buffer of its own and poisons the result.
func runFused(t interface{ Fatal(...any) }, d *core.Device, s *core.Stream, chain *fuse.Chain, n int, ch core.Channels, src []byte, operands ...[]byte) []byte {
	place := func(b []byte) core.Region {
		buf, err := d.Alloc(max(len(b), 1), core.MemHost)
		if err != nil {
			t.Fatal(err)
		}
		copy(buf.Bytes(), b)
		return buf.At(0, len(b))
	}
	f, err := d.Fuse(chain, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := place(bytes.Repeat([]byte{0xff}, n*core.Type(chain.Out()).Bytes()))
	in := place(src)
	regions := []core.Region{}
	for _, o := range operands {
		regions = append(regions, place(o))
	}
	if err := s.List().Fused(f, out, in, ch, regions...).Submit(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	result := bytes.Clone(out.Buf.Bytes()[:out.Len])
	for _, r := range append(regions, out, in) {
		if err := r.Buf.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Release(); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestChainsMatchAFloat64Reference(t *testing.T) {
	d := openCPU(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([][]string{{"x"}, {"x", "in"}, {"x", "y"}, {"x", "p", "q"}, {"x", "y", "q"}}).Draw(t, "names")
		var nodes []node
		var texts []string
		for range rapid.IntRange(1, 4).Draw(t, "expressions") {
			e := genNode(t, 3, names)
			e = newBinary(node{"x", 2, func(w env) bounded { return w.x }}, e, "+", 0, func(x, y bounded) bounded { return rounded(x.v+y.v, x.e+y.e) })
			nodes, texts = append(nodes, e), append(texts, e.text)
		}
		chain, err := fuse.Parse(fuse.F32, fuse.F32, texts...)
		if err != nil {
			if strings.Contains(err.Error(), "at one time") || strings.Contains(err.Error(), "write its value") || strings.Contains(err.Error(), "division by 0") {
				return
			}
			t.Fatalf("%q: %v", texts, err)
		}
		n := rapid.IntRange(1, 1500).Draw(t, "n")
		ch := core.Channels{Inner: rapid.IntRange(1, 40).Draw(t, "inner"), Count: rapid.IntRange(1, 9).Draw(t, "channels")}
		state := rapid.Uint64().Draw(t, "numbers") | 1
		random := func(n int) []float32 {
			v, b := make([]float32, n), make([]byte, 2*n)
			fillRandom(b, &state)
			for i := range v {
				v[i] = float32(int(binary.NativeEndian.Uint16(b[2*i:]))-32768) / 8192
			}
			return v
		}
		src := random(n)
		numbers := map[string][]float32{"y": random(n), "p": random(ch.Count), "q": random(ch.Count)}
		var operands [][]byte
		for _, o := range chain.Operands() {
			operands = append(operands, bytesOf(numbers[o.Name]))
		}
		got := runFused(t, d, s, chain, n, ch, bytesOf(src), operands...)
		for i := range n {
			exact := func(v float32) bounded { return bounded{v: float64(v)} }
			c := i / ch.Inner % ch.Count
			w := env{exact(src[i]), exact(src[i]), exact(numbers["y"][i]), exact(numbers["p"][c]), exact(numbers["q"][c])}
			for _, e := range nodes {
				w.x = e.eval(w)
			}
			v := float64(math.Float32frombits(binary.NativeEndian.Uint32(got[4*i:])))
			if w.x.bad {
				continue
			}
			compared++
			if !(math.Abs(v-w.x.v) <= 2*w.x.e) {
				t.Fatalf("%q at element %d of %g: %g, reference %g +- %g", texts, i, src[i], v, w.x.v, w.x.e)
			}
		}
	})
	if compared < 50 {
		t.Errorf("only %d values could be compared", compared)
	}
}

// A list of expressions in one chain gives the bits that one chain each would.
func TestChainEqualsItsSeparateExpressions(t *testing.T) {
	d := openCPU(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	exprs := []string{"(x - 3) * 0.25", "silu(x)", "gelu(x) + leaky(x, 0.1)", "clamp(x, -1, 2)", "x / (abs(x) + 1)", "round(x * 100)", "f16(x / 7)", "bf16(x)", "u8(x * 90) - i8(x * 300)"}
	x := make([]float32, 2000)
	for i := range x {
		x[i] = float32(i-1000) / 64
	}
	x[0], x[1], x[2] = nan, float32(math.Inf(1)), float32(math.Inf(-1))
	parse := func(exprs ...string) *fuse.Chain {
		c, err := fuse.Parse(fuse.F32, fuse.F32, exprs...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := bytesOf(x)
	for _, e := range exprs {
		want = runFused(t, d, s, parse(e), len(x), core.Channels{}, want)
	}
	if got := runFused(t, d, s, parse(exprs...), len(x), core.Channels{}, bytesOf(x)); !bytes.Equal(got, want) {
		t.Error("bits differ")
	}
}

// The source that a GPU's compiler is given, compiled for this machine and run thread by
// thread, gives the CPU backend's bits: for every type, aligned or not, in any tail.
func TestGeneratedCUDASourceIsBitIdentical(t *testing.T) {
	d := openCPU(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	type job struct {
		chain *fuse.Chain
		n     int
		ch    core.Channels
		data  [][]byte // src, then the operands
	}
	const all = "max(min(tanh(x) * 3, exp(x)), log(abs(x) + 1)) - sigmoid(x) / sqrt(abs(x) + 0.5) + relu(x) - gelu(x) * silu(-x)"
	var jobs []job
	state := uint64(7)
	for i, tc := range [][]string{{all}, {all, "u8(x * 20) + i8(x)", "leaky(f16(x), 0.3) * bf16(in)"}, {"(x - p) * q", "round(x)"}, {"x * y + q"}, {"p", "clamp(x, -1, 1) * 100"}} {
		for in := fuse.F32; in <= fuse.BF16; in++ {
			chain, err := fuse.Parse(in, fuse.Type((i+int(in))%5), tc...)
			if err != nil {
				t.Fatal(err)
			}
			j := job{chain: chain, n: 997 + i, ch: core.Channels{Inner: 3 + i, Count: 4}}
			size := core.Type(in).Bytes()
			floats := func(t fuse.Type, n int) []byte {
				b := make([]byte, 4*n)
				fillRandom(b, &state)
				v := make([]float32, n)
				for k := range v {
					v[k] = float32(int16(binary.NativeEndian.Uint16(b[4*k:]))) / 4096
				}
				switch t {
				case fuse.F32:
					return bytesOf(v)
				case fuse.F16: // any bits but infinities and NaN
					for k := range n {
						binary.NativeEndian.PutUint16(b[2*k:], binary.NativeEndian.Uint16(b[2*k:])&0xcbff)
					}
				default:
					for k := range n {
						binary.NativeEndian.PutUint16(b[2*k:], uint16(math.Float32bits(v[k])>>16))
					}
				}
				return b[:2*n]
			}
			j.data = append(j.data, floats(in, j.n)[:size*j.n])
			for _, o := range chain.Operands() {
				if o.Channel {
					j.data = append(j.data, floats(fuse.F32, j.ch.Count))
				} else {
					j.data = append(j.data, floats(in, j.n))
				}
			}
			jobs = append(jobs, j)
		}
	}
	dir := t.TempDir()
	var program, calls strings.Builder
	program.WriteString("#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include \"yt_chain.h\"\n#include \"ops.h\"\n")
	for i, j := range jobs {
		fmt.Fprintf(&program, "namespace job%d {\n%s}\n", i, j.chain.Source())
		args := ""
		for k := range j.data[1:] {
			cast := "(const float *)"
			if !j.chain.Operands()[k].Channel {
				cast = ""
			}
			args += fmt.Sprintf(", %sp[%d]", cast, k+1)
		}
		fmt.Fprintf(&calls, `	{
		char *p[3] = {};
		FILE *f = fopen("in%[1]d", "rb");
		static const size_t bytes[] = {%[2]s};
		for (int k = 0; k < %[3]d; k++) {
			p[k] = (char *)aligned_alloc(64, 65536);
			if (f == NULL || fread(p[k], 1, bytes[k], f) != bytes[k]) return 1;
		}
		fclose(f);
		char *dst = (char *)aligned_alloc(64, 65536);
		memset(dst, 255, 65536);
		for (uint64_t i = (%[4]d + 3) / 4; i-- > 0;)
			job%[1]d::chain_body(dst, p[0]%[5]s, %[4]d, %[6]d, %[7]d, 4 * i, %[8]t);
		f = fopen("out%[1]d", "wb");
		if (f == NULL || fwrite(dst, 1, %[9]d, f) != %[9]d || fclose(f) != 0) return 1;
	}
`, i, sizes(j.data), len(j.data), j.n, args, j.ch.Inner, j.ch.Count, i%2 == 0, j.n*core.Type(j.chain.Out()).Bytes())
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("in%d", i)), bytes.Join(j.data, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(&program, "int main()\n{\n%s\treturn 0;\n}\n", calls.String())
	source := filepath.Join(dir, "chains.cc")
	if err := os.WriteFile(source, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("g++", "-std=c++17", "-O1", "-ffp-contract=off", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-Ic", "-Icuda", source, "-o", filepath.Join(dir, "chains")).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v\n%s", err, out)
	}
	run := exec.Command(filepath.Join(dir, "chains"))
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, j := range jobs {
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		if want := runFused(t, d, s, j.chain, j.n, j.ch, j.data[0], j.data[1:]...); !bytes.Equal(got, want) {
			t.Errorf("job %d, from type %d to %d: bits differ", i, j.chain.In(), j.chain.Out())
		}
	}
}

func sizes(data [][]byte) string {
	var all []string
	for _, b := range data {
		all = append(all, fmt.Sprint(len(b)))
	}
	return strings.Join(all, ", ")
}

// NVIDIA's own compiler takes what is generated, for the architectures of every release,
// without a GPU.
func TestNVRTCCompilesChains(t *testing.T) {
	found, err := filepath.Glob("../../../build/cuda-venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13")
	if runtime.GOARCH != "amd64" {
		t.Skip("the NVRTC of the set-up is for amd64")
	}
	if err != nil || len(found) == 0 {
		if os.Getenv("YOCTUNE_REQUIRE_CUDA") != "" {
			t.Fatalf("no libnvrtc.so.13 in build/cuda-venv (scripts/setup.sh python): %v", err)
		}
		t.Skip("no NVRTC: scripts/setup.sh python installs it")
	}
	chain, err := fuse.Parse(fuse.F16, fuse.U8, "(x - p) * q", "silu(x) + gelu(x)", "clamp(tanh(x), -1, 1) * 127", "leaky(round(x), 0.1)")
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"compute_75", "sm_87", "sm_90", "sm_110"} {
		image, compiler, err := core.CompileChain(chain, found[0], arch)
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		t.Logf("%s: %d bytes by NVRTC %s", arch, len(image), compiler)
		if arch[0] == 's' {
			if !bytes.HasPrefix(image, []byte("\x7fELF")) {
				t.Errorf("%s: no cubin", arch)
			}
			continue
		}
		if !bytes.Contains(image, []byte(".entry chain(")) || bytes.Contains(image, []byte("fma.")) || bytes.Contains(image, []byte(".local ")) {
			t.Errorf("%s: no kernel, contracted arithmetic, or values in memory:\n%s", arch, image)
		}
	}
	if _, _, err := core.CompileChain(chain, found[0], "sm_1"); !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "NVRTC 13") {
		t.Errorf("an invalid architecture: %v", err)
	}
}

func TestChainsWithoutNVRTCNameThePackage(t *testing.T) {
	chain, err := fuse.Parse(fuse.F32, fuse.F32, "x * 2")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := core.CompileChain(chain, filepath.Join(t.TempDir(), "libnvrtc.so.13"), "sm_87"); !errors.Is(err, core.ErrNotSupported) {
		t.Errorf("%v", err)
	}
}

func TestChainIsValidatedAndEndsWithItsRelease(t *testing.T) {
	d := openCPU(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := fuse.Parse(fuse.F32, fuse.U8, "x * p")
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Fuse(chain, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(4096, core.MemHost)
	if err != nil {
		t.Fatal(err)
	}
	good := func() *core.List {
		return s.List().Fused(f, b.At(2048, 100), b.At(0, 400), core.Channels{Inner: 10, Count: 3}, b.At(512, 12))
	}
	for wantText, l := range map[string]*core.List{
		"does not match destination of 101 bytes": s.List().Fused(f, b.At(2048, 101), b.At(0, 400), core.Channels{Inner: 1, Count: 3}, b.At(512, 12)),
		"p has 16 bytes, want 12":                 s.List().Fused(f, b.At(2048, 100), b.At(0, 400), core.Channels{Inner: 1, Count: 3}, b.At(512, 16)),
		"one region per operand":                  s.List().Fused(f, b.At(2048, 100), b.At(0, 400), core.Channels{Inner: 1, Count: 3}),
		"overlap":                                 s.List().Fused(f, b.At(100, 100), b.At(0, 400), core.Channels{Inner: 1, Count: 3}, b.At(512, 12)),
	} {
		if err := l.Submit(); !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), wantText) {
			t.Errorf("%v does not contain %q", err, wantText)
		}
	}
	if err := errors.Join(good().Submit(), s.Wait(context.Background())); err != nil {
		t.Fatal(err)
	}
	l := good()
	if err := f.Release(); err != nil {
		t.Error(err)
	}
	if err := l.Submit(); !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "is not a kernel, or was unloaded") {
		t.Errorf("launched after its release: %v", err)
	}
}
