// Package jpeg decodes JPEG frames to the planes of a picture with libjpeg-turbo,
// which it finds when a decoder is wanted: what never sees a JPEG needs no library.
// No RGB is made and none undone; frames stay YUV until a tensor is made of them.
//
//	lib, err := jpeg.Open("") // libturbojpeg.so.0 of the system
//	d, err := lib.NewDecoder()
//	width, height, err := d.Size(data)
//	err = d.Decode(data, frame, width, height, 1) // I420, tightly packed
//
// It also finds the frames of Motion JPEG: in AVI files, and one after another.
package jpeg

import "errors"

// Soname is the library that is looked for: that of libjpeg-turbo 1.2 to 3.
const Soname = "libturbojpeg.so.0"

// Errors to test with errors.Is.
var (
	ErrNoLibrary = errors.New("no usable " + Soname)
	ErrData      = errors.New("JPEG data is damaged") // this frame; the next may be good
	ErrSize      = errors.New("JPEG frame of another size")
	ErrFormat    = errors.New("not Motion JPEG")
	ErrTruncated = errors.New("it ends inside a frame")
)

// missing says how to get the library.
const missing = "install libturbojpeg0 (Debian) or libturbojpeg (Yocto; a layer whose pipelines read JPEG depends on it)"

// I420Bytes is the size of a frame that Decode makes.
func I420Bytes(width, height int) int {
	return width*height + 2*((width+1)/2)*((height+1)/2)
}

// Shrinks are the parts of a frame's width and height that can be decoded instead of
// all: those that libjpeg-turbo has vector code for.
var Shrinks = [...]int{1, 2, 4, 8}

// maxSide bounds frames, in pixels.
const maxSide = 16384
