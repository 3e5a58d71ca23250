// Package v4l2 captures frames from cameras through the kernel's Video4Linux API, without a
// library. It negotiates the format, maps the driver's buffers and exports them as DMA
// buffers. It supports the single-planar and the multi-planar API.
//
//	d, err := v4l2.Open(v4l2.Kernel{}, "/dev/v4l/by-path/…-video-index0", v4l2.Want{
//		Formats: []v4l2.FourCC{v4l2.NV12, v4l2.NV12M}, Width: 1280, Height: 720, Num: 30, Den: 1})
//	err = d.Allocate(6)
//	err = d.Start()
//	for {
//		f, err := d.Next(2 * time.Second) // the memory is the driver's
//		…
//		err = d.Queue(f.Index) // and goes back
//	}
//
// Each kind of failure has its own error: the camera is unplugged ([ErrGone]), it stops
// delivering frames ([ErrStalled]), or a frame is damaged ([ErrFrame]). With [Limit], a driver that
// hangs is one, too ([ErrHung]). [Frame.Lost] counts
// frames that the driver dropped for lack of buffers. An HDMI or SDI input has no signal
// ([ErrNoSignal]), or the size or rate of its signal changes ([ErrChanged]).
//
// Reference: Linux Media Subsystem Documentation, Video for Linux API.
package v4l2

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Errors to test with errors.Is.
var (
	ErrNotCamera   = errors.New("not a camera")
	ErrFormat      = errors.New("the camera does not offer the format")
	ErrBusy        = errors.New("the camera is in use")
	ErrGone        = errors.New("the camera is gone")
	ErrStalled     = errors.New("the camera delivers no frames")
	ErrFrame       = errors.New("damaged frame")
	ErrNoSignal    = errors.New("the input has no signal")
	ErrChanged     = errors.New("the signal of the input has changed")
	ErrInterrupted = errors.New("interrupted")
	ErrMemory      = errors.New("the driver does not capture into the memory of programs")
)

// Want is the requested format.
type Want struct {
	Formats       []FourCC // acceptable pixel formats, best first
	Width, Height int      // pixels
	Num, Den      int      // frames per second; 0: the camera's default
}

// Format is the negotiated format.
type Format struct {
	Pixels        FourCC
	Width, Height int
	Pitch, Size   [maxPlanes]int // bytes per row, and bytes of each memory plane
	Planes        int            // memory planes of a frame
	Num, Den      int            // frames per second; 0: unknown
	Full, HD      bool           // full range; BT.709, otherwise BT.601
	Adjusted      []string       // deviations from the request, as sentences
}

// Frame is a frame in the driver's memory. It is valid until its index is queued again.
type Frame struct {
	Index    int
	Planes   [maxPlanes][]byte // content of each memory plane
	Sequence uint32
	Lost     uint32 // frames that the driver dropped since the previous one
	Captured int64  // CLOCK_MONOTONIC in ns; 0: the driver uses no or another clock
	AtStart  bool   // Captured is the start of exposure, otherwise the end of the frame
}

// Device is an open camera. Only one goroutine may use it, except for Interrupt.
type Device struct {
	sys     System
	fd      int
	wake    int // eventfd
	path    string
	card    string
	caps    uint32
	typ     uint32
	format  Format
	offered []FourCC

	memory    uint32   // of the buffers
	mem       [][]byte // by buffer and plane
	count     int
	queued    bool // all buffers, before the start
	streaming bool
	seen      bool // this stream has delivered a frame
	last      uint32
	ioErrors  int

	// Structs that the kernel reads and writes. As fields they have fixed addresses, and a
	// frame allocates nothing.
	buf    buffer
	planes [maxPlanes]plane
	fds    [][]int // exported, by buffer

	interrupt sync.Once
}

// retries is the number of consecutive EIO errors after which the camera counts as gone.
// According to the API, EIO may be a temporary loss of signal.
const retries = 3

