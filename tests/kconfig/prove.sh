#!/bin/sh
# Compares predictions with the kernel's own Kconfig program, on unpacked kernel
# sources, and writes a dated record.
#
#   tests/kconfig/prove.sh [DIR...]
#
# Without arguments the sources that Debian's linux-source packages put into
# /usr/src are unpacked to build/kconfig.
set -eu
cd "$(dirname "$0")/../.."

for tool in make gcc flex bison aarch64-linux-gnu-gcc; do
	if ! command -v "$tool" >/dev/null; then
		echo "kconfig: not done: $tool is missing (apt-get install make gcc flex bison gcc-aarch64-linux-gnu)"
		exit 1
	fi
done

if [ $# -eq 0 ]; then
	mkdir -p build/kconfig
	for archive in /usr/src/linux-source-6.*.tar.xz; do
		[ -e "$archive" ] || continue
		name=$(basename "$archive" .tar.xz)
		[ -d "build/kconfig/$name" ] || tar -C build/kconfig -xf "$archive"
		set -- "$@" "build/kconfig/$name"
	done
fi
if [ $# -eq 0 ]; then
	echo "kconfig: not done: no kernel source (apt-get install linux-source-6.1 linux-source-6.12, or name unpacked folders)"
	exit 1
fi

sources=
for dir in "$@"; do
	sources="$sources -src $dir"
done
# Word splitting is wanted: folders with blanks in their names are not built by
# the kernel either.
# shellcheck disable=SC2086
exec go run ./tests/kconfig/prove $sources -lines 2500 -o "bench/results/$(date -u +%F)-kconfig.json"
