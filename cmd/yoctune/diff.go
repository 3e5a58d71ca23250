package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/internal/cli"
)

func newDiffCommand() *cobra.Command {
	var o reviewOptions
	cmd := &cobra.Command{
		Use:   "diff [DIR] [LAYER]",
		Short: "Show how a build would change the files of a layer",
		Long: `Show, as a unified diff, how building the configuration in DIR (default: the current
folder) would change the folder LAYER; or how its layer differs from that of another git
revision (--rev) or of another target (--against). Nothing is written. "yoctune review"
explains what the differences mean for the devices.`,
		Example: `  yoctune diff . build/meta-vision
  yoctune diff . build/meta-vision --exit-code && echo up to date
  yoctune diff . --rev origin/main
  yoctune diff . --target lab --against factory`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.compared(args)
			if err != nil {
				return err
			}
			var changed bool
			if c.layer != "" {
				changed, err = diffLayers(cmd, c, buildOptions{Selection: o.Selection})
			} else {
				changed, err = diffSides(cmd, c, o)
			}
			if err == nil && changed && o.exitCode {
				return cli.AnswerNo()
			}
			return err
		},
	}
	selectionFlags(cmd, &o.Selection)
	comparisonFlags(cmd, &o)
	cmd.MarkFlagsMutuallyExclusive("all", "rev")
	cmd.MarkFlagsMutuallyExclusive("all", "against")
	return cmd
}

func diffLayers(cmd *cobra.Command, what comparison, o buildOptions) (changed bool, err error) {
	format := cli.Format(cmd)
	_, layers, err := open(cmd, what.dir, format, o.Selection)
	if err != nil {
		return false, err
	}
	files := 0
	for _, l := range layers {
		c, err := earlierLayer(filepath.Join(what.layer, l.Folder), l)
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
		writeDiffSummary(cmd, files)
	}
	return changed, nil
}

// diffSides shows how the layers of a review differ, file by file.
func diffSides(cmd *cobra.Command, what comparison, o reviewOptions) (changed bool, err error) {
	format := cli.Format(cmd)
	r, err := compare(cmd, what, format, o)
	if err != nil {
		return false, err
	}
	c := &tree.Comparison{}
	kinds := map[review.Kind]tree.Kind{review.Added: tree.Add, review.Removed: tree.Remove, review.Changed: tree.Change}
	for _, f := range r.Files {
		c.Actions = append(c.Actions, tree.Action{Kind: kinds[f.Kind], Path: f.Path, Was: f.Was, Now: f.Now})
	}
	if err := showDifferences(cmd.OutOrStdout(), format, c); err != nil {
		return false, err
	}
	if format == "json" {
		writeDiffSummary(cmd, len(r.Files))
	}
	return !r.Clean(), nil
}

func writeDiffSummary(cmd *cobra.Command, files int) {
	writeJSONLine(cmd.OutOrStdout(), struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Files   int    `json:"files"`
	}{"summary", "diff", files})
}
