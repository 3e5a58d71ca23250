package pipeline

import (
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/schema/plan"
)

// Source is one kind of source.
type Source struct {
	Kind    string
	Formats []string // that it gives
	Live    bool     // where the plan does not set it
	Camera  bool     // its frames have the requested size, whatever their format
	Disk    bool     // frames may come from a disk
	Network bool     // frames may come from the network
	Program bool     // a program gives the frames
	Serves  bool     // callers give the frames, and the sink answers them
	// Device is the kind that runs on the device in its place, "" for itself.
	Device string
}

// Kinds of sources.
var (
	FileSource      = Source{Kind: "file", Formats: formatNames(storedFormat), Disk: true}
	SyntheticSource = Source{Kind: "synthetic", Formats: pixelFormats()}
	CameraSource    = Source{Kind: "v4l2", Formats: []string{"nv12", "i420", "yuyv", "uyvy", "grey", MJPEG}, Live: true, Camera: true}
	CommandSource   = Source{Kind: "command", Formats: formatNames(storedFormat), Disk: true, Network: true, Program: true}
	RTSPSource      = Source{Kind: "rtsp", Formats: formatNames(func(f Format) bool { return f.GStreamer != "" }), Live: true, Network: true, Program: true, Device: "command"}
	RingSource      = Source{Kind: "shm", Formats: formatNames(func(f Format) bool { return !f.Coded && storedFormat(f) }), Live: true}
	RequestSource   = Source{Kind: "request", Formats: []string{TensorFormat, ImageFormat, TextFormat}, Network: true, Serves: true}

	sources = []Source{FileSource, SyntheticSource, CameraSource, CommandSource, RTSPSource, RingSource, RequestSource}
)

// DriverBuffers is how many buffers a camera's driver keeps while every frame holds one: one is filled,
// one is queued next, one is being handed over.
const DriverBuffers = 3

// CameraBytes is the memory beside that of frames into which a camera's driver captures where the GPU's
// process reads them.
func CameraBytes(p *plan.Pipeline) int64 {
	k, _ := SourceOf(p.Source.Kind)
	f, _ := FormatOf(p.Source.Format)
	if !k.Camera || f.Coded || !slices.ContainsFunc(p.Stages, func(s plan.PipelineStage) bool { return Isolated(p, &s) }) {
		return 0
	}
	return DriverBuffers * FrameBytes(&p.Source)
}

// Sources lists the kinds of sources.
func Sources() []Source { return sources }

// SourceOf finds the entry of a kind.
func SourceOf(kind string) (Source, bool) {
	i := slices.IndexFunc(sources, func(s Source) bool { return s.Kind == kind })
	if i < 0 {
		return Source{}, false
	}
	return sources[i], true
}

// OffersFormat reports whether sources of the kind can deliver a format.
func (s Source) OffersFormat(format string) bool { return slices.Contains(s.Formats, format) }

// IsTensor reports whether a source gives tensors.
func IsTensor(s *plan.PipelineSource) bool {
	return s.Format == TensorFormat || s.Format == TextFormat
}

// IsServed reports whether callers give the frames of a source.
func IsServed(s *plan.PipelineSource) bool { return s.Kind == RequestSource.Kind }

// HasFrameSize reports whether a source's frames contain their size. The plan need not set it
// then.
func HasFrameSize(s *plan.PipelineSource) bool {
	k, _ := SourceOf(s.Kind)
	f, ok := FormatOf(s.Format)
	return ok && (f.Name == Y4M || IsTensor(s) || f.Coded && !k.Camera)
}

// HasFrameRate reports whether a source's frames can contain their rate.
func HasFrameRate(s *plan.PipelineSource) bool {
	return s.Format == Y4M || s.Format == MJPEG && !s.Live
}

// Format is how the frames of a source are laid out.
type Format struct {
	Name  string
	Coded bool // a stream that is decoded, and holds the size of its frames
	Sent  bool // a request carries it as bytes, of which the source makes a frame or a tensor

	GStreamer string // name of the layout there, "" where no receiver gives it
	FFmpeg    string // name of the layout there

	layout layout
	bytes  int64 // of a pixel, where each has its own
}

// layout is how pixels share their chroma.
type layout int

const (
	apart  layout = iota // each pixel has its own
	pairs                // two in a row share it
	planar               // four share it, in planes of their own
)

// Formats with a header or a codec, and that of tensors.
const (
	MJPEG        = "mjpeg"
	Y4M          = "y4m"
	TensorFormat = "tensor"
	ImageFormat  = "image" // a JPEG or PNG file, which becomes an rgb frame
	TextFormat   = "text"  // UTF-8, which becomes a tensor of bytes, padded with zeros
)

