package core

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// DefaultLibrary is where the yoctune-cuda recipe installs the CUDA backend.
const DefaultLibrary = "/usr/lib/yoctune/libyoctune_cuda.so"

// Backends of Open.
const (
	Auto = "auto" // CUDA if library, driver and device are available, else the CPU
	CPU  = "cpu"
	CUDA = "cuda"

	// Strict is the CPU as a card with its own memory, which this program cannot access: a test
	// of a program without a GPU fails where the program would read device memory.
	Strict = "strict"
)

// Options select a device. The zero value selects one automatically.
type Options struct {
	Backend string // Auto, CPU, CUDA or Strict; "": Auto
	Library string // absolute path of the CUDA backend; "": DefaultLibrary
	Index   int    // device of the backend, from 0
	Devices int    // CPU: virtual devices, which share the cores; 0: YT_CPU_DEVICES, or one
	Threads int    // CPU: threads for queued streams; 0: one per core
	Faults  string // injected faults for tests, see yt_faults.h; "": none

	// Kernels are launch configurations that Open applies; see Device.Configure.
	Kernels []KernelConfig
}

// Info describes a device. A nil pointer means unknown.
type Info struct {
	Backend    string  `json:"backend"` // "cpu", "strict" or "cuda"
	Name       string  `json:"name"`
	Build      string  `json:"build"`      // version and compiler of the backend
	Cores      *int    `json:"cores"`      // CPU cores, or multiprocessors
	Capability *string `json:"capability"` // CUDA compute capability, as "8.7"
	Driver     *string `json:"driver"`     // CUDA version of the driver, as "13.0"
	Integrated bool    `json:"integrated"` // CPU and device share physical memory
	MemTotal   *uint64 `json:"mem_total"`  // bytes
	MemFree    *uint64 `json:"mem_free"`   // bytes, at the time of the call
	Cache      *uint64 `json:"cache"`      // bytes of last-level cache
}

// Device is one processor with its memory.
type Device struct {
	api        *c.API
	dev        c.Device
	backend    string
	note       string
	index      int
	library    string // file of the CUDA backend
	integrated bool
	direct     bool // the backend accesses Go memory in place
	draft      bool // has no backend; see Draft

	// Held for reading while the backend works, for writing by Close.
	gate   sync.RWMutex
	closed bool

	mu       sync.Mutex // guards what follows
	children map[child]struct{}
	lanes    []*lane // idle
}

// child is an object that must be released before the backend closes the device.
type child interface {
	release() error
	rank() int // lower ranks are released first, because they use higher ones
}

const (
	rankStream = iota // its work uses all other objects
	rankBuffer        // and events
	lastRank          // modules
)

// Open opens a device. With Auto a missing library, driver or GPU is not an error: Open
// selects the CPU, and Device.Note gives the reason.
func Open(o Options) (*Device, error) {
	if o.Index < 0 || o.Threads < 0 || o.Devices < 0 || o.Devices > c.MaxVirtual || o.Threads > math.MaxInt16 {
		return nil, fmt.Errorf("open device: index %d, %d threads and %d devices must not be negative, and at most %d devices: %w",
			o.Index, o.Threads, o.Devices, c.MaxVirtual, ErrInvalid)
	}
	switch o.Backend {
	case CPU, Strict:
		return openCPU(o, "")
	case CUDA:
		return openCUDA(o)
	case Auto, "":
		d, err := openCUDA(o)
		if err == nil {
			return d, nil
		}
		return openCPU(o, err.Error())
	}
	return nil, fmt.Errorf("open device: unknown backend %q; use %s, %s, %s or %s: %w", o.Backend, Auto, CPU, CUDA, Strict, ErrInvalid)
}

// Count returns the number of devices of o's backend. Auto counts CUDA devices, or CPU
// devices if there are none.
func Count(o Options) (int, error) {
	switch o.Backend {
	case CPU, Strict:
		api, f := c.CPU()
		if err := backendError("open CPU backend", f); err != nil {
			return 0, err
		}
		return cpuCount(api, o)
	case CUDA:
		_, n, err := loadCUDA(o)
		return n, err
	case Auto, "":
		if _, n, err := loadCUDA(o); err == nil {
			return n, nil
		}
		o.Backend = CPU
		return Count(o)
	}
	return 0, fmt.Errorf("count devices: unknown backend %q; use %s, %s, %s or %s: %w", o.Backend, Auto, CPU, CUDA, Strict, ErrInvalid)
}

