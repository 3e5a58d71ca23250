package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/synthetic"
	"github.com/yoctune/yoctune/schema/plan"
)

func newFactsTreeCommand() *cobra.Command {
	var dir, planFile, on string
	cmd := &cobra.Command{
		Use:   "tree [BOARD]",
		Short: "Make a synthetic device of a board",
		Long: `Write a folder that looks like the /proc and /sys of a freshly started board to
'yoctuned --root DIR', derived from the facts about the board. Use it to try a plan without
a device.

The folder has plain files. A kernel refuses, rounds or clamps values, and these files do
not.

The device runs the L4T and kernel of --release. The default is the board's release with the
newest L4T whose device folders the facts have.

With --plan the device is the plan's board after it started an image with the plan's layer:
with its release, kernel arguments and options, the choices that the options bring, its
modules, compressed swap, fan control and power modes.

The facts about some boards do not suffice. The error names what they lack, and the boards
that have a device; docs/facts.md lists them.

Exit status: 0 done, 1 the board is unknown, its facts do not suffice, or the folder is not
empty, 2 wrong usage.`,
		Example: `  yoctune facts tree orin-nano-8gb -o device
  yoctune facts tree agx-orin-64gb --release scarthgap-l4t-r35.x -o device
  yoctune facts tree --plan plan.json -o device`,
		RunE: func(cmd *cobra.Command, args []string) error {
			board := ""
			if len(args) == 1 {
				board = args[0]
			}
			return makeTree(cli.NewPrinter(cmd), treeOptions{board, on, planFile, dir})
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return synthetic.Boards(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`DIR` to write to; it must be empty or absent")
	cmd.Flags().StringVar(&planFile, "plan", "", "`FILE` of the plan whose image the device started")
	cmd.Flags().StringVar(&on, "release", "", "`RELEASE` of meta-tegra that the device runs (default: that of the newest known L4T)")
	cmd.MarkFlagsMutuallyExclusive("plan", "release")
	cobra.CheckErr(cmd.MarkFlagRequired("output"))
	cobra.CheckErr(cmd.MarkFlagDirname("output"))
	cobra.CheckErr(cmd.MarkFlagFilename("plan", "json"))
	return cmd
}

// treeOptions say which device to make, and where.
type treeOptions struct{ board, release, plan, dir string }

func makeTree(p cli.Printer, o treeOptions) error {
	if o.dir == "" {
		return cli.UsageError(errors.New("--output needs the name of a folder"))
	}
	var installed *plan.Plan
	if o.plan != "" {
		var err error
		if installed, err = readPlan(o.plan); err != nil {
			return err
		}
		if o.board != "" && o.board != installed.Board {
			return cli.UsageError(fmt.Errorf("the plan %s is for %s, not for %s; leave the board out", o.plan, installed.Board, o.board))
		}
		o.board, o.release = installed.Board, installed.Release
	}
	if o.board == "" {
		return cli.UsageError(errors.New("missing argument: BOARD, or --plan FILE"))
	}
	if o.release == "" {
		o.release = synthetic.DefaultRelease(o.board)
	}
	tree, err := synthetic.NewOn(o.board, o.release)
	if errors.Is(err, synthetic.ErrFacts) {
		return fmt.Errorf("%w; boards that have one: %s", err, strings.Join(synthetic.Boards(), ", "))
	}
	if err != nil {
		return err
	}
	if installed != nil {
		if err := tree.Install(installed); err != nil {
			return fmt.Errorf("%s: %w", o.plan, err)
		}
	}
	if err := tree.Write(o.dir); err != nil {
		if errors.Is(err, synthetic.ErrNotEmpty) {
			return fmt.Errorf("%w; choose another folder", err)
		}
		return err
	}
	if p.JSON {
		p.Summary("facts tree", struct {
			Board   string `json:"board"`
			Release string `json:"release,omitempty"`
			L4T     string `json:"l4t"`
			Dir     string `json:"dir"`
			Files   int    `json:"files"`
			Note    string `json:"note,omitempty"`
		}{o.board, o.release, tree.L4T, o.dir, tree.Files(), tree.Note})
		return nil
	}
	p.Printf("%s: synthetic device, %s, L4T %s, %s\n", o.dir, o.board, tree.L4T, count(tree.Files(), "file"))
	if tree.Note != "" {
		p.Printf("note: %s\n", tree.Note)
	}
	return nil
}

func readPlan(name string) (*plan.Plan, error) {
	f, err := infile.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	defer f.Close()
	p, err := plan.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