// Open opens a camera and negotiates a format.
func Open(sys System, path string, want Want) (_ *Device, err error) {
	d := &Device{sys: sys, path: path, fd: -1, wake: -1}
	defer func() {
		if err != nil {
			_ = d.Close()
			err = fmt.Errorf("camera %s: %w", path, err)
		}
	}()
	if d.fd, err = sys.Open(path); err != nil {
		switch {
		case errors.Is(err, unix.ENOENT):
			return nil, fmt.Errorf("%w: %w", ErrGone, err)
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
			return nil, fmt.Errorf("%w: the user must be in the group video", err)
		}
		return nil, classify(err)
	}
	if d.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	if err := d.queryCapabilities(); err != nil {
		return nil, err
	}
	if err := d.detectSignal(); err != nil {
		return nil, err
	}
	if err := d.negotiate(want); err != nil {
		return nil, err
	}
	return d, nil
}

// Format returns the negotiated format.
func (d *Device) Format() Format { return d.format }

func (d *Device) queryCapabilities() error {
	var c capability
	if err := d.ioctl(reqQueryCap, "QUERYCAP", unsafe.Pointer(&c)); err != nil {
		if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("%w: not a video device", ErrNotCamera)
		}
		return err
	}
	d.card, d.caps = stringOf(c.card[:]), c.capabilities
	if d.caps&capDeviceCaps != 0 {
		d.caps = c.deviceCaps
	}
	switch {
	case d.caps&capVideoCaptureMPlane != 0:
		d.typ = bufCaptureMPlane
	case d.caps&capVideoCapture != 0:
		d.typ = bufCapture
	case d.caps&capMeta != 0:
		return fmt.Errorf("%w: this is the metadata node of %s; use the video node before it", ErrNotCamera, d.card)
	default:
		return fmt.Errorf("%w: %s does not capture video", ErrNotCamera, d.card)
	}
	if d.caps&capStreaming == 0 {
		return fmt.Errorf("%w: the driver of %s does not support streaming I/O", ErrNotCamera, d.card)
	}
	for n := uint32(0); n < 256; n++ {
		f := fmtDesc{index: n, typ: d.typ}
		if err := d.ioctl(reqEnumFmt, "ENUM_FMT", unsafe.Pointer(&f)); errors.Is(err, unix.EINVAL) {
			break // end of the list
		} else if err != nil {
			return err
		}
		d.offered = append(d.offered, FourCC(f.pixelFormat))
	}
	return nil
}

// detectSignal sets up an HDMI or SDI input for the detected signal and subscribes to
// changes of it. It does nothing for other cameras.
func (d *Device) detectSignal() error {
	// Most drivers have no such event and return an error.
	_ = d.sys.Ioctl(d.fd, reqSubscribe, unsafe.Pointer(&eventSubscription{typ: eventSourceChange}))
	var t dvTimings
	switch err := d.ioctl(reqQueryTimings, "QUERY_DV_TIMINGS", unsafe.Pointer(&t)); {
	case err == nil:
	case errors.Is(err, unix.ENOLINK):
		return fmt.Errorf("%w: nothing is connected to %s, or it is off: %w", ErrNoSignal, d.card, err)
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ERANGE):
		return fmt.Errorf("%w that %s supports: %w", ErrNoSignal, d.card, err)
	default: // ENOTTY, ENODATA: not such an input
		return nil
	}
	return d.ioctl(reqSetTimings, "S_DV_TIMINGS", unsafe.Pointer(&t))
}

// negotiate sets the format and the rate. A driver selects the values nearest to the
// request; only a different pixel format is an error.
func (d *Device) negotiate(want Want) error {
	i := slices.IndexFunc(want.Formats, func(f FourCC) bool { return slices.Contains(d.offered, f) })
	if i < 0 {
		return fmt.Errorf("%w %s; %s offers %s", ErrFormat, joinFormats(want.Formats), d.card, joinFormats(d.offered))
	}
	pixels := want.Formats[i]
	colours, err := d.setFormat(want, pixels)
	if err != nil {
		return err
	}
	got := &d.format
	if got.Pixels != pixels {
		return fmt.Errorf("%w %s: the driver selected %s", ErrFormat, pixels, got.Pixels)
	}
	if err := got.check(); err != nil {
		return err
	}
	got.HD = colours.isBT709()
	got.Full = colours.isFullRange() || pixels == Grey || pixels.compressed()
	if got.Width != want.Width || got.Height != want.Height {
		got.Adjusted = append(got.Adjusted, fmt.Sprintf("requested frames of %dx%d, %s delivers %dx%d%s",
			want.Width, want.Height, d.card, got.Width, got.Height, d.sizes(pixels)))
	}
	return d.setRate(want)
}

