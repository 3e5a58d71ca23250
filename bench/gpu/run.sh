#!/usr/bin/env bash
# Tests and measures the CUDA kernels on a GPU in under 9 minutes. It builds them with the
# installed nvcc and compares results and times with torch, torch.compile, CuPy, cuBLAS and
# torchvision. It also runs a prebuilt yoctuned with the library, compares occupancies with
# the driver's, and runs compute-sanitizer. The results are JSON lines in OUT/results.jsonl.
#
# A failed step is recorded in the results and makes the exit code 1. Steps that do not
# depend on it still run.
#
#   bench/gpu/run.sh [OUT]         OUT: directory of the results; default: build/gpu
#   bench/gpu/run.sh --dry [OUT]   builds everything, but runs nothing on a GPU
#   bench/gpu/run.sh --pipelines [--cpu] [OUT]
#                                  instead compares whole pipelines with PyTorch, ONNX Runtime
#                                  and torchvision in under 4 minutes, in OUT/pipelines.jsonl;
#                                  --cpu: on the CPU backend, to try the script without a GPU
#
#   NVCC, PYTHON    the compiler, and a Python with torch
#   YOCTUNED        the prebuilt program: go build -o build/gpu/yoctuned ./cmd/yoctuned
#   PLANS           of --pipelines: go run ./bench/gpu/plans build/gpu/plans
#   MODELS          of scripts/setup.sh models; default: build/models
#   ORT             ONNX Runtime's library; default: with a GPU Python's, else that of MODELS
#   LIBRARY         the CUDA backend; default: the one that a run without options left in OUT/lib
set -euo pipefail
cd "$(dirname "$0")/../.."

dry='' pipelines='' cpu=''
[ "${1:-}" != --dry ] || { dry=1 && shift; }
[ "${1:-}" != --pipelines ] || { pipelines=1 && shift; }
[ "${1:-}" != --cpu ] || { cpu=--cpu && shift; }
out=${1:-build/gpu}
python=${PYTHON:-python3}
yoctuned=${YOCTUNED:-$out/yoctuned}
mkdir -p "$out"
started=$SECONDS
rc=0

# What is missing is named before anything is measured.
need() {
	[ -e "$2" ] || {
		echo "error: no $1 at ${2:-an empty path}: $3" >&2
		exit 1
	}
}

if [ -n "$pipelines" ]; then
	if [ -z "$cpu" ] && ! nvidia-smi -L >&2; then
		echo "error: no GPU: --pipelines --cpu tries the pipelines on the CPU" >&2
		exit 3
	fi
	export YOCTUNED=$yoctuned PLANS=${PLANS:-$out/plans} MODELS=${MODELS:-build/models} LIBRARY=${LIBRARY:-$out/lib/libyoctune_cuda.so}
	[ -n "${ORT:-}" ] || [ -n "$cpu" ] || ORT=$("$python" -c 'import glob, os, onnxruntime as o; print((glob.glob(os.path.dirname(o.__file__) + "/capi/libonnxruntime.so*") + [""])[0])' || true)
	found=("$MODELS/$(uname -m)"/libonnxruntime.so*)
	export ORT=${ORT:-${found[-1]}} # the newest
	need yoctuned "$YOCTUNED" 'go build -o build/gpu/yoctuned ./cmd/yoctuned'
	need plans "$PLANS/frames.nv12" 'go run ./bench/gpu/plans build/gpu/plans'
	need model "$MODELS/yolov8n-doclaynet.onnx" 'scripts/setup.sh models'
	need 'ONNX Runtime' "$ORT" 'set ORT'
	[ -n "$cpu" ] || need 'CUDA backend' "$LIBRARY" 'bench/gpu/run.sh builds it'
	MODELS=$(realpath "$MODELS") LIBRARY=$(realpath -m "$LIBRARY")
	limit=240
	[ -z "$cpu" ] || limit=0
	exec timeout "$limit" "$python" bench/gpu/pipelines.py $cpu "$out" > >(tee "$out/pipelines.jsonl")
fi

# Runs a step within its own limit and the rest of `most` seconds for all steps. Returns 99
# if no time is left.
most=530
within() {
	local limit=$1 left=$((most - (SECONDS - started)))
	shift
	[ -z "$dry" ] || {
		"$@" # no limit in a dry run
		return
	}
	[ "$left" -gt 5 ] || {
		echo "skipped, no time left: $*" >&2
		return 99
	}
	timeout "$((limit < left ? limit : left))" "$@"
}

# Records the result of a step that is not a measurement.
verdict() {
	local clean=true
	case $2 in
	0) ;;
	99 | 124) clean=null ;; # no time left: unknown
	*) clean=false rc=1 ;;
	esac
	echo "{\"name\": \"$1\", \"clean\": $clean, \"exit\": $2}" | tee -a "$out/results.jsonl"
}

find_nvcc() {
	local c
	for c in "${NVCC:-}" "$(command -v nvcc || true)" /usr/local/cuda*/bin/nvcc build/cuda-venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc \
		"$("$python" -c 'import nvidia, glob; print((glob.glob(list(nvidia.__path__)[0] + "/cu*/bin/nvcc") + [""])[0])' 2>/dev/null || true)"; do
		if [ -n "$c" ] && [ -x "$c" ]; then
			realpath "$c"
			return
		fi
	done
	echo "error: no nvcc: set NVCC, or pip install -r tests/cuda/requirements.txt" >&2
	return 1
}

nvcc=$(find_nvcc)
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d . || true)
arch=${arch:-90}
flags=(-std=c++17 -O3 --fmad=false -Iruntime/engine/core/c -Iruntime/engine/core/cuda "-gencode=arch=compute_$arch,code=sm_$arch" -Xcompiler=-fPIC)
for lib in "${nvcc%/bin/nvcc}"/{lib64,lib,targets/x86_64-linux/lib}; do
	[ ! -d "$lib" ] || flags+=("-L$lib")
