#!/usr/bin/env bash
# The main job on an example: configuration -> layer -> device -> results of its pipeline.
# Usage: scripts/demo.sh EXAMPLE BIN WORK MODELS
# MODELS is what tests/models/fetch.sh filled: ONNX Runtime, and the model by its digest.
set -euo pipefail
example=$1 bin=$2 work=$3 models=$4
target=$(basename "$(find "$example" -maxdepth 1 -name '*.cue' -print -quit)" >/dev/null && sed -n 's/^\t\t"\{0,1\}\([a-z0-9-]*\)"\{0,1\}: {$/\1/p;/profiles:/q' "$example"/config.cue | head -n 1)
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }
rm -rf "$work"
mkdir -p "$work"

say "1. check $example"
"$bin/yoctune" vet "$example"

say "2. build the layer: $work/layer"
"$bin/yoctune" build "$example" -o "$work/layer"
(cd "$work" && find layer -type f | LC_ALL=C sort | sed 's/^/   /')

say "3. change one line, see what it means for the layer"
cp -r "$example" "$work/changed"
sed -i 's/\("vm.swappiness": *\)[0-9]*/\160/' "$work/changed/config.cue"
"$bin/yoctune" diff "$work/changed" "$work/layer" || [ $? = 3 ]

say "4. apply the plan to a device tree: the module's facts, flashed with this layer"
"$bin/yoctune" plan "$example" --target "$target" -o "$work/plan.json"
"$bin/yoctune" facts tree --plan "$work/plan.json" -o "$work/device"
"$bin/yoctuned" apply --root "$work/device" "$work/plan.json"
"$bin/yoctuned" verify --quiet --root "$work/device" "$work/plan.json"

say "5. a value changes; verify reports it"
echo 60 >"$work/device/proc/sys/vm/swappiness"
"$bin/yoctuned" verify --quiet --root "$work/device" "$work/plan.json" || [ $? = 3 ]

say "6. roll back: every original value returns"
"$bin/yoctuned" rollback --root "$work/device"

say "7. the pipeline reads the labels of the shipped clip"
pipeline=$(sed -n 's/^\t\tpipelines: \([a-z0-9-]*\): {$/\1/p' "$example/config.cue")
recipe=$(find "$work/layer" -name '*-models_*.bb')
# The files that the layer carries, where its recipe installs them, beside the layer's plan.
beside=$work/device/usr/lib/yoctune
install -D -m 0644 "$(find "$work/layer" -path '*/plan/plan.json')" "$beside/plan.json"
# shellcheck disable=SC2016 # variables of bitbake
sed -n 's|^ *install .* ${S}/\([0-9a-f]\{64\}\) ${D}${nonarch_libdir}/yoctune/\(.*\)$|\1 \2|p' "$recipe" | while read -r sum name; do
	install -D -m 0644 "$(dirname "$recipe")/files/$sum" "$beside/$name"
done
library=$(find "$models/$(uname -m)" -name 'libonnxruntime.so.*' | sort -V | tail -n 1)
"$bin/yoctuned" pipeline run "$beside/plan.json" "$pipeline" --models "$models" --library "$library" | tee "$work/results"
sed -n 's/^frame .*  "\(.*\)" [0-9.]*$/\1/p' "$work/results" >"$work/read"
cmp "$work/read" "$example/media/serials.txt"

say "What was real, and what stood in"
cat <<END
real:      the compiler, the layer, the enforcer's code, the engine with ${library##*/} for $(uname -m),
           the model and the clip by their digests: all $(wc -l <"$work/read") labels were read as drawn
stood in:  files made from the module's facts for its /proc and /sys (no kernel acted on them);
           this machine's processors for the module's; the clip for a camera
not shown: bitbake, systemd, a GPU (scripts/prove.sh)
END