// colours is the colorimetry of a format.
type colours struct{ space, encoding, quantization uint32 }

// isBT709 follows V4L2_MAP_YCBCR_ENC_DEFAULT.
func (c colours) isBT709() bool {
	return c.encoding == encoding709 || c.encoding == 0 && (c.space == colorREC709 || c.space == colorDCIP3)
}

// isFullRange follows V4L2_MAP_QUANTIZATION_DEFAULT.
func (c colours) isFullRange() bool {
	return c.quantization == quantFull || c.quantization != quantLimited && c.space == colorJPEG
}

// setFormat requests a format and stores the one that the driver selected in d.format.
func (d *Device) setFormat(want Want, pixels FourCC) (colours, error) {
	f := format{typ: d.typ}
	single := (*pixFormat)(unsafe.Pointer(&f.fmt))
	multi := (*pixFormatMPlane)(unsafe.Pointer(&f.fmt))
	if d.isMultiPlanar() {
		multi.width, multi.height, multi.pixelFormat, multi.field = uint32(want.Width), uint32(want.Height), uint32(pixels), fieldNone
	} else {
		single.width, single.height, single.pixelFormat, single.field = uint32(want.Width), uint32(want.Height), uint32(pixels), fieldNone
	}
	if err := d.ioctl(reqSetFmt, "S_FMT", unsafe.Pointer(&f)); err != nil {
		return colours{}, err
	}
	got := &d.format
	var field uint32
	var c colours
	if d.isMultiPlanar() {
		got.Pixels, got.Width, got.Height = FourCC(multi.pixelFormat), int(multi.width), int(multi.height)
		got.Planes = int(multi.numPlanes)
		if got.Planes < 1 || got.Planes > maxPlanes {
			return c, fmt.Errorf("%w: the driver reports frames of %d planes", ErrFormat, got.Planes)
		}
		for n, p := range multi.planeFmt[:got.Planes] {
			got.Pitch[n], got.Size[n] = int(p.bytesPerLine), int(p.sizeImage)
		}
		field, c = multi.field, colours{multi.colorSpace, uint32(multi.ycbcrEnc), uint32(multi.quantization)}
	} else {
		got.Pixels, got.Width, got.Height, got.Planes = FourCC(single.pixelFormat), int(single.width), int(single.height), 1
		got.Pitch[0], got.Size[0] = int(single.bytesPerLine), int(single.sizeImage)
		field, c = single.field, colours{single.colorSpace, single.ycbcrEnc, single.quantization}
	}
	if field != fieldNone && field != fieldAny {
		return c, fmt.Errorf("%w: the driver delivers interlaced frames (field %d); only progressive frames are supported", ErrFormat, field)
	}
	return c, nil
}

// check validates the sizes that the driver reports, so that reading a frame stays inside
// its memory.
func (f *Format) check() error {
	if f.Width < 1 || f.Height < 1 || f.Width > 1<<15 || f.Height > 1<<15 {
		return fmt.Errorf("%w: the driver reports frames of %dx%d", ErrFormat, f.Width, f.Height)
	}
	if f.Pixels.compressed() {
		return nil
	}
	rows := f.rows()
	for n := range rows {
		if n < f.Planes && f.Pitch[n] == 0 {
			f.Pitch[n] = rows[n].bytes // some drivers set the pitch of padded rows only
		}
	}
	if _, _, err := f.image(nil); err != nil {
		return fmt.Errorf("%w: the driver reports rows of %d bytes and planes of %d bytes for %s frames of %dx%d: %w",
			ErrFormat, f.Pitch[:f.Planes], f.Size[:f.Planes], f.Pixels, f.Width, f.Height, err)
	}
	return nil
}

// row describes the rows of one plane of the picture.
type row struct{ bytes, count int }

