// Command go demonstrates the compute core in Go: a list of work, timed by events and submitted
// again with other values. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

func main() {
	backend := flag.String("backend", core.Auto, "auto, cpu or cuda")
	flag.Parse()
	if err := run(*backend); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(backend string) (err error) {
	const n = 1_000_000
	d, err := core.Open(core.Options{Backend: backend})
	if err != nil {
		return err
	}
	// Close releases all remaining buffers, streams and events.
	defer func() { err = errors.Join(err, d.Close()) }()
	info, err := d.Info()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", info.Backend, info.Build)

	// Pinned host memory, which a GPU copies without staging, and device memory.
	up, err1 := d.Alloc(4*n, core.MemPinned)
	values, err2 := d.Alloc(4*n, core.MemDevice)
	sum, err3 := d.Alloc(4, core.MemDevice)
	down, err4 := d.Alloc(4, core.MemPinned)
	stream, err5 := d.NewStream()
	start, err6 := d.NewEvent()
	end, err7 := d.NewEvent()
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return err
	}
	fill := func(v float32) {
		for i := range up.Float32s() {
			up.Float32s()[i] = v
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	// A list is one call to the backend. It is checked once, and may be submitted again.
	work := stream.List().Record(start).Copy(values.All(), up.All()).Reduce(sum.All(), values.All(), core.Sum).
		Copy(down.All(), sum.All()).Record(end)
	for v := range 2 {
		fill(float32(v + 1))
		if err := errors.Join(work.Submit(), stream.Wait(ctx)); err != nil {
			return err
		}
		fmt.Printf("sum of %d times %d: %.0f\n", n, v+1, down.Float32s()[0])
	}
	took, err := end.Since(start)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "the device took %v\n", took)
	return nil
}
