package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
)

func newEnginesCommand() *cobra.Command {
	return newGroupCommand("engines", "Build and manage the TensorRT engines of a plan's models",
		`Build, list and remove the TensorRT engines of a plan's models. An engine fits one model,
TensorRT version, GPU and precision, so it is built on the device.`,
		`  yoctuned engines build plan.json
  yoctuned engines list`,
		newEnginesBuildCommand(), newEnginesListCommand(), newEnginesPruneCommand())
}

// engineFlags are those of all engine commands.
type engineFlags struct {
	dir     string
	models  string
	timeout time.Duration
	check   bool
}

func (o *engineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dir, "engines", "", "`DIR` of the engines (default: "+tensorrt.Dir+")")
	_ = cmd.MarkFlagDirname("engines")
}

func (o *engineFlags) addModels(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.models, "models", "", "`DIR` to search for models first")
	_ = cmd.MarkFlagDirname("models")
}

// store is the folder of engines below the root.
func (o *engineFlags) store(root string) tensorrt.Store {
	if o.dir != "" {
		return tensorrt.Store{Dir: o.dir}
	}
	return tensorrt.Store{Dir: filepath.Join(root, tensorrt.Dir)}
}

func newEnginesBuildCommand() *cobra.Command {
	var o engineFlags
	cmd := &cobra.Command{
		Use:   "build PLAN",
		Short: "Build the missing engines",
		Long: `Build a TensorRT engine with NVIDIA's trtexec for each model of the plan's pipelines that
can run on TensorRT. Each takes minutes; existing engines are not rebuilt. An engine fits
one model, TensorRT version, GPU and precision: after an update of one of them, build
makes a new engine, and prune removes the old one.

Pipelines load engines and never build them. Without its engine a model runs on the next
execution provider of its plan. An interrupted build leaves nothing behind.

Exit status: 0 every engine exists, or this machine has no TensorRT and the plan has an
alternative for each model, 1 an engine cannot be built, 2 wrong usage.`,
		Example: "  yoctuned engines build plan.json\n  yoctuned engines build plan.json --format json --timeout 1h",
		RunE:    func(cmd *cobra.Command, args []string) error { return buildEngines(cmd, args[0], o) },
	}
	o.add(cmd)
	o.addModels(cmd)
	cmd.Flags().DurationVar(&o.timeout, "timeout", 2*time.Hour, "`TIME` limit of each build")
	return cmd
}

// planEngines lists the engines of every pipeline of a plan.
func planEngines(root, path string, o engineFlags) (map[string][]pipeline.EngineJob, tensorrt.Host, error) {
	dev, err := rootfs.Open(root)
	if err != nil {
		return nil, tensorrt.Host{}, err
	}
	host := tensorrt.DetectHost(root, rootfs.Identify(dev).Compatible)
	file, err := planfile.Load(dev, planfile.Source{Path: path})
	if err != nil {
		return nil, host, err
	}
	all := map[string][]pipeline.EngineJob{}
	for name, p := range file.Plan.Pipelines {
		jobs, err := pipeline.EngineJobs(pipeline.Options{Name: name, Plan: p, Dir: filepath.Dir(path), Models: o.models, Host: host})
		if err != nil {
			return nil, host, fmt.Errorf("pipeline %s: %w", name, err)
		}
		all[name] = jobs
	}
	return all, host, nil
}

// engineLine is one engine in JSON.
type engineLine struct {
	Pipeline string        `json:"pipeline"`
	Stage    string        `json:"stage"`
	Model    string        `json:"model"`
	ID       string        `json:"id"`
	State    string        `json:"state"` // building, built, present, skipped, failed
	Elapsed  float64       `json:"elapsed_s,omitempty"`
	Line     string        `json:"line,omitempty"` // of the builder
	Why      string        `json:"why,omitempty"`
	Key      *tensorrt.Key `json:"key,omitempty"`
}

// endEngines prints the last line of an engine command: how many engines have each state.
func endEngines(p cli.Printer, command string, states map[string]int, exit int) error {
	if p.JSON {
		p.Line("summary", struct {
			Command string         `json:"command"`
			States  map[string]int `json:"states"`
			Exit    int            `json:"exit"`
		}{command, states, exit})
	}
	return cli.Exit(exit)
}

func buildEngines(cmd *cobra.Command, path string, o engineFlags) error {
	all, host, err := planEngines(rootDir(cmd), path, o)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	store, p := o.store(rootDir(cmd)), cli.NewPrinter(cmd)
	counts, total, code := map[string]int{}, 0, cli.ExitDone
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, j := range all[name] {
			l := engineLine{Pipeline: name, Stage: j.Stage, Model: j.Model, ID: j.Key.String(), Key: &j.Key}
			l.State, l.Why = buildEngine(ctx, store, host, j, o.timeout, func(progress tensorrt.Progress) { writeProgress(p, l, progress) })
			counts[l.State]++
			total++
			if l.State == "failed" || l.State == "skipped" && j.Must {
				code = cli.ExitFailed
			}
			writeEngine(p, l)
		}
	}
	if !p.JSON {
		p.Printf("%d engines: %d built, %d present, %d skipped, %d failed\n", total, counts["built"], counts["present"], counts["skipped"], counts["failed"])
	}
	return endEngines(p, "engines build", counts, code)
}

