"""Makes one candidate of a model.

Standard input is a JSON object: model, output, kind and the options of the kind. Standard output
is JSON lines: {"progress": text} and at last {"done": {...}} or {"error": text}. Libraries do the
work; everything that they print goes to standard error.
"""

import json
import os
import struct
import sys

protocol = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


class Refused(Exception):
    """The candidate cannot be made; the text says why."""


def say(**line):
    protocol.write(json.dumps(line) + "\n")


def progress(text):
    say(progress=text)


TYPES = {"F32": "float32", "F16": "float16", "I8": "int8", "U8": "uint8", "I32": "int32", "I64": "int64", "BOOL": "bool"}


class Set:
    """A labelled set, mapped into memory: see docs/bench.md."""

    def __init__(self, path, model):
        import numpy

        size = os.path.getsize(path)
        with open(path, "rb") as f:
            raw = f.read(8)
            if len(raw) < 8:
                raise Refused("the calibration set is not a safetensors file")
            (n,) = struct.unpack("<Q", raw)
            if n > min(size - 8, 64 << 20):
                raise Refused("the header of the calibration set is longer than the file")
            try:
                header = json.loads(f.read(n))
            except ValueError as e:
                raise Refused(f"the header of the calibration set is not JSON: {e}")
        self.inputs, self.fixed, self.count = {}, {}, 0
        known = {i.name for i in inputs_of(model)}
        for name, t in header.items():
            if name in ("__metadata__", "label", "boxes"):
                continue
            plain = name.removeprefix("fixed.")
            if plain not in known:
                continue
            if t["dtype"] not in TYPES:
                raise Refused(f"tensor {name} of the calibration set has type {t['dtype']}")
            begin, end = t["data_offsets"]
            if begin < 0 or end > size - 8 - n or begin > end:
                raise Refused("the calibration set is truncated")
            values = numpy.memmap(path, dtype=TYPES[t["dtype"]], mode="r", offset=8 + n + begin, shape=tuple(t["shape"]) or (1,))
            if not t["shape"]:
                values = values.reshape(())
            if plain != name:
                self.fixed[plain] = values
            else:
                self.inputs[name] = values
        for i in inputs_of(model):
            if i.name not in self.inputs and i.name not in self.fixed:
                raise Refused(f"the calibration set has no tensor for the input {i.name}")
            want = [d.dim_value if d.HasField("dim_value") else 0 for d in i.type.tensor_type.shape.dim]
            got = list(self.inputs[i.name].shape if i.name in self.inputs else self.fixed[i.name].shape)
            batch = i.name in self.inputs
            if len(want) != len(got) or any(w > 0 and w != g for w, g in list(zip(want, got))[1 if batch else 0 :]):
                raise Refused(f"the calibration set gives {got} for the input {i.name}, and the model takes {want}; 0 is free")
            if batch and want[0] > 1:
                raise Refused(f"the input {i.name} takes batches of {want[0]} only; calibration needs a free first axis, or 1")
        counts = {len(v) for v in self.inputs.values()}
        if len(counts) != 1 or not counts or 0 in counts:
            raise Refused("the calibration set has no examples, or tensors with different numbers of them")
        self.count = counts.pop()

    def feed(self, i):
        out = {name: v[i : i + 1] for name, v in self.inputs.items()}
        out.update(self.fixed)
        return out


def reader(examples, begin, end):
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.at = begin

        def get_next(self):
            if self.at >= end:
                return None
            self.at += 1
            return examples.feed(self.at - 1)

    return Reader()


def inputs_of(model):
    weights = {w.name for w in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in weights]


def load(path):
    import onnx

    model = onnx.load(path, load_external_data=False)
    for w in model.graph.initializer:
        if w.data_location == onnx.TensorProto.EXTERNAL:
            raise Refused("parts of the model are in other files")
    return lifted(model)


def lifted(model):
    """Weights of Constant nodes, as some exporters write them, become initialisers: only these are
    quantised and pruned."""
    nodes = []
    for n in model.graph.node:
        value = next((a.t for a in n.attribute if a.name == "value"), None)
        if n.op_type == "Constant" and value is not None and n.output[0] not in {o.name for o in model.graph.output}:
            value.name = n.output[0]
            model.graph.initializer.append(value)
        else:
            nodes.append(n)
    if len(nodes) < len(model.graph.node):
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return model