func cpuCount(api *c.API, o Options) (int, error) {
	if o.Devices > 0 {
		return o.Devices, nil
	}
	n, f := api.DeviceCount()
	return n, backendError("count devices", f)
}

func openCPU(o Options, note string) (*Device, error) {
	api, f := c.CPU()
	if err := backendError("open CPU backend", f); err != nil {
		return nil, err
	}
	n, err := cpuCount(api, o)
	if err != nil {
		return nil, err
	}
	if o.Index >= n {
		return nil, fmt.Errorf("open CPU backend: no device %d; there are %d: %w", o.Index, n, ErrInvalid)
	}
	return open(api, o, note)
}

func loadCUDA(o Options) (*c.API, int, error) {
	path := o.Library
	if path == "" {
		path = DefaultLibrary
	}
	// dlopen would search LD_LIBRARY_PATH for a bare name.
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, 0, fmt.Errorf("open CUDA backend: library %q must be an absolute path: %w", path, ErrInvalid)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, 0, fmt.Errorf("open CUDA backend: %w: %w; install the package yoctune-cuda or set the path of the library", ErrNoBackend, err)
	}
	api, f := c.Load(path)
	if err := backendError("open CUDA backend", f); err != nil {
		return nil, 0, err
	}
	n, f := api.DeviceCount()
	return api, n, backendError("open CUDA backend", f)
}

func openCUDA(o Options) (*Device, error) {
	api, n, err := loadCUDA(o)
	if err != nil {
		return nil, err
	}
	if o.Index >= n {
		return nil, fmt.Errorf("open CUDA backend: no device %d; there are %d: %w", o.Index, n, ErrNoBackend)
	}
	return open(api, o, "")
}

