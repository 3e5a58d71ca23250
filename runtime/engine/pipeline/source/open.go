package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
	"github.com/yoctune/yoctune/runtime/engine/v4l2"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// pixelFormats maps the plan's pixel formats to the core's.
var pixelFormats = map[string]core.Format{
	"nv12": core.NV12, "i420": core.I420, "yuyv": core.YUYV, "uyvy": core.UYVY,
	"grey": core.Gray8, "rgb": core.RGB24, "bgr": core.BGR24, registry.ImageFormat: core.RGB24,
}

// Options for opening a source.
type Options struct {
	Source plan.PipelineSource
	Dir    string                      // base of relative paths
	File   string                      // file to read instead of the plan's source, "" for none
	Start  context.Context             // ends the wait for a source that does not start
	System v4l2.System                 // of cameras, nil: the kernel
	Limit  func(Input) Input           // rate-limits disk input; may be nil
	Shrink func(width, height int) int // factor by which frames of a size can be decoded smaller
	Say    func(why string)            // called with each event of the source
	Port   *request.Port               // of requests
}

// opener holds the parameters that every kind of source is opened with.
type opener struct {
	Options
	path   string
	format frame.Format
	after  restartPolicy
}

// openers maps each kind of source to the function that opens it.
var openers = map[string]func(opener) (Source, error){
	registry.FileSource.Kind:      openFileSource,
	registry.SyntheticSource.Kind: func(o opener) (Source, error) { return openSynthetic(o.format) },
	registry.CameraSource.Kind:    openCameraSource,
	registry.CommandSource.Kind:   openCommandSource,
	registry.RequestSource.Kind:   openRequestSource,
	registry.RingSource.Kind:      func(o opener) (Source, error) { return openRingSource(o.path, o.format, o.after) },
}

// Open opens the source of a plan.
func Open(so Options) (Source, error) {
	s := &so.Source
	f, err := sourceFormat(s)
	if err != nil {
		return nil, err
	}
	o := opener{path: s.Path}
	if o.path != "" && !filepath.IsAbs(o.path) {
		o.path = filepath.Join(so.Dir, o.path)
	}
	kind, ok := registry.SourceOf(s.Kind)
	if so.File != "" {
		// A file replaces the source that the plan reads on the device.
		kind, ok, o.path = registry.FileSource, true, so.File
		switch filepath.Ext(so.File) {
		case ".y4m":
			s.Format = registry.Y4M
		case ".avi", ".mjpeg", ".mjpg", ".jpg", ".jpeg":
			s.Format = registry.MJPEG
		case ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".ts", ".mpg", ".mpeg", ".h264", ".h265", ".wmv", ".flv":
			if s.Exec, err = decodeWithFFmpeg(so.File); err != nil {
				return nil, err
			}
			kind, s.Format = registry.CommandSource, registry.Y4M
		}
	}
	if registry.IsTensor(s) != (f.Record.Shape != nil) {
		return nil, fmt.Errorf("%w: the source gives tensors, and %s is video", registry.ErrPlan, so.File)
	}
	open := openers[kind.Kind]
	switch _, isFormat := registry.FormatOf(s.Format); {
	case !ok || open == nil:
		return nil, fmt.Errorf("%w: unknown kind %q", registry.ErrPlan, s.Kind)
	case s.Format != "" && !isFormat:
		return nil, fmt.Errorf("%w: unknown format %q", registry.ErrPlan, s.Format)
	case s.Format != "" && !kind.OffersFormat(s.Format):
		return nil, fmt.Errorf("%w: a source of kind %s does not support format %s: use one of %s", registry.ErrPlan, kind.Kind, s.Format, strings.Join(kind.Formats, ", "))
	}
	f.Pixels = pixelFormats[s.Format]
	if o.after, err = newRestartPolicy(*s, so.Say); err != nil {
		return nil, err
	}
	o.Options, o.format = so, f
	return open(o)
}

