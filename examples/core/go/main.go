// Command go demonstrates the compute core in Go: ordered work on two streams, then the same
// work as a graph. See ../README.md.
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
	// Close releases all remaining buffers, streams, events and graphs.
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
	copies, err5 := d.NewStream(0)
	kernels, err6 := d.NewStream(-1)
	ready, err7 := d.NewEvent()
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

	// Each list is one call to the backend. The second stream starts when the first has
	// copied the values.
	fill(1)
	upload := copies.List().Copy(values.All(), up.All()).Record(ready)
	work := kernels.List().Wait(ready).Reduce(sum.All(), values.All(), core.Sum).Copy(down.All(), sum.All())
	if err := errors.Join(upload.Submit(), work.Submit(), kernels.Wait(ctx)); err != nil {
		return err
	}
	fmt.Printf("sum of %d ones: %.0f\n", n, down.Float32s()[0])

	// The graph is checked once and replayed with other values.
	graph, err := kernels.Record(kernels.List().Copy(values.All(), up.All()).Reduce(sum.All(), values.All(), core.Sum).
		Copy(down.All(), sum.All()).Submit)
	if err != nil {
		return err
	}
	fill(2)
	if err := errors.Join(graph.Launch(kernels), kernels.Wait(ctx)); err != nil {
		return err
	}
	fmt.Printf("sum of %d twos, by the graph: %.0f\n", n, down.Float32s()[0])
	return nil
}