func (f *Format) rows() []row {
	w, h := f.Width, f.Height
	cw, ch := (w+1)/2, (h+1)/2
	switch f.Pixels {
	case NV12, NV12M:
		return []row{{w, h}, {2 * cw, ch}}
	case I420, I420M:
		return []row{{w, h}, {cw, ch}, {cw, ch}}
	case YUYV, UYVY:
		return []row{{4 * cw, h}}
	}
	return []row{{w, h}}
}

// Image splits a frame into the planes of the picture. pitch is in bytes per row. It fails
// with [ErrFrame] if the driver wrote less than the picture.
func (f *Format) Image(fr *Frame) (planes [3][]byte, pitch [3]int, err error) {
	return f.image(fr)
}

func (f *Format) image(fr *Frame) (planes [3][]byte, pitch [3]int, err error) {
	at, memory := 0, 0
	rows := f.rows()
	for n, r := range rows {
		pitch[n] = f.Pitch[memory]
		if f.Planes == 1 && n > 0 && len(rows) == 3 {
			pitch[n] /= 2 // the kernel reports luma's pitch; chroma of I420 has half of it
		}
		size := f.Size[memory]
		if fr != nil {
			size = len(fr.Planes[memory])
		}
		// The last row may be as short as the picture.
		end := at + pitch[n]*(r.count-1) + r.bytes
		if pitch[n] < r.bytes || end > size {
			return planes, pitch, fmt.Errorf("%w: %d of %d bytes", ErrFrame, size, end)
		}
		if fr != nil {
			planes[n] = fr.Planes[memory][at:end]
		}
		at += pitch[n] * r.count
		if f.Planes > 1 && memory+1 < f.Planes {
			memory, at = memory+1, 0
		}
	}
	return planes, pitch, nil
}

// setRate requests the frame rate and reads back the selected one.
func (d *Device) setRate(want Want) error {
	got := &d.format
	p := streamParm{typ: d.typ}
	if err := d.sys.Ioctl(d.fd, reqGetParm, unsafe.Pointer(&p)); err != nil {
		return nil // optional: ENOTTY if the driver does not support it
	}
	if want.Num > 0 && p.capability&capPerFrame != 0 {
		p = streamParm{typ: d.typ}
		p.timePerFrame = fract{uint32(max(want.Den, 1)), uint32(want.Num)}
		if err := d.ioctl(reqSetParm, "S_PARM", unsafe.Pointer(&p)); err != nil {
			return err
		}
	}
	if t := p.timePerFrame; t.numerator > 0 && t.denominator > 0 {
		got.Num, got.Den = int(t.denominator), int(t.numerator)
	}
	if want.Num > 0 && got.Num > 0 && got.Num*max(want.Den, 1) != want.Num*got.Den {
		got.Adjusted = append(got.Adjusted, fmt.Sprintf("requested %.4g frames per second, %s delivers %.4g",
			float64(want.Num)/float64(max(want.Den, 1)), d.card, float64(got.Num)/float64(got.Den)))
	}
	return nil
}

// sizes lists the frame sizes of the camera, for messages.
func (d *Device) sizes(pixels FourCC) string {
	var names []string
	for n := uint32(0); n < 64; n++ {
		f := frmSizeEnum{index: n, pixelFormat: uint32(pixels)}
		if d.sys.Ioctl(d.fd, reqEnumFrameSize, unsafe.Pointer(&f)) != nil {
			break
		}
		if f.typ != 1 {
			names = append(names, fmt.Sprintf("%dx%d to %dx%d", f.size[0], f.size[3], f.size[1], f.size[4]))
			break
		}
		names = append(names, fmt.Sprintf("%dx%d", f.size[0], f.size[1]))
	}
	if len(names) == 0 {
		return ""
	}
	return "; it offers " + strings.Join(names, ", ")
}

func (d *Device) isMultiPlanar() bool { return d.typ == bufCaptureMPlane }

func joinFormats(all []FourCC) string {
	if len(all) == 0 {
		return "nothing"
	}
	var names []string
	for _, f := range all {
		names = append(names, f.String())
	}
	return strings.Join(names, ", ")
}

