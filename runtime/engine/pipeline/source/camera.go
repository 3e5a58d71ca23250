package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/v4l2"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

const driverBuffers = registry.DriverBuffers

// cameraSource reads a V4L2 device. If the driver's layout is the pipeline's, frames use the
// driver's memory, which is queued again when the frame slot is reused. Otherwise each frame is
// copied once.
//
// A camera that is unplugged or stops is reopened by a persistent name, and so is an input
// whose signal changed. If it then delivers frames of another size, the run ends; the pipeline
// must be started again for the new size.
type cameraSource struct {
	sys    v4l2.System
	path   string
	want   v4l2.Want
	at     frame.Format
	after  restartPolicy
	clock  frame.Clock
	frames int           // frames that hold buffers, 0: frames are copied
	areas  [][]byte      // memory of the program that the driver captures into, nil: its own
	share  bool          // buffers are exported as DMA buffers
	shared uint64        // number of buffers exported so far
	began  bool          // the first frame was requested
	jpeg   *jpeg.Decoder // nil: frames come as pixels

	now          *capture // nil without a camera
	old          []*capture
	lost         int
	last         int64 // timestamp of the previous frame, ns
	ignoreStamps bool  // the timestamps of this camera are implausible

	mu   sync.Mutex // guards what interrupt reads
	dev  *v4l2.Device
	stop chan struct{}
	once sync.Once
}

// capture is one stream of a camera, from opening to closing.
type capture struct {
	dev   *v4l2.Device
	loans []buffer
	out   int // buffers held by frames
	ended bool
}

// buffer is a buffer of the driver and the state of the frame that holds it.
type buffer struct {
	of    *capture
	index int
	lent  bool
	idle  atomic.Bool // the frame that holds it is settled

	dma *custom.Buffer // nil if not exported
}

func (b *buffer) Settle() { b.idle.Store(true) }

func (b *buffer) Exported() *custom.Buffer { return b.dma }

// cameraFormats maps the plan's formats to the kernel's.
func cameraFormats(name string) []v4l2.FourCC {
	return map[string][]v4l2.FourCC{
		"nv12": {v4l2.NV12, v4l2.NV12M}, "": {v4l2.NV12, v4l2.NV12M}, "i420": {v4l2.I420, v4l2.I420M},
		"yuyv": {v4l2.YUYV}, "uyvy": {v4l2.UYVY}, "grey": {v4l2.Grey}, registry.MJPEG: {v4l2.MJPEG, v4l2.JPEG},
	}[name]
}

func openCamera(sys v4l2.System, path string, f frame.Format, name string, after restartPolicy, spare shrinking) (Source, error) {
	formats := cameraFormats(name)
	if formats == nil {
		return nil, fmt.Errorf("%w: unsupported camera format %s; use one of nv12, i420, yuyv, uyvy, grey, mjpeg", registry.ErrPlan, name)
	}
	if path == "" {
		return nil, fmt.Errorf("%w: missing path of the camera", registry.ErrPlan)
	}
	if err := frame.CheckSize(f.Width, f.Height); err != nil {
		return nil, fmt.Errorf("%w: %w", registry.ErrPlan, err)
	}
	k, err := frame.NewClock()
	if err != nil {
		return nil, err
	}
	c := &cameraSource{
		sys: sys, path: path, at: f, after: after, clock: k, stop: make(chan struct{}),
		want: v4l2.Want{Formats: formats, Width: f.Width, Height: f.Height, Num: f.Rate.Num, Den: f.Rate.Den},
	}
	if name == registry.MJPEG {
		lib, err := jpeg.Open("")
		if err != nil {
			return nil, err
		}
		if c.jpeg, err = lib.NewDecoder(); err != nil {
			return nil, err
		}
		c.at.Pixels = core.I420
	}
	d, err := v4l2.Open(sys, path, c.want)
	if err != nil {
		c.closeDecoder()
		return nil, err
	}
	got := d.Format()
	c.now = &capture{dev: d}
	c.dev = d
	c.path = sys.Stable(path)
	// Every later stream must deliver what the pipeline was built for.
	c.at.Width, c.at.Height = got.Width, got.Height
	c.want.Width, c.want.Height = got.Width, got.Height
	if got.Num > 0 {
		c.at.Rate = frame.Rate{Num: got.Num, Den: got.Den}
	}
	switch {
	case got.Full:
		c.at.Matrix = core.BT601Full
	case got.HD:
		c.at.Matrix = core.BT709Limited
	default:
		c.at.Matrix = core.BT601Limited
	}
	if err := frame.CheckSize(got.Width, got.Height); err != nil {
		c.closeDecoder()
		return nil, errors.Join(fmt.Errorf("%w: %w", frame.ErrFormat, err), d.Close())
	}
	if c.jpeg != nil {
		c.at = c.at.Shrink(spare(got.Width, got.Height))
	}
	return c, nil
}

