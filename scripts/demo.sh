#!/usr/bin/env bash
# The main job on an example: configuration -> layer -> device.
# Usage: scripts/demo.sh EXAMPLE BIN WORK
set -euo pipefail
example=$1 bin=$2 work=$3
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
