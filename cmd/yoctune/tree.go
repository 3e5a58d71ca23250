package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/synthetic"
	"github.com/yoctune/yoctune/schema/plan"
)

func newFactsTreeCommand() *cobra.Command {
	var dir, planFile string
	cmd := &cobra.Command{
		Use:   "tree [BOARD]",
		Short: "Make a synthetic device of a board",
		Long: `Write a folder that looks like the /proc and /sys of a freshly started board to
'yoctuned --root DIR', derived from the facts about the board. Use it to try a plan without
a device.

The folder has plain files. A kernel refuses, rounds or clamps values, and these files do
not.

With --plan the device is the plan's board after it started an image with the plan's layer:
with its kernel arguments and options, its modules, compressed swap and power modes.

Exit status: 0 done, 1 the board is unknown, its facts do not suffice, or the folder is not
empty, 2 wrong usage.`,
		Example: `  yoctune facts tree orin-nano-8gb -o device
  yoctune facts tree --plan plan.json -o device`,
		RunE: func(cmd *cobra.Command, args []string) error {
			board := ""
			if len(args) == 1 {
				board = args[0]
			}
			return makeTree(cli.NewPrinter(cmd), board, planFile, dir)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return synthetic.Boards(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`DIR` to write to; it must be empty or absent")
	cmd.Flags().StringVar(&planFile, "plan", "", "`FILE` of the plan whose image the device started")
	cobra.CheckErr(cmd.MarkFlagRequired("output"))
	cobra.CheckErr(cmd.MarkFlagDirname("output"))
	cobra.CheckErr(cmd.MarkFlagFilename("plan", "json"))
	return cmd
}

func makeTree(p cli.Printer, board, planFile, dir string) error {
	if dir == "" {
		return cli.UsageError(errors.New("--output needs the name of a folder"))
	}
	var installed *plan.Plan
	if planFile != "" {
		var err error
		if installed, err = readPlan(planFile); err != nil {
			return err
		}
		if board != "" && board != installed.Board {
			return cli.UsageError(fmt.Errorf("the plan %s is for %s, not for %s; leave the board out", planFile, installed.Board, board))
		}
		board = installed.Board
	}
	if board == "" {
		return cli.UsageError(errors.New("missing argument: BOARD, or --plan FILE"))
	}
	tree, err := synthetic.New(board)
	if err != nil {
		return err
	}
	if installed != nil {
		if err := tree.Install(installed); err != nil {
			return fmt.Errorf("%s: %w", planFile, err)
		}
	}
	if err := tree.Write(dir); err != nil {
		if errors.Is(err, synthetic.ErrNotEmpty) {
			return fmt.Errorf("%w; choose another folder", err)
		}
		return err
	}
	if p.JSON {
		p.Summary("facts tree", struct {
			Board string `json:"board"`
			Dir   string `json:"dir"`
			Files int    `json:"files"`
		}{board, dir, tree.Files()})
		return nil
	}
	p.Printf("%s: synthetic device, %s, %s\n", dir, board, count(tree.Files(), "file"))
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
