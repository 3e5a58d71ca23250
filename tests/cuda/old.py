#!/usr/bin/env python3
"""Compiles and assembles the kernels for the GPUs of old Jetsons, without a GPU.

CUDA 13 knows sm_75 and newer only, and PyPI has no nvcc of CUDA 12. Its run-time
compiler, which NVRTC 12 is, knows them and takes device code alone, so the functions
that launch kernels are left out. What is compiled is labelled so: nobody has run it.

  old.py SITE_PACKAGES [ARCH...]
"""
import ctypes
import glob
import re
import sys

ARCHS = ["sm_53", "sm_62", "sm_72"]
# Templates are compiled where they are used, which is on the host.
USED = {
    "reduce": "".join(f"template __global__ void reduce_kernel<{op}>(const float *, uint64_t, float *, bool);\n" for op in range(3)),
    "gemm": "".join(
        f"template __global__ void gemm_tensor_kernel<{t}>(yt_gemm, const void *, const void *, const float *, void *, uint32_t, bool, bool);\n"
        for t in ("__half, float", "signed char, int")
    ),
}
FILES = ["copy", "preprocess", "reduce", "image", "boxes", "rows", "gemm"]
# In column 0, of a function that runs on the CPU.
HOST = re.compile(
    r"^(static )?(cudaError_t|uint64_t|uint32_t|bool) \w+\(|^template <[^>]*>\nstatic cudaError_t \w+\(", re.M
)


def device_code(text):
    """The text without functions of the host: from their first line to the next "}"."""
    out, at = [], 0
    for m in HOST.finditer(text):
        head = text[m.start() : text.find("\n{", m.start())]
        if m.start() < at or "__device__" in head or "__global__" in head or ";" in head:
            continue
        out.append(text[at : m.start()])
        at = text.index("\n}\n", m.start()) + 3
    return "".join(out) + text[at:]


def main():
    site, archs = sys.argv[1], sys.argv[2:] or ARCHS
    (library,) = glob.glob(site + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
    (second,) = glob.glob(site + "/nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.?")
    ctypes.CDLL(second)
    nvrtc = ctypes.CDLL(library)
    includes = [site + "/nvidia/cuda_runtime/include", site + "/nvidia/cuda_nvcc/include", site + "/nvidia/cuda_cccl/include"]
    with open("runtime/engine/core/cuda/kernels.h", encoding="utf-8") as f:
        kernels = f.read()
    kernels = kernels.replace("#include <cuda_runtime_api.h>", "")
    kernels = re.sub(r"^(cudaError_t|uint64_t|bool) \w+\([^;]*;", "", kernels, flags=re.M)
    headers = {
        "kernels.h": kernels,
        "stddef.h": "#pragma once\n#ifndef NULL\n#define NULL 0\n#endif\n",
        "stdint.h": "#pragma once\n#include <cuda/std/cstdint>\nusing namespace cuda::std;\n#ifndef INT32_MIN\n"
        "#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n#define UINT32_MAX 4294967295u\n"
        "#define UINT64_MAX 18446744073709551615ull\n#endif\n",
    }
    failed = False
    for arch in archs:
        for name in FILES:
            with open(f"runtime/engine/core/cuda/{name}.cu", encoding="utf-8") as f:
                source = device_code(f.read()).replace("static __global__", "__global__") + USED.get(name, "")
            program, size = ctypes.c_void_p(), ctypes.c_size_t()
            texts = (ctypes.c_char_p * len(headers))(*[t.encode() for t in headers.values()])
            names = (ctypes.c_char_p * len(headers))(*[t.encode() for t in headers])
            options = ["--std=c++17", "--fmad=false", f"--gpu-architecture={arch}", "--ptxas-options=--verbose", "-Iruntime/engine/core/c"]
            options += ["-Iruntime/engine/core/cuda"] + ["-I" + i for i in includes]
            argv = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
            nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), f"{name}.cu".encode(), len(headers), texts, names)
            rc = nvrtc.nvrtcCompileProgram(program, len(options), argv)
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            text = log.value.decode()
            cubin = ctypes.c_size_t()
            if rc == 0:
                nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(cubin))
            spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", text))
            kernels_n = len(re.findall(r"Compiling entry function", text))
            print(f"{arch} {name}: {'FAILED' if rc else 'assembled'}, {kernels_n} kernels, {cubin.value} bytes, {spills} spilled; NVRTC 12, never run")
            if rc:
                print(text[:3000], file=sys.stderr)
            failed = failed or rc != 0 or cubin.value == 0
            nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
