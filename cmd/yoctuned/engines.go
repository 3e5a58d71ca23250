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

	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
)

func newEnginesCommand() *cobra.Command {
	return group("engines", "Build and keep the TensorRT engines of a plan's models",
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
	cmd.Flags().StringVar(&o.dir, "engines", "", "`DIR` of engines, default "+tensorrt.Dir)
	_ = cmd.MarkFlagDirname("engines")
}

func (o *engineFlags) addModels(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.models, "models", "", "`DIR` to look for models in first")
	_ = cmd.MarkFlagDirname("models")
}

// store is the folder of engines below the root.
func (o *engineFlags) store(g globals) tensorrt.Store {
	if o.dir != "" {
		return tensorrt.Store{Dir: o.dir}
	}
	return tensorrt.Store{Dir: filepath.Join(g.Root, tensorrt.Dir)}
}

func newEnginesBuildCommand() *cobra.Command {
	var o engineFlags
	cmd := &cobra.Command{
		Use:   "build PLAN",
		Short: "Build the engines that are missing",
		Long: `build makes a TensorRT engine for each model of the plan's pipelines that may run on
TensorRT, with NVIDIA's trtexec. It takes minutes for each; what is there is not
built again. An engine is good for one model, TensorRT, GPU and precision: after an
update of one of them build makes another, and prune removes the old.

Pipelines load engines and never build one: without it a model runs on what its plan
names next. Interrupting build leaves nothing behind.

Exit codes: 0 every engine is there, or this machine has no TensorRT and the plan
has something else for each model · 1 one cannot be built ·
2 usage.`,
		Example: "  yoctuned engines build plan.json\n  yoctuned engines build plan.json --format json --timeout 1h",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return buildEngines(cmd, args[0], o) },
	}
	o.add(cmd)
	o.addModels(cmd)
	cmd.Flags().DurationVar(&o.timeout, "timeout", 2*time.Hour, "end a build after this `TIME`")
	return cmd
}

// planEngines lists the engines of every pipeline of a plan.
func planEngines(g globals, path string, o engineFlags) (map[string][]pipeline.EngineJob, tensorrt.Host, error) {
	dev, err := rootfs.Open(g.Root)
	if err != nil {
		return nil, tensorrt.Host{}, err
	}
	host := tensorrt.Look(g.Root, rootfs.Identify(dev).Compatible)
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
	g := globalFlags(cmd)
	all, host, err := planEngines(g, path, o)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	store, out := o.store(g), &engineReport{w: cmd.OutOrStdout(), json: g.Format == "json"}
	counts, code := map[string]int{}, exitYes
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
				code = exitFailed
			}
			out.write(l)
		}
	}
	out.end(engineCounts{"summary", "engines build", counts, code})
	if out.err != nil {
		return out.err
	}
	if code != exitYes {
		return &exitError{Code: code}
	}
	return nil
}

// buildEngine builds one, and says what became of it.
func buildEngine(ctx context.Context, s tensorrt.Store, h tensorrt.Host, j pipeline.EngineJob, limit time.Duration, tell func(tensorrt.Progress)) (state, why string) {
	if why := h.Why(); why != "" {
		return "skipped", why
	}
	if h.Builder == "" {
		if _, err := s.Find(j.Key); err == nil {
			return "present", ""
		}
		return "failed", "trtexec is not installed: add TensorRT's tools to the image, or bring an engine built on the same module"
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

// engineReport writes lines for people or programs; builds tell their progress from
// several goroutines.
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
		err = lines(r.w).Encode(l)
	case l.Type == "progress":
		_, err = fmt.Fprintf(r.w, "%s/%s %5.0f s  %s\n", printable(l.Pipeline), printable(l.Stage), l.Elapsed, printable(l.Line))
	default:
		why := ""
		if l.Why != "" {
			why = ": " + printable(l.Why)
		}
		_, err = fmt.Fprintf(r.w, "%s/%s %s: %s (TensorRT %s, %s, %s)%s\n", printable(l.Pipeline), printable(l.Stage), printable(filepath.Base(l.Model)),
			l.State, orNone(l.Key.TensorRT), printable(orNone(l.Key.GPU)), l.Key.Precision, why)
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
		r.err = errors.Join(r.err, lines(r.w).Encode(c))
		return
	}
	total := 0
	for _, n := range c.States {
		total += n
	}
	_, err := fmt.Fprintf(r.w, "%d engines: %d built, %d there already, %d skipped, %d failed\n", total, c.States["built"], c.States["present"], c.States["skipped"], c.States["failed"])
	r.err = errors.Join(r.err, err)
}

