package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/compiler/report/review"
)

func newDiffCommand() *cobra.Command {
	var o reviewOptions
	cmd := &cobra.Command{
		Use:   "diff DIR [OUT]",
		Short: "Show what building would change in a layer",
		Long: `Show, as a unified diff, what building the configuration in DIR would change in
the folder OUT; or how its layer differs from that of another revision of git
(--rev) or of another target (--against). Nothing is written. "yoctune review"
says what the differences mean.`,
		Example: `  yoctune diff . build/meta-vision
  yoctune diff . build/meta-vision --exit-code && echo up to date
  yoctune diff . --rev origin/main
  yoctune diff . --target lab --against factory`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var changed bool
			var err error
			if o.rev != "" || o.against != "" {
				changed, err = diffSides(cmd, args, o)
			} else if len(args) == 2 {
				changed, err = diffLayers(cmd, args[0], args[1], buildOptions{Selection: o.Selection})
			} else {
				err = usageError{errNothingToCompare}
			}
			if err == nil && changed && o.exitCode {
				return errDifferent
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
		c, err := earlier(filepath.Join(out, l.Folder), l)
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
func diffSides(cmd *cobra.Command, args []string, o reviewOptions) (changed bool, err error) {
	format, err := formatOf(cmd)
	if err != nil {
		return false, err
	}
	r, err := reviewed(cmd, args, format, o)
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
