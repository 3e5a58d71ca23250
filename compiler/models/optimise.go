package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/flattar"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/internal/tailbuf"
	"github.com/yoctune/yoctune/schema/formats/evidence"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/plan"
)

// Job is a model of a target with the candidates to make of it.
type Job struct {
	Dir    string // of the configuration
	Target *resolve.Target
	Model  *config.Model
	Accept evidence.Accept

	providers []string
	threads   int
	precision string // of TensorRT engines
	workspace int64
}

// Jobs lists the models of a target that have candidates, or the one of a name.
func Jobs(dir string, t *resolve.Target, model string) ([]Job, error) {
	var all []Job
	for _, m := range t.Config.Models.Sorted() {
		if model != "" && m.Key() != model {
			continue
		}
		if !resolve.Optimised(m) || !m.Accept.IsSet() {
			if model != "" {
				return nil, fmt.Errorf("model %s has no candidates: add optimise and accept", model)
			}
			continue
		}
		a, err := resolve.Criteria(t.Config, m)
		if err != nil {
			return nil, err
		}
		j := Job{Dir: dir, Target: t, Model: m, Accept: a, providers: []string{"cpu"}}
		for _, c := range t.Config.Pipelines.Sorted() {
			p := t.Plan.Pipelines[c.Key()]
			for i := range p.Stages {
				if c.Stages.Get(p.Stages[i].ID).Model.Text == m.Key() {
					m := p.Stages[i].Model
					j.providers, j.threads, j.precision, j.workspace = p.Stages[i].ModelProviders(), m.Threads, m.Precision, m.Workspace
				}
			}
		}
		all = append(all, j)
	}
	if len(all) == 0 {
		if model != "" {
			return nil, fmt.Errorf("target %s has no model %q", t.Name, model)
		}
		return nil, fmt.Errorf("no model of target %s has candidates: add optimise and accept", t.Name)
	}
	return all, nil
}

// file is the path of a file beside the configuration.
func (j *Job) file(name string) string { return filepath.Join(j.Dir, filepath.FromSlash(name)) }

// Made is a candidate that was made, or why it was not.
type Made struct {
	Name  string
	File  string // in the work folder; "" if it failed
	Notes map[string]string
	Err   error
}

// Report receives what goes on; candidate is "" for all of them.
type Report func(candidate, text string)

// Make makes the candidates of a job in a work folder.
func (j *Job) Make(ctx context.Context, env Environment, work string, limit time.Duration, report Report) ([]Made, error) {
	source := j.file(j.Model.Source.Text)
	if _, err := os.Stat(source); err != nil {
		return nil, err
	}
	examples := j.file(j.Model.Accept.Examples.Text)
	if _, err := os.Stat(examples); err != nil {
		return nil, err
	}
	var all []Made
	for i := range j.Model.Optimise.Items {
		o := &j.Model.Optimise.Items[i]
		m := Made{Name: resolve.CandidateName(o), File: resolve.CandidateName(o) + ".onnx"}
		report(m.Name, "made")
		request := map[string]any{
			"kind": o.Kind.Text, "model": source, "output": filepath.Join(work, m.File), "examples": examples,
			"level": o.Level.Text, "keep": config.Texts(o.Keep), "exclude": config.Texts(o.Exclude), "perChannel": o.PerChannel.On,
			"method": o.Method.Text, "pattern": o.Pattern.Text, "tensorrt": slices.Contains(j.providers, "tensorrt"),
		}
		if o.Kind.Text == "prune" {
			amount, err := strconv.ParseFloat(resolve.FormatAmount(o), 64)
			if err != nil {
				return nil, err
			}
			request["amount"] = amount
		}
		if o.Calibration.IsSet() {
			request["calibration"] = j.file(o.Calibration.Text)
		}
		m.Notes, m.Err = env.make(ctx, request, limit, func(text string) { report(m.Name, text) })
		if errors.Is(m.Err, ErrNoEnvironment) || ctx.Err() != nil {
			return nil, m.Err
		}
		if m.Err != nil {
			m.File = ""
			report(m.Name, "not made: "+m.Err.Error())
		}
		all = append(all, m)
	}
	return all, nil
}

// Names of the files of a request.
const (
	originalFile = "original.onnx"
	examplesFile = "examples.safetensors"
	notesFile    = "notes.json"
)

// Original is the name of the original in a request and in evidence.
const Original = "original"

// Effort is how much is measured.
type Effort struct {
	Rounds, Runs int
	Limit        time.Duration // of each step of a model
}

