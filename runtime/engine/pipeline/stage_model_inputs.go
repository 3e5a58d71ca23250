package pipeline

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// inlet is one input of a stage's models.
type inlet struct {
	name  string // of the models' input; "": the one that no other inlet names
	stage int    // whose input the tensor is: the one after the stage that makes it
	part  int    // index in the first axis; -1: all of it
	more  int    // index of a further tensor of the source, from 1; 0: its first, or that of a stage

	constant bool
	previous *previous
	fixed    frame.Tensor // of a constant or a previous tensor
}

// previous is the state of an inlet that takes the tensor of the last run.
type previous struct {
	level *int32 // of the stage's last run; -1: there is none
}

// of returns the tensor of an inlet in a frame. Its ORT is set unless it is a part.
func (i *inlet) of(f *frame.Frame, level int) frame.Tensor {
	if i.constant || i.previous != nil {
		return i.fixed
	}
	return i.current(f, level)
}

// current is the tensor in a frame, for previous inlets that of the next run.
func (i *inlet) current(f *frame.Frame, level int) frame.Tensor {
	t := *f.Input(level, i.stage)
	if i.more > 0 {
		t = t.More[i.more-1]
	}
	if i.part < 0 {
		return t
	}
	b := t.Bytes()
	each := len(b) / int(t.Shape[0])
	out := frame.NewTensor(t.Type().PartOf(), b[i.part*each:][:each:each])
	out.On = t.On
	return out
}

// openInlets finds the inputs of the stage's models, and allocates those that belong to no frame.
func (b *modelBuilder) openInlets() ([]inlet, error) {
	var all []inlet
	last := int32(-1)
	stages := b.levels[b.now].stages
	for _, in := range registry.Inlets(b.s) {
		i := inlet{name: in.Name, stage: b.k, part: -1}
		if in.Part != nil {
			i.part = *in.Part
		}
		switch {
		case in.From == registry.SourceID:
			i.stage = 0
		case in.From != "":
			i.stage = 1 + slices.IndexFunc(stages, func(s plan.PipelineStage) bool { return s.ID == in.From })
		}
		if in.Tensor != "" {
			i.more = slices.IndexFunc(registry.SourceTensors(&b.o.Plan.Source), func(t registry.Tensor) bool { return t.Name == in.Tensor })
		}
		if err := b.fix(&i, in, &last); err != nil {
			return nil, fmt.Errorf("input %s: %w", in.Name, err)
		}
		all = append(all, i)
	}
	b.resets = append(b.resets, func() { last = -1 })
	return all, nil
}

// fix allocates the memory of a constant or of a previous tensor.
func (b *modelBuilder) fix(i *inlet, in registry.Inlet, last *int32) (err error) {
	var t registry.Tensor
	switch {
	case in.Constant != nil:
		t = registry.ConstantTensor(in.Constant)
		i.constant = true
	case in.Previous:
		now := i.current(&b.p.frames[0], b.now)
		t = now.Type()
		i.previous = &previous{level: last}
	default:
		return nil
	}
	if err := b.account(1, t.Bytes()); err != nil {
		return err
	}
	if b.gpu != nil && onGPU(b.s) {
		i.fixed, err = b.sharedTensor(t, true)
	} else {
		i.fixed, err = b.newTensor(t)
	}
	if err != nil || in.Constant == nil {
		return err
	}
	var values []byte
	for _, text := range in.Constant.Values {
		if values, err = registry.AppendElement(values, t.DType, text); err != nil {
			return fmt.Errorf("%w: %w", ErrPlan, err)
		}
	}
	copy(i.fixed.Bytes(), values)
	return nil
}

// move is a part of a record that a model does not find at an aligned address, so that each run copies it.
type move struct{ to, from []byte }

// inputs returns the tensors of a frame for the models in this process, and what a run copies into them.
func (b *modelBuilder) inputs(f *frame.Frame) (all []frame.Tensor, moves []move, err error) {
	for n := range b.inlets {
		t := b.inlets[n].of(f, b.now)
		switch memory := t.Bytes(); {
		case t.ORT != nil:
		case uintptr(unsafe.Pointer(unsafe.SliceData(memory)))%registry.TensorAlign == 0:
			if t, err = b.tensorOver(t.Type(), memory); err != nil {
				return nil, nil, err
			}
		default:
			if err := b.account(1, int64(len(memory))); err != nil {
				return nil, nil, err
			}
			if t, err = b.newTensor(t.Type()); err != nil {
				return nil, nil, err
			}
			moves = append(moves, move{t.Bytes(), memory})
		}
		all = append(all, t)
	}
	return all, moves, nil
}

// keep is a copy of a tensor for the next run.
type keep struct {
	*previous
	to, from []byte
}

// kept lists what a run on a frame keeps for the next one.
func (b *modelBuilder) kept(f *frame.Frame) []keep {
	var all []keep
	for n := range b.inlets {
		if i := &b.inlets[n]; i.previous != nil {
			now := i.current(f, b.now)
			all = append(all, keep{i.previous, i.fixed.Bytes(), now.Bytes()})
		}
	}
	return all
}

// uploadConstants makes every worker hold the constants in its device's memory.
func (b *modelBuilder) uploadConstants() error {
	for n := range b.inlets {
		i := &b.inlets[n]
		if !i.constant {
			continue
		}
		spare, err := b.warmTensor(i.fixed.Type())
		if err != nil {
			return err
		}
		// Reading the shared memory puts its content into the device's memory at the same place.
		list := b.gpu.clients[0].Draft().List()
		list.Copy(b.gpu.resident(spare.Bytes()), b.gpu.region(i.fixed.Bytes()))
		for _, c := range b.gpu.clients {
			c.Warm(list)
		}
		i.fixed.On = worker.Everywhere
	}
	return nil
}

// outputNames returns the names of the outputs that the next stage reads, in its order. "" is the
// model's first output, then its second.
func (b *modelBuilder) outputNames(path string) (first string, more []string, err error) {
	m, stages := b.s.Model, b.levels[b.now].stages
	if b.k+1 < len(stages) && stages[b.k+1].Post != nil {
		post := stages[b.k+1].Post
		if registry.ReadsNamedOutputs(post) {
			about, err := onnx.ReadFile(path)
			if err != nil {
				return "", nil, fmt.Errorf("%w: %w", ErrModelFile, err)
			}
			var names []string
			for _, o := range about.Outputs {
				names = append(names, o.Name)
			}
			names, err = registry.NamedOutputs(post, names)
			if err != nil {
				return "", nil, fmt.Errorf("%w: %w", ErrPlan, err)
			}
			return names[0], names[1:], nil
		}
		if d, _ := registry.DecodeOf(post.Kind); d.Second {
			return m.Output, []string{post.Prototypes}, nil
		}
	}
	if b.k == len(stages)-1 && m.Output == "" && len(m.Outputs) == 0 && b.o.Requests != nil {
		// The caller gets all that the model gives.
		about, err := onnx.ReadFile(path)
		if err != nil {
			return "", nil, fmt.Errorf("%w: %w", ErrModelFile, err)
		}
		for n, o := range about.Outputs {
			if n == 0 {
				first = o.Name
			} else if n < registry.MaxTensors {
				more = append(more, o.Name)
			}
		}
		return first, more, nil
	}
	return m.Output, m.Outputs, nil
}
