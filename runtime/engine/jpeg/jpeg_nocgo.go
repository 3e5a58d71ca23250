//go:build !cgo

package jpeg

import "fmt"

var errNoCgo = fmt.Errorf("%w: this program was built without cgo, which loading a library needs", ErrNoLibrary)

// Library cannot be made in a program built without cgo.
type Library struct{}

// Open always fails: loading a library needs cgo.
func Open(string) (*Library, error) { return nil, errNoCgo }

// Decoder cannot be made in a program built without cgo.
type Decoder struct{}

// NewDecoder always fails: see Open.
func (*Library) NewDecoder() (*Decoder, error) { return nil, errNoCgo }

// Size always fails: see Open.
func (*Decoder) Size([]byte) (width, height int, err error) { return 0, 0, errNoCgo }

// Decode always fails: see Open.
func (*Decoder) Decode(data, out []byte, width, height, shrink int) error { return errNoCgo }

// Close does nothing without cgo.
func (*Decoder) Close() {}