// Request writes a request for the candidates into the work folder.
func (j *Job) Request(work string, made []Made, e Effort) (*measurement.Request, error) {
	for name, source := range map[string]string{originalFile: j.Model.Source.Text, examplesFile: j.Model.Accept.Examples.Text} {
		path, err := filepath.Abs(j.file(source))
		if err != nil {
			return nil, err
		}
		if err := os.Symlink(path, filepath.Join(work, name)); err != nil {
			return nil, err
		}
	}
	r := &measurement.Request{
		Schema: measurement.RequestSchema, Examples: examplesFile, Metric: j.Accept.Metric, Head: j.Model.Accept.Head.Text, Batches: j.Accept.Batches,
		Threads: j.threads, Providers: j.providers, Precision: j.precision, Workspace: j.workspace, Rounds: e.Rounds, Runs: e.Runs, Limit: int64(e.Limit),
	}
	add := func(name, file string) error {
		sum, err := digest(filepath.Join(work, file))
		r.Models = append(r.Models, measurement.RequestModel{Name: name, File: file, SHA256: sum})
		return err
	}
	if err := add(Original, originalFile); err != nil {
		return nil, err
	}
	notes := map[string]note{}
	for _, m := range made {
		if m.Err != nil {
			notes[m.Name] = note{Error: m.Err.Error()}
			continue
		}
		notes[m.Name] = note{Notes: m.Notes}
		if err := add(m.Name, m.File); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(notes)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(work, notesFile), text, 0o644); err != nil {
		return nil, err
	}
	data, err := plan.Canonical(r)
	if err != nil {
		return nil, err
	}
	return r, os.WriteFile(filepath.Join(work, measurement.RequestFile), data, 0o644)
}

// note is what is known of a candidate besides its file.
type note struct {
	Notes map[string]string `json:"notes,omitempty"`
	Error string            `json:"error,omitempty"`
}

// Device is where candidates are measured.
type Device struct {
	Program string // yoctuned on the device; "": in the PATH of the host
	Host    string // for ssh; "": this machine
	Library string // of ONNX Runtime, on the device; "": the installed one
	Other   string // of ONNX Runtime, where none is installed on this machine
}

// By describes how a record came.
func (d Device) By() string {
	if d.Host != "" {
		return "ssh " + d.Host
	}
	return "local"
}

// remoteCommand is what the host's shell runs.
func (d Device) remoteCommand() (string, error) {
	words := []string{cmp.Or(d.Program, "yoctuned"), "bench", "model", "--archive", "--format", "json"}
	if d.Library != "" {
		words = append(words, "--library", d.Library)
	}
	for i, w := range words {
		quoted, err := quote.Shell(w)
		if err != nil {
			return "", err
		}
		words[i] = quoted
	}
	return strings.Join(words, " "), nil
}

// CheckHost returns why a host is not one for ssh, which would pass some names on to a shell: the form is
// [USER@]HOST or ssh://[USER@]HOST[:PORT].
func CheckHost(host string) error {
	name := strings.TrimPrefix(host, "ssh://")
	if name == "" || name[0] == '-' || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@.:_-[]%", r))
	}) {
		return fmt.Errorf("%.80q is not a host: write [USER@]HOST or ssh://[USER@]HOST[:PORT]", host)
	}
	return nil
}

// Measure runs yoctuned bench model on the device and returns the record's bytes.
func (d Device) Measure(ctx context.Context, work string, report Report) ([]byte, error) {
	var cmd *exec.Cmd
	if d.Host == "" {
		args := []string{"bench", "model", "--request", work, "--format", "json"}
		if d.Library != "" {
			args = append(args, "--library", d.Library)
		}
		cmd = exec.CommandContext(ctx, d.Program, args...)
		cmd.Env = append(os.Environ(), measurement.LibraryVariable+"="+d.Other)
	} else {
		command, err := d.remoteCommand()
		if err != nil {
			return nil, err
		}
		cmd = exec.CommandContext(ctx, "ssh", "-o", "BatchMode=yes", "--", d.Host, command)
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		go func() {
			_ = flattar.Pack(work, in) // ssh reports an end of the connection
			_ = in.Close()
		}()
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var tail tailbuf.Buffer
	cmd.Stderr = io.MultiWriter(&tail, lineWriter(func(text string) {
		if name, what, ok := strings.Cut(text, ": "); ok {
			report(name, what)
		}
	}))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("yoctuned: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(out, measurement.MaxSize+1))
	if werr := cmd.Wait(); werr != nil {
		lines := strings.Split(strings.TrimSpace(tail.String()), "\n")
		return nil, fmt.Errorf("%s: measuring: %w: %.500s", d.By(), werr, lines[len(lines)-1])
	}
	return data, err
}

// lineWriter passes each line on.
type lineWriter func(string)

func (f lineWriter) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if text := strings.TrimSpace(line); text != "" {
			f(text)
		}
	}
	return len(b), nil
}

