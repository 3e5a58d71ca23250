package core

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
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
	Devices int    // CPU: virtual devices, which share the machine; 0: YT_CPU_DEVICES, or one
	Threads int    // CPU: threads for queued streams; 0: one a core
	Faults  string // faults for tests, see yt_faults.h; "": none

	// Kernels are launched so from the start; see Device.Configure.
	Kernels []KernelConfig
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
	index      int
	library    string // file of the CUDA backend
	integrated bool
	direct     bool // the backend reads and writes Go memory in place
	draft      bool // see Draft: there is no backend behind it

	// Held for reading while the backend works, for writing by Close.
	gate   sync.RWMutex
	closed bool

	mu       sync.Mutex // guards what follows
	children map[child]struct{}
	lanes    []*lane            // idle
	mirrors  map[uint64]*Mirror // by the ids of their buffers
	mirrored atomic.Bool        // there are some

	memory memoryLog
}

// child is what must be gone before the backend closes the device.
type child interface {
	release() error
	rank() int // lower ones are released first, since they use the others
}

const (
	rankStream = iota // its work uses all the rest
	rankGraph
	rankBuffer // and events
	lastRank   // pools and modules
)

// Open opens a device. With Auto a missing library, driver or GPU is not an
// error: the CPU is used and Device.Note says why.
func Open(o Options) (*Device, error) {
	if o.Index < 0 || o.Threads < 0 || o.Devices < 0 || o.Devices > c.MaxVirtual || o.Threads > math.MaxInt16 {
		return nil, fmt.Errorf("open device: index %d, %d threads, %d devices: not negative, and at most %d devices: %w",
			o.Index, o.Threads, o.Devices, c.MaxVirtual, ErrInvalid)
	}
	switch o.Backend {
	case CPU:
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
	return nil, fmt.Errorf("open device: backend %q is unknown: use %s, %s or %s: %w", o.Backend, Auto, CPU, CUDA, ErrInvalid)
}

// Count returns how many devices the backend of o has. Auto counts CUDA devices
// where there are some.
func Count(o Options) (int, error) {
	switch o.Backend {
	case CPU:
		api, f := c.CPU()
		if err := failed("open CPU backend", f); err != nil {
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
	return 0, fmt.Errorf("count devices: backend %q is unknown: use %s, %s or %s: %w", o.Backend, Auto, CPU, CUDA, ErrInvalid)
}

func cpuCount(api *c.API, o Options) (int, error) {
	if o.Devices > 0 {
		return o.Devices, nil
	}
	n, f := api.DeviceCount()
	return n, failed("count devices", f)
}

func openCPU(o Options, note string) (*Device, error) {
	api, f := c.CPU()
	if err := failed("open CPU backend", f); err != nil {
		return nil, err
	}
	n, err := cpuCount(api, o)
	if err != nil {
		return nil, err
	}
	if o.Index >= n {
		return nil, fmt.Errorf("open CPU backend: device %d: there are %d: %w", o.Index, n, ErrInvalid)
	}
	return open(api, o, note)
}

func loadCUDA(o Options) (*c.API, int, error) {
	path := o.Library
	if path == "" {
		path = DefaultLibrary
	}
	// A bare name would be searched for in LD_LIBRARY_PATH.
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, 0, fmt.Errorf("open CUDA backend: library %q must be an absolute path: %w", path, ErrInvalid)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, 0, fmt.Errorf("open CUDA backend: %w: %w: install the yoctune-cuda package, or give the library's path", ErrNoBackend, err)
	}
	api, f := c.Load(path)
	if err := failed("open CUDA backend", f); err != nil {
		return nil, 0, err
	}
	n, f := api.DeviceCount()
	return api, n, failed("open CUDA backend", f)
}

func openCUDA(o Options) (*Device, error) {
	api, n, err := loadCUDA(o)
	if err != nil {
		return nil, err
	}
	if o.Index >= n {
		return nil, fmt.Errorf("open CUDA backend: device %d: there are %d: %w", o.Index, n, ErrNoBackend)
	}
	return open(api, o, "")
}

func open(api *c.API, o Options, note string) (*Device, error) {
	if strings.ContainsRune(o.Faults, 0) {
		return nil, fmt.Errorf("open device: faults %q hold a NUL: %w", o.Faults, ErrInvalid)
	}
	dev, f := api.DeviceOpen(uint32(o.Index), uint32(o.Threads), o.Faults)
	if err := failed("open device", f); err != nil {
		return nil, err
	}
	d := &Device{
		api: api, dev: dev, note: note,
		backend:  api.Name(),
		index:    o.Index,
		direct:   api.Caps()&c.CapHostRanges != 0,
		children: map[child]struct{}{},
	}
	d.memory.start()
	info, f := api.DeviceInfo(dev)
	if err := failed("describe device", f); err != nil {
		return nil, errors.Join(err, failed("close device", api.DeviceClose(dev)))
	}
	d.integrated = info.Integrated
	if d.backend != CPU {
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

// Index returns which of the backend's devices this is.
func (d *Device) Index() int { return d.index }

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

// InjectFaults replaces the device's faults by those of a specification, for tests:
//
//	alloc:oom@n=7  alloc:oom@bytes>64M  launch:hang=2s@kernel=pre  launch:fault@n=100
//	copy:corrupt@p=1e-4  device:lost@t=5s  init:fail  slow:x3@stage=infer
//
// separated by commas; "" removes them, but not what they did. The grammar is in
// c/yt_faults.h. Backends without it return ErrNotSupported.
func (d *Device) InjectFaults(spec string) error {
	if err := CheckFaults(spec); err != nil {
		return err
	}
	if err := d.enter("inject faults"); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	return failed("inject faults", d.api.FaultInject(d.dev, spec))
}

// CheckFaults tells whether a specification of faults is right.
func CheckFaults(spec string) error {
	if strings.ContainsRune(spec, 0) {
		return fmt.Errorf("faults %q hold a NUL: %w", spec, ErrInvalid)
	}
	return failed("check faults", c.CheckFaults(spec))
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
	for rank := range lastRank + 1 {
		for ch := range d.children {
			if ch.rank() == rank {
				errs = append(errs, ch.release())
				delete(d.children, ch)
			}
		}
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

// use is enter for what is done to a child that may have been released.
func (d *Device) use(op string, ch child) error {
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

// disown reports whether ch was still there to be released.
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

func failed(op string, f c.Failure) error {
	if f.Code == 0 {
		return nil
	}
	if f.Code == c.CodeClosed {
		return fmt.Errorf("%s: %w", op, ErrClosed)
	}
	return &Error{Op: op, Code: Code(f.Code), Sticky: f.Sticky, Native: int(f.Native), Msg: f.Msg}
}
