// Command go shows the compute core from Go: an order of work on two streams, then
// the same as a graph. See the README beside this folder.
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
	// Close releases what is left: buffers, streams, events, graphs.
	defer func() { err = errors.Join(err, d.Close()) }()
	info, err := d.Info()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", info.Backend, info.Build)

	// Host memory that a GPU copies from without staging, and the device's own.
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

	// One call into the backend a list. The second stream runs when the first has
	// copied.
	fill(1)
	upload := copies.List().Copy(values.All(), up.All()).Record(ready)
	work := kernels.List().Wait(ready).Reduce(sum.All(), values.All(), core.Sum).Copy(down.All(), sum.All())
	if err := errors.Join(upload.Submit(), work.Submit(), kernels.Wait(ctx)); err != nil {
		return err
	}
	fmt.Printf("sum of %d ones: %.0f\n", n, down.Float32s()[0])

	// Checked once, replayed with other values.
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
