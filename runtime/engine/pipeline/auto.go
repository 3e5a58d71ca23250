package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/internal/cache"
	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/runtime/engine/core/c"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Frames that are measured with each choice of devices: some, and where they are done sooner than
// autoTime as many as take that long.
const (
	autoFrames = 60
	autoMost   = 20000
	autoTime   = 500 * time.Millisecond
)

// autoGain is how much faster a choice must be than those before it, which use the GPU less.
const autoGain = 1.05

// EventDevice is the kind of events about the device of a stage that the plan leaves open.
const EventDevice = "device"

// DeviceChoice is the measured choice of the devices of stages with device auto.
type DeviceChoice struct {
	Devices  map[string]string  `json:"devices"`  // by stage: cpu or gpu
	Rates    map[string]float64 `json:"rates"`    // frames a second by choice; those that could not run are left out
	Measured bool               `json:"measured"` // by this run, not an earlier one
}

// errNotOnGPU is why a choice is not measured.
var errNotOnGPU = errors.New("the CPU did the work of the GPU")

// chooseDevices replaces the device auto of stages by the faster device. It runs a pipeline of synthetic
// frames with each choice, once for each plan, set of models, GPU and version of this program, and
// remembers the result.
func chooseDevices(o Options) (plan.Pipeline, *DeviceChoice, error) {
	var open []int
	for k := range o.Plan.Stages {
		if o.Plan.Stages[k].Device == registry.DeviceAuto {
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		return o.Plan, nil, nil
	}
	kept := cache.Open(o.cacheDir(), "measured devices")
	key, err := devicesKey(o)
	if err != nil {
		return o.Plan, nil, err
	}
	choice := DeviceChoice{Devices: map[string]string{}, Rates: map[string]float64{}}
	body, hit, err := kept.Get(key, func() ([]byte, error) {
		if err := measureDevices(o, open, &choice); err != nil {
			return nil, err
		}
		return json.Marshal(choice)
	})
	switch {
	case errors.Is(err, errNotOnGPU): // which is not remembered
	case err != nil:
		return o.Plan, nil, err
	default:
		if err := json.Unmarshal(body, &choice); err != nil {
			return o.Plan, nil, fmt.Errorf("measured devices: %w", err)
		}
	}
	choice.Measured = !hit
	p := o.Plan
	p.Stages = slices.Clone(p.Stages)
	for _, k := range open {
		p.Stages[k] = withDevice(p.Stages[k], choice.Devices[p.Stages[k].ID])
	}
	if why := kept.Note(); why != "" && o.Note != nil {
		o.Note(errors.New(why))
	}
	return p, &choice, nil
}

// withDevice returns a stage on a device.
func withDevice(s plan.PipelineStage, device string) plan.PipelineStage {
	if s.Device = device; device != registry.DeviceGPU {
		s.Device, s.Fallback = "", ""
	}
	return s
}

// measureDevices measures each choice. The error wraps errNotOnGPU if the choice could not be compared
// with the GPU; then it is the CPU.
func measureDevices(o Options, open []int, to *DeviceChoice) error {
	best := -1.0
	var missing error
	for bits := range 1 << len(open) {
		trial, name := trialOf(o, open, bits)
		rate, err := measureRate(trial)
		switch {
		case err == nil:
		case o.Start != nil && o.Start.Err() != nil:
			return err
		case bits == 0: // the CPU must be able to
			return fmt.Errorf("measuring devices, %s: %w", name, err)
		default:
			if missing = fmt.Errorf("measuring devices, %s: %w", name, err); o.Note != nil {
				o.Note(missing)
			}
			continue
		}
		to.Rates[name] = rate
		if rate > autoGain*best {
			best = rate
			for n, k := range open {
				to.Devices[o.Plan.Stages[k].ID] = deviceOf(bits, n)
			}
		}
	}
	if missing != nil {
		return fmt.Errorf("%w: %w", errNotOnGPU, missing)
	}
	return nil
}

func deviceOf(bits, n int) string {
	if bits>>n&1 != 0 {
		return registry.DeviceGPU
	}
	return "cpu"
}

// trialOf returns the options of a run with one choice, and the name of the choice.
func trialOf(o Options, open []int, bits int) (Options, string) {
	p := o.Plan
	p.Stages = slices.Clone(p.Stages)
	var name []string
	for n, k := range open {
		name = append(name, p.Stages[k].ID+" "+deviceOf(bits, n))
		p.Stages[k] = withDevice(p.Stages[k], deviceOf(bits, n))
	}
	src := plan.PipelineSource{Kind: registry.SyntheticSource.Kind, Format: p.Source.Format, Width: p.Source.Width, Height: p.Source.Height}
	if f, _ := registry.FormatOf(src.Format); f.Coded {
		src.Format = "nv12"
	}
	p.Source, p.Sink, p.SLO, p.Degrade, p.Budget, p.Utilisation, p.Queue = src, plan.PipelineSink{}, nil, nil, nil, "", plan.PipelineQueue{}
	return Options{
		Name: o.Name, Plan: p, Cache: o.Cache, Dir: o.Dir, Models: o.Models, Library: o.Library, Sink: discard{}, Start: o.Start,
		Engines: o.Engines, Host: o.Host, GPU: o.GPU, Worker: o.Worker, Backoff: o.Backoff, Device: o.Device, faults: o.faults, host: o.host, measuring: true,
	}, strings.Join(name, ", ")
}

// measureRate returns the frames a second of a pipeline.
func measureRate(o Options) (float64, error) {
	rate, err := measureFrames(o, autoFrames)
	if long := rate * autoTime.Seconds(); err == nil && long > autoFrames {
		rate, err = measureFrames(o, uint64(min(long, autoMost)))
	}
	return rate, err
}

// measureFrames runs a pipeline of some frames.
func measureFrames(o Options, frames uint64) (float64, error) {
	o.Frames = frames
	p, err := New(o)
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	if o.Start != nil {
		ctx = o.Start
	}
	began := time.Now()
	sum, err := p.Run(ctx)
	took := time.Since(began)
	err = errors.Join(err, p.Close())
	switch {
	case err != nil:
		return 0, err
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case sum.Frames.Done+sum.Frames.Skipped < frames:
		return 0, fmt.Errorf("%d of %d frames were done", sum.Frames.Done, frames)
	}
	for stage, n := range sum.Fallbacks {
		if n > 0 {
			return 0, fmt.Errorf("%w: %d frames of stage %s", errNotOnGPU, n, stage)
		}
	}
	return float64(frames) / took.Seconds(), nil
}

// discard is a sink that drops results.
type discard struct{}

func (discard) Write(*result.Record) error { return nil }
func (discard) Close() error               { return nil }

// devicesKey identifies what a measurement depends on.
func devicesKey(o Options) (string, error) {
	trial, _ := trialOf(o, nil, 0)
	text, err := json.Marshal(trial.Plan)
	if err != nil {
		return "", err
	}
	parts := []string{"devices", version.Version, c.Sources(), string(text), o.Library, o.GPU.Backend, o.GPU.Library, fmt.Sprintf("%+v", o.Host)}
	files := modelFiles{dir: o.Dir, models: o.Models}
	for k := range o.Plan.Stages {
		for _, m := range registry.Models(&o.Plan.Stages[k]) {
			if m.SHA256 != "" { // part of the plan
				continue
			}
			path, err := files.find(m.Path, "")
			if err != nil {
				return "", err
			}
			body, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			parts = append(parts, fmt.Sprintf("%x", sha256.Sum256(body)))
		}
	}
	return cache.Key(parts...), nil
}

// noteDevices records the choice, in the summary too.
func (p *Pipeline) noteDevices(choice *DeviceChoice) error {
	if choice == nil {
		return nil
	}
	clock, err := frame.NewClock()
	if err != nil {
		return err
	}
	p.info.Devices = choice
	var words []string
	for _, stage := range slices.Sorted(maps.Keys(choice.Devices)) {
		words = append(words, fmt.Sprintf("%s on the %s", stage, strings.ToUpper(choice.Devices[stage])))
	}
	var rates []string
	for _, name := range slices.Sorted(maps.Keys(choice.Rates)) {
		rates = append(rates, fmt.Sprintf("%s: %.1f", name, choice.Rates[name]))
	}
	when := "measured earlier"
	if choice.Measured {
		when = "measured now"
	}
	p.event(Event{At: clock.Now(), Kind: EventDevice, Why: fmt.Sprintf("%s; frames a second, %s: %s", strings.Join(words, ", "), when, strings.Join(rates, "; "))})
	return nil
}