func newEnginesListCommand() *cobra.Command {
	var o engineFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the engines that are kept",
		Example: "  yoctuned engines list --format json",
		Long: `list shows each engine, what it was built from, and what is wrong with it.

Exit codes: 0 all are whole · 1 the folder cannot be read · 2 usage · 3 one is
damaged, or its build was cut short.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g := globalFlags(cmd)
			all, err := o.store(g).List(o.check)
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
				if g.Format == "json" {
					err = errors.Join(err, lines(w).Encode(struct {
						Type string `json:"type"`
						ID   string `json:"id"`
						tensorrt.About
						Why string `json:"why,omitempty"`
					}{"engine", e.Name, e.About, why}))
					continue
				}
				if why != "" {
					_, err2 := fmt.Fprintf(w, "%s  %s\n", printable(e.Name), printable(why))
					err = errors.Join(err, err2)
					continue
				}
				_, err2 := fmt.Fprintf(w, "%s  model %.12s  TensorRT %s  %s  %s  %.1f MiB  built %s in %.0f s\n", e.Name, e.Key.Model, printable(e.Key.TensorRT),
					printable(e.Key.GPU), e.Key.Precision, float64(e.Bytes)/(1<<20), e.Built.Format(time.RFC3339), e.Took)
				err = errors.Join(err, err2)
			}
			code := exitYes
			if bad > 0 {
				code = exitNo
			}
			if g.Format == "json" {
				err = errors.Join(err, lines(w).Encode(engineCounts{"summary", "engines list", map[string]int{"whole": len(all) - bad, "damaged": bad}, code}))
			}
			if err == nil && bad > 0 {
				return answerNo()
			}
			return err
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&o.check, "check", false, "read every engine and compare its digest")
	return cmd
}

func newEnginesPruneCommand() *cobra.Command {
	var o engineFlags
	cmd := &cobra.Command{
		Use:     "prune PLAN",
		Short:   "Remove the engines that a plan does not want here",
		Example: "  yoctuned engines prune plan.json",
		Long: `prune removes engines of other models, TensorRTs, GPUs and precisions than those the
plan wants on this machine, damaged ones, and what is left of builds that were cut
short.

Exit codes: 0 they are gone · 1 failed, or this machine has no TensorRT · 2 usage.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g := globalFlags(cmd)
			all, host, err := planEngines(g, args[0], o)
			if err != nil {
				return err
			}
			if why := host.Why(); why != "" {
				return fmt.Errorf("%s: which engines are wanted here is not known, so none is removed", why)
			}
			var keys []tensorrt.Key
			for _, jobs := range all {
				for _, j := range jobs {
					keys = append(keys, j.Key)
				}
			}
			gone, err := o.store(g).Prune(keys)
			w := cmd.OutOrStdout()
			for _, name := range gone {
				if g.Format == "json" {
					err = errors.Join(err, lines(w).Encode(map[string]string{"type": "removed", "id": name}))
				} else if _, err2 := fmt.Fprintf(w, "removed %s\n", printable(name)); err2 != nil {
					err = errors.Join(err, err2)
				}
			}
			if err == nil && g.Format == "json" {
				err = lines(w).Encode(engineCounts{"summary", "engines prune", map[string]int{"removed": len(gone)}, exitYes})
			}
			return err
		},
	}
	o.add(cmd)
	o.addModels(cmd)
	return cmd
}
