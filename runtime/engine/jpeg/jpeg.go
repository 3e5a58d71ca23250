// Package jpeg decodes JPEG frames to YUV planes with libjpeg-turbo, without a conversion to
// RGB. It opens the library at run time, so that only programs that decode JPEG need it.
//
//	lib, err := jpeg.Open("") // libturbojpeg.so.0 of the system
//	d, err := lib.NewDecoder()
//	width, height, err := d.Size(data)
//	err = d.Decode(data, frame, width, height, 1) // I420, tightly packed
//
// It also reads Motion JPEG streams: AVI files and concatenated images.
package jpeg

import "errors"

// Soname is the default library, that of libjpeg-turbo 1.2 to 3.
const Soname = "libturbojpeg.so.0"

// Errors to test with errors.Is.
var (
	ErrNoLibrary = errors.New("no usable " + Soname)
	ErrData      = errors.New("JPEG data is damaged") // the next frame may be intact
	ErrSize      = errors.New("unexpected size of a JPEG frame")
	ErrFormat    = errors.New("not Motion JPEG")
	ErrTruncated = errors.New("the stream ends inside a frame")
)

// missing is the advice in ErrNoLibrary.
const missing = "install libturbojpeg0 (Debian) or libturbojpeg (Yocto; a layer whose pipelines read JPEG depends on it)"

// I420Bytes returns the size in bytes of a frame that Decode writes.
func I420Bytes(width, height int) int {
	return width*height + 2*((width+1)/2)*((height+1)/2)
}

// Shrinks are the factors by which Decode can reduce width and height: those for which
// libjpeg-turbo has vector code.
var Shrinks = [...]int{1, 2, 4, 8}

// maxSide is the largest width or height of a frame, in pixels.
const maxSide = 16384