// decodeWithFFmpeg returns the command that decodes a video to frames.
func decodeWithFFmpeg(file string) ([]string, error) {
	const program = "ffmpeg"
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("%s is compressed, and %s, which decodes it, is not installed; convert it elsewhere: %s -i %s -pix_fmt yuv420p clip.y4m", file, program, program, file)
	}
	// Without a protocol a name could be that of a server, or a flag.
	return []string{program, "-nostdin", "-v", "error", "-i", "file:" + file, "-an", "-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "-"}, nil
}

// sourceFormat is the size, rate and colour matrix that a plan gives.
func sourceFormat(s *plan.PipelineSource) (frame.Format, error) {
	rate := frame.Rate{Num: s.FPSNum, Den: s.FPSDen}
	if rate.Num > 0 && rate.Den == 0 {
		rate.Den = 1
	}
	if rate.Num < 0 || rate.Den < 0 || rate.Num > math.MaxInt32 || rate.Den > math.MaxInt32 {
		return frame.Format{}, fmt.Errorf("%w: invalid frame rate %d/%d", registry.ErrPlan, rate.Num, rate.Den)
	}
	f := frame.Format{Width: s.Width, Height: s.Height, Rate: rate, Matrix: matrixFor(s.Height, false)}
	if registry.IsTensor(s) {
		all := registry.SourceTensors(s)
		f.Record, f.More = all[0], all[1:]
	}
	return f, nil
}

func openFileSource(o opener) (Source, error) {
	if o.path == "" {
		return nil, fmt.Errorf("%w: missing path of the file", registry.ErrPlan)
	}
	file, err := openFile(o.Start, o.path)
	if err != nil {
		return nil, err
	}
	in := Input(file)
	if o.Limit != nil {
		in = o.Limit(in)
	}
	src, err := o.stream(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path, err)
	}
	return src, nil
}

func openCommandSource(o opener) (Source, error) {
	if len(o.Source.Exec) == 0 || o.Source.Exec[0] == "" {
		return nil, fmt.Errorf("%w: missing command", registry.ErrPlan)
	}
	if o.Source.Live || o.after.restart != restartNever {
		return openCommand(o.Source.Exec, o.after, o.stream)
	}
	c, err := startCommand(o.Source.Exec)
	if err != nil {
		return nil, err
	}
	return o.stream(c)
}

func openCameraSource(o opener) (Source, error) {
	sys := o.System
	if sys == nil {
		sys = v4l2.Kernel{}
	}
	// Poll waits for a frame, so that none of these calls has to wait for long. Drivers that start or
	// stop a sensor take up to seconds.
	sys = v4l2.Limit(sys, max(o.after.timeout, time.Second), max(o.after.timeout, 5*time.Second))
	return openCamera(sys, o.path, o.format, o.Source.Format, o.after, o.Shrink)
}

func (o opener) stream(in Input) (Source, error) {
	return openStream(o.Start, in, o.Source, o.format, o.Shrink)
}

// openFile opens a file of frames. Opening a pipe waits for a writer until ctx ends.
func openFile(ctx context.Context, path string) (*os.File, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case st.Mode().IsRegular() && st.Size() == 0:
		return nil, fmt.Errorf("%w: %s is empty", frame.ErrFormat, path)
	case st.Mode()&os.ModeNamedPipe == 0:
		return os.Open(path)
	}
	var f *os.File
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		f, err = os.Open(path)
	}()
	select {
	case <-opened:
		return f, err
	case <-ctx.Done():
	}
	// Act as the writer, to end the wait.
	if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		<-opened
		_ = unix.Close(fd)
		_ = f.Close()
	}
	return nil, ctx.Err()
}

// openStream reads frames from in, and closes it on failure. The wait for a header ends with
// ctx.
func openStream(ctx context.Context, in Input, s plan.PipelineSource, f frame.Format, spare shrinking) (src Source, err error) {
	defer context.AfterFunc(ctx, func() { interruptRead(in) })()
	switch s.Format {
	case registry.Y4M:
		src, err = openY4M(in, f.Rate)
	case registry.MJPEG:
		src, err = openMJPEG(in, f, s.Decoders, spare)
	default:
		src, err = openRaw(in, f)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return src, nil
}
