// Package v4l2test simulates cameras at the level of system calls: one follows a
// script, and one replays a recording of a real driver.
//
// This package reads and writes the kernel's structures by the offsets in its
// documentation, independently of package v4l2.
package v4l2test

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Fault is a fault of a frame, or an event instead of it.
type Fault int

// Faults.
const (
	None    Fault = iota
	Gone          // unplugged: ENODEV from now on, until Replug
	Stall         // no further frame is delivered
	EIO           // an input error instead of a frame
	Flagged       // the driver marks the frame as damaged
	Short         // half of the frame was written
	Skip          // the driver loses two frames before this one
	NoClock       // stamped with an unknown clock
	Future        // stamped an hour ahead
	Changed       // the signal changes, see HDMI
)

// Format is a format that the camera offers.
type Format struct {
	Pixels        string // four characters
	Width, Height int
	Pitch         int // bytes from one row of luma to the next, 0: the width
	Memories      int // 0: 1
	Size          int // bytes of all memories
}

// HDMI simulates an input whose signal determines the size of frames.
type HDMI struct {
	Lost int      // number of later openings that find no signal
	Then []Format // formats after the signal has changed, nil: the same

	subscribed, event bool
}

// Camera is a scripted camera; the zero value offers nothing.
type Camera struct {
	Multi   bool // implements the multi-planar API
	Foreign int  // bytes of the largest area of a program that it captures into in one piece; 0: into none
	Formats []Format
	Num     int                           // selected frames per second, 0: as requested
	Script  func(stream, n int) Fault     // fault of frame n, counted from 0 over all streams; nil: none
	Fill    func(n, memory int, b []byte) // writes frame n; nil: every byte is n
	Period  time.Duration                 // between frames, 0: none
	Absent  int                           // number of failing openings after it was unplugged
	HDMI    *HDMI                         // nil: a camera without an external signal
	Hang    func(call string)             // called before each of the driver's calls: open, close, or the name of a request; nil: none hangs

	mu       sync.Mutex
	now      Format
	open     map[int]bool // by file descriptor: false after it was unplugged
	next     int          // file descriptor
	buffers  [][]memory
	queued   []int
	on       bool
	frame    int
	sequence uint32
	streams  int // number of ended streams
	due      time.Time
	absent   int
	paths    []string
	mapped   int
	foreign  bool           // buffers are areas of the program
	held     map[*byte]bool // mappings since it was last plugged in
}

// memory is one memory plane of a buffer, backed by a memfd that can be exported.
type memory struct {
	file *os.File
	b    []byte // the driver's mapping
}

