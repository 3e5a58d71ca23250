package resolve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/upstream"
	"github.com/yoctune/yoctune/schema/formats/evidence"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/plan"
)

// Files reads what a configuration refers to, below its folder.
type Files struct {
	Manifest func(path string) ([]byte, error)
	Board    func(path string) ([]byte, error) // a board file
	Read     ReadFile
	Digest   func(path string) (string, error) // SHA-256 of a file of any size
}

// Evidence is why the image has a model as it is or optimised.
type Evidence struct {
	*evidence.Evidence        // nil if Fault is not ""
	Path               string // of the file
	Digest             string // its SHA-256
	Fault              string // why it cannot be used
}

// Optimised reports whether candidates of a model are asked for.
func Optimised(m *config.Model) bool { return len(m.Optimise.Items) > 0 }

// CandidateName is the name of a candidate, part of the names of files.
func CandidateName(o *config.Optimisation) string {
	name := o.Kind.Text
	switch name {
	case "graph":
		name += "-" + o.Level.Or("basic")
	case "int8":
		name += "-" + o.Method.Or("minmax")
	case "prune":
		name += "-" + strings.Replace(o.Pattern.Text, ":", "-", 1)
		if o.Pattern.Text != "2:4" {
			name += "-" + strings.Replace(FormatAmount(o), ".", "-", 1)
		}
	}
	if o.PerChannel.On {
		name += "-channels"
	}
	return name
}

// FormatAmount is the fraction that a candidate removes.
func FormatAmount(o *config.Optimisation) string {
	return cmp.Or(decimalText(o.Amount), "0.1")
}

// Criteria returns the conditions of a model and the file of its examples.
func Criteria(c *config.Target, m *config.Model) (a evidence.Accept, err error) {
	number := func(d config.Decimal, otherwise float64) float64 {
		if !d.IsSet() {
			return otherwise
		}
		v, e := strconv.ParseFloat(decimalText(d), 64)
		err = errors.Join(err, e)
		return v
	}
	memory := int64(0)
	if m.Accept.MaxMemory.IsSet() {
		memory, err = Size(m.Accept.MaxMemory.Node())
	}
	return evidence.NewAccept(m.Accept.Metric.Or(measurement.Cosine), number(m.Accept.MaxLoss, 0.01), number(m.Accept.MinSpeedup, 1), memory, batchesOf(c, m.Key())), err
}