func (c *cameraSource) Format() frame.Format { return c.at }

// ReadFrame is for a source that the engine paces.
func (c *cameraSource) ReadFrame([]byte) error { return errors.ErrUnsupported }

// Lend lets frames use the driver's memory if the layouts match and the driver has a buffer for
// each frame. Where another process reads frames, the driver captures into the memory of both, if it can.
func (c *cameraSource) Lend(l Lending) (bool, error) {
	d := c.now.dev
	n := l.Frames + driverBuffers
	lends := c.fits(d.Format()) && n <= 32
	if lends && l.Memory != nil {
		err := d.AllocateOver(n, func(areas, bytes int) (_ [][]byte, err error) {
			c.areas, err = l.Memory(areas, bytes)
			return c.areas, err
		})
		if err == nil {
			c.frames = l.Frames
			c.initBuffers(c.now)
			return true, nil
		}
		if c.areas = nil; !errors.Is(err, v4l2.ErrMemory) {
			return false, err
		}
		c.after.event("frames are copied to the memory that the GPU's process reads: %v", err)
	}
	if lends = lends && l.Memory == nil; !lends {
		n = driverBuffers + 1
	}
	if err := d.Allocate(n); err != nil {
		return false, err
	}
	if lends && d.Buffers() >= n {
		c.frames, c.share = l.Frames, l.Share
	}
	c.initBuffers(c.now)
	return c.frames > 0, nil
}

// fits reports whether a driver's frame is contiguous and unpadded, as frames of the pipeline
// are.
func (c *cameraSource) fits(f v4l2.Format) bool {
	row := c.at.Rows()[0]
	return c.jpeg == nil && f.Planes == 1 && f.Pitch[0] == row.Bytes && c.at.Width%2 == 0 && f.Size[0] >= c.at.Bytes()
}

// initBuffers describes the buffers of a stream, and exports them if they are shared.
func (c *cameraSource) initBuffers(s *capture) {
	s.loans = make([]buffer, s.dev.Buffers())
	for i := range s.loans {
		l := &s.loans[i]
		l.of, l.index = s, i
		if !c.share {
			continue
		}
		fds, err := s.dev.Export(i)
		if err != nil {
			c.share = false
			c.after.event("frames are copied for the custom stage, because the driver cannot export DMA buffers: %v", err)
			continue
		}
		c.shared++
		l.dma = &custom.Buffer{ID: c.shared, Number: i + 1, FD: fds[0], Bytes: c.at.Bytes()}
	}
}

func (c *cameraSource) Interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.once.Do(func() { close(c.stop) })
	if c.dev != nil {
		c.dev.Interrupt()
	}
}

// Capture waits for a frame. Without a camera it waits for one to return.
func (c *cameraSource) Capture(f *frame.Frame) (lost int, err error) {
	if err := c.startStream(); err != nil {
		return 0, err
	}
	c.requeue(f)
	for {
		if c.now == nil {
			if err := c.reopen(); err != nil {
				return 0, err
			}
		}
		got, err := c.now.dev.Next(c.after.timeout)
		c.lost += int(got.Lost)
		lost := c.lost
		switch {
		case err == nil:
			c.lost, c.after.pause = 0, 0
			return lost, c.receive(f, &got)
		case errors.Is(err, v4l2.ErrInterrupted):
			return 0, context.Canceled
		case errors.Is(err, v4l2.ErrFrame):
			c.lost = 0
			return lost, fmt.Errorf("%w: %w", frame.ErrLost, err)
		}
		if err := c.endStream(err); err != nil {
			return 0, err
		}
	}
}

// startStream starts the stream when the first frame is requested. A stream that runs while models
// load would only fill its buffers with old frames.
func (c *cameraSource) startStream() error {
	if c.began {
		return nil
	}
	c.began = true
	for _, s := range c.now.dev.Format().Adjusted {
		c.after.event("%s", s)
	}
	if err := c.now.dev.Start(); err != nil {
		return c.endStream(err)
	}
	return nil
}

