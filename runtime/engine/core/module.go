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

// CacheDir is the directory in which services keep compiled kernels and tuning results.
const CacheDir = "/var/lib/yoctune/kernels"

// Cache keeps compiled kernels between runs of a program, so that a GPU driver compiles a
// module only once. Cache.Note returns why it cannot keep them on disk.
type Cache = cache.Cache

// OpenCache opens a cache in dir; see [CacheDir]. If dir is unusable, the cache keeps
// kernels in memory until the process exits.
func OpenCache(dir string) *Cache { return cache.Open(dir, "compiled kernels") }

// CacheKey contains everything that determines a compiled image.
type CacheKey struct {
	Source     []byte // PTX or other source
	Capability string // compute capability of the device, as "8.7"
	Driver     string // version of the driver, which contains the compiler
	Options    string // options of the compiler
}

// ID returns the key of the image in a cache.
func (k CacheKey) ID() string {
	return cache.Key("kernel", string(k.Source), k.Capability, k.Driver, k.Options)
}

// Module is a set of kernels compiled outside the backend.
type Module struct {
	d *Device
	m c.Module
}

// Kernel is a kernel of a module. It must not be launched after the module's release.
type Kernel struct {
	d  *Device
	id uint64

	Registers  int    // per thread
	MaxThreads int    // per block
	Shared     uint64 // bytes of static shared memory per block
	Local      uint64 // bytes of local memory per thread; above 0, registers were spilled
	Binary     int    // 10·major + minor of the compute capability it was compiled for
}

