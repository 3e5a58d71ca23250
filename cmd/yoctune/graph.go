package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/report/graph"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/schema/plan"
)

// drawings are the values of --kind.
func drawings() []string { return []string{"pipeline", "units", "cores", "power"} }

func newGraphCommand() *cobra.Command {
	var target, kind, out string
	cmd := &cobra.Command{
		Use:         "graph [DIR]",
		Annotations: cli.Formats("text"),
		Short:       "Draw the pipelines, units, cores or power modes of a target",
		Long: `Draw a target of the configuration in DIR (default: the current folder) as SVG.
--kind chooses the drawing:
  pipeline  the stages of each pipeline, with their models and objectives
  units     the services, their start order and their dependencies
  cores     what may run on each core: isolation, interrupts, slices, pipelines
  power     the clock limits of each power mode, beside the BSP's own modes`,
		Example: `  yoctune graph . --target line-camera --kind cores -o cores.svg
  yoctune graph . --kind pipeline > pipelines.svg`,
		RunE: runInFolder(func(cmd *cobra.Command, dir string) error {
			p, err := openProject(cmd, dir)
			if err != nil {
				return err
			}
			layers := p.Outlines(compiler.Selection{Target: target})
			if err := showProject(cmd, dir, p); err != nil {
				return err
			}
			if n := len(layers[0].Targets); n != 1 {
				return cli.UsageError(fmt.Errorf("the configuration has %d targets; choose one with --target: %s", n, strings.Join(namesOf(layers[0].Targets), ", ")))
			}
			d, err := draw(layers[0].Targets[0], kind)
			if err != nil {
				return cli.UsageError(fmt.Errorf("--kind %s: %w; choose one of %s", kind, err, strings.Join(drawings(), ", ")))
			}
			if d.Empty() {
				return fmt.Errorf("the configuration of target %s has nothing to draw as %s%s", layers[0].Targets[0].Name, kind, drawable(layers[0].Targets[0]))
			}
			return writeOutput(cmd, out, d.SVG())
		}),
	}
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "`TARGET` to draw (default: the only one)")
	f.StringVar(&kind, "kind", "pipeline", "`KIND` of drawing: "+strings.Join(drawings(), ", "))
	f.StringVarP(&out, "output", "o", "", "`FILE` to write (default: standard output)")
	addVariableFlag(cmd)
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
	return nil, errors.New("no such drawing")
}

func unitsOf(t *plan.Target) []graph.Unit {
	var units []graph.Unit
	for _, s := range t.Slices {
		units = append(units, graph.Unit{Name: s.Name, CPUs: s.CPUs})
	}
	for _, s := range t.Services {
		units = append(units, graph.Unit{Name: s.Name, Slice: s.Slice, CPUs: s.CPUs, After: s.After, Wants: s.Wants, Requires: s.Requires})
		if s.Timer != nil {
			units = append(units, graph.Unit{Name: s.Timer.Name, Wants: []string{s.Name}})
		}
	}
	return units
}

// drawable proposes the kinds of drawings that a target has.
func drawable(t *plan.Target) string {
	var kinds []string
	for _, kind := range drawings() {
		if d, err := draw(t, kind); err == nil && !d.Empty() {
			kinds = append(kinds, "--kind "+kind)
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return "; it has something for " + strings.Join(kinds, ", ")
}