def session(path, level=None, save=None):
    import onnxruntime as ort

    o = ort.SessionOptions()
    o.log_severity_level = 3
    if level is not None:
        o.graph_optimization_level = level
    if save:
        o.optimized_model_filepath = save
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def ops(model):
    count = {}
    for n in model.graph.node:
        count[n.op_type] = count.get(n.op_type, 0) + 1
    return count


def named(model, names, what):
    known = {n.name for n in model.graph.node if n.name}
    missing = [n for n in names if n not in known]
    if missing:
        raise Refused(f"{what}: no node of the model is called {', '.join(missing[:3])}")


def give_names(model):
    """Nodes without a name get one: exclusions are by name."""
    known = {n.name for n in model.graph.node}
    for i, n in enumerate(model.graph.node):
        if not n.name:
            name = f"{n.op_type}_{i}"
            while name in known:
                name += "_"
            n.name = name
            known.add(name)


def graph(r):
    import onnxruntime as ort

    levels = {
        "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
        "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    }
    before = ops(load(r["model"]))
    session(r["model"], levels[r.get("level") or "basic"], r["output"])
    return {"nodes": [sum(before.values()), sum(ops(load(r["output"])).values())]}


def slim(r):
    import onnx
    import onnxslim

    before = load(r["model"])
    after = onnxslim.slim(load(r["model"]))
    onnx.save(after, r["output"])
    return {"nodes": [len(before.graph.node), len(after.graph.node)]}


def half(r):
    """float16 by ONNX Runtime's converter; what overflows stays float32."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = load(r["model"])
    give_names(model)
    keep = list(r.get("keep") or [])
    named(model, keep, "keep")
    over = overflowing(model, r)
    out = without_twins(convert_float_to_float16(model, keep_io_types=True, node_block_list=keep + over))
    onnx.save(out, r["output"])
    return {"kept": keep, "overflow": over, "casts": ops(out).get("Cast", 0)}


def without_twins(model):
    """The converter casts a tensor once for each node that stays in float32, under one name."""
    made, names, nodes = set(), set(), []
    for n in model.graph.node:
        if n.op_type == "Cast" and n.output[0] in made:
            continue
        made.update(n.output)
        while n.name and n.name in names:
            n.name += "_"
        names.add(n.name)
        nodes.append(n)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def overflowing(model, r):
    """Nodes whose outputs leave the range of float16 on the examples. The CPU computes float16 in
    float32, so that running the candidate there would not show it."""
    import tempfile

    import onnx
    from onnxruntime.quantization import CalibrationMethod
    from onnxruntime.quantization.calibrate import create_calibrator

    if not r.get("examples"):
        return []
    examples = Set(r["examples"], model)
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "model.onnx")
        onnx.save(model, path)
        c = create_calibrator(path, None, os.path.join(tmp, "augmented.onnx"), calibrate_method=CalibrationMethod.MinMax)
        for i in range(0, min(examples.count, 32)):
            c.collect_data(reader(examples, i, i + 1))
        ranges = c.compute_data()
    wide = {name for name, t in ranges.items() if widest(t) > 65504}
    return [n.name for n in model.graph.node if any(o in wide for o in n.output) or any(i in wide for i in n.input)]


def brain(r):
    """bfloat16: weights and activations of matrix products and convolutions."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    import ml_dtypes

    model = load(r["model"])
    give_names(model)
    keep = list(r.get("keep") or [])
    named(model, keep, "keep")
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if version < 13:
        raise Refused(f"the model has opset {version}; bfloat16 needs 13, and 22 for convolutions")
    if any(n.op_type == "Conv" for n in model.graph.node) and version < 22:
        raise Refused(f"convolutions take bfloat16 from opset 22 on, and the model has {version}")
    weights = {w.name: w for w in model.graph.initializer}
    nodes, changed = [], 0
    for n in model.graph.node:
        if n.op_type not in ("MatMul", "Gemm", "Conv") or n.name in keep:
            nodes.append(n)
            continue
        changed += 1
        for i, name in enumerate(n.input):
            if not name:
                continue
            if name in weights and weights[name].data_type == TensorProto.FLOAT:
                short = name + "_bf16"
                if short not in weights:
                    values = numpy_helper.to_array(weights[name]).astype(ml_dtypes.bfloat16)
                    weights[short] = helper.make_tensor(short, TensorProto.BFLOAT16, values.shape, values.tobytes(), raw=True)
                    model.graph.initializer.append(weights[short])
                n.input[i] = short
            else:
                short = f"{n.name}_in{i}_bf16"
                nodes.append(helper.make_node("Cast", [name], [short], name=short, to=TensorProto.BFLOAT16))
                n.input[i] = short
        out = n.output[0]
        n.output[0] = out + "_bf16"
        nodes += [n, helper.make_node("Cast", [n.output[0]], [out], name=out + "_f32", to=TensorProto.FLOAT)]
    if not changed:
        raise Refused("the model has no matrix product or convolution that could be bfloat16")
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    drop_unused(model)
    onnx.save(model, r["output"])
    return {"nodes_bf16": changed}


def drop_unused(model):
    used = {i for n in model.graph.node for i in n.input} | {o.name for o in model.graph.output}
    keep = [w for w in model.graph.initializer if w.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(keep)


QUANTISED = ["Conv", "MatMul", "Gemm", "Add", "Mul", "Concat", "AveragePool", "GlobalAveragePool", "MaxPool", "Relu", "Clip", "Sigmoid", "LeakyRelu", "Resize", "Softmax"]

# One scale for tensors whose ranges differ by more than this rounds the smaller ones to 0: of tensors
# that are joined, scores of 1 must keep some steps; of a sum, the smaller term is below one step.
RANGE_RATIO = {"Concat": 16, "Add": 256, "Sub": 256, "Where": 256}


def widest(t):
    """The largest magnitude of a range."""
    import numpy

    return max(float(numpy.abs(numpy.asarray(v, dtype=numpy.float64)).max()) for v in t.range_value)


def mixed_heads(model, ranges):
    """Nodes that join tensors with very different ranges, such as coordinates and scores at the end of a
    detector or a mask of attention, and what follows them. A constant counts too: the epsilon of a
    normalisation must not vanish."""
    import numpy
    from onnx import numpy_helper

    width = {name: widest(t) for name, t in ranges.items()}
    for w in model.graph.initializer:
        if w.name not in width and w.data_type == w.FLOAT and len(w.dims) < 2:
            v = numpy_helper.to_array(w)
            width[w.name] = float(numpy.abs(v).max()) if v.size else 0.0
    users = {}
    for n in model.graph.node:
        for i in n.input:
            users.setdefault(i, []).append(n)
    makers = {o: n for n in model.graph.node for o in n.output}
    found, queue = {}, []
    for n in model.graph.node:
        widths = [width[i] for i in n.input if width.get(i)]
        if n.op_type in RANGE_RATIO and len(widths) > 1 and max(widths) > RANGE_RATIO[n.op_type] * min(widths):
            queue.append(n)
            queue += [makers[i] for i in n.input if i in makers and makers[i].op_type in ("Sigmoid", "Mul", "Add", "Sub", "Softmax", "Concat")]
    while queue:
        n = queue.pop()
        if n.name in found:
            continue
        found[n.name] = True
        for o in n.output:
            queue += [u for u in users.get(o, []) if u.op_type not in ("Conv", "MatMul", "Gemm")]
    return list(found)


def calibrate(path, model, examples, method, tmp):
    from onnxruntime.quantization import CalibrationMethod
    from onnxruntime.quantization.calibrate import create_calibrator

    methods = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy, "percentile": CalibrationMethod.Percentile}
    c = create_calibrator(path, QUANTISED, os.path.join(tmp, "augmented.onnx"), calibrate_method=methods[method])
    # One example after the other: the memory does not depend on their number.
    for i in range(examples.count):
        if i % 16 == 0:
            progress(f"calibration, example {i + 1} of {examples.count}")
        c.collect_data(reader(examples, i, i + 1))
    return c.compute_data()


def similarity(path, model, reference):
    """Mean cosine of the outputs with the reference, on the examples of the reference."""
    import numpy

    s = session(path)
    total = 0.0
    for feed, want in reference:
        got = s.run(None, feed)
        parts = []
        for a, b in zip(got, want):
            a, b = numpy.asarray(a, dtype=numpy.float64), numpy.asarray(b, dtype=numpy.float64)
            if a.ndim > 2:
                a, b = a.reshape(a.shape[0] * a.shape[1], -1), b.reshape(b.shape[0] * b.shape[1], -1)
            else:
                a, b = a.reshape(1, -1), b.reshape(1, -1)
            loud = numpy.abs(b).max(axis=1) >= min(1e-2, 1e-3 * numpy.abs(b).max())
            norm = numpy.linalg.norm(a, axis=1) * numpy.linalg.norm(b, axis=1)
            dot = (a * b).sum(axis=1)
            cos = numpy.divide(dot, norm, out=numpy.zeros_like(dot), where=norm > 0)[loud]
            if cos.size:
                parts.append(float(cos.mean()))
        total += sum(parts) / max(len(parts), 1)
    return total / len(reference)


def int8(r):
    import tempfile

    import onnx
    from onnxruntime.quantization import QDQQuantizer, QuantType
    from onnxruntime.quantization.shape_inference import quant_pre_process

    original = load(r["model"])
    examples = Set(r["calibration"], original)
    with tempfile.TemporaryDirectory() as tmp:
        prepared = os.path.join(tmp, "prepared.onnx")
        try:
            quant_pre_process(r["model"], prepared, skip_symbolic_shape=True)
        except Exception as e:  # shapes that cannot be inferred
            progress(f"without preprocessing: {e}")
            onnx.save(original, prepared)
        model = load(prepared)
        give_names(model)
        onnx.save(model, prepared)
        exclude = list(r.get("exclude") or [])
        named(model, exclude, "exclude")
        ranges = calibrate(prepared, model, examples, r.get("method") or "minmax", tmp)
        heads = [n for n in mixed_heads(model, ranges) if n not in exclude]
        s = session(prepared)
        step = max(1, examples.count // 8)
        feeds = [examples.feed(i) for i in range(0, examples.count, step)][:8]
        reference = [(f, s.run(None, f)) for f in feeds]

        # TensorRT takes zero points of 0 only, weights as floats with a pair behind them, and biases as floats.
        tensorrt = bool(r.get("tensorrt"))
        scheme = {"ActivationSymmetric": tensorrt, "WeightSymmetric": True, "QuantizeBias": not tensorrt, "AddQDQPairToWeight": tensorrt}

        def quantise(without, path):
            q = QDQQuantizer(load(prepared), r.get("perChannel", False), False, QuantType.QInt8, QuantType.QInt8, ranges, [], without,
                             [t for t in QUANTISED if t in ops(model)], scheme)
            q.quantize_model()
            q.model.save_model_to_file(path, False)
            return similarity(path, model, reference)

        best = quantise(exclude + heads, r["output"])
        progress(f"similarity {best:.4f} with {len(exclude + heads)} nodes in float")
        sensitive = []
        if best < r.get("similarity", 0.99):
            order = by_sensitivity(prepared, r["output"], feeds[:2], tmp, model, exclude + heads)
            count = 1
            while best < r.get("similarity", 0.99) and order and count <= max(1, len(order) // 2):
                trial = os.path.join(tmp, "trial.onnx")
                now = quantise(exclude + heads + order[:count], trial)
                progress(f"similarity {now:.4f} with the {count} most sensitive nodes in float too")
                if now > best + 1e-4:
                    best, sensitive = now, order[:count]
                    os.replace(trial, r["output"])
                count *= 2
        after = load(r["output"])
        return {"excluded": exclude, "heads": heads, "scheme": "TensorRT's" if tensorrt else None, "sensitive": sensitive, "similarity": round(best, 6),
                "quantised": ops(after).get("QuantizeLinear", 0), "examples": examples.count, "widest": covered(r, original, ranges)}


def covered(r, model, ranges):
    """How much larger the inputs of the labelled set are than what calibration saw: above 1, they are
    clipped."""
    import numpy

    if not r.get("examples"):
        return None
    seen, sets = Set(r["calibration"], model), Set(r["examples"], model)
    worst = None
    for name, v in sets.inputs.items():
        if v.dtype.kind != "f" or name not in seen.inputs:
            continue
        n = min(64, len(v))
        a = float(numpy.abs(seen.inputs[name][: max(n, 64)]).max())
        b = float(numpy.abs(v[:n]).max())
        if b > 0:
            worst = max(worst or 0.0, b / a if a > 0 else 1e9)
    return None if worst is None else round(worst, 3)


def by_sensitivity(original, quantised, feeds, tmp, model, without):
    """Nodes by the noise that quantisation adds to their output, the noisiest first."""
    from onnxruntime.quantization import qdq_loss_debug as debug

    class Reader(debug.CalibrationDataReader):
        def __init__(self):
            self.left = list(feeds)

        def get_next(self):
            return self.left.pop(0) if self.left else None

        def rewind(self):
            self.left = list(feeds)

    def activations(path, name):
        out = os.path.join(tmp, name)
        debug.modify_model_output_intermediate_tensors(path, out)
        return debug.collect_activations(out, Reader())

    matched = debug.create_activation_matching(activations(quantised, "q.onnx"), activations(original, "f.onnx"))
    errors = debug.compute_activation_error(matched)
    makers = {o: n for n in model.graph.node for o in n.output}
    scored = []
    for name, e in errors.items():
        n = makers.get(name)
        if n is not None and n.name not in without and n.op_type in QUANTISED and "xmodel_err" in e:
            scored.append((float(e["xmodel_err"]), n.name))
    return [n for _, n in sorted(scored)]


def int8_dynamic(r):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = load(r["model"])
    exclude = list(r.get("exclude") or [])
    named(model, exclude, "exclude")
    if not any(n.op_type in ("MatMul", "Gemm", "Attention", "LSTM", "GRU") for n in model.graph.node):
        raise Refused("the model has no matrix product: convolutions are faster with calibrated int8")
    quantize_dynamic(r["model"], r["output"], per_channel=r.get("perChannel", False), weight_type=QuantType.QInt8, nodes_to_exclude=exclude,
                     op_types_to_quantize=["MatMul", "Gemm", "Attention", "LSTM", "GRU", "EmbedLayerNormalization"])
    return {"quantised": ops(load(r["output"])).get("MatMulInteger", 0)}


def prune(r):
    """Weights of convolutions and matrix products become 0, the smallest first. Without training
    afterwards accuracy falls, and dense kernels compute the zeros too."""
    import numpy
    import onnx
    from onnx import numpy_helper

    model = load(r["model"])
    amount = float(r.get("amount") or 0.1)
    weights = {w.name: w for w in model.graph.initializer}
    if r["pattern"] == "channel":
        return prune_channels(r, model, weights, amount)
    zeros = total = 0
    for n in model.graph.node:
        if n.op_type not in ("Conv", "MatMul", "Gemm") or len(n.input) < 2 or n.input[1] not in weights:
            continue
        w = weights[n.input[1]]
        if w.data_type != onnx.TensorProto.FLOAT:
            continue
        v = numpy_helper.to_array(w).copy()
        if r["pattern"] == "2:4":
            # Two of four values along the axis of the sum.
            axis = 1 if n.op_type == "Conv" else 0
            m = numpy.moveaxis(v, axis, -1)
            if m.shape[-1] % 4:
                continue
            rows = numpy.ascontiguousarray(m).reshape(-1, 4)
            small = numpy.argsort(numpy.abs(rows), axis=1)[:, :2]
            numpy.put_along_axis(rows, small, 0, axis=1)
            v = numpy.ascontiguousarray(numpy.moveaxis(rows.reshape(m.shape), -1, axis))
        else:
            k = int(v.size * amount)
            if k:
                flat = v.reshape(-1)
                flat[numpy.argpartition(numpy.abs(flat), k - 1)[:k]] = 0
        zeros, total = zeros + int((v == 0).sum()), total + v.size
        w.CopyFrom(numpy_helper.from_array(v, w.name))
    if not total:
        raise Refused("the model has no float32 weights of convolutions or matrix products")
    onnx.save(model, r["output"])
    return {"zeros": round(zeros / total, 4), "trained": False}


def prune_channels(r, model, weights, amount):
    """Removes output channels of a convolution that one other convolution reads, directly or through
    activations and batch normalisation; those of sums and concatenations keep their number."""
    import numpy
    import onnx
    from onnx import numpy_helper

    users = {}
    for n in model.graph.node:
        for i in n.input:
            users.setdefault(i, []).append(n)
    outputs = {o.name for o in model.graph.output}
    uses = {}
    for n in model.graph.node:
        for i in n.input:
            uses[i] = uses.get(i, 0) + 1
    passing = ("Relu", "LeakyRelu", "Clip", "Sigmoid", "HardSwish", "MaxPool", "AveragePool", "BatchNormalization")
    changed = []
    multiple = int(r.get("multiple") or 8)
    for n in model.graph.node:
        group = next((a.i for a in n.attribute if a.name == "group"), 1)
        if n.op_type != "Conv" or group != 1 or n.input[1] not in weights or uses[n.input[1]] != 1:
            continue
        chain, at = [], n
        while True:
            out = at.output[0]
            after = users.get(out, [])
            if out in outputs or len(after) != 1 or len(at.output) > 1:
                at = None
                break
            at = after[0]
            if at.op_type in passing and at.input[0] == out:
                chain.append(at)
                continue
            break
        if at is None or at.op_type != "Conv" or at.input[1] not in weights or uses[at.input[1]] != 1 or next((a.i for a in at.attribute if a.name == "group"), 1) != 1:
            continue
        w = numpy_helper.to_array(weights[n.input[1]])
        # Kernels fill up to whole blocks of channels: other numbers gain nothing.
        keep = max(multiple, (int(len(w) * (1 - amount)) + multiple - 1) // multiple * multiple)
        if keep >= len(w):
            continue
        best = numpy.sort(numpy.argsort(-numpy.abs(w).sum(axis=(1, 2, 3)[: w.ndim - 1]))[:keep])
        parts = [(n.input[1], 0), (at.input[1], 1)]
        if len(n.input) > 2 and n.input[2]:
            parts.append((n.input[2], 0))
        for c in chain:
            if c.op_type == "BatchNormalization":
                parts += [(i, 0) for i in c.input[1:]]
        if any(name not in weights or uses.get(name, 0) != 1 for name, _ in parts):
            continue
        for name, axis in parts:
            v = numpy_helper.to_array(weights[name])
            weights[name].CopyFrom(numpy_helper.from_array(numpy.ascontiguousarray(v.take(best, axis=axis)), name))
        changed.append([n.name or n.output[0], len(w), keep])
    if not changed:
        raise Refused(f"no convolution has channels to remove: sums and concatenations need equal numbers, and counts stay multiples of {multiple}")
    del model.graph.value_info[:]
    onnx.save(model, r["output"])
    return {"channels": changed[:50], "convolutions": len(changed), "trained": False}


def as_text(v):
    """A value of the notes, as evidence has it."""
    if isinstance(v, (list, tuple)):
        return ", ".join(as_text(x) if not isinstance(x, list) else " ".join(map(str, x)) for x in v)
    return {True: "yes", False: "no"}.get(v, str(v)) if isinstance(v, bool) else str(v)


def check(path):
    """The runtime loads what was written."""
    import onnx

    for w in load(path).graph.initializer:
        if w.data_location == onnx.TensorProto.EXTERNAL:
            raise Refused("the candidate has weights in another file")
    try:
        session(path)
    except Exception as e:
        raise Refused(f"ONNX Runtime does not load the candidate: {str(e)[:400]}")


KINDS = {"graph": graph, "slim": slim, "fp16": half, "bf16": brain, "int8": int8, "int8-dynamic": int8_dynamic, "prune": prune}


def main():
    import tempfile
    import warnings

    import onnx

    warnings.simplefilter("ignore")
    r = json.load(sys.stdin)
    try:
        load(r["model"])
        try:
            session(r["model"])
        except Exception as e:
            raise Refused(f"ONNX Runtime does not load the model: {str(e)[:400]}")
        with tempfile.TemporaryDirectory() as tmp:
            lifted_file = os.path.join(tmp, "model.onnx")
            onnx.save(load(r["model"]), lifted_file)
            notes = KINDS[r["kind"]]({**r, "model": lifted_file})
        check(r["output"])
        import onnxruntime

        notes["onnxruntime"] = onnxruntime.__version__
        say(done={"notes": {k: as_text(v) for k, v in notes.items() if v not in (None, [], "")}})
    except Refused as e:
        say(error=str(e))
    except MemoryError:
        say(error="the memory is exhausted")
    except Exception as e:
        say(error=f"{type(e).__name__}: {str(e)[:400]}")


if __name__ == "__main__":
    main()
