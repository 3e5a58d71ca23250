package checklayer

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

//go:embed read.py
var readProgram []byte

// Machines does the first steps of [Run] (parse, appends, variables) for many
// machines of one release, in a few seconds each: one pair of build folders
// serves all. finished is called for each step.
//
// No task runs and no dependency is resolved.
func Machines(ctx context.Context, o Options, machines []string, finished func(machine string, s Step)) (Summary, error) {
	began := time.Now()
	if len(machines) == 0 {
		return Summary{}, nil
	}
	o.Machine = machines[0]
	g, err := openRig(ctx, o)
	if err != nil {
		return Summary{}, err
	}
	defer g.close()
	sum := Summary{Layer: g.layer.Collection, Release: o.Release, Mode: "machines", BitBake: g.src.BitBakeVersion}
	for _, m := range machines {
		if err := g.setMachine(m); err != nil {
			return sum, fmt.Errorf("%w: %w", ErrSetup, err)
		}
		r := &run{rig: g, passed: map[string]bool{}, summary: &sum, watch: Observer{Finished: func(s Step) { finished(m, s) }}}
		limit := g.stepTimeout(15 * time.Minute)
		var answer reading
		r.runStep(ctx, "parse", "", limit, nil, func(ctx context.Context, log string) outcome {
			if err := g.configureQuick(); err != nil {
				return failedOutcome(err)
			}
			var o outcome
			answer, o = g.readQuickBuild(ctx, log)
			return o
		})
		r.runStep(ctx, "appends", "", limit, []string{"parse"}, func(context.Context, string) outcome { return g.appendsOutcome(answer.Appends) })
		r.runStep(ctx, "variables", "", limit, []string{"parse"}, func(ctx context.Context, log string) outcome { return g.compareValues(ctx, log, answer) })
		if ctx.Err() != nil {
			break
		}
	}
	err = g.finish(ctx, &sum, began)
	return sum, err
}

// setMachine switches the rig to another machine.
func (g *rig) setMachine(machine string) error {
	if err := g.src.checkTarget(g.opt.Release, machine); err != nil {
		return err
	}
	l, err := readLayer(g.layer.Dir, g.layer.Origin, machine)
	if err != nil {
		return err
	}
	g.opt.Machine, g.layer, g.values = machine, l, map[string]map[string]string{}
	return nil
}

// reading is the answer of read.py.
type reading struct {
	Appends map[string][]appendedTo `json:"appends"`
	Recipes map[string]struct {
		Values      map[string]string `json:"values"`
		Unavailable string            `json:"unavailable"`
	} `json:"recipes"`
}

// values returns the variables of a recipe. For a recipe that this machine does not build it
// returns no values and adds a note.
func (r reading) values(pn string, o *outcome) map[string]string {
	answer := r.Recipes[pn]
	if answer.Unavailable != "" {
		o.notes = append(o.notes, pn+" is not available: "+answer.Unavailable)
	}
	return answer.Values
}

// readQuickBuild parses the quick build folder and reads the variables of its recipes that
// the layer sets.
func (g *rig) readQuickBuild(ctx context.Context, log string) (reading, outcome) {
	var answer reading
	wanted := map[string][]string{}
	for _, a := range g.layer.Appends {
		wanted[a.Name] = append(wanted[a.Name], variablesOf(a.Lines)...)
	}
	for _, r := range g.layer.Recipes {
		wanted[r.Name] = append(wanted[r.Name], variablesOf(r.Lines)...)
	}
	raw, err := json.Marshal(wanted)
	if err != nil {
		return answer, failedOutcome(err)
	}
	dir := g.build(quickBuild)
	// Outside the build folder, so that Python does not import files of bitbake.
	program, request, file := filepath.Join(g.work, "read.py"), filepath.Join(dir, "request.json"), filepath.Join(dir, "answer.json")
	if err := errors.Join(os.WriteFile(program, readProgram, 0o755), os.WriteFile(request, raw, 0o644)); err != nil {
		return answer, failedOutcome(err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return answer, failedOutcome(err)
	}
	out, err := g.bitbake(ctx, quickBuild, log, program, request, file)
	o := g.parseOutcome(out, err)
	if len(o.errors) > 0 {
		return answer, o
	}
	if raw, err = os.ReadFile(file); err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		return answer, failedOutcome(fmt.Errorf("reading bitbake's answer: %w", err))
	}
	return answer, o
}

func variablesOf(lines []line) []string {
	names := []string{"OVERRIDES"}
	for _, l := range lines {
		if !slices.Contains(names, l.Variable) {
			names = append(names, l.Variable)
		}
	}
	return names
}
