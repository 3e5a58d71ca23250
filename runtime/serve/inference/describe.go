package inference

import (
	"slices"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// ServerMetadata describes the server.
type ServerMetadata struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// extensions are those that the server has with every transport.
var extensions = []string{"classification", "model_configuration", "model_repository", "parameters", "schedule_policy", "statistics"}

// Metadata describes the server.
func (s *Server) Metadata() ServerMetadata {
	all := append(slices.Clone(extensions), s.o.Extensions...)
	if s.o.Shared != nil {
		all = append(all, "system_shared_memory")
	}
	slices.Sort(all)
	return ServerMetadata{Name: "yoctune", Version: s.o.Version, Extensions: slices.Compact(all)}
}

// TensorMetadata describes an input or an output. Size -1 of an axis is any number of rows.
type TensorMetadata struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
}

// ModelMetadata describes a model.
type ModelMetadata struct {
	Name     string           `json:"name"`
	Versions []string         `json:"versions"`
	Platform string           `json:"platform"`
	Inputs   []TensorMetadata `json:"inputs"`
	Outputs  []TensorMetadata `json:"outputs"`
}

// platform is what runs every model.
const platform = "yoctune_pipeline"

// ModelMetadata describes a model.
func (s *Server) ModelMetadata(name, ver string) (*ModelMetadata, error) {
	m, err := s.Find(name, ver)
	if err != nil {
		return nil, err
	}
	out := &ModelMetadata{Name: m.Name, Versions: []string{version}, Platform: platform}
	out.Inputs, out.Outputs = m.tensors()
	return out, nil
}

// tensors describes the inputs and outputs.
func (m *Model) tensors() (inputs, outputs []TensorMetadata) {
	rows := m.takesRows()
	add := func(to *[]TensorMetadata, name, datatype string, shape []int64) {
		shape = slices.Clone(shape)
		if rows && len(shape) > 0 {
			shape[0] = -1
		}
		*to = append(*to, TensorMetadata{name, datatype, shape})
	}
	for _, in := range m.Port.Inputs() {
		if in.Format != registry.TensorFormat {
			add(&inputs, in.Name, Bytes, []int64{1, 1})
			continue
		}
		add(&inputs, in.Name, datatypes[in.DType], in.Shape)
	}
	for _, t := range m.Port.Outputs() {
		add(&outputs, t.Name, datatypes[t.DType], t.Shape)
	}
	if m.Port.Outputs() == nil {
		add(&outputs, resultsOutput, Bytes, []int64{1, 1})
	}
	return inputs, outputs
}

// ConfigTensor is an input or an output in a model's configuration. Dims are without the axis of rows.
type ConfigTensor struct {
	Name     string  `json:"name"`
	DataType string  `json:"data_type"`
	Dims     []int64 `json:"dims"`
}

// Config is the part of Triton's model configuration that a pipeline has.
type Config struct {
	Name            string         `json:"name"`
	Platform        string         `json:"platform"`
	Backend         string         `json:"backend"`
	MaxBatchSize    int            `json:"max_batch_size"` // 0: no axis is one of rows
	Input           []ConfigTensor `json:"input"`
	Output          []ConfigTensor `json:"output"`
	DynamicBatching *Batching      `json:"dynamic_batching,omitempty"`
}

// Batching is how the pipeline batches rows.
type Batching struct {
	Preferred       []int `json:"preferred_batch_size"`
	PriorityLevels  int   `json:"priority_levels"`
	DefaultPriority int   `json:"default_priority_level"`
}

// Config describes a model as Triton's configuration does.
func (s *Server) Config(name, ver string) (*Config, error) {
	m, err := s.Find(name, ver)
	if err != nil {
		return nil, err
	}
	c := &Config{Name: m.Name, Platform: platform, Backend: "yoctune"}
	rows := m.takesRows()
	if rows {
		c.MaxBatchSize = m.Port.Rows()
	}
	inputs, outputs := m.tensors()
	convert := func(all []TensorMetadata) []ConfigTensor {
		var out []ConfigTensor
		for _, t := range all {
			if rows {
				t.Shape = t.Shape[1:]
			}
			kind := "TYPE_" + t.Datatype
			if t.Datatype == Bytes {
				kind = "TYPE_STRING"
			}
			out = append(out, ConfigTensor{t.Name, kind, append([]int64{}, t.Shape...)})
		}
		return out
	}
	c.Input, c.Output = convert(inputs), convert(outputs)
	if len(m.Buckets) > 0 {
		c.DynamicBatching = &Batching{Preferred: m.Buckets, PriorityLevels: 9, DefaultPriority: 5}
	}
	return c, nil
}

// IndexEntry is a model of the repository index.
type IndexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
}

// Index lists the models; those that are ready only with ready.
func (s *Server) Index(ready bool) []IndexEntry {
	all := []IndexEntry{}
	for _, m := range s.Models() {
		e := IndexEntry{Name: m.Name, Version: version, State: "READY"}
		if err := s.ModelReady(m.Name, ""); err != nil {
			e.State, e.Reason = "UNAVAILABLE", err.Error()
			if ready {
				continue
			}
		}
		all = append(all, e)
	}
	return all
}