func newMemory(size int) (memory, error) {
	fd, err := unix.MemfdCreate("camera", unix.MFD_CLOEXEC)
	if err != nil {
		return memory{}, err
	}
	m := memory{file: os.NewFile(uintptr(fd), "camera")}
	if err = m.file.Truncate(int64(size)); err == nil {
		m.b, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	return m, err
}

// freeBuffers frees the driver's references to its buffers; mappings and exports of others
// remain.
func (c *Camera) freeBuffers() {
	for _, b := range c.buffers {
		for _, m := range b {
			if m.file != nil {
				_ = m.file.Close()
				_ = unix.Munmap(m.b)
			}
		}
	}
	c.buffers = nil
}

func (c *Camera) hang(call string) {
	if c.Hang != nil {
		c.Hang(call)
	}
}

// Opened lists the paths that were opened, in order.
func (c *Camera) Opened() []string { c.mu.Lock(); defer c.mu.Unlock(); return slices.Clone(c.paths) }

// Mapped returns the number of mappings of buffers.
func (c *Camera) Mapped() int { c.mu.Lock(); defer c.mu.Unlock(); return c.mapped }

// Open implements v4l2.System.
func (c *Camera) Open(path string) (int, error) {
	c.hang("open")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = append(c.paths, path)
	if c.absent > 0 {
		c.absent--
		return -1, unix.ENOENT
	}
	if c.open == nil {
		c.open = map[int]bool{}
		c.next = 1 << 20 // no file has it
	}
	c.next++
	c.open[c.next] = true
	return c.next, nil
}

// Close implements v4l2.System.
func (c *Camera) Close(fd int) error {
	c.hang("close")
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[fd]; !ok { // it was exported
		return unix.Close(fd)
	}
	delete(c.open, fd)
	c.streams++
	c.freeBuffers()
	c.on, c.queued = false, nil
	return nil
}

// Stable implements v4l2.System.
func (c *Camera) Stable(path string) string {
	if path == "/dev/video0" {
		return "/dev/v4l/by-path/platform-test-video-index0"
	}
	return path
}

// Map implements v4l2.System; offset encodes the numbers of buffer and plane.
func (c *Camera) Map(_ int, offset int64, length int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, n := int(offset>>12)/8, int(offset>>12)%8
	if i >= len(c.buffers) || n >= len(c.buffers[i]) || length != len(c.buffers[i][n].b) {
		return nil, unix.EINVAL
	}
	mem, err := unix.Mmap(int(c.buffers[i][n].file.Fd()), 0, length, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	c.mapped++
	if c.held == nil {
		c.held = map[*byte]bool{}
	}
	c.held[&mem[0]] = true
	return mem, nil
}

// Unmap implements v4l2.System.
func (c *Camera) Unmap(mem []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, &mem[0])
	c.mapped--
	return unix.Munmap(mem)
}

func (c *Camera) fault() Fault {
	if c.Script == nil {
		return None
	}
	return c.Script(c.streams, c.frame)
}

// Poll implements v4l2.System.
func (c *Camera) Poll(fd, wake int, d time.Duration) (events, woken int16, err error) {
	end := time.Now().Add(d)
	for {
		w := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
		if n, _ := unix.Poll(w, 0); n > 0 {
			return 0, w[0].Revents, nil
		}
		c.mu.Lock()
		ready, here := c.on && len(c.queued) > 0 && !time.Now().Before(c.due), c.open[fd]
		f := c.fault()
		if f == Changed {
			c.frame++
			c.changeSignal()
		}
		event := c.HDMI != nil && c.HDMI.event
		c.mu.Unlock()
		switch {
		case !here || f == Gone:
			return unix.POLLERR | unix.POLLHUP, 0, nil
		case event:
			return unix.POLLPRI, 0, nil
		case ready && f != Stall:
			return unix.POLLIN, 0, nil
		case time.Now().After(end):
			return 0, 0, nil
		}
		if n, _ := unix.Poll(w, 1); n > 0 {
			return 0, w[0].Revents, nil
		}
	}
}

// changeSignal simulates a source that is switched off or to another size.
func (c *Camera) changeSignal() {
	c.HDMI.event = c.HDMI.subscribed
	if c.HDMI.Then != nil {
		c.Formats = c.HDMI.Then
	}
}

// view is the memory of a kernel structure.
type view []byte

func (v view) u32(at int) uint32       { return binary.LittleEndian.Uint32(v[at:]) }
func (v view) set(at int, x uint32)    { binary.LittleEndian.PutUint32(v[at:], x) }
func (v view) set64(at int, x uint64)  { binary.LittleEndian.PutUint64(v[at:], x) }
func (v view) text(at int, s string)   { copy(v[at:], s) }
func fourCC(s string) uint32           { return binary.LittleEndian.Uint32([]byte(s)) }
func (v view) planes(count int) []view { return planesAt(v, count) }

func planesAt(v view, count int) []view {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&v[64]))
	all := unsafe.Slice((*byte)(p), 64*count)
	var out []view
	for n := range count {
		out = append(out, view(all[64*n:64*(n+1)]))
	}
	return out
}

// Ioctl implements v4l2.System.
func (c *Camera) Ioctl(fd int, request uint, arg unsafe.Pointer) error {
	c.hang(map[uint]string{0: "QUERYCAP", 15: "QBUF", 17: "DQBUF", 18: "STREAMON", 19: "STREAMOFF"}[request&0xff])
	c.mu.Lock()
	defer c.mu.Unlock()
	if here, ok := c.open[fd]; !ok {
		return unix.EBADF
	} else if !here {
		return unix.ENODEV
	}
	run, ok := ioctls[request&0xff]
	if !ok {
		return unix.ENOTTY
	}
	return run(c, unsafe.Slice((*byte)(arg), request>>16&0x3fff))
}