// LoadModule loads PTX text or a cubin. options are those of the JIT compiler, separated by
// commas: "max_registers=N", "opt_level=N". With a cache, PTX is compiled once per device,
// driver and options; cached reports that the cache had it. The CPU backend returns
// ErrNotSupported.
func (d *Device) LoadModule(image []byte, options string, kept *Cache) (m *Module, cached bool, err error) {
	const op = "load module"
	if len(image) == 0 || bytes.IndexByte([]byte(options), 0) >= 0 {
		return nil, false, fmt.Errorf("%s: empty image, or a NUL byte in the options: %w", op, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return nil, false, err
	}
	defer d.gate.RUnlock()
	isPTX := !bytes.HasPrefix(image, []byte("\x7fELF")) && !bytes.HasPrefix(image, []byte("YTC1"))
	if isPTX && image[len(image)-1] != 0 {
		image = append(bytes.Clone(image), 0)
	}
	if kept != nil && isPTX {
		m, cached, err = d.loadCached(image, options, kept)
	} else {
		m, err = d.loadImage(image, options)
	}
	if err != nil {
		return nil, false, err
	}
	d.adopt(m)
	return m, cached, nil
}

func (d *Device) loadImage(image []byte, options string) (*Module, error) {
	h, f := d.api.ModuleLoad(d.dev, image, options)
	if err := backendError("load module", f); err != nil {
		return nil, err
	}
	return &Module{d: d, m: h}, nil
}

// loadCached loads the linked image of PTX from a cache, or compiles and caches it.
func (d *Device) loadCached(ptx []byte, options string, kept *Cache) (m *Module, cached bool, err error) {
	info, f := d.api.DeviceInfo(d.dev)
	if err := backendError("load module", f); err != nil {
		return nil, false, err
	}
	key := CacheKey{
		Source: ptx, Options: options,
		Capability: fmt.Sprintf("%d.%d", info.CCMajor, info.CCMinor), Driver: fmt.Sprint(info.Driver),
	}.ID()
	compile := func() (linked []byte, err error) {
		if m, err = d.loadImage(ptx, options); err != nil {
			return nil, err
		}
		linked, f := d.api.ModuleImage(m.m)
		return linked, backendError("load module", f)
	}
	linked, cached, err := kept.Get(key, compile)
	if err == nil && cached {
		// An intact entry may still be incompatible with this driver.
		if m, err = d.loadImage(linked, options); errors.Is(err, ErrInvalid) || errors.Is(err, ErrNoBackend) {
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
	return m, cached, nil
}

// Kernel finds a kernel by its name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	const op = "find kernel"
	if name == "" || bytes.IndexByte([]byte(name), 0) >= 0 {
		return nil, fmt.Errorf("%s: invalid name %q: %w", op, name, ErrInvalid)
	}
	if err := m.d.enterChild(op, m); err != nil {
		return nil, err
	}
	defer m.d.gate.RUnlock()
	id, i, f := m.d.api.KernelGet(m.m, name)
	if err := backendError(op, f); err != nil {
		return nil, err
	}
	return &Kernel{d: m.d, id: id, Registers: i.Registers, MaxThreads: i.MaxThreads, Shared: i.Shared, Local: i.Local, Binary: i.Binary}, nil
}

// Occupancy returns how many blocks of block threads and shared bytes of dynamic shared
// memory fit one multiprocessor, as the driver calculates it.
func (k *Kernel) Occupancy(block, shared int) (int, error) {
	if block < 1 || block > math.MaxInt32 || shared < 0 {
		return 0, fmt.Errorf("occupancy: invalid launch of %d threads with %d bytes: %w", block, shared, ErrInvalid)
	}
	if err := k.d.enter("occupancy"); err != nil {
		return 0, err
	}
	defer k.d.gate.RUnlock()
	n, f := k.d.api.Occupancy(k.d.dev, k.id, uint32(block), uint64(shared))
	return n, backendError("occupancy", f)
}

// Grid is the shape of a launch.
type Grid struct {
	Blocks, Threads [3]int // each at least 1; zero values mean 1
	Shared          int    // bytes of dynamic shared memory
}

// Launch runs a kernel of a module. Its arguments are the addresses of the regions, then
// the params, each in the low bytes of its word. Accesses outside the regions are not
// checked.
func (l *List) Launch(k *Kernel, g Grid, regions []Region, params ...uint64) *List {
	if k == nil || k.d != l.s.d || len(regions) > 4 || len(params) > 6 {
		return l.fail(fmt.Errorf("launch: need a kernel of this device, at most 4 regions and 6 params: %w", ErrInvalid))
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
		at := l.resolve("launch", "region", r)
		if i == 0 {
			cmd.Dst = at
		} else {
			cmd.Src[i-1] = at
		}
	}
	c.Put(&cmd, a)
	return l.add(cmd)
}

// Release unloads the module. Its kernels must not be running.
func (m *Module) Release() error { return m.d.releaseChild("release module", m) }

func (m *Module) release() error { return backendError("release module", m.d.api.ModuleUnload(m.m)) }
func (m *Module) rank() int      { return lastRank }

// KernelConfig is the launch configuration of a built-in kernel. 0 keeps the built-in value.
type KernelConfig struct {
	Kernel string // "preprocess", "gemm", ...
	Block  int    // threads per block; for gemm on the CPU, rows kept in cache
	Tile   int    // elements per side, for kernels that have tiles
	Stages int    // pipeline stages; no current kernel uses them
}

// Configure sets the launch configuration of the last command, overriding
// Device.Configure. It uses Block and Tile of k only. Submit reports invalid values along
// with the valid range.
func (l *List) Configure(k KernelConfig) *List {
	if l.err != nil {
		return l
	}
	if len(l.cmds) == 0 || k.Block < 0 || k.Tile < 0 || k.Block > math.MaxInt16 || k.Tile > math.MaxInt16 {
		return l.fail(fmt.Errorf("configure: need a command, and values of 0 to %d, got %+v: %w", math.MaxInt16, k, ErrInvalid))
	}
	cmd := &l.cmds[len(l.cmds)-1]
	switch cmd.Op {
	case c.OpMemset, c.OpReduce, c.OpRecord, c.OpWait, c.OpSignal, c.OpLaunch:
		return l.fail(fmt.Errorf("configure: the command has no launch configuration: %w", ErrInvalid))
	}
	cmd.Value = uint32(k.Block) | uint32(k.Tile)<<16
	l.number = 0
	return l
}

// KernelLimits are the valid launch configurations of a built-in kernel.
type KernelLimits = c.Limits

// Tunable lists the kernels of this backend that have more than one launch configuration.
// On the CPU that is only gemm; in CUDA, every kernel with a variable block size.
func (d *Device) Tunable() []KernelLimits {
	onCPU := d.backend == CPU || d.backend == Strict
	return slices.DeleteFunc(c.Kernels(), func(l c.Limits) bool {
		return onCPU != (l.Op == c.OpGemm) || (l.BlockMin == l.BlockMax && l.TileMin == l.TileMax)
	})
}

// Sources returns a digest of the backend's kernels: of the CPU backend's sources, or of the
// file of the CUDA library.
func (d *Device) Sources() (string, error) {
	if d.library == "" {
		return c.Sources(), nil
	}
	f, err := os.Open(d.library)
	if err != nil {
		return "", fmt.Errorf("compute digest of the kernels: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("compute digest of the kernels: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Configure sets the launch configuration of a kernel for lists submitted from now on. For
// invalid values it returns ErrInvalid with the valid range.
func (d *Device) Configure(k KernelConfig) error {
	const op = "configure kernel"
	for _, v := range []int{k.Block, k.Tile, k.Stages} {
		if v < 0 || v > math.MaxInt16 {
			return fmt.Errorf("%s %s: value %d must be 0 to %d: %w", op, k.Kernel, v, math.MaxInt16, ErrInvalid)
		}
	}
	if bytes.IndexByte([]byte(k.Kernel), 0) >= 0 {
		return fmt.Errorf("%s: invalid name %q: %w", op, k.Kernel, ErrInvalid)
	}
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	return backendError(op, d.api.KernelConfig(d.dev, k.Kernel, uint32(k.Block), uint32(k.Tile), uint32(k.Stages)))
}
