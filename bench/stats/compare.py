"""Values and time of a stats stage, beside OpenCV and numpy in the same run.

usage: compare.py YOCTUNED    (needs numpy and opencv-python-headless)

The values must be equal but for the last bits of a float64.
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

WIDTH, HEIGHT, FRAMES, ROUNDS, LOW, HIGH = 1280, 720, 40, 5, 5, 250


def clip_of(path):
    """Writes grey frames, each with more blur and other light, the first with clipped pixels only."""
    random = np.random.default_rng(1)
    base = random.integers(0, 256, (HEIGHT, WIDTH), dtype=np.uint8)
    frames = [np.where(base > 127, 255, 0).astype(np.uint8), base]
    while len(frames) < FRAMES:
        n = len(frames)
        frames.append(cv2.convertScaleAbs(cv2.GaussianBlur(base, (0, 0), n / 10), alpha=0.5 + n / 20, beta=n - 20))
    with open(path, "wb") as clip:
        clip.write(b"".join(f.tobytes() for f in frames))
    return frames


def write_plan(path, digest, device):
    pipeline = {
        "source": {"kind": "file", "path": "clip.grey", "format": "grey", "width": WIDTH, "height": HEIGHT, "fps_num": 30, "fps_den": 1},
        "stages": [
            {"id": "light", "kind": "stats", "input": "source", "stats": {}, "device": device},
            {"id": "pre", "kind": "preprocess", "input": "light", "preprocess": {
                "width": 2, "height": 1, "fit": "stretch", "layout": "nchw", "color": "rgb", "dtype": "f32", "pad": 0,
                "mean": ["0", "0", "0"], "std": ["1", "1", "1"]}},
            {"id": "dump", "kind": "postprocess", "input": "pre", "post": {"kind": "raw"}},
        ],
        "sink": {"kind": "ndjson"}, "queue": {"capacity": 2, "policy": "block"},
    }
    if not device:
        del pipeline["stages"][0]["device"]
    plan = {"$schema": "yoctune.plan/2", "board": "orin-nano-8gb", "release": "scarthgap", "l4t": "36.5.0", "serial": 1,
            "settings": [], "units": [], "pipelines": {"still": pipeline}, "digest": digest}
    with open(path, "w") as out:
        json.dump(plan, out)


def run(yoctuned, path):
    return subprocess.run([yoctuned, "pipeline", "run", path, "--gpu-backend", "strict", "--format", "json"], capture_output=True, text=True)


def by_opencv(f):
    mean, deviation = cv2.meanStdDev(cv2.Laplacian(f, cv2.CV_32F))
    return [cv2.mean(f)[0] / 255, cv2.countNonZero(cv2.compare(f, LOW, cv2.CMP_LE)) / f.size,
            cv2.countNonZero(cv2.compare(f, HIGH, cv2.CMP_GE)) / f.size, float(deviation[0, 0]) ** 2]


def by_numpy(f):
    p = np.pad(f.astype(np.int32), 1, mode="reflect")
    laplacian = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * p[1:-1, 1:-1]
    return [f.mean() / 255, np.count_nonzero(f <= LOW) / f.size, np.count_nonzero(f >= HIGH) / f.size, float(laplacian.var())]


def median(frames, measure):
    """Returns the median time of a frame in µs."""
    times = []
    for frame in frames:
        began = time.perf_counter()
        measure(frame)
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2] * 1e6


def main():
    yoctuned = os.path.abspath(sys.argv[1])
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "plan.json")
        frames = clip_of(os.path.join(folder, "clip.grey"))
        for device in ("", "gpu"):
            write_plan(plan, "", device)
            write_plan(plan, re.findall(r"sha256:[0-9a-f]{64}", run(yoctuned, plan).stderr)[-1], device)
            for peer in (by_opencv, by_numpy):
                lines = [json.loads(line) for line in run(yoctuned, plan).stdout.splitlines()]
                ours = np.array([[r["stats"][k] for k in ("brightness", "low", "high", "focus")] for r in lines if r["type"] == "result"])
                want = np.array([peer(f) for f in frames])
                assert ours.shape == want.shape, ours.shape
                worst = (np.abs(ours - want) / np.maximum(np.abs(want), 1e-12)).max(0)
                # The record rounds to some digits.
                print(f"{'stand-in of the GPU' if device else 'CPU'}, {peer.__name__[3:]}: largest relative difference of brightness, low, high, focus: "
                      + ", ".join(f"{v:.1e}" for v in worst))
                assert (worst < 1e-3).all()
            for _ in range(ROUNDS):
                summary = json.loads(run(yoctuned, plan).stdout.splitlines()[-1])
                assert summary["frames"]["done"] == FRAMES, summary["frames"]
                stage = summary["latency_ns"]["stages"]["light"]["service"]["p50"] / 1e3
                print(f"{'stand-in of the GPU' if device else 'CPU'}: stats {stage:.0f} µs, OpenCV {median(frames, by_opencv):.0f} µs, numpy {median(frames, by_numpy):.0f} µs")


main()
