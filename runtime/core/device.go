package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/core/c"
)

// DefaultLibrary is where the yoctune-cuda recipe installs the CUDA backend.
const DefaultLibrary = "/usr/lib/yoctune/libyoctune_cuda.so"

// Backends that Open knows.
const (
	Auto = "auto" // CUDA where library, driver and device are there, else the CPU
	CPU  = "cpu"
	CUDA = "cuda"
)

// Options choose a device. The zero value is the automatic choice.
type Options struct {
	Backend string // Auto, CPU or CUDA; "": Auto
	Library string // absolute path of the CUDA backend; "": DefaultLibrary
	Index   int    // device of the backend, from 0
}

// Info describes a device. Pointers are nil where the backend does not know.
type Info struct {
	Backend    string  `json:"backend"` // "cpu" or "cuda"
	Name       string  `json:"name"`
	Build      string  `json:"build"`      // compiler and version of the backend
	Cores      *int    `json:"cores"`      // CPU cores, or multiprocessors
	Capability *string `json:"capability"` // CUDA compute capability, as "8.7"
	Driver     *string `json:"driver"`     // CUDA version of the driver, as "13.0"
	Integrated bool    `json:"integrated"` // CPU and device share physical memory
	MemTotal   *uint64 `json:"mem_total"`  // bytes
	MemFree    *uint64 `json:"mem_free"`   // bytes, when asked
	Cache      *uint64 `json:"cache"`      // bytes of last-level cache
}

// Device is one processor with its memory.
type Device struct {
	api        *c.API
	dev        c.Device
	backend    string
	note       string
	integrated bool
	direct     bool // the backend reads and writes Go memory in place

	// Held for reading while the backend works, for writing by Close.
	gate   sync.RWMutex
	closed bool

	mu       sync.Mutex // guards what follows
	children map[child]struct{}
	lanes    []*lane // idle
}

// child is what must be gone before the backend closes the device.
type child interface{ release() error }

// Open opens a device. With Auto a missing library, driver or GPU is not an
// error: the CPU is used and Device.Note says why.
func Open(o Options) (*Device, error) {
	if o.Index < 0 {
		return nil, fmt.Errorf("open device: index %d is negative: %w", o.Index, ErrInvalid)
	}
	switch o.Backend {
	case CPU:
		return openCPU(o.Index, "")
	case CUDA:
		return openCUDA(o)
	case Auto, "":
		d, err := openCUDA(o)
		if err == nil {
			return d, nil
		}
		return openCPU(0, err.Error())
	}
	return nil, fmt.Errorf("open device: backend %q is unknown: use %s, %s or %s: %w", o.Backend, Auto, CPU, CUDA, ErrInvalid)
}

func openCPU(index int, note string) (*Device, error) {
	api, f := c.CPU()
	if err := failed("open CPU backend", f); err != nil {
		return nil, err
	}
	return open(api, index, note)
}

func openCUDA(o Options) (*Device, error) {
	path := o.Library
	if path == "" {
		path = DefaultLibrary
	}
	// A bare name would be searched for in LD_LIBRARY_PATH.
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("open CUDA backend: library %q must be an absolute path: %w", path, ErrInvalid)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open CUDA backend: %w: %w: install the yoctune-cuda package, or give the library's path", ErrNoBackend, err)
	}
	api, f := c.Load(path)
	if err := failed("open CUDA backend", f); err != nil {
		return nil, err
	}
	n, f := api.DeviceCount()
	if err := failed("open CUDA backend", f); err != nil {
		return nil, err
	}
	if o.Index >= n {
		return nil, fmt.Errorf("open CUDA backend: device %d: there are %d: %w", o.Index, n, ErrNoBackend)
	}
	return open(api, o.Index, "")
}

func open(api *c.API, index int, note string) (*Device, error) {
	dev, f := api.DeviceOpen(uint32(index))
	if err := failed("open device", f); err != nil {
		return nil, err
	}
	d := &Device{
		api: api, dev: dev, note: note,
		backend:  api.Name(),
		direct:   api.Caps()&c.CapHostRanges != 0,
		children: map[child]struct{}{},
	}
	info, f := api.DeviceInfo(dev)
	if err := failed("describe device", f); err != nil {
		return nil, errors.Join(err, failed("close device", api.DeviceClose(dev)))
	}
	d.integrated = info.Integrated
	return d, nil
}

// Backend returns "cpu" or "cuda".
func (d *Device) Backend() string { return d.backend }

// Note says why Auto chose the CPU; "" where there is nothing to say.
func (d *Device) Note() string { return d.note }