// buildEngine builds an engine and returns its state.
func buildEngine(ctx context.Context, s tensorrt.Store, h tensorrt.Host, j pipeline.EngineJob, limit time.Duration, report func(tensorrt.Progress)) (state, why string) {
	if why := h.Obstacle(); why != "" {
		return "skipped", why
	}
	if h.Builder == "" {
		if _, err := s.Find(j.Key); err == nil {
			return "present", ""
		}
		return "failed", "trtexec is not installed: add TensorRT's tools to the image, or copy an engine built on the same module"
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	built, err := s.Build(ctx, j.Job, report)
	switch {
	case err != nil:
		return "failed", err.Error()
	case built:
		return "built", ""
	}
	return "present", ""
}

func writeProgress(p cli.Printer, l engineLine, progress tensorrt.Progress) {
	if !p.JSON {
		p.Printf("%s/%s %5.0f s  %s\n", l.Pipeline, l.Stage, progress.Elapsed.Seconds(), progress.Line)
		return
	}
	l.State, l.Elapsed, l.Line, l.Key = "building", progress.Elapsed.Seconds(), progress.Line, nil
	p.Line("progress", l)
}

func writeEngine(p cli.Printer, l engineLine) {
	if p.JSON {
		p.Line("engine", l)
		return
	}
	why := ""
	if l.Why != "" {
		why = ": " + l.Why
	}
	p.Printf("%s/%s %s: %s (TensorRT %s, %s, %s)%s\n", l.Pipeline, l.Stage, filepath.Base(l.Model),
		l.State, cmp.Or(l.Key.TensorRT, "none"), cmp.Or(l.Key.GPU, "none"), l.Key.Precision, why)
}

func newEnginesListCommand() *cobra.Command {
	var o engineFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the engines",
		Example: "  yoctuned engines list --format json",
		Long: `List each engine, what it was built from, and whether it is damaged.

Exit status: 0 all engines are intact, 1 the folder cannot be read, 2 wrong usage, 3 an
engine is damaged or incomplete.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := o.store(rootDir(cmd)).List(o.check)
			if err != nil {
				return err
			}
			p, damaged := cli.NewPrinter(cmd), 0
			for _, e := range all {
				why := ""
				if e.Err != nil {
					damaged++
					why = e.Err.Error()
				}
				switch {
				case p.JSON:
					p.Line("engine", struct {
						ID string `json:"id"`
						tensorrt.About
						Why string `json:"why,omitempty"`
					}{e.Name, e.About, why})
				case why != "":
					p.Printf("%s  %s\n", e.Name, why)
				default:
					p.Printf("%s  model %.12s  TensorRT %s  %s  %s  %.1f MiB  built %s in %.0f s\n", e.Name, e.Key.Model, e.Key.TensorRT,
						e.Key.GPU, e.Key.Precision, float64(e.Bytes)/(1<<20), e.Built.Format(time.RFC3339), e.Took)
				}
			}
			return endEngines(p, "engines list", map[string]int{"whole": len(all) - damaged, "damaged": damaged}, cli.ExitCode(damaged == 0))
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&o.check, "check", false, "read every engine and compare its digest with the recorded one")
	return cmd
}

func newEnginesPruneCommand() *cobra.Command {
	var o engineFlags
	cmd := &cobra.Command{
		Use:     "prune PLAN",
		Short:   "Remove engines that a plan does not use",
		Example: "  yoctuned engines prune plan.json",
		Long: `Remove the engines that the plan does not use on this machine: those of other models,
TensorRT versions, GPUs and precisions, damaged engines, and the remains of interrupted
builds.

Exit status: 0 they are removed, 1 failed, or this machine has no TensorRT, 2 wrong
usage.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, host, err := planEngines(rootDir(cmd), args[0], o)
			if err != nil {
				return err
			}
			if why := host.Obstacle(); why != "" {
				return fmt.Errorf("%s: the engines that the plan needs on this machine are unknown, so none is removed", why)
			}
			var keys []tensorrt.Key
			for _, jobs := range all {
				for _, j := range jobs {
					keys = append(keys, j.Key)
				}
			}
			gone, err := o.store(rootDir(cmd)).Prune(keys)
			p := cli.NewPrinter(cmd)
			for _, name := range gone {
				if p.JSON {
					p.Line("removed", struct {
						ID string `json:"id"`
					}{name})
				} else {
					p.Printf("removed %s\n", name)
				}
			}
			if err != nil {
				return err
			}
			return endEngines(p, "engines prune", map[string]int{"removed": len(gone)}, cli.ExitDone)
		},
	}
	o.add(cmd)
	o.addModels(cmd)
	return cmd
}
