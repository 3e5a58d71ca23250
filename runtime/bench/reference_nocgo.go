//go:build !cgo

package bench

import "github.com/yoctune/yoctune/runtime/core"

// Without cgo there is no device to open, so none of these is called.
const haveReferences = false

func refMemcpy(_, _ []byte)                                   {}
func refMemset(_ []byte, _ byte)                              {}
func refScalar(*core.Preprocess, []byte, []float32)           {}
func refTwoPass(_ *core.Preprocess, _, _ []byte, _ []float32) {}
func refSum([]float32) float32                                { return 0 }
func refMin([]float32) float32                                { return 0 }
func refMax([]float32) float32                                { return 0 }
