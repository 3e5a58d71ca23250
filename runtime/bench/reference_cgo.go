//go:build cgo

package bench

/*
#cgo CFLAGS: -std=c11 -O3 -Wall -Wextra
#include "reference.h"
#include <string.h>
*/
import "C"

import (
	"unsafe"

	"github.com/yoctune/yoctune/runtime/core"
)

// haveReferences: the references are C, as the core is.
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

func refScalar(p *core.Preprocess, nv12 []byte, out []float32) {
	C.ref_scalar((*C.uint8_t)(&nv12[0]), C.int(p.Width), C.int(p.Height), (*C.float)(&out[0]), C.int(p.OutW), C.int(p.OutH), C.float(p.Pad)/255)
}

// refTwoPass uses rgb, 3 bytes a frame pixel, between its passes.
func refTwoPass(p *core.Preprocess, nv12, rgb []byte, out []float32) {
	C.ref_two_pass((*C.uint8_t)(&nv12[0]), C.int(p.Width), C.int(p.Height), (*C.uint8_t)(&rgb[0]), (*C.float)(&out[0]), C.int(p.OutW), C.int(p.OutH), C.float(p.Pad)/255)
}

func refSum(x []float32) float32 { return float32(C.ref_sum((*C.float)(&x[0]), C.size_t(len(x)))) }
func refMin(x []float32) float32 { return float32(C.ref_min((*C.float)(&x[0]), C.size_t(len(x)))) }
func refMax(x []float32) float32 { return float32(C.ref_max((*C.float)(&x[0]), C.size_t(len(x)))) }
