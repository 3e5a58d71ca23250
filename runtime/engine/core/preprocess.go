package core

import (
	"fmt"
	"math"
)

// Limits of Preprocess, the same in every backend: positions are computed in
// exact 32-bit integers, and (2·MaxSide+1)·MaxSide still fits.
const (
	MaxSide = 16384 // pixels, width or height of a frame or tensor
)

// Format is the layout of a frame's planes. The chroma of NV12 and I420 has half
// the luma's resolution in both directions, rounded up for odd sizes; that of YUYV
// and UYVY in rows only. All but the first two are one plane.
type Format uint32

const (
	NV12  Format = iota // Y, then interleaved U and V
	I420                // Y, then U, then V
	YUYV                // Y0 U Y1 V: 4 bytes for two pixels
	UYVY                // U Y0 V Y1
	RGB24               // 3 bytes a pixel: red, green, blue
	BGR24               // 3 bytes a pixel: blue, green, red
	Gray8               // 1 byte a pixel, full range
)

// planes is how many planes frames have.
func (f Format) planes() int {
	switch f {
	case NV12:
		return 2
	case I420:
		return 3
	}
	return 1
}

// Fit says how a frame meets a tensor of another shape.
type Fit uint32

const (
	Stretch   Fit = iota // fill the tensor, aspect ratio not kept
	Letterbox            // keep the aspect ratio, centre, fill the border with Pad
)

// Color is the order of the tensor's channels, or that there is one.
type Color uint32

const (
	RGB Color = iota
	BGR
	Gray // one channel: luma, stretched to full range; 0.299 R + 0.587 G + 0.114 B
)

func (c Color) channels() int {
	if c == Gray {
		return 1
	}
	return 3
}

// Chroma is how colour is sampled. Nearest reads a quarter of what Bilinear
// reads; on natural images the two differ visibly only at coloured edges.
// Chroma samples are taken as centred between four luma samples.
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

// Preprocess makes one tensor (N = 1; C = 3, or 1 with Gray) of one frame in one
// pass: crop, bilinear resize, colour conversion, normalisation. A batch is several
// in one list, each into its part of the tensor; their frames may differ.
//
// For channel c of an output pixel inside the frame, with v in 0–255 after
// conversion and clamping:
//
//	out[c] = (v/255 − Mean[c]) / Std[c]
//
// and outside it (Letterbox) v = Pad. Mean and Std are in the order of Color,
// that is, in the order of the tensor's channels.
//
// The zero values of Crop, Pitch, Mean and Std mean the whole frame, tight
// rows, zero and one, so the smallest useful value is
//
//	core.Preprocess{Planes: planes, Width: w, Height: h, Out: out, OutW: 640, OutH: 640}
type Preprocess struct {
	Format Format
	Planes [3][]byte // host memory; NV12 uses two, I420 three (see SplitPlanes)
	Width  int       // pixels of the whole frame
	Height int
	Pitch  [3]int // bytes from one row to the next, per plane; 0: tight
	Crop   Rect   // region of the frame; zero: all of it

	Out    []float32 // at least OutLen; written in full
	OutW   int       // pixels
	OutH   int
	Fit    Fit
	Color  Color
	Chroma Chroma
	Matrix Matrix
	Mean   [3]float32 // in 0–1 units
	Std    [3]float32 // in 0–1 units; all zero: 1
	Pad    uint8      // border of Letterbox, 0–255, all channels

	// Of the tensor. Integers (I8, U8) are rounded to nearest even and saturate, so
	// that Mean and Std carry their scale: U8 pixels as they are need Std of 1/255.
	Type   Type
	Layout Layout
	// Out for Device.Preprocess of other types than F32, OutLen elements of Type.
	OutBytes []byte
}

// OutLen returns the number of values the tensor has.
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

// SplitPlanes cuts a tightly packed frame, planes one after another, into the
// value Preprocess.Planes wants. It does not copy.
func SplitPlanes(f Format, width, height int, frame []byte) ([3][]byte, error) {
	var planes [3][]byte
	if width < 1 || height < 1 || width > MaxSide || height > MaxSide {
		return planes, fmt.Errorf("split planes: frame of %dx%d pixels: each side must be 1 to %d: %w", width, height, MaxSide, ErrInvalid)
	}
	if need := FrameBytes(f, width, height); len(frame) < need {
		return planes, fmt.Errorf("split planes: a %dx%d frame has %d bytes, got %d: %w", width, height, need, len(frame), ErrInvalid)
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
		return planes, fmt.Errorf("split planes: format %d is unknown: %w", f, ErrInvalid)
	}
	return planes, nil
}

// Geometry says where the frame landed in the tensor. Post-processing uses it
// to bring boxes back to frame coordinates.
type Geometry struct {
	Inner  Rect    // part of the tensor the frame fills; all of it for Stretch
	Crop   Rect    // part of the frame that was used
	ScaleX float64 // frame pixels per tensor pixel
	ScaleY float64
}

// Geometry returns the mapping Preprocess applies, or why there is none.
func (p *Preprocess) Geometry() (Geometry, error) {
	crop := p.crop()
	if crop.Width < 1 || crop.Height < 1 || p.OutW < 1 || p.OutH < 1 ||
		crop.Width > MaxSide || crop.Height > MaxSide || p.OutW > MaxSide || p.OutH > MaxSide {
		return Geometry{}, fmt.Errorf("preprocess: %dx%d frame pixels into a %dx%d tensor: each side must be 1 to %d: %w",
			crop.Width, crop.Height, p.OutW, p.OutH, MaxSide, ErrInvalid)
	}
	g := Geometry{Inner: Rect{Width: p.OutW, Height: p.OutH}, Crop: crop}
	if p.Fit == Letterbox {
		w, h := crop.Width, crop.Height
		if w*p.OutH >= h*p.OutW { // frame is wider than the tensor: width decides
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

// ToFrame brings a point of the tensor (pixel edges are integers, so the centre
// of the first pixel is 0.5) to the frame, clamped to the crop.
func (g Geometry) ToFrame(x, y float64) (fx, fy float64) {
	fx = (x-float64(g.Inner.X))*g.ScaleX + float64(g.Crop.X)
	fy = (y-float64(g.Inner.Y))*g.ScaleY + float64(g.Crop.Y)
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