// receive puts the driver's frame into f, by reference or by a copy.
func (c *cameraSource) receive(f *frame.Frame, got *v4l2.Frame) error {
	f.Arrived = c.clock.Now()
	f.Capture = c.captureTime(got, f.Arrived)
	if c.frames > 0 {
		f.Pixels = got.Planes[0][:c.at.Bytes()]
		l := &c.now.loans[got.Index]
		l.lent = true
		l.idle.Store(false)
		f.Loan = l
		c.now.out++
		f.Copies = 0
		return nil
	}
	err := c.convert(f, got)
	if qerr := c.now.dev.Queue(got.Index); qerr != nil {
		// This frame is good; the next one reports the fault.
		c.after.event("the driver did not accept a buffer back: %v", qerr)
	}
	return err
}

// convert converts a frame of the driver into f's own memory.
func (c *cameraSource) convert(f *frame.Frame, got *v4l2.Frame) error {
	if c.jpeg != nil {
		f.Copies = 0
		if err := c.jpeg.Decode(got.Planes[0], f.Pixels, c.at.Width, c.at.Height, c.at.Shrunk); err != nil {
			return fmt.Errorf("%w: %w", frame.ErrLost, err)
		}
		return nil
	}
	form := c.now.dev.Format()
	planes, pitch, err := form.Image(got)
	if err != nil {
		return fmt.Errorf("%w: %w", frame.ErrLost, err)
	}
	pack(f.Pixels, c.at, planes, pitch)
	f.Copies = 1
	return nil
}

// closeDecoder frees the JPEG decoder, if there is one.
func (c *cameraSource) closeDecoder() {
	if c.jpeg != nil {
		c.jpeg.Close()
		c.jpeg = nil
	}
}

// pack copies the rows of a picture without their padding.
func pack(to []byte, f frame.Format, planes [3][]byte, pitch [3]int) {
	for n, r := range f.Rows() {
		if pitch[n] == r.Bytes {
			to = to[copy(to, planes[n][:r.Bytes*r.Count]):]
			continue
		}
		for y := range r.Count {
			to = to[copy(to, planes[n][y*pitch[n]:][:r.Bytes]):]
		}
	}
}

// maxAhead is how far in the future a frame's timestamp may be. The kernel's vivid driver
// stamps the end of a frame when the frame begins, which does not mean that the clock was
// changed.
const maxAhead = time.Second

// captureTime returns the capture time of a frame: the driver's timestamp as long as it is plausible.
// CLOCK_MONOTONIC does not jump when the wall clock is set. A driver that uses the wall clock
// shows by timestamps in the future or out of order.
func (c *cameraSource) captureTime(f *v4l2.Frame, arrived int64) int64 {
	if c.ignoreStamps {
		return arrived
	}
	why := ""
	switch {
	case f.Captured == 0:
		why = "the driver does not stamp frames with the monotonic clock"
	case f.Captured > arrived+int64(maxAhead):
		why = fmt.Sprintf("a frame has a timestamp %v in the future", time.Duration(f.Captured-arrived))
	case f.Captured < c.last:
		why = fmt.Sprintf("a frame has a timestamp %v before that of the frame before it", time.Duration(c.last-f.Captured))
	default:
		c.last = f.Captured
		return min(f.Captured, arrived)
	}
	c.ignoreStamps = true
	c.after.event("%s: timestamps are ignored, and latency counts from the arrival of frames", why)
	return arrived
}

// requeue returns the buffer in f to its driver.
func (c *cameraSource) requeue(f *frame.Frame) {
	l, ok := f.Loan.(*buffer)
	if !ok {
		return
	}
	f.Loan = nil
	if !l.lent { // reclaimed
		return
	}
	l.lent = false
	l.of.out--
	switch {
	case !l.of.ended:
		if err := l.of.dev.Queue(l.index); err != nil {
			c.after.event("the driver did not accept a buffer back: %v", err)
		}
	case l.of.out == 0:
		c.unmap(l.of)
	}
}

