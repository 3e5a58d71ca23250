//go:build !cgo

package ort

import "fmt"

var errNoCgo = fmt.Errorf("%w: this program was built without cgo, which loading a library needs; build with CGO_ENABLED=1", ErrNoLibrary)

// Runtime cannot be made in a program built without cgo.
type Runtime struct{}

// Open always fails: loading a library needs cgo.
func Open(string) (*Runtime, error) { return nil, errNoCgo }

// Version is empty without cgo.
func (*Runtime) Version() string { return "" }

// Close does nothing without cgo.
func (*Runtime) Close() {}

// NewSession always fails: see Open.
func (*Runtime) NewSession(string, Options) (*Session, error) { return nil, errNoCgo }

// NewSessionFromBytes always fails: see Open.
func (*Runtime) NewSessionFromBytes([]byte, Options) (*Session, error) { return nil, errNoCgo }

// NewTensor always fails: see Open.
func (*Runtime) NewTensor(DType, []int64) (*Tensor, error) { return nil, errNoCgo }

// NewTensorOver always fails: see Open.
func (*Runtime) NewTensorOver(DType, []int64, []byte) (*Tensor, error) { return nil, errNoCgo }

// NewTensorAt always fails: see Open.
func (*Runtime) NewTensorAt(DType, []int64, uintptr, int) (*Tensor, error) { return nil, errNoCgo }

// Session cannot be made in a program built without cgo.
type Session struct{}

// Inputs is empty without cgo.
func (*Session) Inputs() []Info { return nil }

// Outputs is empty without cgo.
func (*Session) Outputs() []Info { return nil }

// Provider is empty without cgo.
func (*Session) Provider() string { return "" }

// Missing is empty without cgo.
func (*Session) Missing() []Missing { return nil }

// Probe always fails: see Open.
func (*Session) Probe(...*Tensor) ([]Info, error) { return nil, errNoCgo }

// Bind always fails: see Open.
func (*Session) Bind(ins []*Tensor, outs ...*Tensor) (*Binding, error) { return nil, errNoCgo }

// Binding cannot be made in a program built without cgo.
type Binding struct{}

// Run always fails: see Open.
func (*Binding) Run() error { return errNoCgo }

// Close does nothing without cgo.
func (*Binding) Close() {}

// Terminate does nothing without cgo.
func (*Session) Terminate() {}

// Resume does nothing without cgo.
func (*Session) Resume() {}

// Close does nothing without cgo.
func (*Session) Close() {}

// Tensor cannot be made in a program built without cgo.
type Tensor struct{}

// Part fails.
func (*Tensor) Part(int, int) (*Tensor, error) { return nil, errNoCgo }

// Shape is empty without cgo.
func (*Tensor) Shape() []int64 { return nil }

// Bytes is empty without cgo.
func (*Tensor) Bytes() []byte { return nil }

// Data is empty without cgo.
func (*Tensor) Data() []float32 { return nil }

// Close does nothing without cgo.
func (*Tensor) Close() {}
