#!/bin/bash
# The device program for arm64: built with Debian's cross compiler, run under
# qemu-user, and its glibc symbols checked on both architectures.
set -euo pipefail
cd "$(dirname "$0")/../.."

cc=aarch64-linux-gnu-gcc
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || { echo "arm64: no qemu-aarch64: apt-get install qemu-user" >&2; exit 1; }
export CGO_ENABLED=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== build for arm64 and amd64"
GOARCH=arm64 CC=$cc go build -trimpath -ldflags '-s -w' -o "$work/yoctuned-arm64" ./cmd/yoctuned
GOARCH=amd64 go build -trimpath -ldflags '-s -w' -o "$work/yoctuned-amd64" ./cmd/yoctuned
limit=$((20 * 1000 * 1000))
for f in "$work"/yoctuned-*; do
	size=$(stat -c %s "$f")
	echo "$(basename "$f"): $size bytes"
	[ "$size" -le $limit ] || { echo "arm64: larger than $limit bytes" >&2; exit 1; }
done
tests/glibc-symbols.sh "$work/yoctuned-arm64" "$work/yoctuned-amd64"

echo "== run the arm64 program"
arm() { "$qemu" -L /usr/aarch64-linux-gnu "$work/yoctuned-arm64" "$@"; }
arm version
go run ./internal/cmd/synthtree --board orin-nano-8gb "$work/device"
go run ./cmd/yoctune plan examples/video-analytics --target line-camera -o "$work/plan.json"
code=0
arm apply --root "$work/device" --format json "$work/plan.json" >"$work/apply.ndjson" || code=$?
tail -n 1 "$work/apply.ndjson"
[ $code = 0 ] || [ $code = 3 ] || { cat "$work/apply.ndjson"; exit 1; }
[ "$(cat "$work/device/proc/sys/vm/swappiness")" = 10 ] || { echo "arm64: apply left vm.swappiness alone" >&2; exit 1; }
arm rollback --root "$work/device" >/dev/null
[ "$(cat "$work/device/proc/sys/vm/swappiness")" = 60 ] || { echo "arm64: rollback did not restore vm.swappiness" >&2; exit 1; }

echo "== the core's tests on arm64"
GOARCH=arm64 CC=$cc go test -exec "$qemu -L /usr/aarch64-linux-gnu" ./runtime/core/ -rapid.checks=30
