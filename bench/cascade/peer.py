#!/usr/bin/env python3
"""The cascade of examples/cascade in idiomatic Python: find labels, then read each of them.

    peer.py DETECTOR RECOGNISER LABELS CLIP WIDTH HEIGHT FRAMES BATCH PROCESSORS

BATCH is `one` for a run of the recogniser per crop, or `all` for one run on all crops of a frame.
OpenCV converts, scales and finds the regions, ONNX Runtime runs the models on PROCESSORS threads, and
NumPy does the rest, in one process and one frame after the other. The program prints one JSON object
per frame and a summary at the end.
"""
import json
import sys
import time

import cv2
import numpy as np
import onnxruntime as ort

detector, recogniser, labels, clip, width, height, frames, batch, processors = sys.argv[1:]
width, height, frames = int(width), int(height), int(frames)
characters = [""] + open(labels, encoding="utf-8").read().split("\n")[:-1] + [" "]

cv2.setNumThreads(1)
options = ort.SessionOptions()
options.intra_op_num_threads = int(processors)
find = ort.InferenceSession(detector, options, providers=["CPUExecutionProvider"])
read = ort.InferenceSession(recogniser, options, providers=["CPUExecutionProvider"])
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
TENSOR, CROP = (320, 192), (320, 48)


def preprocess(bgr):
    small = cv2.resize(bgr, TENSOR, interpolation=cv2.INTER_LINEAR)
    return np.ascontiguousarray(((small.astype(np.float32) / 255 - MEAN) / STD).transpose(2, 0, 1)[None])


def regions(out):
    """Boxes in pixels of the frame, the best first; at most six."""
    text = out[0, 0]
    found = []
    contours, _ = cv2.findContours((text > 0.3).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    for c in contours:
        x, y, w, h = cv2.boundingRect(c)
        if min(w, h) < 4:
            continue
        score = float(text[y:y + h, x:x + w].mean())
        if score < 0.5:
            continue
        grow = 1.5 * w * h / (2 * (w + h))
        found.append((score, x - grow, y - grow, x + w + grow, y + h + grow))
    sx, sy = width / TENSOR[0], height / TENSOR[1]
    return [(x0 * sx, y0 * sy, x1 * sx, y1 * sy) for _, x0, y0, x1, y1 in sorted(found, reverse=True)[:6]]


def crop(bgr, box):
    x0, y0, x1, y1 = box
    w, h = 0.05 * (x1 - x0), 0.05 * (y1 - y0)
    x0, y0 = int(max(x0 - w, 0)), int(max(y0 - h, 0))
    x1, y1 = int(np.ceil(min(x1 + w, width))), int(np.ceil(min(y1 + h, height)))
    part = bgr[y0:y1, x0:x1]
    scale = min(CROP[0] / part.shape[1], CROP[1] / part.shape[0])
    w, h = max(round(part.shape[1] * scale), 1), max(round(part.shape[0] * scale), 1)
    small = cv2.resize(part, (w, h), interpolation=cv2.INTER_LINEAR)
    top, left = (CROP[1] - h) // 2, (CROP[0] - w) // 2
    boxed = cv2.copyMakeBorder(small, top, CROP[1] - h - top, left, CROP[0] - w - left, cv2.BORDER_CONSTANT, value=(128, 128, 128))
    return ((boxed.astype(np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)


def text_of(out):
    best = out.argmax(axis=1)
    return "".join(characters[i] for n, i in enumerate(best) if i and (n == 0 or best[n - 1] != i))


def texts(crops):
    if not crops:
        return []
    if batch == "all":
        return [text_of(o) for o in read.run(None, {read.get_inputs()[0].name: np.stack(crops)})[0]]
    return [text_of(read.run(None, {read.get_inputs()[0].name: c[None]})[0][0]) for c in crops]


def frame(raw):
    bgr = cv2.cvtColor(np.frombuffer(raw, np.uint8).reshape(height, width), cv2.COLOR_GRAY2BGR)
    boxes = regions(find.run(None, {find.get_inputs()[0].name: preprocess(bgr)})[0])
    return texts([crop(bgr, b) for b in boxes])


with open(clip, "rb") as f:
    for _ in range(5): # warm up
        frame(f.read(width * height))
    f.seek(0)
    latency = []
    start = time.monotonic_ns()
    for _ in range(frames):
        began = time.monotonic_ns()
        found = frame(f.read(width * height))
        latency.append(time.monotonic_ns() - began)
        print(json.dumps({"type": "result", "texts": found}))
    took = time.monotonic_ns() - start
latency.sort()
print(json.dumps({
    "type": "summary", "frames": len(latency), "duration_ns": took,
    "p50_ns": latency[len(latency) // 2], "p95_ns": latency[min(len(latency) - 1, len(latency) * 95 // 100)],
    "versions": f"OpenCV {cv2.__version__}, onnxruntime {ort.__version__}, NumPy {np.__version__}, Python {sys.version.split()[0]}",
}))
