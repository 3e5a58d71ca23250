package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/layer/bom"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/sbom"
)

func newSBOMCommand() *cobra.Command {
	var sel compiler.Selection
	var out string
	cmd := &cobra.Command{
		Use:   "sbom [DIR]",
		Short: "Write the software bill of materials of a layer, in SPDX",
		Long: `Write the software bill of materials (SBOM) of the layer that the configuration in DIR
(default: the current folder) describes, as SPDX 2.3 in JSON: its files with their
digests, the runtime that it fetches, and the models of its pipelines.

The output is reproducible: the time in the document is SOURCE_DATE_EPOCH, or 1 January
1970.`,
		Example: `  yoctune sbom examples/video-analytics -o meta-vision.spdx.json
  yoctune sbom . --release wrynose`,
		RunE: runInFolder(func(cmd *cobra.Command, dir string) error {
			created, err := sbom.Epoch()
			if err != nil {
				return cli.UsageError(err)
			}
			_, layers, err := openLayers(cmd, dir, sel)
			if err != nil {
				return err
			}
			if len(layers) != 1 {
				return cli.UsageError(errors.New("an SBOM describes one layer; choose it with --release"))
			}
			text, err := bom.Encode(layers[0], created)
			if err != nil {
				return err
			}
			if err := writeOutput(cmd, out, text); err != nil {
				return err
			}
			if p := cli.NewPrinter(cmd); p.JSON && !isStdout(out) {
				p.Summary("sbom")
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&sel.Target, "target", "", "`TARGET` to describe (default: all)")
	f.StringVar(&sel.Release, "release", "", "`RELEASE` of the layer (default: the only one)")
	f.StringVarP(&out, "output", "o", "", "`FILE` to write (default: standard output)")
	addRuntimeFlag(cmd)
	return addVariableFlag(cmd)
}
