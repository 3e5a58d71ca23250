package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cache"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/engine/bench"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/tune"
)

func newTuneCommand() *cobra.Command {
	var open core.Options
	var dir string
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Find and save the fastest launch configuration of each kernel",
		Long: `Measure the kernels that have several launch configurations, for the shapes that
pipelines use, and save the fastest. Configurations that cannot win are skipped: on a GPU
by occupancy, on the CPU by cache size.

Results are saved beside compiled kernels, by device, driver, digest of the kernels and
shape. A second run measures nothing; another driver or version of yoctuned measures
again.

Exit status: 0 done, 1 failed, 2 wrong usage.`,
		Example: `  yoctuned tune
  yoctuned tune --cache /tmp/kernels --format json | jq 'select(.from == "measured")'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTune(cmd, open, dir) },
	}
	coreFlags(cmd, &open)
	cmd.Flags().IntVar(&open.Index, "device", 0, "`INDEX` of the device to use")
	cmd.Flags().StringVar(&dir, "cache", core.CacheDir, "`DIR` to save results in")
	return cmd
}

// tuneSummary ends tune's JSON.
type tuneSummary struct {
	cli.Summary
	Device core.Info   `json:"device"`
	Cache  cache.Stats `json:"cache"`
	Runs   int         `json:"runs"` // measurements made now
	Note   *string     `json:"note"` // why results are not kept, or why the CPU was chosen
}

func runTune(cmd *cobra.Command, open core.Options, dir string) (err error) {
	d, err := core.Open(open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	kept := core.OpenCache(dir)
	t, err := tune.New(d, kept)
	if err != nil {
		return err
	}
	s := tuneSummary{Summary: cli.Summary{Type: "summary", Command: "tune"}}
	if s.Device, err = d.Info(); err != nil {
		return err
	}
	p := cli.NewPrinter(cmd)
	each := func(v bench.Tuned) error {
		if p.JSON {
			p.Encode(v)
			return p.Err()
		}
		shape := fmt.Sprintf("blocks of %d", v.Block)
		if v.Tile != nil {
			shape += fmt.Sprintf(", tiles of %d", *v.Tile)
		}
		gain := ""
		if v.Time > 0 && v.BuiltIn > 0 {
			gain = fmt.Sprintf("%s, default %s", formatTime(v.Time.Nanoseconds()), formatTime(v.BuiltIn.Nanoseconds()))
		}
		p.Printf("%-44s %-9s %-28s %s\n", v.Name, v.From, shape, gain)
		return p.Err()
	}
	if err := bench.Tune(cmd.Context(), d, t, each); err != nil {
		return err
	}
	s.Cache, s.Runs = kept.Stats(), t.Runs()
	for _, note := range []string{d.Note(), kept.Note()} {
		if note != "" {
			s.Note = &note
		}
	}
	if p.JSON {
		p.Encode(s)
		return nil
	}
	if s.Note != nil {
		p.Printf("note: %s\n", *s.Note)
	}
	p.Printf("%d measurements on %s\n", s.Runs, s.Device.Name)
	return nil
}
