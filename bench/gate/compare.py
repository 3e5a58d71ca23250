"""Time of a gate stage for a frame without a change, beside OpenCV and numpy in the same run.

usage: compare.py YOCTUNED    (needs numpy and opencv-python-headless)
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

import cv2
import numpy as np

WIDTH, HEIGHT, FRAMES, THRESHOLD, ROUNDS = 1280, 720, 80, 26, 5


def write_clip(path):
    """Writes grey frames that differ by noise only."""
    random = np.random.default_rng(1)
    base = random.integers(90, 110, (HEIGHT, WIDTH), dtype=np.uint8)
    with open(path, "wb") as clip:
        for _ in range(FRAMES):
            clip.write((base + random.integers(0, 3, base.shape, dtype=np.uint8)).tobytes())


def gate_plan(path, digest):
    """Writes a plan of a gate before a tensor of two pixels."""
    pipeline = {
        "source": {"kind": "file", "path": "clip.grey", "format": "grey", "width": WIDTH, "height": HEIGHT, "fps_num": 30, "fps_den": 1},
        "stages": [
            {"id": "quiet", "kind": "gate", "input": "source", "gate": {"max_age": 600 * 10**9}},
            {"id": "pre", "kind": "preprocess", "input": "quiet", "preprocess": {
                "width": 2, "height": 1, "fit": "stretch", "layout": "nchw", "color": "rgb", "dtype": "f32", "pad": 0,
                "mean": ["0", "0", "0"], "std": ["1", "1", "1"]}},
            {"id": "dump", "kind": "postprocess", "input": "pre", "post": {"kind": "raw"}},
        ],
        "sink": {"kind": "ndjson"}, "queue": {"capacity": 2, "policy": "block"},
    }
    plan = {"$schema": "yoctune.plan/2", "board": "orin-nano-8gb", "release": "scarthgap", "l4t": "36.5.0", "serial": 1,
            "settings": [], "units": [], "pipelines": {"still": pipeline}, "digest": digest}
    with open(path, "w") as out:
        json.dump(plan, out)


def run(yoctuned, path):
    return subprocess.run([yoctuned, "pipeline", "run", path, "--format", "json"], capture_output=True, text=True)


def median(frames, compare):
    """Returns the median time in µs of comparing each frame with the first."""
    times = []
    for frame in frames[1:]:
        began = time.perf_counter()
        compare(frame, frames[0])
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2] * 1e6


def main():
    yoctuned = os.path.abspath(sys.argv[1])
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        plan, clip = os.path.join(folder, "plan.json"), os.path.join(folder, "clip.grey")
        write_clip(clip)
        gate_plan(plan, "")
        gate_plan(plan, re.findall(r"sha256:[0-9a-f]{64}", run(yoctuned, plan).stderr)[-1])
        frames = np.fromfile(clip, np.uint8).reshape(-1, HEIGHT, WIDTH)
        for _ in range(ROUNDS):
            summary = json.loads(run(yoctuned, plan).stdout.splitlines()[-1])
            assert summary["frames"]["skipped"] == FRAMES - 1, summary["frames"]
            gate = summary["latency_ns"]["stages"]["quiet"]["service"]["p50"] / 1e3
            opencv = median(frames, lambda a, b: cv2.countNonZero(cv2.compare(cv2.absdiff(a, b), THRESHOLD, cv2.CMP_GT)))
            numpy = median(frames, lambda a, b: np.count_nonzero(np.abs(a.astype(np.int16) - b) > THRESHOLD))
            print(f"gate {gate:.0f} µs, OpenCV {opencv:.0f} µs, numpy {numpy:.0f} µs")


main()
