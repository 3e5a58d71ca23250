#!/usr/bin/env bash
# The CUDA kernels on a GPU: builds them with the nvcc it finds, compares results and
# times with torch, torch.compile, CuPy, cuBLAS and torchvision in one run, and runs
# compute-sanitizer at the end. JSON lines in OUT/results.jsonl. Under 9 minutes.
#
#   bench/gpu/run.sh [OUT]         OUT: folder for results, build/gpu
#   bench/gpu/run.sh --dry [OUT]   builds and checks what needs no GPU, runs nothing
#
#   NVCC, PYTHON    the compiler and the Python with torch to use
set -euo pipefail
cd "$(dirname "$0")/../.."

dry=
[ "${1:-}" != --dry ] || { dry=1 && shift; }
out=${1:-build/gpu}
python=${PYTHON:-python3}
mkdir -p "$out"
started=$SECONDS

# What is left of `most` seconds for all, but no more than the step's own limit.
most=530
within() {
	local limit=$1 left=$((most - (SECONDS - started)))
	shift
	[ "$left" -gt 5 ] || {
		echo "skipped, no time left: $*" >&2
		return 0
	}
	timeout "$((limit < left ? limit : left))" "$@"
}

find_nvcc() {
	local c
	for c in "${NVCC:-}" "$(command -v nvcc || true)" /usr/local/cuda*/bin/nvcc build/cuda-venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc \
		"$("$python" -c 'import nvidia, glob; print((glob.glob(list(nvidia.__path__)[0] + "/cu*/bin/nvcc") + [""])[0])' 2>/dev/null || true)"; do
		if [ -n "$c" ] && [ -x "$c" ]; then
			echo "$c"
			return
		fi
	done
	echo "error: no nvcc: set NVCC, or pip install -r tests/cuda/requirements.txt" >&2
	return 1
}

nvcc=$(find_nvcc)
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d . || true)
arch=${arch:-90}
lib=$(dirname "$(dirname "$nvcc")")/lib
flags=(-std=c++17 -O3 --fmad=false -Iruntime/core/c -Iruntime/core/cuda "-gencode=arch=compute_$arch,code=sm_$arch" -Xcompiler=-fPIC)
[ ! -d "$lib" ] || flags+=("-L$lib")
echo "nvcc: $nvcc, for sm_$arch" >&2
pids=()
objects=()
for f in runtime/core/cuda/{copy,preprocess,reduce,image,boxes,rows,gemm}.cu bench/gpu/shim.cu; do
	o=$out/$(basename "$f" .cu).o
	within 200 "$nvcc" "${flags[@]}" -c "$f" -o "$o" &
	pids+=($!)
	objects+=("$o")
done
for p in "${pids[@]}"; do wait "$p"; done
within 60 "$nvcc" "${flags[@]}" -shared -cudart static "${objects[@]}" -o "$out/shim.so"
echo "built in $((SECONDS - started)) s" >&2

if [ -n "$dry" ]; then
	"$python" -m py_compile bench/gpu/compare.py
	for f in $(grep -oE '"shim_[a-z]+"' bench/gpu/compare.py | tr -d '"' | sort -u); do
		nm -D --defined-only "$out/shim.so" | grep -q " $f\$" || {
			echo "error: compare.py calls $f, which shim.so does not have" >&2
			exit 1
		}
	done
	echo "dry: built for sm_$arch; nothing was run" >&2
	exit 0
fi

nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv >"$out/card.csv"
rc=0
within 330 "$python" bench/gpu/compare.py "$out/shim.so" | tee "$out/results.jsonl" || rc=1
nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu --format=csv,noheader >>"$out/card.csv"

sanitizer=$(command -v compute-sanitizer || echo "$(dirname "$nvcc")/compute-sanitizer")
if [ -x "$sanitizer" ]; then
	for tool in memcheck racecheck; do
		clean=true
		within 90 "$sanitizer" --tool "$tool" --error-exitcode 9 \
			"$python" bench/gpu/compare.py "$out/shim.so" --small >"$out/$tool.txt" 2>&1 || clean=false rc=1
		echo "{\"name\": \"compute-sanitizer $tool\", \"clean\": $clean}" | tee -a "$out/results.jsonl"
	done
else
	echo '{"name": "compute-sanitizer", "error": "not installed"}' | tee -a "$out/results.jsonl"
fi
echo "done in $((SECONDS - started)) s, results in $out/results.jsonl" >&2
exit "$rc"
