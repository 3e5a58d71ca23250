package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/v4l2"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

const (
	formatY4M   = registry.Y4M
	formatMJPEG = registry.MJPEG
)

// pixelFormats are the layouts of frames by their names in a plan.
var pixelFormats = map[string]core.Format{
	"nv12": core.NV12, "i420": core.I420, "yuyv": core.YUYV, "uyvy": core.UYVY,
	"grey": core.Gray8, "rgb": core.RGB24, "bgr": core.BGR24,
}

// What a source does when it has ended or failed.
const (
	restartAlways    = "always"
	restartOnFailure = "on-failure"
	restartNever     = "never"
)

// stopped is how long a live source may give no frame before it counts as one
// that has stopped, when the plan does not say.
const stopped = 2 * time.Second

func openSource(o Options, say func(Event), within *reserve) (source, error) {
	s := o.Plan.Source
	f := format{width: s.Width, height: s.Height, rate: rate{s.FPSNum, s.FPSDen}}
	if s.FPSNum > 0 && s.FPSDen == 0 {
		f.rate.den = 1
	}
	if r := f.rate; r.num < 0 || r.den < 0 || r.num > math.MaxInt32 || r.den > math.MaxInt32 {
		return nil, fmt.Errorf("%w: a rate of %d/%d", ErrPlan, r.num, r.den)
	}
	f.matrix = matrixFor(s.Height, false)
	kind, path := s.Kind, locate(o.Dir, s.Path)
	if o.Source != "" {
		// A file stands in for whatever the plan reads on the device.
		kind, path = "file", o.Source
		switch filepath.Ext(path) {
		case ".y4m":
			s.Format = formatY4M
		case ".avi", ".mjpeg", ".mjpg", ".jpg", ".jpeg":
			s.Format = formatMJPEG
		}
	}
	known := false
	if f.pixels, known = pixelFormats[s.Format]; !known && s.Format != "" && s.Format != formatY4M && s.Format != formatMJPEG {
		return nil, fmt.Errorf("%w: format %q; it is one of nv12, i420, yuyv, uyvy, grey, rgb, bgr, mjpeg, y4m", ErrPlan, s.Format)
	}
	after, err := newRevival(s, say)
	if err != nil {
		return nil, err
	}
	spare := func(width, height int) int { return shrinkFor(o.Plan, width, height) }
	switch kind {
	case "synthetic":
		if !known && s.Format != "" {
			return nil, fmt.Errorf("%w: format %s is for files and commands; synthetic frames are nv12 or i420", ErrPlan, s.Format)
		}
		return openSynthetic(f)
	case "file":
		if path == "" {
			return nil, fmt.Errorf("%w: no file is named", ErrPlan)
		}
		file, err := openFile(o.Start, path)
		if err != nil {
			return nil, err
		}
		src, err := openStream(o.Start, within.input(file), s, f, spare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return src, nil
	case "command":
		if len(s.Exec) == 0 || s.Exec[0] == "" {
			return nil, fmt.Errorf("%w: no command is named", ErrPlan)
		}
		if !s.Live && after.restart == restartNever {
			c, err := startCommand(s.Exec)
			if err != nil {
				return nil, err
			}
			return openStream(o.Start, c, s, f, spare)
		}
		return openCommand(s.Exec, after, func(in input) (source, error) { return openStream(o.Start, in, s, f, spare) })
	case "shm":
		if !known {
			return nil, fmt.Errorf("%w: format %q; rings hold frames of pixels", ErrPlan, s.Format)
		}
		return openRingSource(path, f, after)
	case "v4l2":
		sys := o.system
		if sys == nil {
			sys = v4l2.Kernel{}
		}
		return openCamera(sys, path, f, s.Format, after, spare)
	}
	return nil, fmt.Errorf("%w: kind %q; it is one of file, command, synthetic, v4l2, shm", ErrPlan, s.Kind)
}

// shrinkFor is how far frames of a size can be decoded smaller, because every tensor
// that is made of them is smaller still: on no level of the ladder is a pixel of it
// less than a pixel of the frame, and crops fall on whole pixels.
func shrinkFor(p plan.Pipeline, width, height int) int {
	levels, err := planLevels(p)
	if err != nil {
		return 1 // it is said when the stages are built
	}
	best := 1
	for _, k := range jpeg.Shrinks {
		fits := width%k == 0 && height%k == 0
		for _, l := range levels {
			if len(l.stages) == 0 || l.stages[0].Preprocess == nil {
				return 1 // it takes the frame as it is
			}
			a, err := preprocessArgs(l.stages[0].Preprocess, format{pixels: core.I420, width: width, height: height})
			if err != nil {
				return 1
			}
			g, err := a.Geometry()
			fits = fits && err == nil && g.ScaleX >= float64(k) && g.ScaleY >= float64(k) &&
				g.Crop.X%k == 0 && g.Crop.Y%k == 0 && g.Crop.Width%k == 0 && g.Crop.Height%k == 0
		}
		if fits {
			best = k
		}
	}
	return best
}

// openFile opens a file of frames. A pipe is there when somebody comes to write to it:
// the wait for that ends with ctx.
func openFile(ctx context.Context, path string) (*os.File, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case st.Mode().IsRegular() && st.Size() == 0:
		return nil, fmt.Errorf("%w: %s is empty", ErrFormat, path)
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
	// Somebody comes: this process.
	if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		<-opened
		_ = unix.Close(fd)
		_ = f.Close()
	}
	return nil, ctx.Err()
}

// openStream reads frames from in, which it closes when it cannot. The wait for a header
// ends with ctx.
func openStream(ctx context.Context, in input, s plan.PipelineSource, f format, spare shrinking) (src source, err error) {
	defer context.AfterFunc(ctx, func() { interruptRead(in) })()
	switch s.Format {
	case formatY4M:
		src, err = openY4M(in, f.rate)
	case formatMJPEG:
		src, err = openMJPEG(in, f, s.Decoders, spare)
	default:
		src, err = openRaw(in, f)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return src, nil
}

// revival says when a source counts as stopped, and what is done about it.
type revival struct {
	timeout time.Duration
	restart string
	pause   backoff.Delay // before the next attempt
	say     func(Event)
}

func newRevival(s plan.PipelineSource, say func(Event)) (revival, error) {
	kind, _ := registry.SourceOf(s.Kind)
	r := revival{timeout: time.Duration(s.Timeout), restart: s.Restart, say: say}
	switch {
	case r.timeout < 0:
		return r, fmt.Errorf("%w: timeout of %v", ErrPlan, r.timeout)
	case r.timeout == 0:
		r.timeout = stopped
	}
	switch r.restart {
	case "":
		if r.restart = restartNever; s.Live || kind.Camera {
			r.restart = restartAlways
		}
	case restartAlways, restartOnFailure, restartNever:
	default:
		return r, fmt.Errorf("%w: restart %q; it is one of %s, %s, %s", ErrPlan, r.restart, restartAlways, restartOnFailure, restartNever)
	}
	return r, nil
}

func (r *revival) event(format string, a ...any) {
	r.say(Event{Kind: EventSource, Stage: idSource, Why: fmt.Sprintf(format, a...)})
}