// ioctls maps the numbers of requests in <linux/videodev2.h> to their handlers.
var ioctls = map[uint]func(*Camera, view) error{
	0:  (*Camera).queryCapabilities, // QUERYCAP
	2:  (*Camera).enumerateFormat,   // ENUM_FMT
	5:  (*Camera).setFormat,         // S_FMT
	21: (*Camera).parameters,        // G_PARM
	22: (*Camera).setParameters,     // S_PARM
	74: (*Camera).enumerateSize,     // ENUM_FRAMESIZES
	8:  (*Camera).requestBuffers,    // REQBUFS
	9:  (*Camera).queryBuffer,       // QUERYBUF
	15: (*Camera).queue,             // QBUF
	16: (*Camera).exportBuffer,      // EXPBUF
	17: (*Camera).dequeue,           // DQBUF
	18: (*Camera).streamOn,          // STREAMON
	19: (*Camera).streamOff,         // STREAMOFF
	90: (*Camera).subscribe,         // SUBSCRIBE_EVENT
	89: (*Camera).dequeueEvent,      // DQEVENT
	99: (*Camera).queryTimings,      // QUERY_DV_TIMINGS
	87: (*Camera).setTimings,        // S_DV_TIMINGS
}

func (c *Camera) queryCapabilities(v view) error {
	v.text(0, "v4l2test")
	v.text(16, "Test Camera")
	kind := uint32(0x1)
	if c.Multi {
		kind = 0x1000
	}
	v.set(84, kind|0x84000000)
	v.set(88, kind|0x04000000)
	return nil
}

func (c *Camera) enumerateFormat(v view) error {
	if int(v.u32(0)) >= len(c.Formats) {
		return unix.EINVAL
	}
	v.set(44, fourCC(c.Formats[v.u32(0)].Pixels))
	return nil
}

func (c *Camera) parameters(v view) error {
	v.set(4, 0x1000)
	v.set(12, 1)
	v.set(16, 30)
	return nil
}

func (c *Camera) setParameters(v view) error {
	if c.Num > 0 {
		v.set(12, 1)
		v.set(16, uint32(c.Num))
	}
	return nil
}

func (c *Camera) enumerateSize(v view) error {
	var matching []Format
	for _, f := range c.Formats {
		if fourCC(f.Pixels) == v.u32(4) {
			matching = append(matching, f)
		}
	}
	if int(v.u32(0)) >= len(matching) {
		return unix.EINVAL
	}
	v.set(8, 1)
	v.set(12, uint32(matching[v.u32(0)].Width))
	v.set(16, uint32(matching[v.u32(0)].Height))
	return nil
}

func (c *Camera) requestBuffers(v view) error {
	c.freeBuffers()
	if c.foreign = v.u32(8) == 2; c.foreign && c.Foreign == 0 {
		return unix.EINVAL
	}
	for range v.u32(0) {
		var all []memory
		if c.foreign {
			c.buffers = append(c.buffers, make([]memory, c.now.Memories))
			continue
		}
		for range c.now.Memories {
			m, err := newMemory(c.now.Size / c.now.Memories)
			if err != nil {
				return err
			}
			all = append(all, m)
		}
		c.buffers = append(c.buffers, all)
	}
	return nil
}

func (c *Camera) queryBuffer(v view) error {
	i := int(v.u32(0))
	if i >= len(c.buffers) {
		return unix.EINVAL
	}
	if !c.Multi {
		v.set(64, uint32(i*8)<<12)
		v.set(72, uint32(len(c.buffers[i][0].b)))
		return nil
	}
	for n, p := range v.planes(c.now.Memories) {
		p.set(4, uint32(len(c.buffers[i][n].b)))
		p.set(8, uint32(i*8+n)<<12)
	}
	return nil
}

func (c *Camera) queue(v view) error {
	i := int(v.u32(0))
	if i >= len(c.buffers) || slices.Contains(c.queued, i) {
		return unix.EINVAL
	}
	if c.foreign {
		at, length := 64, 72
		if c.Multi {
			v, at, length = v.planes(1)[0], 8, 4
		}
		if int(v.u32(length)) < c.now.Size {
			return unix.EINVAL
		}
		if int(v.u32(length)) > c.Foreign {
			return unix.EFAULT
		}
		p := *(*unsafe.Pointer)(unsafe.Pointer(&v[at]))
		c.buffers[i][0] = memory{b: unsafe.Slice((*byte)(p), c.now.Size)}
	}
	c.queued = append(c.queued, i)
	return nil
}

