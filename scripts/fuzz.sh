#!/usr/bin/env bash
# Runs Go's fuzz targets one after the other, each for so long, and says how often
# each was called. Inputs that an earlier run found and Go keeps in its cache are
# tried first; where they alone use up TIME, Go prints no "execs" and the
# number of them that were tried stands instead.
#
#   scripts/fuzz.sh TIME FOLDER...      TIME as of -fuzztime: 60s, or 200x
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:?usage: fuzz.sh TIME FOLDER...}
shift
mkdir -p build
failed=0
while IFS=: read -r package target; do
	printf '%s %s ' "$package" "$target"
	if go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" >build/fuzz.log 2>&1; then
		grep -oE 'execs: [0-9]+|baseline coverage: [0-9]+/[0-9]+' build/fuzz.log | tail -n 1 || echo 'passed, without a count'
	else
		failed=1
		echo FAILED
		cat build/fuzz.log >&2
	fi
done < <(grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' "$@" | sed -E 's#^(\./)?(.*)/[^/]*_test\.go:func (Fuzz.*)#./\2:\3#' | sort -u)
exit $failed
