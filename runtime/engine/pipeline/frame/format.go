package frame

import (
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Errors of sources.
var (
	ErrFormat    = errors.New("malformed video")
	ErrTruncated = errors.New("video ends inside a frame")
)

// ErrLost is wrapped by errors that cost one frame; the source continues.
var ErrLost = errors.New("the frame is lost")

// Format is the geometry of a source's frames, tightly packed.
type Format struct {
	Pixels        core.Format
	Width, Height int
	Matrix        core.Matrix
	Rate          Rate
	Shrunk        int // factor by which the decoder reduced width and height; 0: none

	Record registry.Tensor   // of a source that gives tensors, which have no pixels
	More   []registry.Tensor // further tensors of a record, each from the next multiple of registry.TensorStride
}

// FullSize returns the size of the undecoded picture, the coordinates of plan and results.
func (f Format) FullSize() (width, height int) {
	k := max(f.Shrunk, 1)
	return f.Width * k, f.Height * k
}

// Shrink returns the format of a frame decoded at a fraction of its width and height.
func (f Format) Shrink(k int) Format {
	f.Shrunk, f.Width, f.Height = k, f.Width/k, f.Height/k
	return f
}

// Bytes returns the size of a frame or record.
func (f Format) Bytes() int {
	switch {
	case len(f.More) > 0:
		total := registry.TensorStride(f.Record)
		for _, t := range f.More {
			total += registry.TensorStride(t)
		}
		return int(total)
	case f.Record.Shape != nil:
		return int(f.Record.Bytes())
	}
	return core.FrameBytes(f.Pixels, f.Width, f.Height)
}

// Plane is a plane of a frame: rows of bytes.
type Plane struct{ Bytes, Count int }

// Rows returns the shape of each plane of a frame.
func (f Format) Rows() []Plane {
	cw, ch := (f.Width+1)/2, (f.Height+1)/2
	switch f.Pixels {
	case core.NV12:
		return []Plane{{f.Width, f.Height}, {2 * cw, ch}}
	case core.I420:
		return []Plane{{f.Width, f.Height}, {cw, ch}, {cw, ch}}
	}
	return []Plane{{f.Bytes() / f.Height, f.Height}}
}

// Rate is frames per second as a fraction; num 0 means unknown.
type Rate struct{ Num, Den int }

// Period returns the time between frames, 0 if the rate is unknown.
func (r Rate) Period() time.Duration {
	if r.Num <= 0 || r.Den <= 0 {
		return 0
	}
	return time.Duration(int64(time.Second) * int64(r.Den) / int64(r.Num))
}

// ScaleArea converts the area to the pixels of the decoded part.
func (f Format) ScaleArea(a core.Preprocess) core.Preprocess {
	k := max(f.Shrunk, 1)
	a.Width, a.Height = f.Width, f.Height
	a.Crop = core.Rect{X: a.Crop.X / k, Y: a.Crop.Y / k, Width: a.Crop.Width / k, Height: a.Crop.Height / k}
	return a
}

// CheckSize validates the size of frames that a plan describes; tensors have been checked.
func (f Format) CheckSize() error {
	if f.Record.Shape != nil {
		return nil
	}
	return CheckSize(f.Width, f.Height)
}

// CheckSize validates a size that comes from a plan or from a file.
func CheckSize(width, height int) error {
	if width < 1 || height < 1 || width > core.MaxSide || height > core.MaxSide {
		return fmt.Errorf("frames of %dx%d pixels; each side must be 1 to %d", width, height, core.MaxSide)
	}
	return nil
}
