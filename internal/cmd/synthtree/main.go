// Command synthtree writes a synthetic /proc and /sys of a board, derived from facts,
// into an empty folder, for use with `yoctuned --root DIR`. See package devicetest for
// the limits of such a tree.
//
//	go run ./internal/cmd/synthtree --board orin-nano-8gb DIR
//	go run ./internal/cmd/synthtree --plan plan.json DIR     # as if flashed with the plan's layer
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/schema/plan"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "synthtree:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("synthtree", flag.ContinueOnError)
	board := flags.String("board", "", strings.Join(devicetest.Boards(), " or ")+"; default: the plan's")
	planFile := flags.String("plan", "", "make the tree of a board that started an image with this plan's layer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("give one folder to write to")
	}
	dir := flags.Arg(0)
	var p *plan.Plan
	if *planFile != "" {
		f, err := os.Open(*planFile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if p, err = plan.Decode(f); err != nil {
			return fmt.Errorf("%s: %w", *planFile, err)
		}
		if *board == "" {
			*board = p.Board
		}
	}
	if err := devicetest.Build(dir, *board); err != nil {
		return err
	}
	if p != nil {
		return devicetest.InstallPlan(dir, p)
	}
	return nil
}
