package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/layer/bom"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/internal/sbom"
)

func newSBOMCommand() *cobra.Command {
	var sel compiler.Selection
	var out string
	cmd := &cobra.Command{
		Use:   "sbom DIR",
		Short: "Write the bill of materials of a layer, in SPDX",
		Long: `Write what the layer of a configuration brings: each of its files with digests,
the runtime it fetches and the models of its pipelines, as SPDX 2.3 in JSON.

The same configuration gives the same bytes: the time in the document is
SOURCE_DATE_EPOCH, or 1 January 1970.`,
		Example: `  yoctune sbom examples/video-analytics -o meta-vision.spdx.json
  yoctune sbom . --release wrynose`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := formatOf(cmd)
			if err != nil {
				return err
			}
			created, err := sbom.Epoch()
			if err != nil {
				return usageError{err}
			}
			_, layers, err := open(cmd, args[0], format, sel)
			if err != nil {
				return err
			}
			if len(layers) != 1 {
				return usageError{errors.New("one bill is of one layer: choose with --release")}
			}
			text, err := bom.Of(layers[0], created)
			if err != nil {
				return err
			}
			if out == "" {
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			if err := outfile.Write(out, text); err != nil {
				return err
			}
			if format == "json" {
				endJSON(cmd)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&sel.Target, "target", "", "only this `TARGET`")
	f.StringVar(&sel.Release, "release", "", "only the targets of this `RELEASE`")
	f.StringVarP(&out, "output", "o", "", "`FILE` to write")
	return variables(cmd)
}