// Info asks the device what it is.
func (d *Device) Info() (Info, error) {
	if err := d.enter("describe device"); err != nil {
		return Info{}, err
	}
	defer d.gate.RUnlock()
	i, f := d.api.DeviceInfo(d.dev)
	if err := failed("describe device", f); err != nil {
		return Info{}, err
	}
	out := Info{
		Backend: d.backend, Name: i.Name, Build: d.api.BuildID(), Integrated: i.Integrated,
		MemTotal: known(i.MemTotal), MemFree: known(i.MemFree), Cache: known(i.L2), Cores: known(i.Cores),
	}
	if i.CCMajor > 0 {
		out.Capability = known(fmt.Sprintf("%d.%d", i.CCMajor, i.CCMinor))
	}
	if i.Driver > 0 {
		out.Driver = known(fmt.Sprintf("%d.%d", i.Driver/1000, i.Driver%1000/10))
	}
	return out, nil
}

// known returns nil for the zero value, which the ABI uses for "unknown".
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Health returns nil while the device is usable, without running anything.
func (d *Device) Health() error {
	if err := d.enter("health"); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	return failed("health", d.api.DeviceHealth(d.dev))
}

// Close waits for calls in progress, releases every buffer, stream and event of
// the device and closes it. The second Close returns ErrClosed.
func (d *Device) Close() error {
	d.gate.Lock()
	defer d.gate.Unlock()
	if d.closed {
		return fmt.Errorf("close device: %w", ErrClosed)
	}
	d.closed = true
	d.lanes = nil
	var errs []error
	for ch := range d.children { // streams first: their work uses buffers
		if _, ok := ch.(*Stream); ok {
			errs = append(errs, ch.release())
			delete(d.children, ch)
		}
	}
	for ch := range d.children {
		errs = append(errs, ch.release())
	}
	d.children = nil
	errs = append(errs, failed("close device", d.api.DeviceClose(d.dev)))
	return errors.Join(errs...)
}

// enter keeps the device open until the caller unlocks d.gate for reading.
func (d *Device) enter(op string) error {
	d.gate.RLock()
	if d.closed {
		d.gate.RUnlock()
		return fmt.Errorf("%s: device: %w", op, ErrClosed)
	}
	return nil
}

func (d *Device) adopt(ch child) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.children[ch] = struct{}{}
}

// disown reports whether ch was still there to be released.
func (d *Device) disown(ch child) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.children[ch]
	delete(d.children, ch)
	return ok
}

func failed(op string, f c.Failure) error {
	if f.Code == 0 {
		return nil
	}
	return &Error{Op: op, Code: Code(f.Code), Sticky: f.Sticky, Native: int(f.Native), Msg: f.Msg}
}

// Mode is a kind of memory.
type Mode uint32

const (
	MemAuto   Mode = iota // mapped where memory is shared, else device
	MemDevice             // not for the CPU, on any backend
	MemPinned             // host memory the device copies from without staging
	MemMapped             // one memory for both
	MemHost               // ordinary host memory
)

// Buffer is memory of a device. Release it; Device.Close releases the rest.
type Buffer struct {
	d    *Device
	id   uint64
	mode Mode
	size int
	host []byte
}