// ioctl makes a request named VIDIOC_ and name. Its errors wrap [ErrGone], [ErrBusy] or the
// kernel's error.
func (d *Device) ioctl(request uint, name string, arg unsafe.Pointer) error {
	if err := d.sys.Ioctl(d.fd, request, arg); err != nil {
		return classify(fmt.Errorf("VIDIOC_%s: %w", name, err))
	}
	return nil
}

// classify wraps errors of an unplugged device in ErrGone, and of one in use in ErrBusy.
func classify(err error) error {
	switch {
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ESHUTDOWN):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// Allocate requests buffers from the driver and maps them. The driver may provide more or
// fewer; see [Device.Buffers].
func (d *Device) Allocate(buffers int) error {
	if err := d.allocate(buffers); err != nil {
		return fmt.Errorf("camera %s: %w", d.path, err)
	}
	return nil
}

func (d *Device) allocate(buffers int) error {
	d.memory = memoryMMAP
	req := requestBuffers{count: uint32(min(max(buffers, 2), maxBuffers)), typ: d.typ, memory: d.memory}
	if err := d.ioctl(reqReqBufs, "REQBUFS", unsafe.Pointer(&req)); err != nil {
		return err
	}
	if req.count < 2 || req.count > maxBuffers {
		return fmt.Errorf("the driver provides %d buffers: %w", req.count, unix.ENOMEM)
	}
	d.count = int(req.count)
	d.mem = make([][]byte, d.count*d.format.Planes)
	d.fds = make([][]int, d.count)
	for i := range d.count {
		d.prepare(i)
		if err := d.ioctl(reqQueryBuf, "QUERYBUF", unsafe.Pointer(&d.buf)); err != nil {
			return err
		}
		for n := range d.format.Planes {
			at, length := d.buf.m, d.buf.length
			if d.isMultiPlanar() {
				at, length = d.planes[n].m, d.planes[n].length
			}
			// Both are 32 bits: m is a union with a pointer.
			mem, err := d.sys.Map(d.fd, int64(uint32(at)), int(length))
			if err != nil {
				return fmt.Errorf("map buffer %d of %d bytes: %w", i, length, classify(err))
			}
			d.mem[i*d.format.Planes+n] = mem
		}
	}
	return nil
}

// AllocateOver makes the driver capture into memory of the program. get returns that many areas of
// that many bytes each, which stay the program's; they must begin at a page and remain until Close.
// The error wraps [ErrMemory] if the driver cannot; then Allocate still can.
func (d *Device) AllocateOver(buffers int, get func(buffers, bytes int) ([][]byte, error)) error {
	if err := d.allocateOver(buffers, get); err != nil {
		return fmt.Errorf("camera %s: %w", d.path, err)
	}
	return nil
}

func (d *Device) allocateOver(buffers int, get func(buffers, bytes int) ([][]byte, error)) (err error) {
	if d.format.Planes != 1 {
		return fmt.Errorf("%w: it uses %d areas for a frame", ErrMemory, d.format.Planes)
	}
	d.memory = memoryUserPtr
	req := requestBuffers{count: uint32(buffers), typ: d.typ, memory: d.memory}
	if err := d.ioctl(reqReqBufs, "REQBUFS", unsafe.Pointer(&req)); err != nil {
		return fmt.Errorf("%w: %w", ErrMemory, err)
	}
	defer func() {
		if err == nil {
			return
		}
		none := requestBuffers{typ: d.typ, memory: memoryUserPtr} // and nothing is queued
		err = errors.Join(err, d.ioctl(reqReqBufs, "REQBUFS", unsafe.Pointer(&none)))
		d.mem, d.count = nil, 0
	}()
	if int(req.count) != buffers {
		return fmt.Errorf("%w: it takes %d buffers", ErrMemory, req.count)
	}
	if d.mem, err = get(buffers, d.format.Size[0]); err != nil {
		return err
	}
	d.count, d.fds = buffers, make([][]int, buffers)
	for i := range d.count {
		// Drivers that need memory in one piece find out here.
		if err := d.Queue(i); err != nil {
			return fmt.Errorf("%w: %w", ErrMemory, err)
		}
	}
	d.queued = true
	return nil
}

// Start queues all buffers and starts capturing.
func (d *Device) Start() error {
	for i := range d.count {
		if d.queued {
			break
		}
		if err := d.Queue(i); err != nil {
			return err
		}
	}
	d.queued = false
	on := int32(d.typ)
	if err := d.ioctl(reqStreamOn, "STREAMON", unsafe.Pointer(&on)); err != nil {
		return fmt.Errorf("camera %s: %w", d.path, err)
	}
	d.streaming, d.seen, d.ioErrors = true, false, 0
	return nil
}

// Buffers returns the number of buffers.
func (d *Device) Buffers() int { return d.count }

// prepare sets d.buf for buffer i.
func (d *Device) prepare(i int) {
	d.buf = buffer{index: uint32(i), typ: d.typ, memory: d.memory}
	var at, length uint64
	if d.memory == memoryUserPtr {
		at, length = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(d.mem[i])))), uint64(len(d.mem[i]))
	}
	if d.isMultiPlanar() {
		clear(d.planes[:])
		d.planes[0].m, d.planes[0].length = at, uint32(length)
		at, length = uint64(uintptr(unsafe.Pointer(&d.planes[0]))), uint64(d.format.Planes)
	}
	d.buf.m, d.buf.length = at, uint32(length)
}

