//go:build cgo

package bench

/*
#cgo CFLAGS: -std=c11 -O3 -Wall -Wextra
#cgo linux LDFLAGS: -ldl -lm
#include "foreign.h"
#include "reference.h"
#include <stdlib.h>
#include <string.h>
*/
import "C"

import (
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// haveReferences reports whether the references, which are C, are compiled in.
const haveReferences = true

func refMemcpy(dst, src []byte) {
	if n := min(len(dst), len(src)); n > 0 {
		C.memcpy(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), C.size_t(n))
	}
}

func refMemset(dst []byte, v byte) {
	if len(dst) > 0 {
		C.memset(unsafe.Pointer(&dst[0]), C.int(v), C.size_t(len(dst)))
	}
}

// refTwoPass uses rgb, 3 bytes per pixel of the frame, as its intermediate image.
func refTwoPass(p *core.Preprocess, nv12, rgb []byte, out []float32) {
	C.ref_two_pass(u8(nv12), C.int(p.Width), C.int(p.Height), u8(rgb), f32(out), C.int(p.OutW), C.int(p.OutH), C.float(p.Pad)/255)
}

func refSum(x []float32) float32     { return float32(C.ref_sum(f32(x), C.size_t(len(x)))) }
func refMin(x []float32) float32     { return float32(C.ref_min(f32(x), C.size_t(len(x)))) }
func refMax(x []float32) float32     { return float32(C.ref_max(f32(x), C.size_t(len(x)))) }
func refFlops(rounds int) float32    { return float32(C.ref_flops(C.uint64_t(rounds))) }
func refDiff(a, b []byte) uint64     { return uint64(C.ref_diff(u8(a), u8(b), C.size_t(len(a)))) }
func refChain(x, y []float32, n int) { C.ref_chain(f32(x), f32(y), C.size_t(len(x)), C.int(n)) }

func refGemm(a, b, c []float32, m, n, k int) {
	C.ref_gemm(f32(a), f32(b), f32(c), C.int(m), C.int(n), C.int(k))
}

func refSoftmax(x, y []float32, rows, cols int) {
	C.ref_softmax(f32(x), f32(y), C.int(rows), C.int(cols))
}

func refTopK(x, y []float32, rows, cols, k int) {
	C.ref_topk(f32(x), f32(y), C.int(rows), C.int(cols), C.int(k))
}

func refToPlanes(x, y []float32, pixels, channels int) {
	C.ref_to_planes(f32(x), f32(y), C.int(pixels), C.int(channels))
}

func refQuantise(x []float32, q []byte, y []float32, scale float32) {
	C.ref_quantise(f32(x), (*C.int8_t)(unsafe.Pointer(&q[0])), f32(y), C.size_t(len(x)), C.float(scale))
}

func refDecode(x, out []float32, anchors, classes int, threshold float32, most int) int {
	return int(C.ref_decode(f32(x), f32(out), C.int(anchors), C.int(classes), C.float(threshold), C.int(most)))
}

// refNMS returns how many boxes remain. A box has five numbers, the score first.
func refNMS(boxes []float32, iou float32, rank []float32) int {
	return int(C.ref_nms(f32(boxes), C.int(len(boxes)/5), C.float(iou), f32(rank)))
}

func u8(b []byte) *C.uint8_t   { return (*C.uint8_t)(unsafe.SliceData(b)) }
func f32(x []float32) *C.float { return (*C.float)(unsafe.SliceData(x)) }

// blas is OpenBLAS on one thread; nil if it is not installed.
type blas struct{ b C.foreign_blas }

func openBLAS() *blas {
	b := &blas{}
	if C.foreign_blas_open(&b.b) != 0 {
		return nil
	}
	return b
}

func (b *blas) name() string { return C.GoString(&b.b.version[0]) }

func (b *blas) gemm(x, y, z []float32, m, n, k int) {
	C.foreign_sgemm(&b.b, f32(x), f32(y), f32(z), C.int(m), C.int(n), C.int(k))
}

// sum adds non-negative values: the library adds magnitudes.
func (b *blas) sum(x []float32) float32 { return float32(C.foreign_sasum(&b.b, f32(x), C.int(len(x)))) }

// indexOfMax returns the index of the largest of non-negative values.
func (b *blas) indexOfMax(x []float32) int { return int(C.foreign_isamax(&b.b, f32(x), C.int(len(x)))) }

// sws is libswscale; nil if it is not installed.
type sws struct{ s C.foreign_sws }

func openSws() *sws {
	s := &sws{}
	if C.foreign_sws_open(&s.s) != 0 {
		return nil
	}
	return s
}

func (s *sws) name() string { return C.GoString(&s.s.version[0]) }

// scaler converts frames of one format and size to a tensor.
type scaler struct {
	s     *sws
	p     unsafe.Pointer
	frame *C.foreign_frame // C memory, because it holds pointers to the frame
	inner core.Rect
	pad   float32
	outW  int
	outH  int
	rgb   []byte
}

// newScaler returns a scaler for frames like p's, in memory outside the Go heap. format is
// FFmpeg's name of their format. The result is nil if the library does not support it.
func (s *sws) newScaler(format string, p *core.Preprocess, planes [3]*core.Buffer) *scaler {
	g, err := p.Geometry()
	if err != nil {
		return nil
	}
	name := C.CString(format)
	defer C.free(unsafe.Pointer(name))
	at := C.foreign_scaler(&s.s, name, C.int(g.Crop.Width), C.int(g.Crop.Height), C.int(g.Inner.Width), C.int(g.Inner.Height))
	if at == nil {
		return nil
	}
	f := (*C.foreign_frame)(C.calloc(1, C.sizeof_foreign_frame))
	f.w, f.h = C.int(g.Crop.Width), C.int(g.Crop.Height)
	for i, b := range planes {
		if b == nil {
			break
		}
		pitch, step := planePitch(p.Format, p.Width, i)
		x, y := g.Crop.X, g.Crop.Y
		if i > 0 {
			x, y = x/2, y/2
		}
		f.plane[i] = (*C.uint8_t)(unsafe.Pointer(&b.Bytes()[y*pitch+x*step]))
		f.pitch[i] = C.int(pitch)
	}
	return &scaler{s: s, p: at, frame: f, inner: g.Inner, pad: float32(p.Pad) / 255, outW: p.OutW, outH: p.OutH,
		rgb: make([]byte, 3*g.Inner.Width*g.Inner.Height+64)}
}

func (s *scaler) tensor(out []float32) {
	C.foreign_tensor(&s.s.s, s.p, s.frame, u8(s.rgb), C.int(s.inner.Width), C.int(s.inner.Height), f32(out), C.int(s.outW), C.int(s.outH), C.float(s.pad))
}

func (s *scaler) release() error {
	C.foreign_scaler_free(&s.s.s, s.p)
	C.free(unsafe.Pointer(s.frame))
	return nil
}

// hasSAD reports whether libavutil offers a sum of absolute differences.
func (s *sws) hasSAD() bool { return s.s.sad != nil }

// sad returns the sum of absolute differences of two w×h planes.
func (s *sws) sad(a, b []byte, w, h int) uint64 {
	return uint64(C.foreign_sad(&s.s, u8(a), u8(b), C.int(w), C.int(h)))
}
