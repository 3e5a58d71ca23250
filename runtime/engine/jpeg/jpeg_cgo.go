//go:build cgo

package jpeg

/*
#cgo CFLAGS: -std=c11 -O3 -Wall -Wextra -D_GNU_SOURCE
#cgo linux LDFLAGS: -ldl
#cgo noescape jpeg_decode
#cgo nocallback jpeg_decode
#cgo noescape jpeg_size
#cgo nocallback jpeg_size
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// Library is a loaded libjpeg-turbo. It stays loaded until the process exits.
type Library struct{ c *C.jpeg_library }

// Open loads the library at path, or [Soname] if path is "". The error wraps [ErrNoLibrary].
func Open(path string) (*Library, error) {
	if path == "" {
		path = Soname
	}
	c := (*C.jpeg_library)(C.calloc(1, C.sizeof_jpeg_library))
	if c == nil {
		return nil, errors.New("jpeg: out of memory")
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var msg [256]C.char
	if C.jpeg_load(c, name, &msg[0], C.size_t(len(msg))) != C.JPEG_OK {
		C.free(unsafe.Pointer(c))
		return nil, fmt.Errorf("%w: %s: %s", ErrNoLibrary, C.GoString(&msg[0]), missing)
	}
	return &Library{c}, nil
}

// Decoder decodes one frame at a time.
type Decoder struct{ c *C.jpeg_decoder }

// NewDecoder returns a decoder, which must be closed.
func (l *Library) NewDecoder() (*Decoder, error) {
	c := (*C.jpeg_decoder)(C.calloc(1, C.sizeof_jpeg_decoder))
	if c == nil || C.jpeg_start(c, l.c) != C.JPEG_OK {
		C.free(unsafe.Pointer(c))
		return nil, errors.New("jpeg: out of memory")
	}
	return &Decoder{c}, nil
}

// Size returns the size of the frame in data, in pixels.
func (d *Decoder) Size(data []byte) (width, height int, err error) {
	if len(data) == 0 {
		return 0, 0, fmt.Errorf("%w: the frame is empty", ErrData)
	}
	var w, h C.int
	if C.jpeg_size(d.c, (*C.uchar)(&data[0]), C.size_t(len(data)), &w, &h) != C.JPEG_OK {
		return 0, 0, fmt.Errorf("%w: %s", ErrData, C.GoString(&d.c.msg[0]))
	}
	if w > maxSide || h > maxSide {
		return 0, 0, fmt.Errorf("%w: %dx%d pixels; each side must be at most %d", ErrSize, w, h, maxSide)
	}
	return int(w), int(h), nil
}

// Decode decodes the frame in data to out as tightly packed I420. The frame in data is
// shrink times as wide and as high as width and height; shrink is 1, 2, 4 or 8. Decode fails
// with [ErrSize] if the frame has another size, and with [ErrData] if it is incomplete or
// damaged.
func (d *Decoder) Decode(data, out []byte, width, height, shrink int) error {
	if len(data) == 0 {
		return fmt.Errorf("%w: the frame is empty", ErrData)
	}
	if width < 1 || height < 1 || width > maxSide || height > maxSide || len(out) < I420Bytes(width, height) {
		return fmt.Errorf("%w: %d bytes for %dx%d pixels", ErrSize, len(out), width, height)
	}
	if !slices.Contains(Shrinks[:], shrink) {
		return fmt.Errorf("%w: shrink factor %d must be one of %v", ErrSize, shrink, Shrinks)
	}
	switch C.jpeg_decode(d.c, (*C.uchar)(&data[0]), C.size_t(len(data)), (*C.uchar)(&out[0]), C.int(width), C.int(height), C.int(shrink)) {
	case C.JPEG_OK:
		return nil
	case C.JPEG_DAMAGED:
		return fmt.Errorf("%w: %s", ErrData, C.GoString(&d.c.msg[0]))
	}
	return fmt.Errorf("%w: %s, not %dx%d", ErrSize, C.GoString(&d.c.msg[0]), width*shrink, height*shrink)
}

// Close frees the decoder.
func (d *Decoder) Close() {
	if d.c != nil {
		C.jpeg_stop(d.c)
		C.free(unsafe.Pointer(d.c))
		d.c = nil
	}
}
