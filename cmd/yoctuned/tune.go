package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cache"
	"github.com/yoctune/yoctune/runtime/engine/bench"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/tune"
)

func newTuneCommand() *cobra.Command {
	var open core.Options
	var dir string
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Find the quickest launch of kernels on this device, and keep it",
		Long: `tune measures the kernels that can be launched in several ways, for the shapes that
pipelines use, and keeps what was quickest. Sizes that cannot win are left out: on
a GPU by occupancy, on the CPU by what its cache holds.

What was found is kept beside compiled kernels, under the device, its driver, the
digest of the kernels and the shape: the second start measures nothing, another
driver or another version of yoctuned starts anew.

Exit codes: 0 done · 1 failed · 2 usage.`,
		Example: `  yoctuned tune
  yoctuned tune --cache /tmp/kernels --format json | jq 'select(.from == "measured")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTune(cmd, open, dir) },
	}
	cmd.Flags().StringVar(&open.Backend, "backend", core.Auto, "`BACKEND`: auto, cpu or cuda")
	cmd.Flags().StringVar(&open.Library, "library", core.DefaultLibrary, "`FILE` of the CUDA backend")
	cmd.Flags().IntVar(&open.Index, "device", 0, "`INDEX` of the backend's device")
	cmd.Flags().StringVar(&dir, "cache", core.CacheDir, "`DIR` where results are kept")
	_ = cmd.RegisterFlagCompletionFunc("backend", cobra.FixedCompletions([]string{core.Auto, core.CPU, core.CUDA}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// tuneSummary ends tune's JSON.
type tuneSummary struct {
	summaryLine
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
	s := tuneSummary{summaryLine: summaryLine{Type: "summary", Command: "tune"}}
	if s.Device, err = d.Info(); err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	inJSON := globalFlags(cmd).Format == "json"
	enc := lines(w)
	each := func(v bench.Tuned) error {
		if inJSON {
			return enc.Encode(v)
		}
		shape := fmt.Sprintf("blocks of %d", v.Block)
		if v.Tile != nil {
			shape += fmt.Sprintf(", tiles of %d", *v.Tile)
		}
		gain := ""
		if v.Time > 0 && v.BuiltIn > 0 {
			gain = fmt.Sprintf("%s, built in %s", brief(v.Time.Nanoseconds()), brief(v.BuiltIn.Nanoseconds()))
		}
		_, err := fmt.Fprintf(w, "%-44s %-9s %-28s %s\n", v.Name, v.From, shape, gain)
		return err
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
	if inJSON {
		return enc.Encode(s)
	}
	if s.Note != nil {
		if _, err := fmt.Fprintf(w, "note: %s\n", printable(*s.Note)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%d measurements on %s\n", s.Runs, printable(s.Device.Name))
	return err
}