// Queue returns a buffer to the driver.
func (d *Device) Queue(i int) error {
	d.prepare(i)
	return d.ioctl(reqQBuf, "QBUF", unsafe.Pointer(&d.buf))
}

// Next waits for a frame, for at most timeout. A damaged frame is returned to the driver and
// reported as [ErrFrame]; the next one may be intact. After [ErrStalled] the caller may call
// Next again; after [ErrGone] and [ErrChanged] it must close the device.
func (d *Device) Next(timeout time.Duration) (f Frame, err error) {
	end := time.Now().Add(timeout)
	for {
		events, woken, err := d.sys.Poll(d.fd, d.wake, time.Until(end))
		switch {
		case err != nil:
			return f, fmt.Errorf("wait for a frame: %w", err)
		case woken != 0:
			return f, ErrInterrupted
		case events == 0:
			return f, fmt.Errorf("%w within %v", ErrStalled, timeout)
		case events&unix.POLLPRI != 0 && d.signalChanged():
			return f, ErrChanged
		}
		// POLLERR reports an error of the device; DQBUF returns which one.
		d.prepare(0)
		err = d.sys.Ioctl(d.fd, reqDQBuf, unsafe.Pointer(&d.buf))
		broken := events&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
		switch {
		case err == nil:
			d.ioErrors = 0
			return d.takeFrame()
		case broken:
			return f, fmt.Errorf("%w: %w", ErrGone, err)
		case errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.EIO):
			// The API does not define whether a buffer was dequeued. Assume that none
			// was; the driver has others.
			if d.ioErrors++; d.ioErrors >= retries {
				return f, fmt.Errorf("%w: %d consecutive errors: %w", ErrGone, d.ioErrors, err)
			}
			return f, fmt.Errorf("%w: %w", ErrFrame, err)
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINVAL):
			return f, fmt.Errorf("%w: it stopped streaming: %w", ErrGone, err)
		}
		return f, classify(fmt.Errorf("VIDIOC_DQBUF: %w", err))
	}
}

// signalChanged dequeues all pending events and reports whether one of them is a change of the
// signal.
func (d *Device) signalChanged() bool {
	found := false
	for range maxBuffers { // a limit, in case a driver never runs out of events
		var e event
		if d.sys.Ioctl(d.fd, reqDQEvent, unsafe.Pointer(&e)) != nil {
			break
		}
		found = found || e.typ == eventSourceChange
	}
	return found
}

