package modelbench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yoctune/yoctune/internal/tailbuf"
	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/plan"
)

// ErrOriginal means that the original could not be measured, so that there is nothing to compare
// candidates with.
var ErrOriginal = errors.New("the original cannot be measured")

// Options of a run.
type Options struct {
	Program  string           // yoctuned itself
	Dir      string           // folder of the request's files
	Library  string           // of ONNX Runtime; "": the installed one
	Sizes    map[string]int64 // of free axes, with random inputs
	Device   measurement.Device
	Host     tensorrt.Host
	Engines  tensorrt.Store           // where the engines of models are kept that TensorRT runs
	Power    func() *int64            // of the whole module in mW, nil if it is not known
	Progress func(model, what string) // may be nil
	Now      func() time.Time
}

// warmRuns precede the first measured run of a batch.
const warmRuns = 2

// powerInterval is the time between readings of the power.
const powerInterval = 50 * time.Millisecond

// Run measures what a request asks for. A candidate that fails is in the record with the reason; an
// original that fails is [ErrOriginal].
func Run(ctx context.Context, r *measurement.Request, o Options) (*measurement.Record, error) {
	tmp, err := os.MkdirTemp("", "yoctune-bench-model-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	request, err := plan.Canonical(r)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(request)
	x := &run{Request: r, Options: o, reference: filepath.Join(tmp, "outputs")}
	rec := &measurement.Record{
		Schema: measurement.Schema, Request: hex.EncodeToString(sum[:]), Created: o.Now().UTC().Format(time.RFC3339), Device: o.Device,
		Runtime: measurement.Runtime{Yoctuned: version.Version, Providers: r.Providers, Threads: r.Threads, Precision: r.Precision, Workspace: r.Workspace},
		Metric:  r.Metric, Rounds: r.Rounds, Runs: r.Runs,
	}
	if len(rec.Runtime.Providers) == 0 {
		rec.Runtime.Providers = []string{"cpu"}
	}
	defer x.stop()
	for i, m := range r.Models {
		x.report(m.Name, "load")
		rec.Models = append(rec.Models, measurement.Model{Name: m.Name, SHA256: m.SHA256, Batches: []measurement.Batch{}})
		p, a, err := x.start(ctx, m)
		if err != nil {
			rec.Models[i].Failed = err.Error()
			if i == 0 {
				return nil, fmt.Errorf("%w: %s: %w", ErrOriginal, m.Name, err)
			}
		} else {
			out := &rec.Models[i]
			out.Bytes, out.Provider, out.Missing, out.Weights = a.Bytes, a.Provider, a.Missing, a.Weights
			rec.Runtime.ONNXRuntime = a.ONNXRuntime
			if a.Count > 0 && rec.Examples == nil {
				sum, err := Digest(resolve(o.Dir, r.Examples))
				if err != nil {
					return nil, err
				}
				rec.Examples = &measurement.Examples{SHA256: sum, Count: a.Count}
			}
		}
		x.processes = append(x.processes, p)
	}
	for _, batch := range r.Batches {
		if err := x.measure(ctx, rec, batch); err != nil {
			return nil, err
		}
	}
	return rec, ctx.Err()
}

// Digest is the SHA-256 of a file, in hexadecimal.
func Digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// run is a run in progress.
type run struct {
	*measurement.Request
	Options
	reference string
	processes []*process // by model; nil: it failed
}

func (x *run) report(model, what string) {
	if x.Progress != nil {
		x.Progress(model, what)
	}
}

// start starts the process of a model.
func (x *run) start(ctx context.Context, m measurement.RequestModel) (*process, answer, error) {
	engine, noEngine, err := x.engine(ctx, m)
	if err != nil {
		return nil, answer{}, err
	}
	p, err := startProcess(ctx, x.Program, time.Duration(x.Limit))
	if err != nil {
		return nil, answer{}, err
	}
	c := call{Engine: engine, NoEngine: noEngine, Op: opOpen, File: resolve(x.Dir, m.File), SHA256: m.SHA256, Library: x.Library, Metric: x.Metric, Head: x.Head,
		Sizes: x.Sizes, Providers: x.Request.Providers, Threads: x.Threads}
	if x.Examples != "" {
		c.Examples = resolve(x.Dir, x.Examples)
	}
	a, err := p.call(c)
	if err != nil {
		p.stop()
		return nil, a, err
	}
	return p, a, nil
}

// measure measures all models at one batch size.
func (x *run) measure(ctx context.Context, rec *measurement.Record, batch int) error {
	fail := func(i int, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if i == 0 {
			return fmt.Errorf("%w: batch %d: %w", ErrOriginal, batch, err)
		}
		m := &rec.Models[i]
		m.Batches = append(m.Batches, measurement.Batch{Batch: batch, Times: [][]int64{}, Failed: err.Error()})
		if x.processes[i].ended {
			m.Failed = err.Error()
			x.processes[i] = nil
		}
		return nil
	}
	ready := map[int]*measurement.Batch{}
	for i, p := range x.processes {
		if p == nil {
			continue
		}
		b := &measurement.Batch{Batch: batch}
		what := "warm up"
		if x.Metric != "" {
			what = "accuracy"
		}
		x.report(rec.Models[i].Name, fmt.Sprintf("%s, batch %d", what, batch))
		if err := x.prepare(p, i, b, batch == x.Batches[0]); err != nil {
			if err := fail(i, err); err != nil {
				return err
			}
			continue
		}
		ready[i] = b
	}
	energy := make([]meter, len(x.processes))
	for round := range x.Rounds {
		x.report("all models", fmt.Sprintf("time, batch %d, round %d of %d", batch, round+1, x.Rounds))
		for k := range x.processes {
			i := (k + round) % len(x.processes) // the first of a round has no advantage
			b := ready[i]
			if b == nil {
				continue
			}
			stop := energy[i].watch(x.Power)
			a, err := x.processes[i].call(call{Op: opTime, Runs: x.Runs})
			stop()
			if err != nil {
				delete(ready, i)
				if err := fail(i, err); err != nil {
					return err
				}
				continue
			}
			b.Times = append(b.Times, a.Times)
			m := &rec.Models[i]
			if a.Memory > 0 && (m.Memory == nil || *m.Memory < a.Memory) {
				m.Memory = &a.Memory
			}
		}
	}
	for i := range x.processes {
		if b := ready[i]; b != nil {
			b.Energy = energy[i].perExample(b)
			rec.Models[i].Batches = append(rec.Models[i].Batches, *b)
		}
	}
	return nil
}

// prepare binds a batch, scores the examples and warms the model up. The original writes its outputs
// at the first batch: what it gives at the others is compared with these too.
func (x *run) prepare(p *process, i int, b *measurement.Batch, first bool) error {
	if _, err := p.call(call{Op: opBind, Batch: b.Batch}); err != nil {
		return err
	}
	if x.Metric != "" {
		a, err := p.call(call{Op: opScore, Reference: x.reference, Write: i == 0 && first})
		if err != nil {
			return err
		}
		b.Scores = a.Scores
	}
	_, err := p.call(call{Op: opTime, Runs: warmRuns})
	return err
}

// stop ends all processes.
func (x *run) stop() {
	for _, p := range x.processes {
		if p != nil {
			p.stop()
		}
	}
}

// meter averages the power while a model runs.
type meter struct{ sum, readings int64 }

// watch reads the power until the returned function is called.
func (m *meter) watch(power func() *int64) func() {
	if power == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(powerInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if mw := power(); mw != nil {
					m.sum, m.readings = m.sum+*mw, m.readings+1
				}
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// perExample is the energy of an example in microjoules, nil where the power is not known.
func (m *meter) perExample(b *measurement.Batch) *int64 {
	if m.readings == 0 {
		return nil
	}
	var all []int64
	for _, round := range b.Times {
		all = append(all, round...)
	}
	slices.Sort(all)
	median := all[len(all)/2]                      // ns
	energy := float64(m.sum) / float64(m.readings) // mW
	return new(int64(energy * float64(median) / 1e6 / float64(b.Batch)))
}

// process is a program that runs one model.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	enc    *json.Encoder
	lines  chan []byte
	errors tailbuf.Buffer
	limit  time.Duration
	ctx    context.Context
	ended  bool
}

// maxLine bounds an answer: the scores of all examples.
const maxLine = 128 << 20

func startProcess(ctx context.Context, program string, limit time.Duration) (*process, error) {
	p := &process{cmd: exec.Command(program, Command), lines: make(chan []byte), limit: limit, ctx: ctx}
	p.cmd.Stderr = &p.errors
	// The process ends with this one, whatever ends it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.enc = in, json.NewEncoder(in)
	go p.read(out)
	return p, nil
}

// read passes lines on until the output ends.
func (p *process) read(out io.Reader) {
	defer close(p.lines)
	dec := json.NewDecoder(io.LimitReader(out, 1<<40))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil || len(raw) > maxLine {
			return
		}
		p.lines <- raw
	}
}

// call sends a call and waits for its answer. After an error that ended the process, ended is set.
func (p *process) call(c call) (answer, error) {
	var a answer
	if err := p.enc.Encode(c); err != nil {
		return a, p.explain()
	}
	t := time.NewTimer(p.limit)
	defer t.Stop()
	select {
	case raw, ok := <-p.lines:
		if !ok {
			return a, p.explain()
		}
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&a); err != nil {
			p.stop()
			return a, fmt.Errorf("answer of the process: %w", err)
		}
	case <-t.C:
		p.stop()
		return a, fmt.Errorf("it took longer than %v and was ended", p.limit)
	case <-p.ctx.Done():
		p.stop()
		return a, p.ctx.Err()
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// explain ends the process and says how it ended.
func (p *process) explain() error {
	p.ended = true
	_ = p.in.Close()
	err := p.cmd.Wait()
	text := strings.ReplaceAll(p.errors.String(), "\n", "; ")
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return errors.New("its process was killed, probably because the memory was exhausted")
		}
	}
	if err == nil {
		err = errors.New("it ended early")
	}
	if text != "" {
		return fmt.Errorf("its process failed: %w: %.400s", err, text)
	}
	return fmt.Errorf("its process failed: %w", err)
}

// stop ends the process.
func (p *process) stop() {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.in.Close()
	_ = p.cmd.Process.Kill()
	go func() { // what it still wrote
		for range p.lines {
		}
	}()
	_ = p.cmd.Wait()
}

// resolve returns the path of a file of a request: beside it, or where the command line names it.
func resolve(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}
