package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/layer/bom"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/sbom"
)

func newSBOMCommand() *cobra.Command {
	var sel compiler.Selection
	var out, spec string
	cmd := &cobra.Command{
		Use:   "sbom [DIR]",
		Short: "Write the software bill of materials of a layer, in SPDX or CycloneDX",
		Long: `Write the software bill of materials (SBOM) of the layer that the configuration in DIR
(default: the current folder) describes: its files with their digests, the runtime that it
needs, and the models of its pipelines. The document is SPDX 2.3 in JSON, or with
--spec cyclonedx CycloneDX 1.6 in JSON.

The output is reproducible: the time in the document is SOURCE_DATE_EPOCH, or 1 January
1970.`,
		Example: `  yoctune sbom examples/video-analytics -o meta-vision.spdx.json
  yoctune sbom . --spec cyclonedx -o meta-vision.cdx.json
  yoctune sbom . --release wrynose`,
		RunE: runInFolder(func(cmd *cobra.Command, dir string) error {
			if !slices.Contains(sbom.Specs(), spec) {
				return cli.UsageError(fmt.Errorf("--spec %q: choose one of %s", spec, strings.Join(sbom.Specs(), ", ")))
			}
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
			text, err := bom.New(layers[0], created).EncodeAs(spec)
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
	f.StringVar(&spec, "spec", sbom.SPDX, "`SPEC` of the document: spdx or cyclonedx")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("spec", cobra.FixedCompletions(sbom.Specs(), cobra.ShellCompDirectiveNoFileComp)))
	f.StringVarP(&out, "output", "o", "", "`FILE` to write (default: standard output)")
	addRuntimeFlag(cmd)
	return addVariableFlag(cmd)
}
