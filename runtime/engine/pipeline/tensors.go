package pipeline

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// account adds n parts of size bytes to the pool, and returns an error above the limit.
func (b *builder) account(n int, size int64) error {
	if size > registry.MaxPool/int64(n) || b.p.info.Bytes > registry.MaxPool-int64(n)*size {
		return fmt.Errorf("%w: %d frames of %d bytes exceed the memory limit of %d MiB: lower the queue capacity or the size",
			ErrPlan, n, size, registry.MaxPool>>20)
	}
	b.p.info.Bytes += int64(n) * size
	return nil
}

// tensors allocates the output of stage k for every frame.
func (b *builder) tensors(k int, shape []int64) error {
	b.shape = shape
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	if err := b.account(len(b.p.frames), n*4); err != nil {
		return err
	}
	feeds := k+1 < len(b.o.Plan.Stages) && registry.StageOf(b.o.Plan.Stages[k+1].Kind).RunsModels
	if !feeds && b.isShared(k) {
		for i := range b.p.frames {
			var err error
			if b.p.frames[i].Tensors[b.now][k], err = b.sharedTensor(shape, false); err != nil {
				return err
			}
		}
		return nil
	}
	if !feeds {
		for i := range b.p.frames {
			mem, err := frame.MapMemory(int(4 * n))
			if err != nil {
				return err
			}
			b.p.closers = append(b.p.closers, func() error { return unix.Munmap(mem) })
			b.p.frames[i].Tensors[b.now][k] = frame.Tensor{Shape: shape, Data: floats(mem)}
		}
		return nil
	}
	return b.ortTensors(k, shape)
}

// ortTensors allocates tensors in memory that a model can read and write.
func (b *builder) ortTensors(k int, shape []int64) error {
	for i := range b.p.frames {
		var t frame.Tensor
		var err error
		if b.isShared(k) {
			t, err = b.sharedTensor(shape, true)
		} else {
			t, err = b.newTensor(shape)
		}
		if err != nil {
			return err
		}
		b.p.frames[i].Tensors[b.now][k] = t
	}
	return nil
}

// newTensor allocates a tensor that a model can use for the life of the pipeline.
func (b *builder) newTensor(shape []int64) (frame.Tensor, error) {
	t, err := b.rt.NewTensor(shape)
	if err != nil {
		return frame.Tensor{}, err
	}
	b.p.closers = append(b.p.closers, func() error { t.Close(); return nil })
	return frame.Tensor{Shape: t.Shape(), Data: t.Data(), ORT: t}, nil
}

// sharedTensor allocates a tensor that the worker sees; model also makes it usable by a model in
// this process.
func (b *builder) sharedTensor(shape []int64, model bool) (frame.Tensor, error) {
	n := int(volume(shape))
	mem, err := b.gpu.alloc(4 * n)
	if err != nil {
		return frame.Tensor{}, err
	}
	if !model {
		return frame.Tensor{Shape: shape, Data: floats(mem)}, nil
	}
	t, err := b.rt.NewTensorOver(shape, mem)
	if err != nil {
		return frame.Tensor{}, err
	}
	b.p.closers = append(b.p.closers, func() error { t.Close(); return nil })
	return frame.Tensor{Shape: t.Shape(), Data: t.Data(), ORT: t}, nil
}

// floats returns memory as float32.
func floats(mem []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
}

// warmTensor is output memory for the warm-up of workers. Frames do not use it, because workers
// start while frames are in work.
func (b *builder) warmTensor(shape []int64) (frame.Tensor, error) {
	if err := b.account(1, 4*volume(shape)); err != nil {
		return frame.Tensor{}, err
	}
	return b.sharedTensor(shape, false)
}

// isShared reports whether the worker reads or writes the output of stage k.
func (b *builder) isShared(k int) bool {
	stages := b.o.Plan.Stages
	return b.gpu != nil && (onGPU(&stages[k]) && registry.StageOf(stages[k].Kind).Direct || k+1 < len(stages) && onGPU(&stages[k+1]))
}

// volume returns the number of elements of a shape.
func volume(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}