// Alloc allocates n bytes, aligned to 256. The content is undefined. Allocate
// at start, not per frame.
func (d *Device) Alloc(n int, m Mode) (*Buffer, error) {
	const op = "allocate buffer"
	if n < 1 {
		return nil, fmt.Errorf("%s: %d bytes: at least 1: %w", op, n, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	return d.alloc(n, m)
}

func (d *Device) alloc(n int, m Mode) (*Buffer, error) {
	a, f := d.api.BufAlloc(d.dev, uint32(m), uint64(n), 0)
	if err := failed("allocate buffer", f); err != nil {
		return nil, err
	}
	b := &Buffer{d: d, id: a.ID, mode: Mode(a.Mode), size: n, host: hostBytes(a.Host, n)}
	d.adopt(b)
	return b, nil
}

// Bytes returns the buffer as host memory, nil for device memory. The slice is
// not to be touched after Release.
func (b *Buffer) Bytes() []byte { return b.host }

// Float32s returns the buffer as host memory of float32, as Bytes does.
func (b *Buffer) Float32s() []float32 { return floats(b.host) }

// Len returns the size in bytes.
func (b *Buffer) Len() int { return b.size }

// Mode returns the kind of memory chosen, never MemAuto.
func (b *Buffer) Mode() Mode { return b.mode }

// All names the whole buffer.
func (b *Buffer) All() Region { return Region{Buf: b, Len: b.size} }

// At names n bytes from off. Whether they exist is checked when the list that
// names them is submitted.
func (b *Buffer) At(off, n int) Region { return Region{Buf: b, Off: off, Len: n} }

// Release frees the buffer. It fails with ErrBusy while submitted work uses it,
// and with ErrClosed the second time.
func (b *Buffer) Release() error {
	if err := b.d.enter("release buffer"); err != nil {
		return err
	}
	defer b.d.gate.RUnlock()
	if !b.d.disown(b) {
		return fmt.Errorf("release buffer: %w", ErrClosed)
	}
	err := b.release()
	if err != nil {
		b.d.adopt(b)
	}
	return err
}

func (b *Buffer) release() error { return failed("release buffer", b.d.api.BufFree(b.d.dev, b.id)) }

// Region names bytes of a buffer.
type Region struct {
	Buf      *Buffer
	Off, Len int // bytes
}

// Event marks a point of a stream.
type Event struct {
	d  *Device
	id uint64
}

// NewEvent creates an event.
func (d *Device) NewEvent() (*Event, error) {
	if err := d.enter("create event"); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	id, f := d.api.EventCreate(d.dev)
	if err := failed("create event", f); err != nil {
		return nil, err
	}
	e := &Event{d: d, id: id}
	d.adopt(e)
	return e, nil
}

// Since returns the device's time from start to e, ErrNotReady until both have
// passed.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if err := e.d.enter("event time"); err != nil {
		return 0, err
	}
	defer e.d.gate.RUnlock()
	if start == nil || start.d != e.d {
		return 0, fmt.Errorf("event time: start is nil or of another device: %w", ErrInvalid)
	}
	ns, f := e.d.api.EventElapsed(e.d.dev, start.id, e.id)
	return time.Duration(ns), failed("event time", f)
}

// Release frees the event.
func (e *Event) Release() error {
	if err := e.d.enter("release event"); err != nil {
		return err
	}
	defer e.d.gate.RUnlock()
	if !e.d.disown(e) {
		return fmt.Errorf("release event: %w", ErrClosed)
	}
	return e.release()
}

func (e *Event) release() error {
	return failed("release event", e.d.api.EventDestroy(e.d.dev, e.id))
}

// closeWait bounds how long releasing a stream waits for its last work.
const closeWait = 2 * time.Second

// Stream is an order of execution. It belongs to one goroutine at a time.
type Stream struct {
	d *Device
	s c.Stream
}

// NewStream creates a stream. Priority 0 is normal, lower runs first.
func (d *Device) NewStream(priority int) (*Stream, error) {
	if err := d.enter("create stream"); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	return d.newStream(priority)
}

func (d *Device) newStream(priority int) (*Stream, error) {
	h, f := d.api.StreamCreate(d.dev, int32(priority))
	if err := failed("create stream", f); err != nil {
		return nil, err
	}
	s := &Stream{d: d, s: h}
	d.adopt(s)
	return s, nil
}

// Wait returns when all that was submitted has run, or with ErrTimeout or
// ErrCancelled when ctx ends first: the work may then still be running, and the
// buffers it names are still in use.
func (s *Stream) Wait(ctx context.Context) error {
	if err := s.d.enter("wait"); err != nil {
		return err
	}
	defer s.d.gate.RUnlock()
	return s.wait(ctx)
}

func (s *Stream) wait(ctx context.Context) error {
	// Short slices, so that a cancelled context is seen; the backend sleeps
	// within a slice.
	const slice = 5 * time.Millisecond
	for {
		f := s.d.api.StreamPoll(s.s, uint64(slice))
		err := failed("wait", f)
		if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrNotReady) {
			return err
		}
		if err := ended(ctx, "wait"); err != nil {
			return err
		}
	}
}

// ended tells a deadline from a cancellation, as errors of this package.
func ended(ctx context.Context, op string) error {
	err := ctx.Err()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", op, ErrTimeout, err)
	}
	return fmt.Errorf("%s: %w: %w", op, ErrCancelled, err)
}

// Release waits up to two seconds for the stream's work and destroys it. A
// stream whose work does not end stays open and Release returns ErrTimeout.
func (s *Stream) Release() error {
	if err := s.d.enter("release stream"); err != nil {
		return err
	}
	defer s.d.gate.RUnlock()
	if !s.d.disown(s) {
		return fmt.Errorf("release stream: %w", ErrClosed)
	}
	err := s.release()
	if err != nil {
		s.d.adopt(s)
	}
	return err
}

func (s *Stream) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	// A fault of the last work was, or will be, reported by Health; what counts
	// here is whether the backend lets go of the stream.
	if err := s.wait(ctx); errors.Is(err, ErrTimeout) {
		return err
	}
	return failed("release stream", s.d.api.StreamDestroy(s.s))
}