// batchesOf lists the batch sizes of the stages that run a model, ascending.
func batchesOf(c *config.Target, model string) []int {
	sizes := []int{1}
	for _, p := range c.Pipelines.Entries {
		for _, u := range ModelUses(p) {
			if u.Model.Text != model || u.Stage == nil {
				continue
			}
			for _, size := range u.Stage.Batch.Buckets.Items {
				sizes = append(sizes, size.Value)
			}
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// readEvidence reads the evidence of the models that have candidates, and compares it with the
// target.
func (p *Project) readEvidence(t *Target, c *config.Target) {
	for _, m := range c.Models.Sorted() {
		if !Optimised(m) || !m.Accept.IsSet() || IsURL(m.Source.Text) || path.IsAbs(m.Source.Text) || m.Source.Text == "" {
			continue // a rule reports it
		}
		if t.Evidence == nil {
			t.Evidence = map[string]Evidence{}
		}
		e := Evidence{Path: evidence.Path(m.Source.Text, t.Name)}
		data, err := p.files.Read(e.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrUnknownFile):
			e.Fault = fmt.Sprintf("%s does not exist: the candidates of model %s were not measured", e.Path, m.Key())
		case err != nil:
			e.Fault = fmt.Sprintf("%s: %v", e.Path, err)
		default:
			sum := sha256.Sum256(data)
			e.Digest = hex.EncodeToString(sum[:])
			found, err := evidence.Decode(data)
			if err != nil {
				e.Fault = fmt.Sprintf("%s: %v", e.Path, err)
			} else if e.Fault = p.compareEvidence(t, c, m, found); e.Fault == "" {
				e.Evidence = found
			} else {
				e.Fault = e.Path + ": " + e.Fault
			}
		}
		t.Evidence[m.Key()] = e
	}
}

// compareEvidence returns why evidence is not about a model as the target has it, "" if it is.
func (p *Project) compareEvidence(t *Target, c *config.Target, m *config.Model, e *evidence.Evidence) string {
	want, err := Criteria(c, m)
	if err != nil {
		return err.Error()
	}
	source, err := p.files.Digest(m.Source.Text)
	if err != nil {
		return fmt.Sprintf("%s: %v", m.Source.Text, err)
	}
	switch {
	case e.Model != m.Key():
		return fmt.Sprintf("it is of model %.60q", e.Model)
	case e.Target != t.Name:
		return fmt.Sprintf("it is of target %.60q", e.Target)
	case e.Source.SHA256 != source:
		return fmt.Sprintf("it is of another model: the sha256 of %s is %.12s…, and that of the one that was measured %.12s…", m.Source.Text, source, e.Source.SHA256)
	case !e.Accept.Equal(want):
		return "the conditions of accept, or the batch sizes of the stages, have changed since"
	}
	if why := CompareDevice(t, e.Device); why != "" {
		return why
	}
	if why := t.compareRuntime(e.Runtime); why != "" {
		return why
	}
	for i := range m.Optimise.Items {
		name := CandidateName(&m.Optimise.Items[i])
		if !slices.ContainsFunc(e.Candidates, func(c evidence.Candidate) bool { return c.Name == name }) {
			return fmt.Sprintf("candidate %s was not judged", name)
		}
	}
	if e.Chosen != nil {
		file := path.Join(path.Dir(m.Source.Text), e.Chosen.File)
		sum, err := p.files.Digest(file)
		switch {
		case err != nil:
			return fmt.Sprintf("the chosen model %s: %v", file, err)
		case sum != e.Chosen.SHA256:
			return fmt.Sprintf("the sha256 of %s is %.12s…, and that of the accepted one %.12s…", file, sum, e.Chosen.SHA256)
		}
	}
	return ""
}

// CompareDevice returns why a device is not of a target's board, "" if it is.
func CompareDevice(t *Target, d measurement.Device) string {
	own := strings.Join(d.Identities, " ")
	if own == "" {
		own = "not identified"
	}
	if t.IsOwn() {
		if board.IsOneOf(t.File.Identities(), d.Identities) {
			return ""
		}
		return fmt.Sprintf("it is of another device: the target is for %s, and the device is %s", strings.Join(t.File.Identities(), " or "), own)
	}
	id := t.Board.ID
	if board.IsKit(id, d.Identities) || board.IsCompatible(id, d.Identities) ||
		!board.IsIdentifiable(id) && board.Kits(id) == nil && len(d.Identities) > 0 && board.Recognise(d.Identities) == "" {
		return ""
	}
	return fmt.Sprintf("it is of another device: the target is for %s, and the device is %s", id, own)
}

// compareRuntime returns why the models ran on another ONNX Runtime than that of the image, "" if
// they did not, or where a package of the user's brings it.
func (t *Target) compareRuntime(r measurement.Runtime) string {
	if slices.ContainsFunc(t.Config.Packages.Entries, func(p *config.NamedString) bool {
		return p.Text == "install" && strings.Contains(p.Key(), "onnxruntime")
	}) {
		return ""
	}
	versions := []string{upstream.ONNXRuntime().Version}
	if v := t.Release.ONNXRuntime; v != "" {
		versions = append(versions, v)
	}
	if slices.Contains(versions, r.ONNXRuntime) {
		return ""
	}
	return fmt.Sprintf("it was measured with ONNX Runtime %.20s, and the image has %s", r.ONNXRuntime, strings.Join(versions, " or "))
}

// chosen is the candidate that takes the place of a model's source; nil for the original.
func (t *Target) chosen(model string) *evidence.File {
	if e, ok := t.Evidence[model]; ok && e.Evidence != nil {
		return e.Chosen
	}
	return nil
}

// CompareProviders returns the stage whose providers are not those of the evidence, and why; "" if
// there is none.
func (e Evidence) CompareProviders(st *plan.PipelineStage) string {
	switch {
	case e.Evidence == nil:
		return ""
	case slices.Equal(e.Runtime.Providers, st.ModelProviders()):
		if st.Model != nil && (e.Runtime.Precision != st.Model.Precision || e.Runtime.Workspace != st.Model.Workspace) {
			return fmt.Sprintf("%s: it was measured with a TensorRT engine of another precision or workspace than stage %s has", e.Path, st.ID)
		}
		return ""
	}
	return fmt.Sprintf("%s: it was measured with %s, and stage %s runs on %s", e.Path, strings.Join(e.Runtime.Providers, ", "), st.ID, strings.Join(st.ModelProviders(), ", "))
}
