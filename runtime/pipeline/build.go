package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/core"
	"github.com/yoctune/yoctune/runtime/ort"
	"github.com/yoctune/yoctune/schema/plan"
)

// ModelStore is where layers install models, by their SHA-256.
const ModelStore = "/usr/share/yoctune/models"

// builder makes the steps of a pipeline from its plan, checking that each stage
// takes what the one before gives.
type builder struct {
	o       Options
	p       *Pipeline
	rt      *ort.Runtime
	dev     *core.Device
	carries carry
	shape   []int64 // of the tensor the stages so far make
}

// carry is what travels between two stages.
type carry string

const (
	carriesFrame   carry = "frames"
	carriesTensor  carry = "tensors"
	carriesResults carry = "results"
)

func (b *builder) stages() error {
	stages := b.o.Plan.Stages
	if len(stages) == 0 || len(stages) > maxStages {
		return fmt.Errorf("%w: %d stages; there are 1 to %d", ErrPlan, len(stages), maxStages)
	}
	if err := checkChain(stages); err != nil {
		return err
	}
	if err := b.allocate(); err != nil {
		return err
	}
	if slices.ContainsFunc(stages, func(s plan.PipelineStage) bool { return s.Kind == "model" }) {
		var err error
		if b.rt, err = b.p.openRuntime(b.o.Library); err != nil {
			return err
		}
	}
	b.carries = carriesFrame
	for k := range stages {
		s := &stages[k]
		run, err := b.stage(k, s)
		if err != nil {
			return fmt.Errorf("stage %s: %w", s.ID, err)
		}
		b.p.steps = append(b.p.steps, step{id: s.ID, run: run})
	}
	if b.carries != carriesResults {
		return fmt.Errorf("%w: the last stage gives %s, the sink takes results: end with a postprocess stage", ErrPlan, b.carries)
	}
	return nil
}

// checkChain checks that the stages form one line from the source.
func checkChain(stages []plan.PipelineStage) error {
	before := idSource
	seen := map[string]bool{idSource: true, idSink: true}
	for _, s := range stages {
		switch {
		case s.ID == "":
			return fmt.Errorf("%w: a stage has no id", ErrPlan)
		case seen[s.ID]:
			return fmt.Errorf("%w: stage id %q is taken", ErrPlan, s.ID)
		case s.Input != before && s.Input != "":
			return fmt.Errorf("%w: stage %s takes its input from %q; stages form one line, so it must be %q", ErrPlan, s.ID, s.Input, before)
		}
		seen[s.ID] = true
		before = s.ID
	}
	return nil
}

// allocate makes the frames.
func (b *builder) allocate() error {
	steps := len(b.o.Plan.Stages)
	n, size := framesFor(steps, b.p.capacity), b.p.source.format().bytes()
	if err := b.account(n, int64(size)); err != nil {
		return err
	}
	pixels, err := mapMemory(n * size)
	if err != nil {
		return err
	}
	b.p.closers = append(b.p.closers, func() error { return unix.Munmap(pixels) })
	b.p.info.Frames = n
	b.p.frames = make([]frame, n)
	for i := range b.p.frames {
		b.p.frames[i] = frame{
			pixels:  pixels[i*size : (i+1)*size : (i+1)*size],
			tensors: make([]tensor, steps),
			spent:   make([]span, steps+1),
		}
	}
	return nil
}

// account adds n parts of size bytes to the pool, and refuses what is too much.
func (b *builder) account(n int, size int64) error {
	if size > maxPool/int64(n) || b.p.info.Bytes > maxPool-int64(n)*size {
		return fmt.Errorf("%w: %d frames of %d bytes would take more than %d MiB with the rest: lower the queue capacity or the size",
			ErrPlan, n, size, maxPool>>20)
	}
	b.p.info.Bytes += int64(n) * size
	return nil
}

type work = func(context.Context, *frame) error

func (b *builder) stage(k int, s *plan.PipelineStage) (work, error) {
	var takes, gives carry
	var build func(int, *plan.PipelineStage) (work, error)
	var has bool
	switch s.Kind {
	case "preprocess":
		takes, gives, build, has = carriesFrame, carriesTensor, b.preprocess, s.Preprocess != nil
	case "model":
		takes, gives, build, has = carriesTensor, carriesTensor, b.model, s.Model != nil
	case "postprocess":
		takes, gives, build, has = carriesTensor, carriesResults, b.post, s.Post != nil
	default:
		return nil, fmt.Errorf("%w: kind %q; it is one of preprocess, model, postprocess", ErrPlan, s.Kind)
	}
	if !has {
		return nil, fmt.Errorf("%w: a stage of kind %s has no settings of that kind", ErrPlan, s.Kind)
	}
	if b.carries != takes {
		return nil, fmt.Errorf("%w: %s takes %s, what comes before gives %s", ErrPlan, s.Kind, takes, b.carries)
	}
	b.carries = gives
	return build(k, s)
}

