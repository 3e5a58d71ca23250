#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the CUDA kernels with torch, torch.compile, CuPy and torchvision in one run.

    compare.py SHIM.so [--small] [PART...]

The parts run in another process. One that hangs, or spoils the driver's state, takes that
process with it: this is recorded, and a new one goes on with the next part.

Each row: the result is compared first, with outputs poisoned before; then both are
timed turn by turn with events, each in a graph where it can be captured. One JSON
object a line: name, kernel, backend, device, bytes, flops, p50_ns, p95_ns, reference,
ratio (reference p50 / p50), correct. --small: small shapes, results only.
"""
import ctypes
import json
import os
import statistics
import subprocess
import sys
import threading
import time

F32, F16, BF16, I8, I32 = 0, 1, 2, 3, 5
NAN = float("nan")
small = "--small" in sys.argv
started = time.monotonic()
failed = False
PART_SECONDS = float(os.environ.get("YT_PART_SECONDS", "100"))  # the slowest, with torch.compile, takes half of it
CHILD = "YT_COMPARE_CHILD"
if CHILD in os.environ:
    import torch

    lib = ctypes.CDLL(sys.argv[1])
    device = torch.device("cuda")
    cc = torch.cuda.get_device_capability()[0]


def call(name, *args):
    """Runs a shim on torch's stream. Tensors are passed as addresses."""
    out = []
    for a in args:
        if isinstance(a, torch.Tensor):
            out.append(ctypes.c_void_p(a.data_ptr()))
        elif isinstance(a, float):
            out.append(ctypes.c_float(a))
        elif isinstance(a, int):
            out.append(ctypes.c_uint64(a) if a > 0xFFFFFFFF else ctypes.c_uint32(a))
        else:
            out.append(a)
    out.append(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    rc = getattr(lib, name)(*out)
    if rc != 0:
        raise RuntimeError(f"{name}: CUDA error {rc}")


def size(n):
    return ctypes.c_uint64(n)


# These copy a count to the host or launch on other streams, so a capture would fail. A
# failed capture can leave the caching allocator with the wrong pool.
NOT_CAPTURED = ("torchvision.ops.nms", "CuPy (CUB)")


def graph(f, name=""):
    """Returns f as a graph, or f itself if it cannot be captured."""
    if name in NOT_CAPTURED:
        f()
        torch.cuda.synchronize()
        return f, False
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            f()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    try:
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            f()
        return g.replay, True
    except Exception:  # reads a count back to the host, for one
        torch.cuda.synchronize()
        return f, False


def once(f):
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    f()
    b.record()
    b.synchronize()
    return a.elapsed_time(b) * 1e6


def percentile(values, p):
    values = sorted(values)
    return values[max((p * len(values) + 99) // 100, 1) - 1]


def row(kernel, name, ours, references, check, nbytes=None, flops=None, rounds=60):
    """Prints one object per reference, timed in turn with our kernel."""
    global failed
    ours()
    torch.cuda.synchronize()
    correct = bool(check())
    failed = failed or not correct
    if small:
        print(json.dumps({"name": name, "kernel": kernel, "correct": correct}), flush=True)
        return
    mine, captured = graph(ours)
    if not references:
        own = [once(mine) for _ in range(rounds + 5)][5:]
        print(json.dumps({"type": "measurement", "suite": "gpu", "name": name, "kernel": kernel, "backend": "cuda",
                          "device": torch.cuda.get_device_name(), "bytes": nbytes, "flops": flops, "samples": rounds, "graph": captured,
                          "correct": correct, "p50_ns": round(statistics.median(own)), "p95_ns": round(percentile(own, 95)),
                          "reference": None, "ratio": None}), flush=True)
    for ref_name, ref in references.items():
        base = {"type": "measurement", "suite": "gpu", "name": name, "kernel": kernel, "backend": "cuda", "device": torch.cuda.get_device_name(), "bytes": nbytes,
                "flops": flops, "samples": rounds, "graph": captured, "correct": correct}
        try:
            other, ref_captured = graph(ref, ref_name)
            own, theirs = [], []
            for i in range(rounds + 5):
                p, q = once(mine), once(other)
                if i >= 5:
                    own.append(p)
                    theirs.append(q)
        except Exception as e:
            print(json.dumps(base | {"reference": None, "ratio": None, "error": f"{ref_name}: {e}"[:300]}), flush=True)
            torch.cuda.synchronize()
            continue
        p50, r50 = statistics.median(own), statistics.median(theirs)
        print(json.dumps(base | {"p50_ns": round(p50), "p95_ns": round(percentile(own, 95)),
                                 "reference": {"name": ref_name, "p50_ns": round(r50), "graph": ref_captured},
                                 "ratio": round(r50 / p50, 3)}), flush=True)


def compiled(f):
    return torch.compile(f, mode="max-autotune-no-cudagraphs", dynamic=False)


def copies():
    n = 1 << (16 if small else 30)
    x, y = torch.randint(0, 255, (n,), dtype=torch.uint8, device=device), torch.empty(n, dtype=torch.uint8, device=device)
    row("K13", "copy 1 GiB", lambda: call("shim_copy", y, x, size(n)), {"cudaMemcpyAsync": lambda: call("shim_memcpy", y, x, size(n)),
        "torch copy_": lambda: y.copy_(x)}, lambda: torch.equal(x, y), 2 * n)


def reductions():
    n = 100001 if small else 1 << 28
    x, out = torch.randn(n, device=device), torch.full((1,), NAN, device=device)
    scratch = torch.empty(max(lib.shim_scratch(size(n)), 16), dtype=torch.uint8, device=device)
    references = {"torch.sum": lambda: torch.sum(x)}
    try:
        import cupy
        view = cupy.from_dlpack(x)
        cupy.cuda.set_allocator(cupy.cuda.MemoryPool().malloc)

        def with_cupy():
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                view.sum()

        references["CuPy (CUB)"] = with_cupy
    except Exception as e:  # not installed, or not for this CUDA
        print(json.dumps({"name": "CuPy", "error": str(e)[:300]}), flush=True)
    row("K7", "sum of float32, fixed tree", lambda: call("shim_sum", x, size(n), out, scratch), references,
        lambda: abs(out.item() - x.double().sum().item()) <= 1e-6 * x.abs().double().sum().item(), 4 * n, n)


def rows():
    for rows_n, cols in ((7, 333),) if small else ((65536, 1000), (32, 1000)):
        x = torch.randn(rows_n, cols, device=device)
        y = torch.full_like(x, NAN)
        top = torch.full((rows_n, 5, 2), NAN, device=device)
        row("K4", f"softmax {rows_n}x{cols}", lambda: call("shim_softmax", x, y, rows_n, cols, F32), {"torch.softmax": lambda: torch.softmax(x, 1)},
            lambda: torch.allclose(y, torch.softmax(x, 1), rtol=1e-5, atol=1e-8), 8 * x.numel())
        row("K5", f"top 5 of {rows_n}x{cols}", lambda: call("shim_topk", x, top, rows_n, cols, 5), {"torch.topk": lambda: torch.topk(x, 5, 1)},
            lambda: torch.equal(top[:, :, 0], torch.topk(x, 5, 1).values), 4 * x.numel())


def more_rows():
    """Reductions other than sums."""
    rows_n, cols = (7, 333) if small else (65536, 1000)
    x = torch.randn(rows_n, cols, device=device)
    n, flat = x.numel(), x.view(-1)
    out = torch.full((1,), NAN, device=device)
    scratch = torch.empty(max(lib.shim_scratch(size(n)), 16), dtype=torch.uint8, device=device)
    row("K7", "maximum of float32", lambda: call("shim_reduce", 2, flat, size(n), out, scratch), {"torch.max": lambda: torch.max(flat)},
        lambda: out.item() == flat.max().item(), 4 * n)


def layouts():
    n, c, h, w = (2, 3, 17, 19) if small else (32, 3, 640, 640)
    x = torch.randn(n, h, w, c, device=device)
    y = torch.full((n, c, h, w), NAN, device=device)
    row("K10", f"NHWC to NCHW {n}x{h}x{w}x{c} f32", lambda: call("shim_convert", x, y, n, c, h, w, 1, F32, 1.0),
        {"torch contiguous": lambda: x.permute(0, 3, 1, 2).contiguous()}, lambda: torch.equal(y, x.permute(0, 3, 1, 2)), 8 * x.numel())
    half = torch.full((n, h, w, c), NAN, dtype=torch.float16, device=device)
    row("K10", f"f32 to f16, {x.numel()} elements", lambda: call("shim_convert", x, half, n, c, h, w, 0, F16, 1.0),
        {"torch .to": lambda: x.to(torch.float16)}, lambda: torch.equal(half, x.to(torch.float16)), 6 * x.numel())
    q = torch.full((n, h, w, c), 99, dtype=torch.int8, device=device)

    def quantise():
        return torch.clamp(torch.round(x / 0.05), -128, 127).to(torch.int8)

    row("K10", f"f32 to i8, {x.numel()} elements", lambda: call("shim_convert", x, q, n, c, h, w, 0, I8, 0.05),
        {"torch eager": quantise}, lambda: (q.int() - quantise().int()).abs().max().item() <= 1, 5 * x.numel())


def regions():
    """Boxes of one frame, each scaled to a small tensor; the reference is the usual loop."""
    h, w, side, n = (40, 60, 8, 3) if small else (1080, 1920, 112, 64)
    frame = torch.randint(0, 255, (h, w, 3), dtype=torch.uint8, device=device)
    boxes, _, packed = box_list(n)
    limit = torch.tensor([w, h, w, h], device=device)
    boxes = torch.minimum(boxes.round(), limit - 1)
    boxes[:, 2:] = torch.maximum(boxes[:, 2:], boxes[:, :2] + 1)
    packed[1:, :4] = boxes
    out = torch.full((n, 3, side, side), NAN, device=device)
    corners = boxes.int().tolist()

    def loop():
        image = frame.permute(2, 0, 1).float().unsqueeze(0) / 255
        return torch.cat([torch.nn.functional.interpolate(image[:, :, y0:y1, x0:x1], (side, side), mode="bilinear", align_corners=False)
                          for x0, y0, x1, y1 in corners])

    row("K14", f"{n} regions of RGB {w}x{h} to {side}", lambda: call("shim_roi", frame, packed, out, n, w, h, side),
        {"torch, a loop of interpolate": loop}, lambda: (out - loop()).abs().max().item() <= 1.5 / 255, n * 12 * side * side, rounds=30)


def motion():
    h, w = (43, 61) if small else (1080, 1920)
    a, b = (torch.randint(0, 255, (h, w), dtype=torch.uint8, device=device) for _ in range(2))
    out = torch.zeros(2, dtype=torch.int64, device=device)
    row("K15", f"difference of two frames {w}x{h}", lambda: call("shim_diff", a, b, out, w, h),
        {"torch, the sum alone": lambda: (a.short() - b.short()).abs().sum()}, lambda: out[0].item() == (a.short() - b.short()).abs().sum().item(), 2 * h * w)


def statistics_of_a_frame():
    """Brightness and focus; the reference computes the Laplacian as a convolution."""
    h, w = (43, 61) if small else (1080, 1920)
    a = torch.randint(0, 255, (h, w), dtype=torch.uint8, device=device)
    out = torch.zeros(4, dtype=torch.int64, device=device)
    kernel = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]], device=device).view(1, 1, 3, 3)

    def reference():
        x = a.float().view(1, 1, h, w)
        lap = torch.nn.functional.conv2d(torch.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"), kernel)
        return a.sum(), lap.double().sum(), lap.double().square().sum()

    def same():
        want = [int(v) for v in reference()]
        return [out[0].item(), out[2].item(), out[3].item()] == want

    row("K16", f"statistics of a frame {w}x{h}", lambda: call("shim_stats", a, out, w, h), {"torch conv2d, sums": reference}, same, h * w)


def chain_of(h, w, side):
    """The best chain: resize in YUV first, then colour (BT.709 limited)."""
    inner = (2 * h * side + w) // (2 * w)
    top = (side - inner) // 2

    def run(frames):
        n = frames.shape[0]
        luma = frames[:, : h * w].view(n, 1, h, w).float()
        chroma = frames[:, h * w:].view(n, h // 2, w // 2, 2).permute(0, 3, 1, 2).float()
        y = torch.nn.functional.interpolate(luma, (inner, side), mode="bilinear", align_corners=False)
        uv = torch.nn.functional.interpolate(chroma, (inner, side), mode="bilinear", align_corners=False) - 128.0
        light, u, v = (y[:, 0] - 16.0) * 1.16438356, uv[:, 0], uv[:, 1]
        rgb = torch.stack((light + 1.79274107 * v, light - 0.21324861 * u - 0.53290933 * v, light + 2.11240179 * u), 1)
        out = torch.full((n, 3, side, side), 114 / 255, device=frames.device)
        out[:, :, top: top + inner] = rgb.clamp(0, 255) / 255
        return out

    return run


def preprocess():
    h, w, side = (54, 96, 64) if small else (2160, 3840, 640)
    for n in (2,) if small else (1, 8, 32):
        frames = torch.randint(0, 255, (n, h * w * 3 // 2), dtype=torch.uint8, device=device)
        out = torch.full((n, 3, side, side), NAN, device=device)
        f = chain_of(h, w, side)
        refs = {"torch eager, resize in YUV": lambda: f(frames)}
        if not small:
            g = compiled(f)
            refs["torch.compile of it"] = lambda: g(frames)
        row("K1", f"NV12 {w}x{h} to {side} letterbox float32, batch {n}", lambda: call("shim_preprocess", frames, out, n, w, h, side, F32), refs,
            lambda: (out - f(frames)).abs().max().item() <= 1.5 / 255, n * (frames.shape[1] + 12 * side * side))


def box_list(n):
    centre, extent = torch.rand(n, 2, device=device) * 600, torch.rand(n, 2, device=device) * 80 + 5
    boxes = torch.cat((centre, centre + extent), 1)
    scores = torch.randperm(n, device=device).float() / n  # distinct: equals have no order in torchvision
    packed = torch.zeros(n + 1, 8, device=device)
    words = packed.view(torch.int32)
    words[0, 0] = n
    packed[1:, :4], packed[1:, 4] = boxes, scores
    words[1:, 6] = torch.arange(n, dtype=torch.int32, device=device)
    return boxes, scores, packed


def nms():
    try:
        from torchvision.ops import nms as reference
    except ImportError:
        print(json.dumps({"name": "nms", "error": "torchvision is not installed"}), flush=True)
        return
    for n in (100,) if small else (1000, 4000, 8400):
        boxes, scores, packed = box_list(n)
        out = torch.full_like(packed, NAN)
        room = torch.empty(lib.shim_nms(None, None, None, n, ctypes.c_float(0.5), None), dtype=torch.uint8, device=device)

        def same():
            kept = reference(boxes, scores, 0.5).int()
            count = out.view(torch.int32)[0, 0].item()
            return count == len(kept) and torch.equal(out.view(torch.int32)[1: count + 1, 6], kept)

        row("K6", f"NMS of {n} boxes", lambda: call("shim_nms", packed, out, room, n, 0.5), {"torchvision.ops.nms": lambda: reference(boxes, scores, 0.5)}, same)


def decode():
    anchors, classes, most = (300, 5, 20) if small else (8400, 80, 1024)
    x = torch.rand(4 + classes, anchors, device=device) * 0.9
    out = torch.full((most + 1, 8), NAN, device=device)
    room = torch.empty(lib.shim_decode(None, None, None, anchors, classes, most, ctypes.c_float(0.85), None), dtype=torch.uint8, device=device)

    def reference():
        best, cls = x[4:].max(0)
        score, at = torch.topk(torch.where(best >= 0.85, best, -1.0), most)
        box = x[:4, at]
        return torch.cat((box[:2] - box[2:] / 2, box[:2] + box[2:] / 2)), score, cls[at]

    def same():
        count = out.view(torch.int32)[0, 0].item()
        want = reference()[1]
        return count == int((want >= 0).sum()) and torch.equal(out[1: count + 1, 4], want[:count])

    row("K3", f"YOLO decode of {anchors}x{classes}", lambda: call("shim_decode", x, out, room, anchors, classes, most, 0.85), {"torch max, topk": reference},
        same, 4 * x.numel())


def gemm():
    shapes = ((33, 65, 17), (128, 128, 64)) if small else ((1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3, (1000, 1003, 999), (16, 4096, 4096))
    for m, n, k in shapes:
        for label, dtype, code in (("float16", torch.float16, F16), ("bfloat16", torch.bfloat16, BF16)):
            a, b = torch.randn(m, k, dtype=dtype, device=device), torch.randn(k, n, dtype=dtype, device=device)
            c = torch.full((m, n), NAN, dtype=dtype, device=device)

            def near():
                want = a.float() @ b.float()
                return ((c.float() - want).norm() / want.norm()).item() < 1e-2

            row("K11", f"own GEMM {label} {m}x{n}x{k}", lambda: call("shim_gemm", a, b, c, m, n, k, code, code, cc), {"torch.matmul (cuBLAS)": lambda: a @ b}, near,
                flops=2 * m * n * k, rounds=50)
        a = torch.randint(-128, 127, (m, k), dtype=torch.int8, device=device)
        b = torch.randint(-128, 127, (k, n), dtype=torch.int8, device=device)
        c = torch.full((m, n), -1, dtype=torch.int32, device=device)
        refs = {"torch._int_mm": lambda: torch._int_mm(a, b)} if m > 16 and k % 8 == 0 and n % 8 == 0 else {}

        def exact():  # of large ones some rows: products in float64 are slow
            at = torch.randperm(m, device=device)[:64]
            return torch.equal(c[at].double(), a[at].double() @ b.double())

        row("K12", f"own GEMM int8 {m}x{n}x{k}", lambda: call("shim_gemm", a, b, c, m, n, k, I8, I32, cc), refs, exact, flops=2 * m * n * k, rounds=50)


PARTS = (copies, reductions, rows, more_rows, layouts, preprocess, regions, nms, decode, motion, statistics_of_a_frame, gemm)


def child(names):
    """Runs parts and reports progress on standard error."""
    global failed
    torch.manual_seed(1)
    if not small and len(names) == len(PARTS):
        print(json.dumps({"type": "machine", "device": torch.cuda.get_device_name(), "capability": torch.cuda.get_device_capability(),
                          "torch": torch.__version__, "cuda": torch.version.cuda}), flush=True)
    for part in PARTS:
        if part.__name__ not in names:
            continue
        print(f"part {part.__name__}", file=sys.stderr, flush=True)
        try:
            part()
            torch.cuda.synchronize()
        except Exception as e:  # one part that fails leaves the others
            failed = True
            print(json.dumps({"name": part.__name__, "error": str(e)[:300]}), flush=True)
            try:
                torch.cuda.synchronize()
            except Exception:  # the state is spoiled until the process ends
                os._exit(1)
        print(f"done {part.__name__}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return 1 if failed else 0


class Limit:
    """Ends a process unless it is reset in time."""

    def __init__(self, process):
        self.process, self.timer = process, None
        self.set()

    def set(self):
        self.end()
        self.timer = threading.Timer(PART_SECONDS, self.process.kill)
        self.timer.start()

    def end(self):
        if self.timer is not None:
            self.timer.cancel()


def parent():
    """Restarts a child until every part was tried once."""
    left = [a for a in sys.argv[2:] if not a.startswith("--")] or [p.__name__ for p in PARTS]
    well = True
    while left:
        arguments = [sys.executable, sys.argv[0], sys.argv[1], *(["--small"] if small else []), *left]
        p = subprocess.Popen(arguments, env=os.environ | {CHILD: "1"}, stderr=subprocess.PIPE, text=True)
        limit, part, begun = Limit(p), None, False
        for line in p.stderr:
            sys.stderr.write(line)
            word, _, name = line.strip().partition(" ")
            if word == "part" and name in left:
                left.remove(name)
                part, begun = name, True
                limit.set()
            elif word == "done":
                part = None
        code = p.wait()
        limit.end()
        well = well and code == 0
        if part is not None or not begun:
            print(json.dumps({"name": part or "compare", "error": f"its process ended with {code}; -9 is what {PART_SECONDS:.0f} s without end come to"}),
                  flush=True)
        if not begun:
            break
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(child([a for a in sys.argv[2:] if not a.startswith("--")]) if CHILD in os.environ else parent())
