package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/yoctune/yoctune/internal/cache"
	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// CacheDir is where the device's services may keep compiled kernels and what was tuned.
const CacheDir = "/var/lib/yoctune/kernels"

// Cache keeps compiled kernels between runs of a program, so that a GPU's driver
// compiles a module once and not at every start. Its Note says why they are not kept,
// where they are not.
type Cache = cache.Cache

// OpenCache opens a cache in dir, see [CacheDir]. It always gives one: where dir cannot
// be used, kernels are kept for the life of the process.
func OpenCache(dir string) *Cache { return cache.Open(dir, "compiled kernels") }

// CacheKey is all that a compiled image depends on.
type CacheKey struct {
	Source     []byte // PTX, or whatever is compiled
	Capability string // compute capability of the device, as "8.7"
	Driver     string // version of the driver, which holds the compiler
	Options    string // of the compiler
}

// ID is the name of the key's answer in a cache.
func (k CacheKey) ID() string {
	return cache.Key("kernel", string(k.Source), k.Capability, k.Driver, k.Options)
}

// Module is a set of kernels that were compiled elsewhere.
type Module struct {
	d *Device
	m c.Module
}

// Kernel is one of a module. It must not be launched after the module's release.
type Kernel struct {
	d  *Device
	id uint64

	Registers  int    // a thread
	MaxThreads int    // a block
	Shared     uint64 // bytes of static shared memory a block
	Local      uint64 // bytes of local memory a thread: more than 0 means spilled registers
	Binary     int    // 10·major + minor of the capability it was compiled for
}

// LoadModule loads PTX text or a cubin. Options are the JIT's: "max_registers=N",
// "opt_level=N", separated by commas. With a cache PTX is compiled once for a
// device, driver and options; cached reports that it was not compiled now. The CPU
// backend returns ErrNotSupported.
func (d *Device) LoadModule(image []byte, options string, kept *Cache) (m *Module, cached bool, err error) {
	const op = "load module"
	if len(image) == 0 || bytes.IndexByte([]byte(options), 0) >= 0 {
		return nil, false, fmt.Errorf("%s: no image, or a NUL in the options: %w", op, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return nil, false, err
	}
	defer d.gate.RUnlock()
	isPTX := !bytes.HasPrefix(image, []byte("\x7fELF")) && !bytes.HasPrefix(image, []byte("YTC1"))
	if isPTX && image[len(image)-1] != 0 {
		image = append(bytes.Clone(image), 0)
	}
	load := func(image []byte) error {
		h, f := d.api.ModuleLoad(d.dev, image, options)
		if err := failed(op, f); err != nil {
			return err
		}
		m = &Module{d: d, m: h}
		return nil
	}
	if kept == nil || !isPTX {
		if err := load(image); err != nil {
			return nil, false, err
		}
		d.adopt(m)
		return m, false, nil
	}
	info, f := d.api.DeviceInfo(d.dev)
	if err := failed(op, f); err != nil {
		return nil, false, err
	}
	key := CacheKey{
		Source: image, Options: options,
		Capability: fmt.Sprintf("%d.%d", info.CCMajor, info.CCMinor), Driver: fmt.Sprint(info.Driver),
	}.ID()
	compile := func() ([]byte, error) {
		if err := load(image); err != nil {
			return nil, err
		}
		linked, f := d.api.ModuleImage(m.m)
		return linked, failed(op, f)
	}
	linked, cached, err := kept.Get(key, compile)
	if err == nil && cached {
		// An entry can be whole and still not what this driver takes.
		if err = load(linked); errors.Is(err, ErrInvalid) || errors.Is(err, ErrNoBackend) {
			kept.Drop(key)
			_, cached, err = kept.Get(key, compile)
		}
	}
	if err != nil {
		if m != nil {
			err = errors.Join(err, m.release())
		}
		return nil, false, err
	}
	d.adopt(m)
	return m, cached, nil
}

// Kernel finds a kernel by its name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	const op = "find kernel"
	if name == "" || bytes.IndexByte([]byte(name), 0) >= 0 {
		return nil, fmt.Errorf("%s: name %q: %w", op, name, ErrInvalid)
	}
	if err := m.d.use(op, m); err != nil {
		return nil, err
	}
	defer m.d.gate.RUnlock()
	id, i, f := m.d.api.KernelGet(m.m, name)
	if err := failed(op, f); err != nil {
		return nil, err
	}
	return &Kernel{d: m.d, id: id, Registers: i.Registers, MaxThreads: i.MaxThreads, Shared: i.Shared, Local: i.Local, Binary: i.Binary}, nil
}

// Occupancy asks the driver how many blocks of so many threads and bytes of dynamic
// shared memory one multiprocessor holds.
func (k *Kernel) Occupancy(block, shared int) (int, error) {
	if block < 1 || block > math.MaxInt32 || shared < 0 {
		return 0, fmt.Errorf("occupancy: %d threads, %d bytes: %w", block, shared, ErrInvalid)
	}
	if err := k.d.enter("occupancy"); err != nil {
		return 0, err
	}
	defer k.d.gate.RUnlock()
	n, f := k.d.api.Occupancy(k.d.dev, k.id, uint32(block), uint64(shared))
	return n, failed("occupancy", f)
}

