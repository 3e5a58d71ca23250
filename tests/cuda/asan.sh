#!/usr/bin/env bash
# Tests the core's C and the bodies of its CUDA kernels with AddressSanitizer and
# UndefinedBehaviorSanitizer, and its threads with ThreadSanitizer. Needs gcc, but neither
# CUDA nor a GPU.
#
#   tests/cuda/asan.sh [SEED] [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

out=build/cuda
mkdir -p "$out"
common=(-O1 -g -Wall -Wextra -Iruntime/engine/core/c -Iruntime/engine/core/cuda -Itests/cuda
	"-fsanitize=address,undefined" -fno-sanitize-recover=all -fno-omit-frame-pointer)
sources=(yt_guard)
for f in runtime/engine/core/c/yt_cpu*.c; do
	f=${f##*/}
	sources+=("${f%.c}")
done
objects=()
for f in "${sources[@]}"; do
	"${CC:-gcc}" -std=c11 "${common[@]}" -c "runtime/engine/core/c/$f.c" -o "$out/asan_$f.o"
	objects+=("$out/asan_$f.o")
done
# -ffp-contract=off: C++ has no ISO mode that implies it.
"${CXX:-g++}" -std=c++17 -ffp-contract=off "${common[@]}" tests/cuda/core_check.cc "${objects[@]}" -o "$out/core_check"
"$out/core_check" "$@"

# The cuBLASLt path, with a fake library that computes on the CPU.
"${CXX:-g++}" -std=c++17 -ffp-contract=off "${common[@]}" -shared -fPIC tests/cuda/fake_lt.cc -o "$out/fake_lt.so"
"${CXX:-g++}" -std=c++17 -ffp-contract=off "${common[@]}" tests/cuda/lt_check.cc -x c++ runtime/engine/core/cuda/lt.cu -x none "${objects[@]}" \
	-o "$out/lt_check" -ldl
"$out/lt_check" "$PWD/$out/fake_lt.so" "${1:-1}"

# ThreadSanitizer does not support fences, which yt_guard.h uses if the kernel has no
# membarrier. All other synchronisation uses locks and atomics.
tsan=(-O1 -g -Wall -Wextra -Iruntime/engine/core/c -Iruntime/engine/core/cuda -Itests/cuda -fsanitize=thread -Wno-tsan)
objects=()
for f in "${sources[@]}"; do
	"${CC:-gcc}" -std=c11 "${tsan[@]}" -c "runtime/engine/core/c/$f.c" -o "$out/tsan_$f.o"
	objects+=("$out/tsan_$f.o")
done
"${CXX:-g++}" -std=c++17 -ffp-contract=off "${tsan[@]}" tests/cuda/core_check.cc "${objects[@]}" -o "$out/core_check_tsan"
"$out/core_check_tsan" "${1:-1}" 60 streams
