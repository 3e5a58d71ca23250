package core

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
	"github.com/yoctune/yoctune/runtime/engine/core/cuda"
	"github.com/yoctune/yoctune/schema/fuse"
)

// Fused is a chain of expressions (package fuse) compiled to one kernel of a device.
type Fused struct {
	chain    *fuse.Chain
	operands []fuse.Operand
	m        *module
}

// Fuse compiles a chain to a kernel of the device. The CPU backend interprets the chain.
// For a GPU, NVRTC compiles it from CUDA source; with a cache, once per device and driver.
// Fuse fails with ErrNotSupported if NVRTC is not installed.
func (d *Device) Fuse(chain *fuse.Chain, kept *Cache) (*Fused, error) {
	const op = "fuse"
	if chain == nil {
		return nil, fmt.Errorf("%s: no chain: %w", op, ErrInvalid)
	}
	image := chain.Image()
	if d.api == nil || d.api.Caps()&c.CapChains == 0 {
		info, err := d.Info()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		if info.Capability == nil || info.Driver == nil {
			return nil, fmt.Errorf("%s: unknown compute capability or driver version: %w", op, ErrNotSupported)
		}
		arch := "sm_" + strings.ReplaceAll(*info.Capability, ".", "")
		build := func() ([]byte, error) {
			image, _, err := CompileChain(chain, "", arch)
			return image, err
		}
		if kept == nil {
			image, err = build()
		} else {
			image, _, err = kept.Get(CacheKey{Source: []byte(chain.Source()), Capability: arch, Driver: *info.Driver, Options: "chain"}.ID(), build)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
	}
	m, err := d.loadModule(image, fuse.KernelName)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return &Fused{chain: chain, operands: chain.Operands(), m: m}, nil
}

// CompileChain compiles a chain with NVRTC, without a GPU. library is the path of NVRTC, or
// "" for the installed one. An arch such as "sm_87" gives a cubin, "compute_87" gives PTX.
// compiler is the version of NVRTC.
func CompileChain(chain *fuse.Chain, library, arch string) (image []byte, compiler string, err error) {
	headers := map[string]string{
		// The parts of the C library that the core's headers use.
		"stddef.h": "#pragma once\n#ifndef NULL\n#define NULL 0\n#endif\n",
		"stdint.h": "#pragma once\ntypedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\ntypedef long long int64_t;\n" +
			"typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n" +
			"typedef unsigned long long uint64_t;\ntypedef unsigned long long uintptr_t;\n" +
			"#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n#define UINT32_MAX 4294967295u\n#define UINT64_MAX 18446744073709551615ull\n",
	}
	for _, dir := range []fs.FS{c.Headers, cuda.Headers} {
		names, err := fs.Glob(dir, "*.h")
		if err != nil {
			return nil, "", fmt.Errorf("compile chain: %w", err)
		}
		for _, name := range names {
			body, err := fs.ReadFile(dir, name)
			if err != nil {
				return nil, "", fmt.Errorf("compile chain: %w", err)
			}
			headers[name] = string(body)
		}
	}
	cubin := len(arch) > 3 && arch[:3] == "sm_"
	// Contraction to fused multiply-add would make backends differ (yt_math.h).
	image, compiler, f := c.Compile(library, chain.Source(), headers, []string{"--gpu-architecture=" + arch, "--std=c++17", "--fmad=false"}, cubin)
	return image, compiler, backendError("compile chain", f)
}

// Release unloads the kernel; it must not be running.
func (f *Fused) Release() error { return f.m.d.releaseChild("release chain", f.m) }

// Channels maps elements to channels: the channel of element i is i/Inner mod Count. The
// zero value is for chains without p and q.
type Channels struct {
	Inner, Count int
}

// Fused runs a chain on each element of src. operands follow the order of Chain.Operands:
// for y a region as long as src, for p and q one float32 per channel.
func (l *List) Fused(f *Fused, dst, src Region, ch Channels, operands ...Region) *List {
	if f == nil || f.m.d != l.s.d {
		return l.fail(fmt.Errorf("chain: need a chain of this device: %w", ErrInvalid))
	}
	var others [2]int
	if len(operands) > len(others) {
		return l.fail(fmt.Errorf("chain: %d operands: %w", len(operands), ErrInvalid))
	}
	for i, r := range operands {
		others[i] = r.Len
	}
	a, err := f.launch(dst.Len, src.Len, ch, others[:len(operands)])
	if err != nil {
		return l.fail(err)
	}
	if a.Param[0] == 0 {
		return l
	}
	cmd := c.Cmd{Op: c.OpLaunch, Dst: l.resolve("chain", "destination", dst)}
	cmd.Src[0] = l.resolve("chain", "source", src)
	for i, r := range operands {
		cmd.Src[1+i] = l.resolve("chain", "operand", r)
	}
	c.Put(&cmd, a)
	return l.add(cmd)
}

// launch returns the launch of a chain on memory of the given sizes in bytes. The first parameter is
// the number of elements.
func (f *Fused) launch(dst, src int, ch Channels, operands []int) (c.Launch, error) {
	if len(operands) != len(f.operands) {
		return c.Launch{}, fmt.Errorf("chain: need one region per operand: %w", ErrInvalid)
	}
	size, out := Type(f.chain.In()).Bytes(), Type(f.chain.Out()).Bytes()
	n := src / size
	if src != n*size || dst != n*out || ch.Inner < 0 || ch.Count < 0 || ch.Count > math.MaxInt32 {
		return c.Launch{}, fmt.Errorf("chain: source of %d bytes (%d per element) does not match destination of %d bytes (%d per element): %w", src, size, dst, out, ErrInvalid)
	}
	for i, o := range f.operands {
		want := n * size
		if o.Channel {
			want = 4 * ch.Count
		}
		if operands[i] != want || o.Channel && (ch.Count == 0 || ch.Inner == 0) {
			return c.Launch{}, fmt.Errorf("chain: %s has %d bytes, want %d: %w", o.Name, operands[i], want, ErrInvalid)
		}
	}
	return c.Launch{
		Kernel: f.m.kernel, Grid: [3]uint32{uint32(max(min((n+4*fuse.Threads-1)/(4*fuse.Threads), 1<<20), 1)), 1, 1}, Block: [3]uint32{fuse.Threads, 1, 1},
		Ranges: uint16(2 + len(operands)), Params: 3,
		Param: [6]uint64{uint64(n), uint64(max(ch.Inner, 1)), uint64(max(ch.Count, 1))},
	}, nil
}

// Map runs a chain on src, in host memory. See [List.Fused].
func (d *Device) Map(ctx context.Context, f *Fused, dst, src []byte, ch Channels, operands ...[]byte) error {
	const op = "map"
	if f == nil || f.m.d != d || len(operands) > 2 {
		return fmt.Errorf("%s: need a chain of this device: %w", op, ErrInvalid)
	}
	var others [2]int
	all := [3][]byte{src}
	for i, b := range operands {
		others[i], all[1+i] = len(b), b
	}
	a, err := f.launch(len(dst), len(src), ch, others[:len(operands)])
	if err != nil || len(src) == 0 {
		return err
	}
	cmd := c.Cmd{Op: c.OpLaunch}
	c.Put(&cmd, a)
	return d.runOnHost(ctx, op, cmd, all[:1+len(operands)], dst)
}
