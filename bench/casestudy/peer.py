#!/usr/bin/env python3
"""The pipeline of the case study in idiomatic Python.

    peer.py MODEL LABELS CLIP WIDTH HEIGHT FRAMES MODE PROCESSORS RATE

MODE is `sequential`, `threads` for one thread per step with queues between them, or `live` for
a camera of RATE frames per second whose newest frame is processed. The
model runs on PROCESSORS threads. OpenCV converts and scales, ONNX Runtime runs the model, and
NumPy does the rest. The program prints one JSON object per frame and a summary at the end.
"""
import json
import queue
import resource
import sys
import threading
import time

import cv2
import numpy as np
import onnxruntime as ort

model, labels, clip, width, height, frames, mode, processors, rate = sys.argv[1:]
width, height, frames = int(width), int(height), int(frames)
characters = [""] + open(labels, encoding="utf-8").read().split("\n")[:-1] + [" "]

cv2.setNumThreads(1)
options = ort.SessionOptions()
options.intra_op_num_threads = int(processors)
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
size = width * height * 3 // 2


def preprocess(raw):
    planes = np.frombuffer(raw, np.uint8).reshape(height * 3 // 2, width)
    bgr = cv2.cvtColor(planes, cv2.COLOR_YUV2BGR_NV12)
    scale = min(320 / width, 48 / height)
    w, h = round(width * scale), round(height * scale)
    small = cv2.resize(bgr, (w, h), interpolation=cv2.INTER_LINEAR)
    top, left = (48 - h) // 2, (320 - w) // 2
    boxed = cv2.copyMakeBorder(small, top, 48 - h - top, left, 320 - w - left, cv2.BORDER_CONSTANT, value=(128, 128, 128))
    tensor = (boxed.astype(np.float32) / 255 - 0.5) / 0.5
    return np.ascontiguousarray(tensor.transpose(2, 0, 1)[None])


def infer(tensor):
    return session.run(None, {name: tensor})[0]


def decode(out):
    best = out[0].argmax(axis=1)
    kept = [i for n, i in enumerate(best) if i and (n == 0 or best[n - 1] != i)]
    return "".join(characters[i] for i in kept)


def source():
    with open(clip, "rb") as f:
        for _ in range(frames):
            raw = f.read(size)
            if len(raw) < size:
                return
            yield time.monotonic_ns(), raw


latency = []
spent = {}


def timed(step, name):
    """Record the time of each call of a step."""
    times = spent.setdefault(name, [])

    def call(x):
        began = time.monotonic_ns()
        y = step(x)
        times.append(time.monotonic_ns() - began)
        return y

    return call


def sink(began, text, frame=None):
    latency.append(time.monotonic_ns() - began)
    print(json.dumps({"type": "result", "frame": len(latency) - 1 if frame is None else frame, "text": text}))


for _ in range(3):
    infer(np.zeros((1, 3, 48, 320), np.float32))
preprocess, infer, decode = timed(preprocess, "frame"), timed(infer, "read"), timed(decode, "text")
before = resource.getrusage(resource.RUSAGE_SELF)
start = time.monotonic_ns()
if mode == "sequential":
    for began, raw in source():
        sink(began, decode(infer(preprocess(raw))))
elif mode == "live":
    newest = queue.Queue(1)

    def camera():
        due = time.monotonic_ns()
        video = source()
        for n in range(frames):
            time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
            _, raw = next(video)
            try:
                newest.get_nowait()
            except queue.Empty:
                pass
            newest.put((n, due, raw))
            due += 1_000_000_000 // int(rate)
        newest.put(None)

    thread = threading.Thread(target=camera)
    thread.start()
    while (item := newest.get()) is not None:
        sink(item[1], decode(infer(preprocess(item[2]))), item[0])
    thread.join()
else:
    queues = [queue.Queue(4) for _ in range(3)]

    def stage(work, take, give):
        while (item := take.get()) is not None:
            give.put((item[0], work(item[1])))
        give.put(None)

    def read():
        for item in source():
            queues[0].put(item)
        queues[0].put(None)

    threads = [
        threading.Thread(target=read),
        threading.Thread(target=stage, args=(preprocess, queues[0], queues[1])),
        threading.Thread(target=stage, args=(infer, queues[1], queues[2])),
    ]
    for t in threads:
        t.start()
    while (item := queues[2].get()) is not None:
        sink(item[0], decode(item[1]))
    for t in threads:
        t.join()
took = time.monotonic_ns() - start
after = resource.getrusage(resource.RUSAGE_SELF)
latency.sort()
print(json.dumps({
    "type": "summary", "frames": len(latency), "duration_ns": took,
    "cpu_ns": round((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9),
    "p50_ns": latency[len(latency) // 2], "p95_ns": latency[min(len(latency) - 1, len(latency) * 95 // 100)],
    "stages": {name: {"service": {"p50": sorted(times)[len(times) // 2]}} for name, times in spent.items()},
    "versions": f"OpenCV {cv2.__version__}, onnxruntime {ort.__version__}, NumPy {np.__version__}, Python {sys.version.split()[0]}",
}))
