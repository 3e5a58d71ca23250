package main

import (
	"cmp"
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
			c, err := o.parseComparison(args)
			if err != nil {
				return err
			}
			show := diffSides
			if c.layer != "" {
				show = diffLayers
			}
			changed, err := show(cmd, c, o)
			return cmp.Or(err, cli.Answer(!changed || !o.exitCode))
		},
	}
	addSelectionFlags(cmd, &o.Selection)
	addRuntimeFlag(cmd)
	addComparisonFlags(cmd, &o)
	cmd.MarkFlagsMutuallyExclusive("all", "rev")
	cmd.MarkFlagsMutuallyExclusive("all", "against")
	return cmd
}

// diffLayers shows how a build would change the folders of the layers.
func diffLayers(cmd *cobra.Command, what comparison, o reviewOptions) (changed bool, err error) {
	p := cli.NewPrinter(cmd)
	_, layers, err := openLayers(cmd, what.dir, o.Selection)
	if err != nil {
		return false, err
	}
	files := 0
	for _, l := range layers {
		c, err := compareEarlierLayer(filepath.Join(what.layer, l.Folder), l)
		if err != nil {
			return changed, err
		}
		changed = changed || !c.Clean()
		files += len(c.Actions)
		showDifferences(p, c)
	}
	writeDiffSummary(p, files)
	return changed, nil
}

// diffSides shows how the layers of a review differ, file by file.
func diffSides(cmd *cobra.Command, what comparison, o reviewOptions) (changed bool, err error) {
	p := cli.NewPrinter(cmd)
	r, err := compare(cmd, what, o)
	if err != nil {
		return false, err
	}
	c := &tree.Comparison{}
	kinds := map[review.Kind]tree.Kind{review.Added: tree.Add, review.Removed: tree.Remove, review.Changed: tree.Change}
	for _, f := range r.Files {
		c.Actions = append(c.Actions, tree.Action{Kind: kinds[f.Kind], Path: f.Path, Was: f.Was, Now: f.Now})
	}
	showDifferences(p, c)
	writeDiffSummary(p, len(r.Files))
	return !r.Clean(), nil
}

func writeDiffSummary(p cli.Printer, files int) {
	if p.JSON {
		p.Summary("diff", struct {
			Files int `json:"files"`
		}{files})
	}
}
