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
for tags in "" serve; do
	name=yoctuned${tags:+-$tags}
	GOARCH=arm64 CC=$cc go build -tags "$tags" -trimpath -ldflags '-s -w' -o "$work/$name-arm64" ./cmd/yoctuned
	GOARCH=amd64 go build -tags "$tags" -trimpath -ldflags '-s -w' -o "$work/$name-amd64" ./cmd/yoctuned
done
# The server adds a database, TLS, gRPC, NATS and a metrics client; few devices install it.
for f in "$work"/yoctuned-*; do
	limit=$((20 * 1000 * 1000))
	case $f in *-serve-*) limit=$((40 * 1000 * 1000)) ;; esac
	size=$(stat -c %s "$f")
	echo "$(basename "$f"): $size bytes"
	[ "$size" -le $limit ] || { echo "arm64: larger than $limit bytes" >&2; exit 1; }
done
tests/glibc-symbols.sh "$work"/yoctuned-*

echo "== run the arm64 program"
arm() { "$qemu" -L /usr/aarch64-linux-gnu "$work/yoctuned-arm64" "$@"; }
arm version
go run ./cmd/yoctune facts tree orin-nano-8gb -o "$work/device"
go run ./cmd/yoctune plan examples/video-analytics --target line-camera -o "$work/plan.json"
code=0
arm apply --root "$work/device" --format json "$work/plan.json" >"$work/apply.ndjson" || code=$?
tail -n 1 "$work/apply.ndjson"
[ $code = 0 ] || [ $code = 3 ] || { cat "$work/apply.ndjson"; exit 1; }
[ "$(cat "$work/device/proc/sys/vm/swappiness")" = 10 ] || { echo "arm64: apply left vm.swappiness alone" >&2; exit 1; }
arm rollback --root "$work/device" >/dev/null
[ "$(cat "$work/device/proc/sys/vm/swappiness")" = 60 ] || { echo "arm64: rollback did not restore vm.swappiness" >&2; exit 1; }

echo "== the arm64 program serves, and keeps a history"
# What SQLite and the server need of the kernel differs between processors.
serve="$qemu -L /usr/aarch64-linux-gnu $work/yoctuned-serve-arm64 serve --root $work/device --metrics --listen unix:$work/serve.socket"
$serve >"$work/serve.log" &
server=$!
for _ in $(seq 100); do [ -S "$work/serve.socket" ] && break; sleep 0.1; done
curl -fsS --max-time 20 --unix-socket "$work/serve.socket" http://localhost/metrics -o "$work/metrics" || { cat "$work/serve.log"; exit 1; }
grep '^yoctuned_power_mode_info' "$work/metrics"
kill -TERM $server
wait $server || { cat "$work/serve.log"; exit 1; }
[ -s "$work/device/var/lib/yoctune/history.db" ] || { echo "arm64: serve kept no history" >&2; cat "$work/serve.log" >&2; exit 1; }

echo "== the core's tests on arm64"
GOARCH=arm64 CC=$cc go test -exec "$qemu -L /usr/aarch64-linux-gnu" ./runtime/engine/core/ -rapid.checks=30
