//go:build !cgo

package bench

import "github.com/yoctune/yoctune/runtime/engine/core"

// Without cgo no device can be opened, so nothing calls these functions.
const haveReferences = false

func refMemcpy(_, _ []byte)                                     {}
func refMemset(_ []byte, _ byte)                                {}
func refTwoPass(_ *core.Preprocess, _, _ []byte, _ []float32)   {}
func refSum([]float32) float32                                  { return 0 }
func refMin([]float32) float32                                  { return 0 }
func refMax([]float32) float32                                  { return 0 }
func refFlops(int) float32                                      { return 0 }
func refDiff(_, _ []byte) uint64                                { return 0 }
func refChain(_, _ []float32, _ int)                            {}
func refGemm(_, _, _ []float32, _, _, _ int)                    {}
func refSoftmax(_, _ []float32, _, _ int)                       {}
func refTopK(_, _ []float32, _, _, _ int)                       {}
func refToPlanes(_, _ []float32, _, _ int)                      {}
func refQuantise(_ []float32, _ []byte, _ []float32, _ float32) {}
func refDecode(_, _ []float32, _, _ int, _ float32, _ int) int  { return 0 }
func refNMS(_ []float32, _ float32, _ []float32) int            { return 0 }

type blas struct{}

func openBLAS() *blas                             { return nil }
func (*blas) name() string                        { return "" }
func (*blas) gemm(_, _, _ []float32, _, _, _ int) {}
func (*blas) sum([]float32) float32               { return 0 }
func (*blas) indexOfMax([]float32) int            { return 0 }

type sws struct{}

func openSws() *sws                                                      { return nil }
func (*sws) name() string                                                { return "" }
func (*sws) newScaler(string, *core.Preprocess, [3]*core.Buffer) *scaler { return nil }
func (*sws) hasSAD() bool                                                { return false }
func (*sws) sad(_, _ []byte, _, _ int) uint64                            { return 0 }

type scaler struct{}

func (*scaler) tensor([]float32) {}
func (*scaler) release() error   { return nil }
