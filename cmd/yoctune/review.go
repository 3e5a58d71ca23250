package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/outfile"
)

type reviewOptions struct {
	compiler.Selection
	rev, against, html string
	exitCode           bool
}

func newReviewCommand() *cobra.Command {
	var o reviewOptions
	cmd := &cobra.Command{
		Use:         "review [DIR] [LAYER]",
		Annotations: cli.Formats("text", "json", "markdown"),
		Short:       "Explain what a change of the configuration means for the devices",
		Long: `Compare the layer of the configuration in DIR (default: the current folder) with an
earlier one. For each target, show what changes on the device, which recipes are rebuilt,
whether the device needs a reboot or a new image, what can go wrong, and which line of
the configuration caused it.

The earlier layer is one of
  LAYER      a folder that "yoctune build" wrote,
  --rev      the configuration at another git revision,
  --against  another target of the same configuration.`,
		Example: `  yoctune review . build/meta-vision
  yoctune review . --rev origin/main --format markdown
  yoctune review . --target lab --against factory --html review.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.parseComparison(args)
			if err != nil {
				return err
			}
			r, err := compare(cmd, c, o)
			if err != nil {
				return err
			}
			r.Folder = pathFromCurrentDir(c.dir)
			return showReview(cmd, r, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Target, "target", "", "`TARGET` to review (default: all)")
	f.StringVar(&o.Release, "release", "", "`RELEASE` whose targets to review (default: the only one)")
	addVariableFlag(cmd)
	addRuntimeFlag(cmd)
	f.StringVar(&o.html, "html", "", "`FILE` to write the review to as a web page")
	addComparisonFlags(cmd, &o)
	return cmd
}

// addComparisonFlags adds the flags that choose what to compare with.
func addComparisonFlags(cmd *cobra.Command, o *reviewOptions) {
	f := cmd.Flags()
	f.StringVar(&o.rev, "rev", "", "`REVISION` of git to compare with")
	f.StringVar(&o.against, "against", "", "`TARGET` of the same configuration to compare with")
	f.BoolVar(&o.exitCode, "exit-code", false, "exit with 3 when there are differences")
}

// comparison is what a review compares: the configuration in dir, and the folder of a
// layer unless --rev or --against is given.
type comparison struct{ dir, layer string }

// parseComparison reads the arguments [DIR] [LAYER]. A single argument is the configuration,
// unless it is the folder of a layer.
func (o reviewOptions) parseComparison(args []string) (c comparison, err error) {
	other := o.rev != "" || o.against != ""
	switch {
	case len(args) == 2:
		c.layer = args[1]
		args = args[:1]
	case len(args) == 1 && exists(filepath.Join(args[0], manifest.Name)):
		c.layer = args[0]
		args = nil
	}
	for _, name := range args {
		if !exists(name) {
			return c, fmt.Errorf("%s: no such file or directory", name)
		}
	}
	if other == (c.layer != "") || o.rev != "" && o.against != "" {
		return c, cli.UsageError(errors.New("give one thing to compare with: the folder of a layer, --rev or --against"))
	}
	if o.against != "" && o.Target == "" {
		return c, cli.UsageError(errors.New("--against compares two targets: give the other one with --target"))
	}
	if c.layer != "" && !exists(c.layer) {
		return c, fmt.Errorf("no layer at %s; give a folder that `yoctune build` wrote", c.layer)
	}
	c.dir, err = configurationFolder(args)
	return c, err
}

func showReview(cmd *cobra.Command, r *review.Review, o reviewOptions) error {
	if o.html != "" {
		var page bytes.Buffer
		if err := r.WriteHTML(&page); err != nil {
			return err
		}
		if err := outfile.Write(o.html, page.Bytes()); err != nil {
			return err
		}
	}
	write := func(w io.Writer) error { return r.WriteText(w, cli.Colour(w)) }
	switch cli.Format(cmd) {
	case "json":
		write = r.WriteJSON
	case "markdown":
		write = r.WriteMarkdown
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	return cli.Answer(!o.exitCode || r.Clean())
}

// compare makes the review of a comparison.
func compare(cmd *cobra.Command, what comparison, o reviewOptions) (*review.Review, error) {
	p, layers, err := openLayers(cmd, what.dir, o.Selection)
	if err != nil {
		return nil, err
	}
	now := layers[0]
	switch {
	case o.rev != "":
		dir, remove, err := review.CheckOut(cmd.Context(), what.dir, o.rev)
		if err != nil {
			return nil, fmt.Errorf("--rev %s: %w", o.rev, err)
		}
		defer remove()
		was, err := openEarlier(cmd, dir, o.rev+":"+pathFromRepository(what.dir), o.Selection)
		switch {
		case errors.Is(err, load.ErrAbsent):
			fmt.Fprintf(cmd.ErrOrStderr(), "yoctune: %s has no configuration in this folder: everything is new\n", o.rev)
			return review.Compare(review.Side{Label: o.rev}, sideOf(now, what.dir), false)
		case err != nil:
			return nil, fmt.Errorf("the configuration at %s: %w", o.rev, err)
		}
		return review.Compare(sideOf(was, o.rev), sideOf(now, what.dir), false)
	case o.against != "":
		was := p.Layers(compiler.Selection{Target: o.against})
		if len(was) == 0 {
			return nil, showProject(cmd, what.dir, p)
		}
		return review.Compare(sideOf(was[0], "target "+o.against), sideOf(now, "target "+o.Target), true)
	}
	c, err := compareEarlierLayer(what.layer, now)
	if err != nil {
		return nil, err
	}
	return review.Compare(earlierSide(c), sideOf(now, what.dir), false)
}

// compareEarlierLayer compares a layer with the folder of an earlier one. Compared with a
// folder of anything else, everything in the layer would be new.
func compareEarlierLayer(dir string, now compiler.Layer) (*tree.Comparison, error) {
	if exists(dir) && !exists(filepath.Join(dir, manifest.Name)) {
		return nil, fmt.Errorf("no layer at %s: it has no %s; give a folder that `yoctune build` wrote", dir, manifest.Name)
	}
	return tree.Compare(dir, now.Files)
}

// openEarlier makes the one layer of a selection from an earlier configuration, a copy of
// which is in dir. Its findings are of no use now, unless it has errors: then they are
// printed under the name that git has for the folder.
func openEarlier(cmd *cobra.Command, dir, name string, sel compiler.Selection) (compiler.Layer, error) {
	p, err := openProject(cmd, dir)
	if err != nil {
		return compiler.Layer{}, err
	}
	layers := p.Layers(sel)
	if len(layers) == 0 {
		return compiler.Layer{}, showProject(cmd, name, p)
	}
	return layers[0], nil
}

func sideOf(l compiler.Layer, label string) review.Side {
	return review.Side{Label: label, Files: l.Files, Origins: l.Origins}
}

// earlierSide is the layer in a folder.
func earlierSide(c *tree.Comparison) review.Side {
	return review.Side{Label: c.Out, Files: c.EarlierFiles()}
}
