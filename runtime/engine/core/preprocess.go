package core

import (
	"fmt"
	"math"
)

// MaxSide is the largest width or height of a frame or tensor, in pixels. Backends compute
// positions in 32-bit integers, which hold (2·MaxSide+1)·MaxSide.
const MaxSide = 16384

// Format is the pixel format of a frame. The chroma of NV12 and I420 has half the luma
// resolution in both directions, rounded up for odd sizes; that of YUYV and UYVY only
// horizontally. All formats but the first two have one plane.
type Format uint32

const (
	NV12  Format = iota // Y, then interleaved U and V
	I420                // Y, then U, then V
	YUYV                // Y0 U Y1 V: 4 bytes per two pixels
	UYVY                // U Y0 V Y1
	RGB24               // 3 bytes per pixel: red, green, blue
	BGR24               // 3 bytes per pixel: blue, green, red
	Gray8               // 1 byte per pixel, full range
)

// planes returns the number of planes.
func (f Format) planes() int {
	switch f {
	case NV12:
		return 2
	case I420:
		return 3
	}
	return 1
}

// Fit defines how a frame is scaled to a tensor of another aspect ratio.
type Fit uint32

const (
	Stretch   Fit = iota // fill the tensor, changing the aspect ratio
	Letterbox            // keep the aspect ratio, centre, fill the border with Pad
)

// Color is the order of the tensor's channels.
type Color uint32

const (
	RGB Color = iota
	BGR
	Gray // one channel: luma expanded to full range, or 0.299 R + 0.587 G + 0.114 B
)

func (c Color) channels() int {
	if c == Gray {
		return 1
	}
	return 3
}

// Chroma is the interpolation of chroma. Nearest reads a quarter of the samples that
// Bilinear reads; on natural images they differ visibly only at coloured edges. A chroma
// sample lies at the centre of its four luma samples.
type Chroma uint32

const (
	ChromaNearest Chroma = iota
	ChromaBilinear
)

// Matrix converts YUV to RGB. Luma is always interpolated before conversion.
type Matrix uint32

const (
	BT601Limited Matrix = iota // Y 16–235, most cameras and JPEG-free decoders below HD
	BT709Limited               // Y 16–235, HD video
	BT601Full                  // Y 0–255, JPEG and MJPEG
)

// Rect is a region in pixels.
type Rect struct{ X, Y, Width, Height int }

// Preprocess makes one tensor (N = 1; C = 3, or 1 with Gray) from one frame in one pass:
// crop, bilinear resize, colour conversion, normalisation. A batch is a list of several,
// each writing its part of the tensor; their frames may differ.
//
// For channel c of an output pixel inside the frame, with v in 0–255 after
// conversion and clamping:
//
//	out[c] = (v/255 − Mean[c]) / Std[c]
//
// and outside it (Letterbox) v = Pad. Mean and Std are in the order of the tensor's
// channels, which Color defines.
//
// The zero values of Crop, Pitch, Mean and Std mean the whole frame, tight rows, zero and
// one. The smallest useful value is
//
//	core.Preprocess{Planes: planes, Width: w, Height: h, Out: out, OutW: 640, OutH: 640}
type Preprocess struct {
	Format Format
	Planes [3][]byte // host memory; NV12 has two, I420 three (see SplitPlanes)
	Width  int       // of the whole frame, in pixels
	Height int
	Pitch  [3]int // bytes from one row to the next, per plane; 0: tight
	Crop   Rect   // region of the frame; zero: whole frame

	Out    []float32 // at least OutLen elements, all of which are written
	OutW   int       // pixels
	OutH   int
	Fit    Fit
	Color  Color
	Chroma Chroma
	Matrix Matrix
	Mean   [3]float32 // for values from 0 to 1
	Std    [3]float32 // for values from 0 to 1; all zero: 1
	Pad    uint8      // border of Letterbox, 0–255, all channels

	// Type and layout of the tensor. Integers (I8, U8) are rounded to nearest even and
	// saturate. Mean and Std define their scale: unchanged U8 pixels need Std of 1/255.
	Type   Type
	Layout Layout
	// OutBytes replaces Out for types other than F32: OutLen elements of Type.
	OutBytes []byte
}

// OutLen returns the number of elements of the tensor.
func (p *Preprocess) OutLen() int { return p.Color.channels() * p.OutW * p.OutH }

// FrameBytes returns the size in bytes of a tightly packed frame.
func FrameBytes(f Format, width, height int) int {
	switch f {
	case YUYV, UYVY:
		return 4 * ((width + 1) / 2) * height
	case RGB24, BGR24:
		return 3 * width * height
	case Gray8:
		return width * height
	}
	// NV12 and I420 differ in order, not in size.
	return width*height + 2*((width+1)/2)*((height+1)/2)
}