// takeFrame returns the frame in the dequeued buffer.
func (d *Device) takeFrame() (Frame, error) {
	b := &d.buf
	if int(b.index) >= d.count {
		return Frame{}, fmt.Errorf("%w: the driver returned buffer %d of %d", ErrGone, b.index, d.count)
	}
	f := Frame{Index: int(b.index), Sequence: b.sequence, AtStart: b.flags&flagStampSourceSOE != 0}
	// Drivers that do not count, or restart, have sequence numbers that do not increase.
	if gap := b.sequence - d.last - 1; d.seen && b.sequence > d.last {
		f.Lost = gap
	}
	d.seen, d.last = true, b.sequence
	if b.flags&flagTimestampMask == flagMonotonic {
		f.Captured = b.timestamp.sec*int64(time.Second) + b.timestamp.usec*int64(time.Microsecond)
	}
	for n := range d.format.Planes {
		mem := d.mem[f.Index*d.format.Planes+n]
		from, to := 0, int(b.bytesUsed)
		if d.isMultiPlanar() {
			from, to = int(d.planes[n].dataOffset), int(d.planes[n].bytesUsed)
		}
		if from > to || to > len(mem) {
			from, to = 0, 0
		}
		f.Planes[n] = mem[from:to]
	}
	var err error
	switch {
	case b.flags&flagError != 0:
		err = fmt.Errorf("%w: the driver flagged frame %d as damaged", ErrFrame, b.sequence)
	case d.format.Pixels.compressed():
		if len(f.Planes[0]) == 0 {
			err = fmt.Errorf("%w: frame %d is empty", ErrFrame, b.sequence)
		}
	default:
		_, _, err = d.format.image(&f)
	}
	if err != nil {
		if qerr := d.Queue(f.Index); qerr != nil {
			return Frame{}, fmt.Errorf("%w: %w", ErrGone, qerr)
		}
		return Frame{Lost: f.Lost, Sequence: f.Sequence}, err
	}
	return f, nil
}

// Export returns file descriptors of DMA buffers for a buffer, one per plane. Other drivers
// can use them without a copy. Close closes them.
func (d *Device) Export(i int) ([]int, error) {
	if i < 0 || i >= d.count {
		return nil, fmt.Errorf("export buffer %d of %d: %w", i, d.count, unix.EINVAL)
	}
	if d.fds[i] != nil {
		return d.fds[i], nil
	}
	var fds []int
	for n := range d.format.Planes {
		e := exportBuffer{typ: d.typ, index: uint32(i), plane: uint32(n), flags: expReadOnly | expCloseOnRun}
		if err := d.ioctl(reqExpBuf, "EXPBUF", unsafe.Pointer(&e)); err != nil {
			for _, fd := range fds {
				_ = d.sys.Close(fd)
			}
			return nil, err
		}
		fds = append(fds, int(e.fd))
	}
	d.fds[i] = fds
	return fds, nil
}

// Interrupt makes current and later calls of Next return [ErrInterrupted].
func (d *Device) Interrupt() {
	d.interrupt.Do(func() { _, _ = unix.Write(d.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) })
}

// Stop ends capturing and closes the device. Frames stay mapped until Close, so that their
// readers can finish.
func (d *Device) Stop() error {
	if d.fd < 0 {
		return nil
	}
	var err error
	if d.streaming {
		off := int32(d.typ)
		if err = d.ioctl(reqStreamOff, "STREAMOFF", unsafe.Pointer(&off)); errors.Is(err, ErrGone) {
			err = nil
		}
	}
	if cerr := d.sys.Close(d.fd); !errors.Is(err, ErrHung) { // which it repeats
		err = errors.Join(err, cerr)
	}
	d.fd, d.streaming = -1, false
	return err
}

// Close stops the device and unmaps its frames. Interrupt must not be called afterwards.
func (d *Device) Close() error {
	errs := []error{d.Stop()}
	for _, fds := range d.fds {
		for _, fd := range fds {
			errs = append(errs, d.sys.Close(fd))
		}
	}
	d.fds = nil
	for _, mem := range d.mem {
		if mem == nil || d.memory != memoryMMAP {
			continue
		}
		if sys, ok := d.sys.(*limited); ok && sys.hangs() {
			sys.afterReturn(func() { _ = sys.Unmap(mem) }) // which the driver may block too
			continue
		}
		errs = append(errs, d.sys.Unmap(mem))
	}
	d.mem = nil
	if d.wake >= 0 {
		errs = append(errs, unix.Close(d.wake))
		d.wake = -1
	}
	return errors.Join(errs...)
}
