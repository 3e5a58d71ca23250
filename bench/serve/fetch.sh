#!/bin/sh
# Brings perf_analyzer, NVIDIA's load generator, from its Python package, and the C library
# that it needs where the host's is older.
#
#   bench/serve/fetch.sh DIR        DIR/run starts the program
set -eu
version=2.60.0
suite=trixie
dir=${1:?usage: fetch.sh DIR}
[ ! -x "$dir/run" ] || exit 0
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d "$dir/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
[ "$(uname -m)" = x86_64 ] || { echo "fetch.sh: perf-analyzer has no package for $(uname -m) here" >&2; exit 1; }
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux_2_38_x86_64 --dest "$work" "perf-analyzer==$version"
python3 -m zipfile -e "$work"/perf_analyzer-*.whl "$work/wheel"
program=$(find "$work/wheel" -path '*/bin/perf_analyzer' -type f)
chmod +x "$program"
if "$program" --version >/dev/null 2>&1; then
	mv "$program" "$dir/run"
	exit 0
fi
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $suite main" >"$work/sources"
cd "$work"
set -- -qq -o Dir::Etc::SourceList="$work/sources" -o Dir::Etc::SourceParts=/dev/null -o Dir::State="$work/state" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)"
apt-get "$@" update
apt-get "$@" download libc6 libstdc++6 libgcc-s1 zlib1g
rm -rf "$dir/root"
for package in *.deb; do dpkg-deb -x "$package" "$dir/root"; done
mv "$program" "$dir/perf_analyzer"
loader=$(find "$dir/root" -name 'ld-linux-x86-64.so.2' | head -n 1)
libraries=$(dirname "$(find "$dir/root" -name 'libc.so.6' | head -n 1)")
cat >run <<-END
	#!/bin/sh
	exec "$loader" --library-path "$libraries" "$dir/perf_analyzer" "\$@"
END
chmod +x run
mv run "$dir/run"
"$dir/run" --version >/dev/null