// preprocess makes a tensor of a frame in one pass. It runs on the CPU: the
// model that follows reads its tensor there.
func (b *builder) preprocess(k int, s *plan.PipelineStage) (work, error) {
	f := b.p.source.format()
	args, err := preprocessArgs(s.Preprocess, f)
	if err != nil {
		return nil, err
	}
	if _, err := args.Geometry(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	if b.dev, err = core.Open(core.Options{Backend: "cpu"}); err != nil {
		return nil, err
	}
	dev := b.dev
	b.p.closers = append(b.p.closers, dev.Close)
	b.p.info.Backend = "cpu"
	if err := b.tensors(k, []int64{1, 3, int64(args.OutH), int64(args.OutW)}); err != nil {
		return nil, err
	}
	return func(ctx context.Context, fr *frame) error {
		a := args
		a.Out = fr.tensors[k].data
		var err error
		if a.Planes, err = core.SplitPlanes(f.pixels, f.width, f.height, fr.pixels); err != nil {
			return err
		}
		return dev.Preprocess(ctx, a)
	}, nil
}

func preprocessArgs(p *plan.Preprocess, f format) (core.Preprocess, error) {
	a := core.Preprocess{
		Format: f.pixels, Width: f.width, Height: f.height, Matrix: f.matrix,
		OutW: p.Width, OutH: p.Height, Pad: uint8(p.Pad),
	}
	bad := func(field string, value any, want string) error {
		return fmt.Errorf("%w: %s %v; it is %s", ErrPlan, field, value, want)
	}
	switch p.Fit {
	case "stretch", "":
		a.Fit = core.Stretch
	case "letterbox":
		a.Fit = core.Letterbox
	default:
		return a, bad("fit", p.Fit, "stretch or letterbox")
	}
	switch p.Color {
	case "rgb", "":
		a.Color = core.RGB
	case "bgr":
		a.Color = core.BGR
	default:
		return a, bad("color", p.Color, "rgb or bgr")
	}
	if p.Layout != "nchw" && p.Layout != "" {
		return a, bad("layout", p.Layout, "nchw")
	}
	if p.DType != "f32" && p.DType != "" {
		return a, bad("dtype", p.DType, "f32")
	}
	if p.Pad < 0 || p.Pad > 255 {
		return a, bad("pad", p.Pad, "0 to 255")
	}
	if c := p.Crop; c != nil {
		if c.Width < 1 || c.Height < 1 || c.X < 0 || c.Y < 0 || c.X > f.width-c.Width || c.Y > f.height-c.Height {
			return a, fmt.Errorf("%w: crop %dx%d at %d,%d is not inside the frame of %dx%d",
				ErrPlan, c.Width, c.Height, c.X, c.Y, f.width, f.height)
		}
		a.Crop = core.Rect{X: c.X, Y: c.Y, Width: c.Width, Height: c.Height}
	}
	var err error
	if a.Mean, err = channels("mean", p.Mean, 0); err != nil {
		return a, err
	}
	if a.Std, err = channels("std", p.Std, 1); err != nil {
		return a, err
	}
	for _, v := range a.Std {
		if v == 0 {
			return a, bad("std", p.Std, "not zero")
		}
	}
	return a, nil
}

// channels reads the three values of mean or std, or one for all.
func channels(field string, text []string, unset float32) ([3]float32, error) {
	v := [3]float32{unset, unset, unset}
	if len(text) != 0 && len(text) != 1 && len(text) != 3 {
		return v, fmt.Errorf("%w: %s has %d values; it has 3, or 1 for all channels", ErrPlan, field, len(text))
	}
	for i := range v {
		if len(text) == 0 {
			break
		}
		x, err := decimal(text[min(i, len(text)-1)])
		if err != nil {
			return v, fmt.Errorf("%w: %s: %w", ErrPlan, field, err)
		}
		v[i] = x
	}
	return v, nil
}

func decimal(s string) (float32, error) {
	x, err := strconv.ParseFloat(s, 32)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, fmt.Errorf("%q is not a decimal number", s)
	}
	return float32(x), nil
}

// tensors gives every frame a tensor of stage k's output.
func (b *builder) tensors(k int, shape []int64) error {
	b.shape = shape
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	if err := b.account(len(b.p.frames), n*4); err != nil {
		return err
	}
	feeds := k+1 < len(b.o.Plan.Stages) && b.o.Plan.Stages[k+1].Kind == "model"
	if !feeds {
		for i := range b.p.frames {
			b.p.frames[i].tensors[k] = tensor{shape: shape, data: make([]float32, n)}
		}
		return nil
	}
	return b.ortTensors(k, shape)
}

// ortTensors allocates the tensors where a model can read and write them.
func (b *builder) ortTensors(k int, shape []int64) error {
	for i := range b.p.frames {
		t, err := b.rt.NewTensor(shape)
		if err != nil {
			return err
		}
		b.keep(k, i, t)
	}
	return nil
}

func (b *builder) keep(k, i int, t *ort.Tensor) {
	b.p.frames[i].tensors[k] = tensor{shape: t.Shape(), data: t.Data(), ort: t}
	b.p.closers = append(b.p.closers, func() error { t.Close(); return nil })
}

