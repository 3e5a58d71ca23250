package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/schema/plan"
)

func newPlanCommand() *cobra.Command {
	var target, out, knobs string
	cmd := &cobra.Command{
		Use:   "plan DIR --target T -o FILE",
		Short: "Write the device document of one target",
		Long: `Write plan.json of one target: everything yoctuned must do on the device, in base
units and canonical JSON. Beside it goes plan.origins.json, which maps each
setting to the line of the configuration that asked for it.

With --knobs the plan is made of a table instead: one path below /proc or /sys,
a tab and a value a line. It fits any machine, and what it changed is undone when
yoctuned stops.

Without -o the plan is written to the standard output.`,
		Example: `  yoctune plan examples/video-analytics --target line-camera -o plan.json
  yoctune plan --knobs table.tsv -o plan.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := formatOf(cmd)
			if err != nil {
				return err
			}
			var doc *plan.Plan
			var origins plan.Origins
			switch {
			case knobs != "" && len(args) > 0:
				return usageError{errors.New("give a folder or --knobs, not both")}
			case knobs != "":
				doc, origins, err = planOfTable(cmd, format, knobs)
			case len(args) == 0:
				return usageError{errors.New("give the folder of the configuration, or --knobs")}
			default:
				doc, origins, err = planOfTarget(cmd, format, args[0], target)
			}
			if err != nil {
				return err
			}
			return writePlan(cmd, format, out, doc, origins)
		},
	}
	variables(cmd)
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "`TARGET` of the configuration; may be left out when there is one")
	f.StringVarP(&out, "output", "o", "", "`FILE` to write")
	f.StringVar(&knobs, "knobs", "", "`FILE` with a table of paths and values")
	return cmd
}

func planOfTable(cmd *cobra.Command, format, file string) (*plan.Plan, plan.Origins, error) {
	doc, origins, report, src, err := compiler.Knobs(file)
	if err != nil {
		return nil, nil, err
	}
	if report.Failed() {
		if err := showReport(cmd, format, "", report, src); err != nil {
			return nil, nil, err
		}
		return nil, nil, errReported
	}
	return doc, origins, nil
}

func planOfTarget(cmd *cobra.Command, format, dir, target string) (*plan.Plan, plan.Origins, error) {
	p, err := openProject(cmd, dir)
	if err != nil {
		return nil, nil, err
	}
	doc, origins := p.Document(target)
	if err := showProject(cmd, format, dir, p); err != nil {
		return nil, nil, err
	}
	return doc, origins, nil
}

func writePlan(cmd *cobra.Command, format, out string, doc *plan.Plan, origins plan.Origins) error {
	text, err := doc.Encode()
	if err != nil {
		return err
	}
	if out == "" {
		_, err := cmd.OutOrStdout().Write(text)
		return err
	}
	places, err := origins.Encode()
	if err != nil {
		return err
	}
	// The origins first: a plan without them still works, wrong ones mislead.
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
	if format == "json" {
		writeJSONLine(cmd.OutOrStdout(), struct {
			Type     string `json:"type"`
			Command  string `json:"command"`
			File     string `json:"file"`
			Origins  string `json:"origins,omitempty"`
			Settings int    `json:"settings"`
			Digest   string `json:"digest"`
		}{"summary", "plan", out, beside, len(doc.Settings), doc.Digest})
		return nil
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: plan for %s, %s, serial %d, %s\n", out, doc.Board, count(len(doc.Settings), "setting"), doc.Serial, doc.Digest)
	return err
}