var formats = []Format{
	{Name: "nv12", GStreamer: "NV12", FFmpeg: "nv12", layout: planar},
	{Name: "i420", GStreamer: "I420", FFmpeg: "yuv420p", layout: planar},
	{Name: "yuyv", GStreamer: "YUY2", FFmpeg: "yuyv422", layout: pairs},
	{Name: "uyvy", GStreamer: "UYVY", FFmpeg: "uyvy422", layout: pairs},
	{Name: "grey", GStreamer: "GRAY8", FFmpeg: "gray", bytes: 1},
	{Name: "rgb", FFmpeg: "rgb24", bytes: 3},
	{Name: "bgr", FFmpeg: "bgr24", bytes: 3},
	// Both are decoded to a chroma sample for four pixels.
	{Name: MJPEG, Coded: true, layout: planar},
	{Name: Y4M, Coded: true, layout: planar},
	{Name: TensorFormat}, // dtype and shape of the source
	{Name: ImageFormat, Sent: true, bytes: 3},
	{Name: TextFormat, Sent: true},
}

// Formats lists the formats of frames.
func Formats() []Format { return formats }

// FormatOf finds a format by its name.
func FormatOf(name string) (Format, bool) {
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return formats[i], true
}

// FrameBytes is the size of a frame in memory, 0 where it is not known.
func FrameBytes(s *plan.PipelineSource) int64 {
	f, ok := FormatOf(s.Format)
	if !ok {
		return 0
	}
	if IsTensor(s) {
		all, total := SourceTensors(s), int64(0)
		if len(all) == 1 {
			return all[0].Bytes()
		}
		for _, t := range all {
			if t.Bytes() == 0 {
				return 0
			}
			total += TensorStride(t)
		}
		return total
	}
	w, h := int64(s.Width), int64(s.Height)
	switch f.layout {
	case planar:
		return w*h + 2*((w+1)/2)*((h+1)/2)
	case pairs:
		return 4 * ((w + 1) / 2) * h
	}
	return w * h * f.bytes
}

// PlaneBytes is the size of a frame's first plane, which has the brightness, 0 where it is not known.
func PlaneBytes(s *plan.PipelineSource) int64 {
	if f, ok := FormatOf(s.Format); ok && f.layout == planar {
		return int64(s.Width) * int64(s.Height)
	}
	return FrameBytes(s)
}

// PaddedRow returns the bytes of a row that GStreamer would pad to a multiple of four, so that its frames
// are longer than [FrameBytes]; 0 where it adds nothing.
func PaddedRow(s *plan.PipelineSource) int64 {
	if len(s.Exec) == 0 || base(s.Exec[0]) != "gst-launch-1.0" {
		return 0
	}
	f, ok := FormatOf(s.Format)
	if !ok || f.Coded {
		return 0
	}
	w := int64(s.Width)
	rows := []int64{w * f.bytes}
	switch f.layout {
	case planar:
		rows = []int64{w, (w + 1) / 2}
		if f.GStreamer == "NV12" {
			rows[1] *= 2
		}
		if s.Height%2 != 0 { // GStreamer rounds the number of rows
			return w
		}
	case pairs:
		rows = []int64{4 * ((w + 1) / 2)}
	}
	for _, r := range rows {
		if r%4 != 0 {
			return r
		}
	}
	return 0
}

// checkSource checks the tensors of a source.
func checkSource(s *plan.PipelineSource) []Fault {
	fault := func(topic Topic, field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: topic, Path: []string{"source", field}, Value: value, Advice: advice, Reason: fmt.Sprintf(format, args...)}}
	}
	_, known := ParseDType(s.DType)
	switch {
	case !IsTensor(s) && (s.DType != "" || s.Shape != nil):
		return fault(Settings, "format", s.Format, "choose format: \"tensor\", or remove dtype and shape", "a source of %s frames has no dtype and shape", s.Format)
	case s.Request != nil && len(s.Request.Inputs) > 0:
		return checkRequestInputs(s)
	case !IsTensor(s):
		return nil
	case s.Format == TextFormat && s.DType != "":
		return fault(Settings, "dtype", s.DType, "remove dtype", "texts are bytes, padded with zeros")
	case !known:
		return fault(Range, "dtype", s.DType, "", "the source has the unknown type %q", s.DType)
	case s.Width != 0 || s.Height != 0:
		return fault(Settings, "format", s.Format, "remove width and height", "a source of tensors has no width and height")
	case len(s.Shape) == 0:
		return fault(Settings, "format", s.Format, "declare the shape of a record: shape", "a source of tensors has a shape")
	case len(s.Shape) > MaxRank || SourceOutput(s).Tensor().Bytes() == 0:
		return fault(Range, "shape", fmt.Sprint(s.Shape), "give a smaller shape", "a tensor has at most %d axes, each at least 1, and a pipeline holds %d MiB", MaxRank, MaxPool>>20)
	}
	return nil
}

// storedFormat reports whether files, rings and programs can deliver a format.
func storedFormat(f Format) bool { return !f.Sent }

// formatNames lists the formats for which keep holds.
func formatNames(keep func(Format) bool) []string {
	var names []string
	for _, f := range formats {
		if keep(f) {
			names = append(names, f.Name)
		}
	}
	return names
}

func pixelFormats() []string {
	return formatNames(func(f Format) bool { return !f.Coded && !f.Sent && f.Name != TensorFormat })
}