func (c *Camera) exportBuffer(v view) error {
	i, n := int(v.u32(4)), int(v.u32(8))
	if i >= len(c.buffers) || n >= len(c.buffers[i]) {
		return unix.EINVAL
	}
	fd, err := unix.FcntlInt(c.buffers[i][n].file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	v.set(16, uint32(fd))
	return nil
}

func (c *Camera) streamOn(_ view) error {
	c.on, c.sequence = true, 0
	return nil
}

func (c *Camera) streamOff(_ view) error {
	c.on, c.queued = false, nil
	return nil
}

func (c *Camera) subscribe(v view) error {
	if c.HDMI == nil {
		return unix.ENOTTY
	}
	c.HDMI.subscribed = v.u32(0) == 5 // SOURCE_CHANGE
	return nil
}

func (c *Camera) dequeueEvent(v view) error {
	if c.HDMI == nil || !c.HDMI.event {
		return unix.ENOENT
	}
	c.HDMI.event = false
	v.set(0, 5)
	v.set(8, 1) // the resolution
	return nil
}

func (c *Camera) queryTimings(v view) error {
	switch {
	case c.HDMI == nil:
		return unix.ENOTTY
	case c.HDMI.Lost > 0 && c.frame > 0:
		c.HDMI.Lost--
		return unix.ENOLINK
	}
	v.set(4, uint32(c.Formats[0].Width))
	v.set(8, uint32(c.Formats[0].Height))
	return nil
}

func (c *Camera) setTimings(v view) error {
	if c.buffers != nil {
		return unix.EBUSY
	}
	if v.u32(4) != uint32(c.Formats[0].Width) || v.u32(8) != uint32(c.Formats[0].Height) {
		return unix.EINVAL
	}
	return nil
}

// setFormat selects the largest offered size up to the requested one, or the first format.
func (c *Camera) setFormat(v view) error {
	if len(c.held) > 0 { // its memory is still mapped
		return unix.EBUSY
	}
	pixels, width, height := v.u32(16), v.u32(8), v.u32(12)
	found := false
	for _, f := range c.Formats {
		if fourCC(f.Pixels) == pixels && (!found || uint32(f.Width) <= width && uint32(f.Height) <= height) {
			c.now, found = f, true
		}
	}
	if !found {
		c.now = c.Formats[0]
	}
	c.now.Memories = max(c.now.Memories, 1)
	pitch := c.now.Pitch
	if pitch == 0 {
		pitch = c.now.Width
	}
	v.set(8, uint32(c.now.Width))
	v.set(12, uint32(c.now.Height))
	v.set(16, fourCC(c.now.Pixels))
	v.set(20, 1)
	if !c.Multi {
		v.set(24, uint32(pitch))
		v.set(28, uint32(c.now.Size))
		return nil
	}
	for n := range c.now.Memories {
		v.set(28+20*n, uint32(c.now.Size/c.now.Memories))
		v.set(32+20*n, uint32(pitch))
	}
	v[28+160] = byte(c.now.Memories)
	return nil
}

func (c *Camera) dequeue(v view) error {
	f := c.fault()
	if f == Gone {
		for fd := range c.open {
			c.open[fd] = false
		}
		c.absent = c.Absent
		c.held = nil
		c.frame++
		return unix.ENODEV
	}
	if !c.on {
		return unix.EINVAL
	}
	if len(c.queued) == 0 || f == Stall || time.Now().Before(c.due) {
		return unix.EAGAIN
	}
	n := c.frame
	c.frame++
	c.due = time.Now().Add(c.Period)
	if f == EIO {
		return unix.EIO
	}
	i := c.queued[0]
	c.queued = c.queued[1:]
	if f == Skip {
		c.sequence += 2
	}
	v.set(0, uint32(i))
	v.set(56, c.sequence)
	c.sequence++
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	flags := uint32(0x2000)
	switch f {
	case Flagged:
		flags |= 0x40
	case NoClock:
		flags = 0
	case Future:
		ts.Sec += 3600
	}
	v.set(12, flags)
	v.set64(24, uint64(ts.Sec))
	v.set64(32, uint64(ts.Nsec/1000))
	for m, of := range c.buffers[i] {
		used := c.fill(n, m, of.b)
		if f == Short {
			used /= 2
		}
		if c.Multi {
			v.planes(c.now.Memories)[m].set(0, uint32(used))
		} else {
			v.set(8, uint32(used))
		}
	}
	return nil
}

// fill writes memory m of frame n, and returns its size in bytes.
func (c *Camera) fill(n, m int, mem []byte) int {
	if c.Fill != nil {
		c.Fill(n, m, mem)
		return len(mem)
	}
	for b := range mem {
		mem[b] = byte(n)
	}
	return len(mem)
}
