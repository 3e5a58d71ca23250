#!/usr/bin/env bash
# Installs the packages of a release in a clean Debian, and follows README and guide there.
# usage: tests/install/run.sh DIST CACHE   (as root; the clean Debian is kept in CACHE)
set -euo pipefail
dist=$(realpath "$1") cache=$2 suite=bookworm
arch=$(dpkg --print-architecture)
clean=$cache/debian-$suite
if [ ! -e "$clean.complete" ]; then
	command -v debootstrap >/dev/null || { echo "install: debootstrap is not installed" >&2; exit 1; }
	rm -rf "$clean"
	mkdir -p "$cache"
	debootstrap --variant=minbase --include=ca-certificates "$suite" "$clean" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$clean.log"
	touch "$clean.complete"
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cp -a "$clean/." "$root"

echo "== digests"
(cd "$dist" && sha256sum --check --quiet SHA256SUMS)
echo "== install"
cp "$dist"/yoctune*_"$arch".deb "$root/tmp/"
started=$(date +%s%N)
# The command of docs/install.md. root needs no sudo, and nobody is there to answer.
command=$(sed -n 's/^sudo apt-get install /apt-get install -y /p' docs/install.md)
chroot "$root" sh -ec "cd /tmp && $command ./yoctuned-serve_*.deb"
installed=$(date +%s%N)
chroot "$root" yoctune --version
chroot "$root" yoctuned version
chroot "$root" yoctuned-serve version
for file in usr/share/bash-completion/completions/yoctune usr/share/zsh/vendor-completions/_yoctune usr/share/fish/vendor_completions.d/yoctune.fish usr/lib/yoctune/manifest.json; do
	[ -s "$root/$file" ] || { echo "install: $file is missing" >&2; exit 1; }
done
echo "== from an empty folder to a layer"
chroot "$root" sh -ec 'mkdir /tmp/empty; cd /tmp/empty; yoctune init vision; yoctune vet vision; yoctune build vision -o vision/layer; ls vision/layer/recipes-yoctune'
built=$(date +%s%N)
echo "installed in $(((installed - started) / 1000000)) ms, layer $(((built - installed) / 1000000)) ms after that"
echo "== README and guide"
YOCTUNE_CLEAN_ROOT=$root go test ./tests/guide -count=1 -run 'README|Guide' -v
echo "== the workflows of init, with the archive"
YOCTUNE_TEST_ARCHIVE=$(echo "$dist"/yoctune-*-linux-"$arch".tar.gz) go test ./tests/ci -count=1
echo "== lintian"
if command -v lintian >/dev/null; then
	lintian --fail-on error "$dist"/yoctune*_"$arch".deb
else
	echo "not done: lintian is not installed"
fi
echo "== remove"
chroot "$root" sh -c 'dpkg --purge yoctuned-serve yoctuned yoctune'
[ ! -e "$root/usr/lib/yoctune" ] || { echo "install: files are left" >&2; exit 1; }
