package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/report/graph"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/schema/plan"
)

// drawings are what --kind takes.
func drawings() []string { return []string{"pipeline", "units", "cores", "power"} }

func newGraphCommand() *cobra.Command {
	var target, kind, out string
	cmd := &cobra.Command{
		Use:   "graph DIR",
		Short: "Draw the pipelines, units, cores or power modes of a target",
		Long: `Draw what the configuration in DIR describes for a target, as SVG:

  pipeline  the stages of each pipeline, with their models and goals
  units     which services start after which, and what they want
  cores     who may run on which core: isolation, interrupts, slices, pipelines
  power     what caps the clocks in each power mode, beside the BSP's own modes`,
		Example: `  yoctune graph . --target line-camera --kind cores -o cores.svg
  yoctune graph . --kind pipeline > pipelines.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := formatOf(cmd)
			if err != nil {
				return err
			}
			if format != "text" {
				return usageError{errors.New("--format: a drawing is SVG; the figures are in `yoctune plan`")}
			}
			_, layers, err := open(cmd, args[0], format, compiler.Selection{Target: target})
			if err != nil {
				return err
			}
			if n := len(layers[0].Targets); n != 1 {
				return usageError{fmt.Errorf("the configuration has %d targets: choose one with --target: %s", n, strings.Join(namesOf(layers[0].Targets), ", "))}
			}
			d, err := draw(layers[0].Targets[0], kind)
			if err != nil {
				return usageError{fmt.Errorf("--kind %s: %w; choose one of %s", kind, err, strings.Join(drawings(), ", "))}
			}
			if d.Empty() {
				return fmt.Errorf("target %s has nothing to draw as %s", layers[0].Targets[0].Name, kind)
			}
			if out != "" {
				return outfile.Write(out, d.SVG())
			}
			_, err = cmd.OutOrStdout().Write(d.SVG())
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "`TARGET` to draw; may be left out when there is one")
	f.StringVar(&kind, "kind", "pipeline", "`KIND`: "+strings.Join(drawings(), ", "))
	f.StringVarP(&out, "output", "o", "", "`FILE` to write; standard output when left out")
	variables(cmd)
	return cmd
}

func namesOf(targets []*plan.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return names
}

func draw(t *plan.Target, kind string) (*graph.Drawing, error) {
	switch kind {
	case "pipeline":
		return graph.Pipelines(t.Plan), nil
	case "units":
		return graph.Units(unitsOf(t)), nil
	case "cores":
		return graph.Cores(t.Plan, unitsOf(t)), nil
	case "power":
		return graph.Power(t.Plan, nil), nil
	}
	return nil, errors.New("there is no such drawing")
}

func unitsOf(t *plan.Target) []graph.Unit {
	var units []graph.Unit
	for _, s := range t.Slices {
		units = append(units, graph.Unit{Name: s.Name, CPUs: s.CPUs})
	}
	for _, s := range t.Services {
		units = append(units, graph.Unit{Name: s.Name, Slice: s.Slice, CPUs: s.CPUs, After: s.After, Wants: s.Wants, Requires: s.Requires})
	}
	return units
}
