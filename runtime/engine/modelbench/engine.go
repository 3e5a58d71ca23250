package modelbench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	"github.com/yoctune/yoctune/schema/formats/examples"
	"github.com/yoctune/yoctune/schema/formats/measurement"
)

// engine returns the TensorRT engine of a model, which it builds unless the store has it, or why the
// model runs without one. It is the engine that a pipeline with the same batch sizes loads.
func (x *run) engine(ctx context.Context, m measurement.RequestModel) (path, why string, err error) {
	if !slices.Contains(x.Request.Providers, ort.TensorRT) {
		return "", "", nil
	}
	if why := x.Host.Obstacle(); why != "" {
		return "", why, nil
	}
	file := resolve(x.Dir, m.File)
	about, err := onnx.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	sum, err := Digest(file)
	if err != nil {
		return "", "", err
	}
	shapes, err := x.shapes(about)
	if err != nil {
		return "", "", err
	}
	j := tensorrt.Job{Model: file, Builder: x.Host.Builder, Key: tensorrt.Key{
		Model: sum, TensorRT: x.Host.TensorRT, GPU: x.Host.GPU, Precision: tensorrt.Precision(x.Precision, about), Workspace: x.Workspace, Shapes: shapes,
	}}
	if j.Builder == "" {
		path, err := x.Engines.Find(j.Key)
		if err != nil {
			return "", fmt.Sprintf("trtexec is not installed, and %v", err), nil
		}
		return path, "", nil
	}
	limit, cancel := context.WithTimeout(ctx, time.Duration(x.Limit))
	defer cancel()
	if _, err := x.Engines.Build(limit, j, func(p tensorrt.Progress) {
		x.report(m.Name, fmt.Sprintf("engine, %.0f s %s", p.Elapsed.Seconds(), p.Line))
	}); err != nil {
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		return "", err.Error(), nil
	}
	path, err = x.Engines.Find(j.Key)
	return path, "", err
}

// shapes are those of the inputs at the smallest and the largest batch; nil for a model without free
// axes.
func (x *run) shapes(about *onnx.Model) (map[string]tensorrt.Range, error) {
	free := func(in onnx.Value) bool { return !in.Ranked || slices.ContainsFunc(in.Shape, onnx.Dim.Free) }
	if !slices.ContainsFunc(about.Inputs, free) {
		return nil, nil
	}
	h := host{sizes: x.Sizes}
	if x.Examples != "" {
		f, err := os.Open(resolve(x.Dir, x.Examples))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if h.set, err = examples.Open(f, st.Size()); err != nil {
			return nil, err
		}
	}
	out := map[string]tensorrt.Range{}
	for _, in := range about.Inputs {
		if !free(in) {
			continue
		}
		info := ort.Info{Name: in.Name, DType: ort.DType(in.Type)}
		for _, d := range in.Shape {
			size := d.Size
			if d.Free() {
				size = -1
			}
			info.Shape, info.Axes = append(info.Shape, size), append(info.Axes, d.Axis)
		}
		h.batch = x.Batches[0]
		least, err := h.inputShape(info)
		if err != nil {
			return nil, err
		}
		h.batch = x.Batches[len(x.Batches)-1]
		most, err := h.inputShape(info)
		if err != nil {
			return nil, err
		}
		out[in.Name] = tensorrt.Range{Min: least, Opt: most, Max: slices.Clone(most)}
	}
	return out, nil
}