// reclaim releases the memory of ended streams from frames that are no longer read. The driver
// considers the camera in use while any of it is mapped.
func (c *cameraSource) reclaim() {
	for _, s := range slices.Clone(c.old) {
		for i := range s.loans {
			if l := &s.loans[i]; l.lent && l.idle.Load() {
				l.lent = false
				s.out--
			}
		}
		if s.out == 0 {
			c.unmap(s)
		}
	}
}

// unmap releases the memory of an ended stream.
func (c *cameraSource) unmap(s *capture) {
	c.old = slices.DeleteFunc(c.old, func(o *capture) bool { return o == s })
	if err := s.dev.Close(); err != nil {
		c.after.event("%v", err)
	}
}

// endStream closes a camera that failed with err, and returns err if the camera must not be reopened.
// Memory stays mapped while a frame holds it.
func (c *cameraSource) endStream(err error) error {
	s := c.now
	c.now, s.ended, c.ignoreStamps, c.last = nil, true, false, 0
	c.mu.Lock()
	c.dev = nil
	c.mu.Unlock()
	serr := s.dev.Stop()
	c.old = append(c.old, s)
	if c.after.restart == restartNever {
		return errors.Join(fmt.Errorf("camera %s: %w", c.path, err), serr)
	}
	c.after.event("camera %s: %v; reopening it", c.path, err)
	return nil
}

// reopen retries until the camera opens. It fails if the camera delivers other frames than the
// pipeline was built for.
func (c *cameraSource) reopen() error {
	began := c.clock.Now()
	reported := ""
	for {
		if c.after.pause.Wait(c.stop) {
			return context.Canceled
		}
		c.reclaim()
		s, err := c.connect()
		if err == nil {
			c.mu.Lock()
			c.dev = s.dev
			c.mu.Unlock()
			select {
			case <-c.stop: // meanwhile
				s.dev.Interrupt()
			default:
			}
			c.now = s
			c.after.event("camera %s is back after %v", c.path, time.Duration(c.clock.Now()-began).Round(time.Millisecond))
			return nil
		}
		if errors.Is(err, errAnother) {
			return err
		}
		// Reported once, not at each attempt.
		if text := err.Error(); text != reported && !errors.Is(err, v4l2.ErrGone) {
			reported = text
			c.after.event("%s", strings.TrimSpace(text))
		}
	}
}

// errAnother is the error of a camera whose frames no longer match the pipeline.
var errAnother = errors.New("the pipeline was built for another frame size; restart it")

// errInUse is the error of a camera that cannot start again yet.
var errInUse = errors.New("frames of the time before are still in work")

// connect opens the camera again and starts a stream. The error wraps errAnother if the camera
// now delivers other frames.
func (c *cameraSource) connect() (*capture, error) {
	d, err := v4l2.Open(c.sys, c.path, c.want)
	if err != nil {
		return nil, err
	}
	f := d.Format()
	n := driverBuffers + 1
	if c.frames > 0 {
		n = c.frames + driverBuffers
	}
	switch {
	case f.Width != c.want.Width || f.Height != c.want.Height:
		err = fmt.Errorf("%w: camera %s now delivers frames of %dx%d, not %dx%d: %w", frame.ErrFormat, c.path, f.Width, f.Height, c.want.Width, c.want.Height, errAnother)
	case c.frames > 0 && !c.fits(f):
		err = fmt.Errorf("%w: camera %s now has rows of %d bytes: %w", frame.ErrFormat, c.path, f.Pitch[0], errAnother)
	case c.areas != nil:
		// A frame in work still uses them.
		if slices.ContainsFunc(c.old, func(s *capture) bool { return s.out > 0 }) {
			err = errInUse
			break
		}
		err = d.AllocateOver(n, func(int, int) ([][]byte, error) { return c.areas, nil })
	default:
		err = d.Allocate(n)
	}
	if err == nil && c.frames > 0 && d.Buffers() < n {
		err = fmt.Errorf("the driver now provides %d buffers, not %d", d.Buffers(), n)
	}
	if err == nil {
		err = d.Start()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	s := &capture{dev: d}
	c.initBuffers(s)
	return s, nil
}

func (c *cameraSource) Close() error {
	c.closeDecoder()
	c.mu.Lock()
	c.dev = nil
	c.mu.Unlock()
	all := c.old
	if c.now != nil {
		all = append(all, c.now)
	}
	c.now, c.old = nil, nil
	var errs []error
	for _, s := range all {
		errs = append(errs, s.dev.Close())
	}
	return errors.Join(errs...)
}
