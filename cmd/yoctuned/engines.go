package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
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
	host := tensorrt.Look(root, rootfs.Identify(dev).Compatible)
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
	Type     string        `json:"type"` // engine, progress
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

// engineCounts sums up a build by state.
type engineCounts struct {
	Type    string         `json:"type"`
	Command string         `json:"command"`
	States  map[string]int `json:"states"`
	Exit    int            `json:"exit"`
}

func buildEngines(cmd *cobra.Command, path string, o engineFlags) error {
	all, host, err := planEngines(rootDir(cmd), path, o)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	store, out := o.store(rootDir(cmd)), &engineReport{w: cmd.OutOrStdout(), json: cli.Format(cmd) == "json"}
	counts, code := map[string]int{}, cli.ExitDone
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, j := range all[name] {
			l := engineLine{Type: "engine", Pipeline: name, Stage: j.Stage, Model: j.Model, ID: j.Key.String(), Key: &j.Key}
			l.State, l.Why = buildEngine(ctx, store, host, j, o.timeout, func(p tensorrt.Progress) {
				out.write(engineLine{
					Type: "progress", Pipeline: name, Stage: j.Stage, Model: j.Model, ID: l.ID, State: "building",
					Elapsed: p.Elapsed.Seconds(), Line: p.Line,
				})
			})
			counts[l.State]++
			if l.State == "failed" || l.State == "skipped" && j.Must {
				code = cli.ExitFailed
			}
			out.write(l)
		}
	}
	out.end(engineCounts{"summary", "engines build", counts, code})
	if out.err != nil {
		return out.err
	}
	if code != cli.ExitDone {
		return &cli.ExitError{Code: code}
	}
	return nil
}

// buildEngine builds an engine and returns its state.
func buildEngine(ctx context.Context, s tensorrt.Store, h tensorrt.Host, j pipeline.EngineJob, limit time.Duration, tell func(tensorrt.Progress)) (state, why string) {
	if why := h.Why(); why != "" {
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
	built, err := s.Build(ctx, j.Job, tell)
	switch {
	case err != nil:
		return "failed", err.Error()
	case built:
		return "built", ""
	}
	return "present", ""
}

// engineReport writes lines as text or JSON; several goroutines report progress.
type engineReport struct {
	mu   sync.Mutex
	w    io.Writer
	json bool
	err  error
}

func (r *engineReport) write(l engineLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	switch {
	case r.json:
		err = cli.Encoder(r.w).Encode(l)
	case l.Type == "progress":
		_, err = fmt.Fprintf(r.w, "%s/%s %5.0f s  %s\n", cli.PrintableLine(l.Pipeline), cli.PrintableLine(l.Stage), l.Elapsed, cli.PrintableLine(l.Line))
	default:
		why := ""
		if l.Why != "" {
			why = ": " + cli.PrintableLine(l.Why)
		}
		_, err = fmt.Fprintf(r.w, "%s/%s %s: %s (TensorRT %s, %s, %s)%s\n", cli.PrintableLine(l.Pipeline), cli.PrintableLine(l.Stage), cli.PrintableLine(filepath.Base(l.Model)),
			l.State, orNone(l.Key.TensorRT), cli.PrintableLine(orNone(l.Key.GPU)), l.Key.Precision, why)
	}
	r.err = errors.Join(r.err, err)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (r *engineReport) end(c engineCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.json {
		r.err = errors.Join(r.err, cli.Encoder(r.w).Encode(c))
		return
	}
	total := 0
	for _, n := range c.States {
		total += n
	}
	_, err := fmt.Fprintf(r.w, "%d engines: %d built, %d present, %d skipped, %d failed\n", total, c.States["built"], c.States["present"], c.States["skipped"], c.States["failed"])
	r.err = errors.Join(r.err, err)
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
			w, bad := cmd.OutOrStdout(), 0
			for _, e := range all {
				why := ""
				if e.Err != nil {
					bad++
					why = e.Err.Error()
				}
				if cli.Format(cmd) == "json" {
					err = errors.Join(err, cli.Encoder(w).Encode(struct {
						Type string `json:"type"`
						ID   string `json:"id"`
						tensorrt.About
						Why string `json:"why,omitempty"`
					}{"engine", e.Name, e.About, why}))
					continue
				}
				if why != "" {
					_, err2 := fmt.Fprintf(w, "%s  %s\n", cli.PrintableLine(e.Name), cli.PrintableLine(why))
					err = errors.Join(err, err2)
					continue
				}
				_, err2 := fmt.Fprintf(w, "%s  model %.12s  TensorRT %s  %s  %s  %.1f MiB  built %s in %.0f s\n", e.Name, e.Key.Model, cli.PrintableLine(e.Key.TensorRT),
					cli.PrintableLine(e.Key.GPU), e.Key.Precision, float64(e.Bytes)/(1<<20), e.Built.Format(time.RFC3339), e.Took)
				err = errors.Join(err, err2)
			}
			code := cli.ExitDone
			if bad > 0 {
				code = cli.ExitNo
			}
			if cli.Format(cmd) == "json" {
				err = errors.Join(err, cli.Encoder(w).Encode(engineCounts{"summary", "engines list", map[string]int{"whole": len(all) - bad, "damaged": bad}, code}))
			}
			if err == nil && bad > 0 {
				return cli.AnswerNo()
			}
			return err
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
			if why := host.Why(); why != "" {
				return fmt.Errorf("%s: cannot tell which engines the plan uses here, so none is removed", why)
			}
			var keys []tensorrt.Key
			for _, jobs := range all {
				for _, j := range jobs {
					keys = append(keys, j.Key)
				}
			}
			gone, err := o.store(rootDir(cmd)).Prune(keys)
			w := cmd.OutOrStdout()
			for _, name := range gone {
				if cli.Format(cmd) == "json" {
					err = errors.Join(err, cli.Encoder(w).Encode(map[string]string{"type": "removed", "id": name}))
				} else if _, err2 := fmt.Fprintf(w, "removed %s\n", cli.PrintableLine(name)); err2 != nil {
					err = errors.Join(err, err2)
				}
			}
			if err == nil && cli.Format(cmd) == "json" {
				err = cli.Encoder(w).Encode(engineCounts{"summary", "engines prune", map[string]int{"removed": len(gone)}, cli.ExitDone})
			}
			return err
		},
	}
	o.add(cmd)
	o.addModels(cmd)
	return cmd
}