// Grid is the shape of a launch.
type Grid struct {
	Blocks, Threads [3]int // each at least 1; zero values mean 1
	Shared          int    // bytes of dynamic shared memory
}

// Launch runs a kernel of a module. It gets the addresses of the regions, then the
// params, each in the low bytes of its word. What it touches beyond the regions is
// not checked.
func (l *List) Launch(k *Kernel, g Grid, regions []Region, params ...uint64) *List {
	if k == nil || k.d != l.s.d || len(regions) > 4 || len(params) > 6 {
		return l.fail(fmt.Errorf("launch: a kernel of this device, at most 4 regions and 6 params: %w", ErrInvalid))
	}
	a := c.Launch{Kernel: k.id, Ranges: uint16(len(regions)), Params: uint16(len(params))}
	for i := range 3 {
		b, t := max(g.Blocks[i], 1), max(g.Threads[i], 1)
		if b > math.MaxInt32 || t > math.MaxInt32 || g.Shared < 0 || g.Shared > math.MaxInt32 {
			return l.fail(fmt.Errorf("launch: grid %+v is out of range: %w", g, ErrInvalid))
		}
		a.Grid[i], a.Block[i] = uint32(b), uint32(t)
	}
	a.Shared = uint32(g.Shared)
	copy(a.Param[:], params)
	cmd := c.Cmd{Op: c.OpLaunch}
	for i, r := range regions {
		at := l.place("launch: region", r)
		if i == 0 {
			cmd.Dst = at
		} else {
			cmd.Src[i-1] = at
		}
	}
	c.Put(&cmd, a)
	return l.add(cmd)
}

// Release unloads the module; its kernels must not be running.
func (m *Module) Release() error { return m.d.releaseChild("release module", m) }

func (m *Module) release() error { return failed("release module", m.d.api.ModuleUnload(m.m)) }
func (m *Module) rank() int      { return lastRank }

// KernelConfig says how a built-in kernel is launched; 0 keeps what is built in.
type KernelConfig struct {
	Kernel string // "preprocess", "gemm", ...
	Block  int    // threads a block; of the CPU's gemm the rows that stay in its cache
	Tile   int    // elements of a side, for kernels that have tiles
	Stages int
}

// Configure sets how the last command of the list is launched, in place of what the device
// was told. Its kernel is not looked at, stages are the device's. What the kernel does
// not take Submit refuses with what it takes.
func (l *List) Configure(k KernelConfig) *List {
	if l.err != nil {
		return l
	}
	if len(l.cmds) == 0 || k.Block < 0 || k.Tile < 0 || k.Block > math.MaxInt16 || k.Tile > math.MaxInt16 {
		return l.fail(fmt.Errorf("configuration %+v: of a command, each 0 to %d: %w", k, math.MaxInt16, ErrInvalid))
	}
	cmd := &l.cmds[len(l.cmds)-1]
	switch cmd.Op {
	case c.OpMemset, c.OpReduce, c.OpRecord, c.OpWait, c.OpSignal, c.OpLaunch:
		return l.fail(fmt.Errorf("configuration of a command that takes none: %w", ErrInvalid))
	}
	cmd.Value = uint32(k.Block) | uint32(k.Tile)<<16
	return l
}

// KernelLimits is what a built-in kernel takes as its launch configuration.
type KernelLimits = c.Limits

// Tunable lists the kernels whose speed on this backend depends on their launch
// configuration, and what they take: on the CPU products of matrices alone, in CUDA
// those whose blocks may be of several sizes and are not laid out by the kernel.
func (d *Device) Tunable() []KernelLimits {
	onCPU := d.backend == CPU
	return slices.DeleteFunc(c.Kernels(), func(l c.Limits) bool {
		return onCPU != (l.Op == c.OpGemm) || (l.BlockMin == l.BlockMax && l.TileMin == l.TileMax)
	})
}

// Sources is a digest of what the backend's kernels were made of: the CPU's sources, or
// the file of the CUDA library.
func (d *Device) Sources() (string, error) {
	if d.library == "" {
		return c.Sources(), nil
	}
	f, err := os.Open(d.library)
	if err != nil {
		return "", fmt.Errorf("digest of the kernels: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("digest of the kernels: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Configure sets the launch configuration for lists submitted from now on. What a
// kernel does not take is ErrInvalid, with what it takes.
func (d *Device) Configure(k KernelConfig) error {
	const op = "configure kernel"
	for _, v := range []int{k.Block, k.Tile, k.Stages} {
		if v < 0 || v > math.MaxInt16 {
			return fmt.Errorf("%s %s: %d: 0 to %d: %w", op, k.Kernel, v, math.MaxInt16, ErrInvalid)
		}
	}
	if bytes.IndexByte([]byte(k.Kernel), 0) >= 0 {
		return fmt.Errorf("%s: name %q: %w", op, k.Kernel, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	return failed(op, d.api.KernelConfig(d.dev, k.Kernel, uint32(k.Block), uint32(k.Tile), uint32(k.Stages)))
}