// SplitPlanes splits a tightly packed frame with consecutive planes into the slices of
// Preprocess.Planes. It does not copy.
func SplitPlanes(f Format, width, height int, frame []byte) ([3][]byte, error) {
	var planes [3][]byte
	if width < 1 || height < 1 || width > MaxSide || height > MaxSide {
		return planes, fmt.Errorf("split planes: frame of %dx%d pixels; each side must be 1 to %d: %w", width, height, MaxSide, ErrInvalid)
	}
	if need := FrameBytes(f, width, height); len(frame) < need {
		return planes, fmt.Errorf("split planes: a %dx%d frame needs %d bytes, got %d: %w", width, height, need, len(frame), ErrInvalid)
	}
	luma, chroma := width*height, ((width+1)/2)*((height+1)/2)
	switch f {
	case YUYV, UYVY, RGB24, BGR24, Gray8:
		planes[0] = frame[:FrameBytes(f, width, height)]
		return planes, nil
	}
	planes[0] = frame[:luma]
	switch f {
	case NV12:
		planes[1] = frame[luma : luma+2*chroma]
	case I420:
		planes[1] = frame[luma : luma+chroma]
		planes[2] = frame[luma+chroma : luma+2*chroma]
	default:
		return planes, fmt.Errorf("split planes: unknown format %d: %w", f, ErrInvalid)
	}
	return planes, nil
}

// Geometry describes where the frame lies in the tensor. Post-processing uses it to map
// boxes back to frame coordinates.
type Geometry struct {
	Inner  Rect    // part of the tensor that the frame fills; all of it for Stretch
	Crop   Rect    // part of the frame that is used
	ScaleX float64 // frame pixels per tensor pixel
	ScaleY float64
}

// Geometry returns the mapping of Preprocess, or an error for invalid sizes.
func (p *Preprocess) Geometry() (Geometry, error) {
	crop := p.crop()
	if crop.Width < 1 || crop.Height < 1 || p.OutW < 1 || p.OutH < 1 ||
		crop.Width > MaxSide || crop.Height > MaxSide || p.OutW > MaxSide || p.OutH > MaxSide {
		return Geometry{}, fmt.Errorf("preprocess: %dx%d frame pixels to a %dx%d tensor; each side must be 1 to %d: %w",
			crop.Width, crop.Height, p.OutW, p.OutH, MaxSide, ErrInvalid)
	}
	g := Geometry{Inner: Rect{Width: p.OutW, Height: p.OutH}, Crop: crop}
	if p.Fit == Letterbox {
		w, h := crop.Width, crop.Height
		if w*p.OutH >= h*p.OutW { // the frame is wider than the tensor
			g.Inner.Height = max(1, (2*h*p.OutW+w)/(2*w))
		} else {
			g.Inner.Width = max(1, (2*w*p.OutH+h)/(2*h))
		}
		g.Inner.X = (p.OutW - g.Inner.Width) / 2
		g.Inner.Y = (p.OutH - g.Inner.Height) / 2
	}
	g.ScaleX = float64(crop.Width) / float64(g.Inner.Width)
	g.ScaleY = float64(crop.Height) / float64(g.Inner.Height)
	return g, nil
}

// Scale maps a point of the tensor to the frame's pixels. A point in the border of a letterbox is
// outside the crop.
func (g Geometry) Scale(x, y float64) (fx, fy float64) {
	return (x-float64(g.Inner.X))*g.ScaleX + float64(g.Crop.X), (y-float64(g.Inner.Y))*g.ScaleY + float64(g.Crop.Y)
}

// ToFrame maps a point of the tensor to the frame, clamped to the crop. Pixel edges are
// integers; the centre of the first pixel is 0.5.
func (g Geometry) ToFrame(x, y float64) (fx, fy float64) {
	fx, fy = g.Scale(x, y)
	fx = math.Min(math.Max(fx, float64(g.Crop.X)), float64(g.Crop.X+g.Crop.Width))
	fy = math.Min(math.Max(fy, float64(g.Crop.Y)), float64(g.Crop.Y+g.Crop.Height))
	return fx, fy
}

func (p *Preprocess) crop() Rect {
	if p.Crop == (Rect{}) {
		return Rect{Width: p.Width, Height: p.Height}
	}
	return p.Crop
}

func (p *Preprocess) std() [3]float32 {
	if p.Std == ([3]float32{}) {
		return [3]float32{1, 1, 1}
	}
	return p.Std
}