// Judge judges a record of a request in a work folder, and writes the evidence and the chosen candidate
// beside the source. by is how the record came.
func (j *Job) Judge(work string, data []byte, by string) (*evidence.Evidence, error) {
	text, err := infile.Read(filepath.Join(work, measurement.RequestFile), 1<<20)
	if err != nil {
		return nil, err
	}
	req, err := measurement.DecodeRequest(text)
	if err != nil {
		return nil, err
	}
	r, err := measurement.Decode(data)
	if err != nil {
		return nil, err
	}
	if err := j.compare(work, req, r); err != nil {
		return nil, err
	}
	maxLoss, err1 := strconv.ParseFloat(j.Accept.MaxLoss, 64)
	minSpeedup, err2 := strconv.ParseFloat(j.Accept.MinSpeedup, 64)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	e, err := Judge(r, Criteria{j.Accept.Metric, maxLoss, minSpeedup, j.Accept.MaxMemory, j.Accept.Batches})
	if err != nil {
		return nil, err
	}
	if why := resolve.CompareDevice(j.Target, r.Device); why != "" {
		return nil, fmt.Errorf("the record cannot be evidence: %s", why)
	}
	e.Model, e.Target, e.Measurement = j.Model.Key(), j.Target.Name, evidence.Measurement{SHA256: sumOf(data), Created: r.Created, By: by}
	if err := j.complete(work, req, e); err != nil {
		return nil, err
	}
	return e, j.write(work, e)
}

// compare compares a record with its request, and the request with the model as it is now.
func (j *Job) compare(work string, req *measurement.Request, r *measurement.Record) error {
	if len(req.Models) != len(r.Models) {
		return fmt.Errorf("the record has %d models, and the request %d", len(r.Models), len(req.Models))
	}
	for i, m := range req.Models {
		if r.Models[i].Name != m.Name || r.Models[i].SHA256 != m.SHA256 {
			return fmt.Errorf("the record is of another model %s", m.Name)
		}
		if sum, err := digest(filepath.Join(work, m.File)); err != nil {
			return err
		} else if sum != m.SHA256 {
			return fmt.Errorf("the request holds another file for model %s", m.Name)
		}
	}
	if data, err := plan.Canonical(req); err != nil {
		return err
	} else if sumOf(data) != r.Request {
		return errors.New("the record is of another request: measure this one")
	}
	if !slices.Equal(req.Providers, j.providers) || req.Threads != j.threads || req.Precision != j.precision || req.Workspace != j.workspace || req.Head != j.Model.Accept.Head.Text {
		return errors.New("the request is of other providers, threads, precision, workspace or head than the stages have now")
	}
	for what, pair := range map[string][2]string{
		"model":        {j.file(j.Model.Source.Text), req.Models[0].SHA256},
		"labelled set": {j.file(j.Model.Accept.Examples.Text), r.Examples.SHA256},
	} {
		sum, err := digest(pair[0])
		if err != nil {
			return err
		}
		if sum != pair[1] {
			return fmt.Errorf("the %s has changed since the measurement", what)
		}
	}
	return nil
}

// complete adds what the request knows: files, notes, and the candidates that were not made.
func (j *Job) complete(work string, req *measurement.Request, e *evidence.Evidence) error {
	data, err := infile.Read(filepath.Join(work, notesFile), 4<<20)
	if err != nil {
		return err
	}
	var notes map[string]note
	if err := json.Unmarshal(data, &notes); err != nil {
		return fmt.Errorf("%s: %w", notesFile, err)
	}
	source := j.Model.Source.Text
	for i := range e.Candidates {
		c := &e.Candidates[i]
		c.File.File = path.Base(evidence.CandidatePath(source, j.Target.Name, c.Name))
		if i == 0 {
			c.File.File = path.Base(source)
		}
		c.Notes = notes[c.Name].Notes
	}
	e.Source = e.Candidates[0].File
	for i := range j.Model.Optimise.Items {
		name := resolve.CandidateName(&j.Model.Optimise.Items[i])
		if n, ok := notes[name]; ok && n.Error != "" {
			e.Candidates = append(e.Candidates, evidence.Candidate{File: evidence.File{Name: name}, Reason: "it was not made: " + n.Error, Batches: []evidence.Batch{}})
		}
	}
	if e.Chosen != nil {
		i := slices.IndexFunc(e.Candidates, func(c evidence.Candidate) bool { return c.Name == e.Chosen.Name })
		e.Chosen = &e.Candidates[i].File
	}
	return nil
}

// write writes the chosen candidate, then the evidence that names it.
func (j *Job) write(work string, e *evidence.Evidence) error {
	source := j.Model.Source.Text
	if e.Chosen != nil {
		data, err := infile.Read(filepath.Join(work, e.Chosen.Name+".onnx"), 2<<30)
		if err != nil {
			return err
		}
		if err := outfile.Write(j.file(path.Join(path.Dir(source), e.Chosen.File)), data); err != nil {
			return err
		}
	}
	data, err := plan.Canonical(e)
	if err != nil {
		return err
	}
	return outfile.Write(j.file(evidence.Path(source, j.Target.Name)), data)
}
