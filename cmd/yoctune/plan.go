package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/schema/plan"
)

func newPlanCommand() *cobra.Command {
	var target, out, knobs string
	var format int
	cmd := &cobra.Command{
		Use:   "plan [DIR]",
		Short: "Write the plan of one target",
		Long: `Write plan.json of one target: everything that yoctuned enforces on the device, in base
units and canonical JSON. DIR is the folder of the configuration (default: the current
folder). Beside the plan goes plan.origins.json, which maps each setting to its line of
the configuration. Without -o only the plan is written, to standard output.

A yoctuned of version 0.1 reads plans of format 1 only: --format-version 1 writes one, if
the plan needs nothing newer.

With --knobs the plan comes from a table instead of a configuration. Each line has a path
below /proc or /sys, a tab and a value. Such a plan fits any machine, and yoctuned
restores the original values when it stops.`,
		Example: `  yoctune plan examples/video-analytics --target line-camera -o plan.json
  yoctune plan --knobs table.tsv -o plan.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if knobs != "" && len(args) > 0 {
				return cli.UsageError(errors.New("give a folder or --knobs, not both"))
			}
			if cmd.Flags().Changed("format-version") && format != 1 && format != 2 {
				return cli.UsageError(fmt.Errorf("--format-version %d: the formats are 1 and 2", format))
			}
			dir, err := configurationFolder(args)
			if err != nil {
				return err
			}
			var doc *plan.Plan
			var origins plan.Origins
			if knobs != "" {
				doc, origins, err = planOfTable(cmd, knobs)
			} else {
				doc, origins, err = planOfTarget(cmd, dir, target)
			}
			if err != nil {
				return err
			}
			if format != 0 {
				if err := doc.SealAs(format); err != nil {
					return err
				}
			}
			return writePlan(cmd, out, doc, origins)
		},
	}
	addVariableFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "`TARGET` whose plan to write (default: the only one)")
	f.StringVarP(&out, "output", "o", "", "`FILE` to write (default: standard output)")
	f.IntVar(&format, "format-version", 0, "`FORMAT` of the plan: 1 or 2 (default: the newest that the layer's yoctuned reads)")
	f.StringVar(&knobs, "knobs", "", "`FILE` with a table of paths and values")
	return cmd
}

func planOfTable(cmd *cobra.Command, file string) (*plan.Plan, plan.Origins, error) {
	doc, origins, report, src, err := compiler.Knobs(file)
	if err != nil {
		return nil, nil, err
	}
	if report.Failed() {
		if err := showReport(cmd, "", report, src); err != nil {
			return nil, nil, err
		}
		return nil, nil, cli.AlreadyReported()
	}
	return doc, origins, nil
}

func planOfTarget(cmd *cobra.Command, dir, target string) (*plan.Plan, plan.Origins, error) {
	p, err := openProject(cmd, dir)
	if err != nil {
		return nil, nil, err
	}
	doc, origins := p.Document(target)
	if err := showProject(cmd, dir, p); err != nil {
		return nil, nil, err
	}
	return doc, origins, nil
}

func writePlan(cmd *cobra.Command, out string, doc *plan.Plan, origins plan.Origins) error {
	text, err := doc.Encode()
	if err != nil {
		return err
	}
	if isStdout(out) {
		return writeOutput(cmd, out, text)
	}
	places, err := origins.Encode()
	if err != nil {
		return err
	}
	// The origins go first: a plan without them still works, and wrong ones mislead.
	var beside string
	if outfile.IsFile(out) {
		beside = compiler.OriginsFile(out)
		if err := outfile.Write(beside, places); err != nil {
			return err
		}
	}
	if err := outfile.Write(out, text); err != nil {
		return err
	}
	p := cli.NewPrinter(cmd)
	if p.JSON {
		p.Summary("plan", struct {
			File     string `json:"file"`
			Origins  string `json:"origins,omitempty"`
			Settings int    `json:"settings"`
			Digest   string `json:"digest"`
		}{out, beside, len(doc.Settings), doc.Digest})
	} else {
		p.Printf("%s: plan for %s, %s, serial %d, %s\n", out, doc.Board, count(len(doc.Settings), "setting"), doc.Serial, doc.Digest)
		if beside != "" {
			p.Printf("%s: the line of the configuration behind each setting\n", beside)
		}
	}
	return nil
}