// model loads a model, runs it once to learn the shape of its output, and binds
// each frame's tensors to it.
func (b *builder) model(k int, s *plan.PipelineStage) (work, error) {
	m := s.Model
	path, err := b.find(m.Path, m.SHA256)
	if err != nil {
		return nil, err
	}
	threads := m.Threads
	if threads == 0 {
		if threads, err = countCPUs(b.o.Plan.CPUs); err != nil {
			return nil, fmt.Errorf("%w: cpus: %w", ErrPlan, err)
		}
	}
	session, err := b.rt.NewSession(path, ort.Options{
		Threads: threads, Input: m.Input, Output: m.Output, Check: checkSum(m.SHA256),
	})
	if err != nil {
		return nil, err
	}
	b.p.closers = append(b.p.closers, func() error { session.Close(); return nil })
	out, err := session.NewOutput(b.p.frames[0].tensors[k-1].ort)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", path, err)
	}
	out.Close()
	b.shape = out.Shape()
	n := int64(1)
	for _, d := range b.shape {
		n *= d
	}
	if err := b.account(len(b.p.frames), n*4); err != nil {
		return nil, err
	}
	if err := b.ortTensors(k, b.shape); err != nil {
		return nil, err
	}
	before := b.p.abort
	b.p.abort = func() {
		session.Terminate()
		if before != nil {
			before()
		}
	}
	return func(_ context.Context, f *frame) error {
		return session.Run(f.tensors[k-1].ort, f.tensors[k].ort)
	}, nil
}

// find looks for a model where --models, the plan's folder and the layers put
// it, in this order.
func (b *builder) find(path, sum string) (string, error) {
	if path == "" && sum == "" {
		return "", fmt.Errorf("%w: the model has neither path nor sha256", ErrPlan)
	}
	if sum != "" && !isSHA256(sum) {
		return "", fmt.Errorf("%w: model sha256 %.80q is not 64 lower-case hexadecimal digits", ErrPlan, sum)
	}
	var tries []string
	add := func(dir, name string) {
		if dir != "" && name != "" {
			tries = append(tries, filepath.Join(dir, name))
		}
	}
	if path != "" && !filepath.IsAbs(path) {
		add(b.o.Models, path)
	}
	if path != "" {
		add(b.o.Models, filepath.Base(path))
	}
	add(b.o.Models, sum)
	if path != "" {
		tries = append(tries, locate(b.o.Dir, path))
	}
	add(ModelStore, sum)
	return firstFile(tries)
}

// firstFile returns the first path that exists.
func firstFile(tries []string) (string, error) {
	for _, t := range tries {
		_, err := os.Stat(t)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: %w", ErrModelFile, err)
		}
	}
	return "", fmt.Errorf("%w: it is in none of %s: install it, or name its folder with --models",
		ErrModelFile, strings.Join(tries, ", "))
}

func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

// checkSum compares a model with the sum in the plan, when there is one.
func checkSum(want string) func([]byte) error {
	if want == "" {
		return nil
	}
	return func(model []byte) error {
		sum := sha256.Sum256(model)
		if got := hex.EncodeToString(sum[:]); got != want {
			return fmt.Errorf("%w: its sha256 is %s, the plan wants %s: it is another model or was damaged", ErrModelFile, got, want)
		}
		return nil
	}
}

func (b *builder) post(k int, s *plan.PipelineStage) (work, error) {
	var labels []string
	var threshold float32
	if p := s.Post; p.Labels != "" {
		var tries []string
		if b.o.Models != "" {
			if !filepath.IsAbs(p.Labels) {
				tries = append(tries, filepath.Join(b.o.Models, p.Labels))
			}
			tries = append(tries, filepath.Join(b.o.Models, filepath.Base(p.Labels)))
		}
		path, err := firstFile(append(tries, locate(b.o.Dir, p.Labels)))
		if err != nil {
			return nil, fmt.Errorf("labels: %w", err)
		}
		if labels, err = readLabels(path); err != nil {
			return nil, err
		}
	}
	if s.Post.Threshold != "" {
		var err error
		if threshold, err = decimal(s.Post.Threshold); err != nil || threshold < 0 || threshold > 1 {
			return nil, fmt.Errorf("%w: threshold %q is not a decimal number from 0 to 1", ErrPlan, s.Post.Threshold)
		}
	}
	decode, err := newPost(s.Post, b.shape, labels, threshold)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, f *frame) error {
		f.results = decode(f.tensors[k-1], f.results)
		return nil
	}, nil
}

func newPost(p *plan.Post, shape []int64, labels []string, threshold float32) (post, error) {
	switch p.Kind {
	case kindCTC:
		if labels == nil {
			return nil, fmt.Errorf("%w: ctc needs a labels file", ErrPlan)
		}
		return ctc(shape, labels, threshold)
	case kindArgmax:
		return argmax(shape, labels, threshold, p.Top)
	case kindRaw:
		return raw(shape)
	}
	return nil, fmt.Errorf("%w: kind %q; it is one of ctc, argmax, raw", ErrPlan, p.Kind)
}
