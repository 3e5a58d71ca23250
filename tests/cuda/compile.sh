#!/usr/bin/env bash
# Builds the CUDA backend without a GPU: compiles and assembles every kernel for each
# supported architecture, links libyoctune_cuda.so, and checks that
#   - ptxas accepts the code without spilling registers;
#   - the wide paths of the kernels use 128-bit accesses, and no multiplication was fused
#     with an addition;
#   - the library exports only yt_get_api;
#   - the library can be opened, and returns YT_E_NO_BACKEND without a driver.
# Without a GPU it does not run the kernels, and reports that.
#
#   tests/cuda/compile.sh [OUT]     OUT: directory of the library; default: build/cuda
#   tests/cuda/compile.sh --update [OUT]   also rewrites internal/occupancy/kernels.tsv
#   NVCC=/path/to/nvcc              use this compiler instead of the PyPI one
set -euo pipefail
cd "$(dirname "$0")/../.."

update=
[ "${1:-}" != --update ] || { update=1 && shift; }
out=${1:-build/cuda}
read -ra archs <<<"${CUDA_ARCHS:-75 87 90 110}"
src=runtime/engine/core/cuda
files=(backend memory stream module faults copy preprocess reduce image boxes rows gemm lt)
cc=${CC:-gcc}

nvcc=${NVCC:-}
lib=()
if [ -z "$nvcc" ]; then
	venv=build/cuda-venv
	# The stamp, shared with scripts/setup.sh, is a copy of the installed list: a changed pin
	# causes a new installation.
	if ! cmp -s tests/cuda/requirements.txt "$venv/.requirements"; then
		echo "installing the CUDA compiler from PyPI into $venv"
		python3 -m venv "$venv"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/cuda/requirements.txt
		cp tests/cuda/requirements.txt "$venv/.requirements"
	fi
	nvcc=$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
	lib=(-L"${nvcc%/bin/nvcc}/lib")
fi
"$nvcc" --version | tail -n 2

mkdir -p "$out"
names=$(printf 'sm_%s ' "${archs[@]}")
gencode=()
for a in "${archs[@]}"; do
	gencode+=(-gencode "arch=compute_$a,code=sm_$a")
done
# The newest architecture also as PTX, for future devices.
newest=${archs[-1]}
gencode+=(-gencode "arch=compute_$newest,code=compute_$newest")
# --fmad=false: backends agree bit for bit (yt_math.h).
flags=(-std=c++17 -O3 --fmad=false -Iruntime/engine/core/c -I"$src" "-DYT_CUDA_ARCHS=\"${names% }\""
	"-Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra" -Werror=all-warnings)

# As many compilers as there are cores, each with a report of its own. Released libraries have no
# fault injection; the variant with it must compile as well.
report=$out/ptxas.txt
objects=()
compile() { # NAME SOURCE [FLAG...]
	"$nvcc" "${flags[@]}" "${gencode[@]}" "${@:3}" -c "$src/$2.cu" -o "$out/$1.o" 2>"$out/$1.ptxas" || {
		cat "$out/$1.ptxas" >&2
		return 1
	}
}
running=0
start() {
	if [ "$running" -ge "$(nproc)" ]; then
		wait -n
		running=$((running - 1))
	fi
	compile "$@" &
	running=$((running + 1))
}
start faults_test faults -DYT_FAULTS
start backend_test backend -DYT_FAULTS
for f in "${files[@]}"; do
	start "$f" "$f" -Xptxas=-v
	objects+=("$out/$f.o")
done
while [ "$running" -gt 0 ]; do
	wait -n
	running=$((running - 1))
done
for f in "${files[@]}"; do
	cat "$out/$f.ptxas"
done >"$report"
awk '/Compiling entry function/ { split($0, q, "\x27"); kernel = q[2]; arch = q[4] }
     /bytes spill/ { spills = $5 + $9; total += spills }
     /Used [0-9]+ registers/ { match($0, /Used [0-9]+ registers/); regs = substr($0, RSTART + 5, RLENGTH - 15)
                               printf "%-8s %3d registers %3d bytes spilled  %s\n", arch, regs, spills, kernel }
     END { exit total > 0 }' "$report" || {
	echo "error: a kernel spills registers to memory (see $report); reduce its live values" >&2
	exit 1
}

# The figures for checking launch configurations: architecture, operation, kernel, registers
# per thread, bytes of static shared memory.
c++filt <"$report" | awk '/Compiling entry function/ { split($0, q, "\x27"); kernel = q[2]; arch = substr(q[4], 4)
         sub(/^void /, "", kernel); sub(/[<(].*/, "", kernel) }
     /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); regs = substr($0, RSTART + 5, RLENGTH - 5) + 0; shared = 0
         if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH - 11) + 0
         key = arch "\t" kernel; if (regs > r[key]) r[key] = regs; if (shared > s[key]) s[key] = shared; seen[key] = 1 }
     END { for (key in seen) { split(key, part, "\t"); op = part[2]; sub(/_.*/, "", op); if (op == "tensor" || op == "batch") op = "preprocess"
         printf "%s\t%s\t%s\t%d\t%d\n", part[1], op, part[2], r[key], s[key] } }' |
	LC_ALL=C sort -k1,1n -k2 >"$out/kernels.tsv"
figures=internal/occupancy/kernels.tsv
if [ -n "$update" ]; then
	cp "$out/kernels.tsv" "$figures"
elif [ "${archs[*]}" = "75 87 90 110" ] && [ -z "${NVCC:-}" ] && ! diff -u "$figures" "$out/kernels.tsv"; then
	echo "error: $figures is out of date; run tests/cuda/compile.sh --update" >&2
	exit 1
fi

for f in copy preprocess reduce rows image; do
	"$nvcc" "${flags[@]}" -arch="compute_$newest" -ptx "$src/$f.cu" -o "$out/$f.ptx"
	grep -Eq '(ld|st)\.[a-z.]*v4' "$out/$f.ptx" || {
		echo "error: $src/$f.cu: no 128-bit access in $out/$f.ptx" >&2
		exit 1
	}
	if grep -n 'fma\.' "$out/$f.ptx" >&2; then
		echo "error: $src/$f.cu: a fused multiply-add would make backends differ" >&2
		exit 1
	fi
	if grep -n '\.local' "$out/$f.ptx" >&2; then
		echo "error: $src/$f.cu: an array is in memory instead of registers" >&2
		exit 1
	fi
done

so=$out/libyoctune_cuda.so
"$nvcc" -shared -cudart static "${lib[@]}" "${objects[@]}" -o "$so" \
	"-Xlinker=--version-script=$src/exports.map,--exclude-libs=ALL,-z,now,-z,relro,-soname=libyoctune_cuda.so"

exported=$(nm -D --defined-only "$so" | awk '{ print $3 }' | grep -v '^$' | paste -sd' ')
if [ "$exported" != yt_get_api ]; then
	echo "error: $so exports '$exported', want only yt_get_api" >&2
	exit 1
fi

"$cc" -std=c11 -Wall -Wextra -Iruntime/engine/core/c tests/cuda/open.c -o "$out/open" -ldl
if "$out/open" "$so"; then
	echo "compiled and assembled for ${names% }; exports yt_get_api only; opens"
	[ -e /dev/nvidia0 ] || echo "no GPU on this machine: the kernels were not run"
else
	exit 1
fi