func open(api *c.API, o Options, note string) (*Device, error) {
	if strings.ContainsRune(o.Faults, 0) {
		return nil, fmt.Errorf("open device: faults %q contain a NUL byte: %w", o.Faults, ErrInvalid)
	}
	flags := uint32(0)
	if o.Backend == Strict {
		flags = c.OpenStrict
	}
	dev, f := api.DeviceOpen(uint32(o.Index), uint32(o.Threads), o.Faults, flags)
	if err := backendError("open device", f); err != nil {
		return nil, err
	}
	d := &Device{
		api: api, dev: dev, note: note,
		backend:  api.Name(),
		index:    o.Index,
		direct:   api.Caps()&c.CapHostRanges != 0,
		children: map[child]struct{}{},
	}
	info, f := api.DeviceInfo(dev)
	if err := backendError("describe device", f); err != nil {
		return nil, errors.Join(err, backendError("close device", api.DeviceClose(dev)))
	}
	d.integrated = info.Integrated
	if o.Backend == Strict {
		d.backend, d.direct = Strict, false
	}
	if d.backend != CPU && d.backend != Strict {
		if d.library = o.Library; d.library == "" {
			d.library = DefaultLibrary
		}
	}
	for _, k := range o.Kernels {
		if err := d.Configure(k); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// Index returns the index of the device in its backend.
func (d *Device) Index() int { return d.index }

// Backend returns "cpu", "strict" or "cuda".
func (d *Device) Backend() string { return d.backend }

// Note returns why Auto selected the CPU, or "".
func (d *Device) Note() string { return d.note }

// Info describes the device.
func (d *Device) Info() (Info, error) {
	if err := d.enter("describe device"); err != nil {
		return Info{}, err
	}
	defer d.gate.RUnlock()
	i, f := d.api.DeviceInfo(d.dev)
	if err := backendError("describe device", f); err != nil {
		return Info{}, err
	}
	out := Info{
		Backend: d.backend, Name: i.Name, Build: d.api.BuildID(), Integrated: i.Integrated,
		MemTotal: nilIfZero(i.MemTotal), MemFree: nilIfZero(i.MemFree), Cache: nilIfZero(i.L2), Cores: nilIfZero(i.Cores),
	}
	if i.CCMajor > 0 {
		out.Capability = nilIfZero(fmt.Sprintf("%d.%d", i.CCMajor, i.CCMinor))
	}
	if i.Driver > 0 {
		out.Driver = nilIfZero(fmt.Sprintf("%d.%d", i.Driver/1000, i.Driver%1000/10))
	}
	return out, nil
}

// nilIfZero returns nil for the zero value, which the ABI uses for "unknown".
func nilIfZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// InjectFaults replaces the injected faults of the device, for tests:
//
//	alloc:oom@n=7  alloc:oom@bytes>64M  launch:hang=2s@kernel=pre  launch:fault@n=100
//	copy:corrupt@p=1e-4  device:lost@t=5s  init:fail  slow:x3@stage=infer
//
// Faults are separated by commas. "" removes them but does not undo their effects. The
// grammar is in c/yt_faults.h. Backends without fault injection return ErrNotSupported.
func (d *Device) InjectFaults(spec string) error {
	if err := CheckFaults(spec); err != nil {
		return err
	}
	if err := d.enter("inject faults"); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	return backendError("inject faults", d.api.FaultInject(d.dev, spec))
}

// CheckFaults checks the syntax of a fault specification.
func CheckFaults(spec string) error {
	if strings.ContainsRune(spec, 0) {
		return fmt.Errorf("faults %q contain a NUL byte: %w", spec, ErrInvalid)
	}
	return backendError("check faults", c.CheckFaults(spec))
}

// Health returns nil while the device is usable. It runs nothing on the device.
func (d *Device) Health() error {
	if err := d.enter("health"); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	return backendError("health", d.api.DeviceHealth(d.dev))
}

// Close waits for calls in progress, releases all objects of the device and closes it. A
// second Close returns ErrClosed.
func (d *Device) Close() error {
	d.gate.Lock()
	defer d.gate.Unlock()
	if d.closed {
		return fmt.Errorf("close device: %w", ErrClosed)
	}
	d.closed = true
	d.lanes = nil
	var errs []error
	for rank := range lastRank + 1 {
		for ch := range d.children {
			if ch.rank() == rank {
				errs = append(errs, ch.release())
				delete(d.children, ch)
			}
		}
	}
	d.children = nil
	errs = append(errs, backendError("close device", d.api.DeviceClose(d.dev)))
	return errors.Join(errs...)
}

// enter keeps the device open until the caller calls d.gate.RUnlock. It returns ErrClosed
// if the device is closed.
func (d *Device) enter(op string) error {
	d.gate.RLock()
	if d.closed {
		d.gate.RUnlock()
		return fmt.Errorf("%s: device: %w", op, ErrClosed)
	}
	return nil
}

// adopt registers ch, for Close to release.
func (d *Device) adopt(ch child) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.children[ch] = struct{}{}
}

// enterChild is enter for an operation on ch. It returns ErrClosed if ch was released.
func (d *Device) enterChild(op string, ch child) error {
	if err := d.enter(op); err != nil {
		return err
	}
	d.mu.Lock()
	_, ok := d.children[ch]
	d.mu.Unlock()
	if !ok {
		d.gate.RUnlock()
		return fmt.Errorf("%s: %w", op, ErrClosed)
	}
	return nil
}

// disown unregisters ch and reports whether it was registered.
func (d *Device) disown(ch child) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.children[ch]
	delete(d.children, ch)
	return ok
}

// releaseChild releases ch, which stays the device's when that fails. It returns
// ErrClosed when ch was released before.
func (d *Device) releaseChild(op string, ch child) error {
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	if !d.disown(ch) {
		return fmt.Errorf("%s: %w", op, ErrClosed)
	}
	err := ch.release()
	if err != nil {
		d.adopt(ch)
	}
	return err
}

// backendError converts a failure of the backend to an error, or to nil on success.
func backendError(op string, f c.Failure) error {
	if f.Code == 0 {
		return nil
	}
	if f.Code == c.CodeClosed {
		return fmt.Errorf("%s: %w", op, ErrClosed)
	}
	return &Error{Op: op, Code: Code(f.Code), Sticky: f.Sticky, Native: int(f.Native), Msg: f.Msg}
}
