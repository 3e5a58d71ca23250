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

// module is a kernel compiled outside the backend. It must not be launched after its release.
type module struct {
	d      *Device
	m      c.Module
	kernel uint64
}

// loadModule loads an image and finds its kernel.
func (d *Device) loadModule(image []byte, kernel string) (*module, error) {
	if err := d.enter("load module"); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	h, f := d.api.ModuleLoad(d.dev, image)
	if err := backendError("load module", f); err != nil {
		return nil, err
	}
	m := &module{d: d, m: h}
	if m.kernel, f = d.api.KernelGet(h, kernel); f.Code != 0 {
		return nil, errors.Join(backendError("find kernel", f), m.release())
	}
	d.adopt(m)
	return m, nil
}

func (m *module) release() error { return backendError("release module", m.d.api.ModuleUnload(m.m)) }
func (m *module) rank() int      { return lastRank }

// KernelConfig is the launch configuration of a built-in kernel. 0 keeps the built-in value.
type KernelConfig struct {
	Kernel string // "preprocess", "gemm", ...
	Block  int    // threads per block; for gemm on the CPU, rows kept in cache
	Tile   int    // elements per side, for kernels that have tiles
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
	case c.OpReduce, c.OpRecord, c.OpLaunch:
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
	for _, v := range []int{k.Block, k.Tile} {
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
	return backendError(op, d.api.KernelConfig(d.dev, k.Kernel, uint32(k.Block), uint32(k.Tile)))
}