done
echo "nvcc: $nvcc, for sm_$arch" >&2

# The library that yoctuned opens, beside the rest: with the checks of every build.
(LIBRARY_PATH=${nvcc%/bin/nvcc}/lib NVCC=$nvcc CUDA_ARCHS=$arch within 280 tests/cuda/compile.sh "$out/lib" >"$out/compile.txt" 2>&1) &
library=$!
pids=()
objects=()
kernels=()
for f in runtime/engine/core/cuda/*.cu; do
	case $(basename "$f") in
	backend.cu | memory.cu | stream.cu | module.cu | faults.cu | lt.cu) ;; # the host side
	*) kernels+=("$f") ;;
	esac
done
for f in "${kernels[@]}" bench/gpu/shim.cu; do
	o=$out/$(basename "$f" .cu).o
	within 200 "$nvcc" "${flags[@]}" -c "$f" -o "$o" &
	pids+=($!)
	objects+=("$o")
done
within 200 "$nvcc" "${flags[@]}" -c bench/gpu/check.cu -o "$out/check.o" &
pids+=($!)
rm -f "$out/shim.so" "$out/check"
: >"$out/results.jsonl"
code=0
for p in "${pids[@]}"; do wait "$p" || code=$?; done
within 60 "$nvcc" "${flags[@]}" -shared -cudart static "${objects[@]}" -o "$out/shim.so" || code=$?
verdict "kernels built for torch" "$code"
code=0
within 60 "$nvcc" "${flags[@]}" -cudart static "${objects[@]}" "$out/check.o" -o "$out/check" || code=$?
verdict "check of the kernels built" "$code"
echo "built in $((SECONDS - started)) s" >&2

if [ -n "$dry" ]; then
	[ "$rc" = 0 ] || exit "$rc"
	"$python" -c 'import ast; ast.parse(open("bench/gpu/compare.py").read())'
	for f in $(grep -oE '"shim_[a-z]+"' bench/gpu/compare.py | tr -d '"' | sort -u); do
		nm -D --defined-only "$out/shim.so" | grep -q " $f\$" || {
			echo "error: compare.py calls $f, which shim.so does not have" >&2
			exit 1
		}
	done
	wait "$library" || {
		tail -n 20 "$out/compile.txt" >&2
		exit 1
	}
	echo "dry: built for sm_$arch; nothing was run" >&2
	exit 0
fi

nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv >"$out/card.csv" || true
code=0
within 270 "$python" bench/gpu/compare.py "$out/shim.so" >>"$out/results.jsonl" || code=$?
verdict "compared with torch, CuPy, cuBLAS and torchvision" "$code"
nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu --format=csv,noheader >>"$out/card.csv" || true

# The driver's occupancies, for the calculator to be held against.
code=0
within 20 "$out/check" occupancy >"$out/occupancy.jsonl" || code=$?
verdict "occupancy of the driver recorded" "$code"

code=0
wait "$library" || code=$?
verdict "library built and checked" "$code"
if [ "$code" != 0 ]; then # another compiler's warning, or a tool that is not there: without the checks
	tail -n 20 "$out/compile.txt" >&2
	mkdir -p "$out/lib"
	code=0
	within 150 "$nvcc" "${flags[@]}" --threads 0 "-DYT_CUDA_ARCHS=\"sm_$arch\"" -Xcompiler=-fvisibility=hidden -shared -cudart static \
		runtime/engine/core/cuda/*.cu -o "$out/lib/libyoctune_cuda.so" -Xlinker --version-script=runtime/engine/core/cuda/exports.map || code=$?
	verdict "library built, not checked" "$code"
fi
if [ "$code" = 0 ] && [ -x "$yoctuned" ]; then
	so=$(realpath "$out/lib/libyoctune_cuda.so")
	code=0
	within 20 "$yoctuned" occupancy --recorded "$out/occupancy.jsonl" >"$out/occupancy.txt" || code=$?
	verdict "occupancy: the calculator beside the driver" "$code"
	code=0
	within 90 "$yoctuned" bench all --backend cuda --library "$so" --samples 20 -q --format json -o "$out/bench.jsonl" || code=$?
	verdict "yoctuned bench all" "$code"
	for run in first second; do
		code=0
		within 30 "$yoctuned" tune --backend cuda --library "$so" --cache "$(realpath "$out")/kernels" --format json >"$out/tune-$run.jsonl" || code=$?
		verdict "yoctuned tune, $run start" "$code"
	done
	code=0
	grep -q '"runs":0' "$out/tune-second.jsonl" || code=1
	verdict "the second start measures nothing" "$code"
else
	echo "{\"name\": \"yoctuned\", \"error\": \"no library, or no program at $yoctuned\"}" | tee -a "$out/results.jsonl"
fi

sanitizer=$(command -v compute-sanitizer || echo "${nvcc%/nvcc}/compute-sanitizer")
if [ -x "$sanitizer" ]; then
	for tool in memcheck racecheck; do
		code=0
		within 60 "$sanitizer" --tool "$tool" --error-exitcode 9 "$out/check" >"$out/$tool.txt" 2>&1 || code=$?
		# It refuses the device under some hypervisors: then nothing was checked.
		! grep -q 'Device not supported' "$out/$tool.txt" || code=99
		verdict "compute-sanitizer $tool" "$code"
	done
else
	echo '{"name": "compute-sanitizer", "error": "not installed"}' | tee -a "$out/results.jsonl"
fi
echo "done in $((SECONDS - started)) s, results in $out/results.jsonl" >&2
exit "$rc"
