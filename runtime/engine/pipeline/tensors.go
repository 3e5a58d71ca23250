package pipeline

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// account adds n parts of size bytes to the pool, and returns an error above the limit.
func (b *builder) account(n int, size int64) error {
	if size <= 0 || size > registry.MaxPool/int64(n) || b.p.info.Bytes > registry.MaxPool-int64(n)*size {
		return fmt.Errorf("%w: %d frames of %d bytes exceed the memory limit of %d MiB: lower the queue capacity or the size",
			ErrPlan, n, size, registry.MaxPool>>20)
	}
	b.p.info.Bytes += int64(n) * size
	return nil
}

// tensors allocates the output of stage k for every frame.
func (b *builder) tensors(k int, t registry.Tensor) error {
	b.made = []registry.Tensor{t}
	if err := b.account(len(b.p.frames), t.Bytes()); err != nil {
		return err
	}
	return b.allocateTensors(k, t, b.feedsModel(k))
}

// openRecords makes tensors of the pixels of a source that gives tensors.
func (b *builder) openRecords() error {
	format := b.p.source.Format()
	if format.Record.Shape == nil {
		return nil
	}
	for i := range b.p.frames {
		f := &b.p.frames[i]
		all, off := make([]frame.Tensor, 0, 1+len(format.More)), 0
		for _, t := range append([]registry.Tensor{format.Record}, format.More...) {
			mem := f.Pixels[off:][:t.Bytes():t.Bytes()]
			off += int(registry.TensorStride(t))
			made := frame.NewTensor(t, mem)
			if b.rt != nil {
				var err error
				if made, err = b.tensorOver(t, mem); err != nil {
					return err
				}
			}
			all = append(all, made)
		}
		f.Record = all[0]
		if len(all) > 1 {
			f.Record.More = all[1:]
		}
	}
	return nil
}

// feedsModel reports whether a model in this process reads the output of stage k.
func (b *builder) feedsModel(k int) bool {
	stages := b.levels[b.now].stages
	for n := k + 1; n < len(stages); n++ {
		if registry.StageOf(stages[n].Kind).RunsModels && (n == k+1 || registry.ReadsTensorOf(&stages[n], stages[k].ID)) {
			return true
		}
	}
	return false
}

// allocateTensors allocates the output of stage k for every frame; model makes it usable by a model
// in this process.
func (b *builder) allocateTensors(k int, t registry.Tensor, model bool) error {
	for i := range b.p.frames {
		var err error
		if b.p.frames[i].Tensors[b.now][k], err = b.allocateTensor(k, t, model); err != nil {
			return err
		}
	}
	return nil
}

// allocateTensor allocates one tensor of those that stage k gives.
func (b *builder) allocateTensor(k int, t registry.Tensor, model bool) (frame.Tensor, error) {
	switch {
	case b.isShared(k):
		return b.sharedTensor(t, model)
	case model:
		return b.newTensor(t)
	}
	mem, err := frame.MapMemory(int(t.Bytes()))
	if err != nil {
		return frame.Tensor{}, err
	}
	b.p.closers = append(b.p.closers, func() error { return unix.Munmap(mem) })
	return frame.NewTensor(t, mem), nil
}

// newTensor allocates a tensor that a model can use for the life of the pipeline.
func (b *builder) newTensor(t registry.Tensor) (frame.Tensor, error) {
	made, err := b.rt.NewTensor(ort.DType(t.DType.ONNX()), t.Shape)
	return b.modelTensor(t, made, err)
}

// sharedTensor allocates a tensor that the worker sees; model also makes it usable by a model in
// this process.
func (b *builder) sharedTensor(t registry.Tensor, model bool) (frame.Tensor, error) {
	mem, err := b.gpu.alloc(int(t.Bytes()))
	if err != nil {
		return frame.Tensor{}, err
	}
	if !model {
		return frame.NewTensor(t, mem), nil
	}
	return b.tensorOver(t, mem)
}

// tensorOver makes memory usable by a model for the life of the pipeline.
func (b *builder) tensorOver(t registry.Tensor, mem []byte) (frame.Tensor, error) {
	made, err := b.rt.NewTensorOver(ort.DType(t.DType.ONNX()), t.Shape, mem)
	return b.modelTensor(t, made, err)
}

// modelTensor returns a tensor over one of ONNX Runtime.
func (b *builder) modelTensor(t registry.Tensor, made *ort.Tensor, err error) (frame.Tensor, error) {
	if err != nil {
		return frame.Tensor{}, err
	}
	b.p.closers = append(b.p.closers, func() error { made.Close(); return nil })
	out := frame.NewTensor(t, made.Bytes())
	out.ORT = made
	return out, nil
}

// warmTensor is output memory for the warm-up of workers. Frames do not use it, because workers
// start while frames are in work.
func (b *builder) warmTensor(t registry.Tensor) (frame.Tensor, error) {
	if err := b.account(1, t.Bytes()); err != nil {
		return frame.Tensor{}, err
	}
	return b.sharedTensor(t, false)
}

// isShared reports whether the worker reads or writes the output of stage k.
func (b *builder) isShared(k int) bool {
	stages := b.o.Plan.Stages
	reads := func(n int) bool {
		return onGPU(&stages[n]) && (n == k+1 || registry.ReadsTensorOf(&stages[n], stages[k].ID))
	}
	shared := onGPU(&stages[k]) && registry.StageOf(stages[k].Kind).Direct
	for n := k + 1; n < len(stages); n++ {
		shared = shared || reads(n)
	}
	return b.gpu != nil && shared
}
