#!/usr/bin/env bash
# Checks that a program needs no newer glibc than the oldest supported series
# has: 2.34, which is older than kirkstone's 2.35.
#
#   tests/glibc-symbols.sh BINARY...    MAX_GLIBC=2.34
set -euo pipefail

max=${MAX_GLIBC:-2.34}
[ $# -gt 0 ] || {
	echo "usage: $0 BINARY..." >&2
	exit 2
}
status=0
for binary in "$@"; do
	symbols=$(objdump -T "$binary") || exit 1
	newest=$(grep -o 'GLIBC_[0-9.]*' <<<"$symbols" | sed 's/^GLIBC_//; s/\.$//' | sort -Vu | tail -n 1)
	if [ -z "$newest" ]; then
		echo "error: $binary names no glibc symbol: a static program, or not one for glibc" >&2
		status=1
	elif [ "$(printf '%s\n' "$max" "$newest" | sort -V | tail -n 1)" != "$max" ]; then
		echo "error: $binary needs glibc $newest, at most $max is allowed:" >&2
		grep -E "GLIBC_${newest//./\\.}(\)|$| )" <<<"$symbols" | awk '{ print "  " $NF }' >&2
		status=1
	else
		echo "$binary: glibc $newest (at most $max)"
	fi
done
exit $status
