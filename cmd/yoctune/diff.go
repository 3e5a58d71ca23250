package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/tree"
)

func newDiffCommand() *cobra.Command {
	var o buildOptions
	var exitCode bool
	cmd := &cobra.Command{
		Use:   "diff DIR OUT",
		Short: "Show what building would change in a layer",
		Long: `Show, as a unified diff, what building the configuration in DIR would change in
the folder OUT. Nothing is written.`,
		Example: `  yoctune diff . build/meta-vision
  yoctune diff . build/meta-vision --exit-code && echo up to date`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed, err := diffLayers(cmd, args[0], args[1], o)
			if err == nil && changed && exitCode {
				return errDifferent
			}
			return err
		},
	}
	o.selectionFlags(cmd)
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 3 when there are differences")
	return cmd
}

func diffLayers(cmd *cobra.Command, dir, out string, o buildOptions) (changed bool, err error) {
	format, err := formatOf(cmd)
	if err != nil {
		return false, err
	}
	_, layers, err := open(cmd, dir, format, o.Selection)
	if err != nil {
		return false, err
	}
	files := 0
	for _, l := range layers {
		c, err := tree.Compare(filepath.Join(out, l.Folder), l.Files)
		if err != nil {
			return changed, err
		}
		changed = changed || !c.Clean()
		files += len(c.Actions)
		if err := showDifferences(cmd.OutOrStdout(), format, c); err != nil {
			return changed, err
		}
	}
	if format == "json" {
		writeJSONLine(cmd.OutOrStdout(), struct {
			Type    string `json:"type"`
			Command string `json:"command"`
			Files   int    `json:"files"`
		}{"summary", "diff", files})
	}
	return changed, nil
}
