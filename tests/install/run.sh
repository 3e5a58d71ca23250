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
other=$(mktemp -d)
trap 'umount "$root/proc" || true; rm -rf --one-file-system "$root" "$other"' EXIT
cp -a "$clean/." "$root"
mount -t proc proc "$root/proc" # shells want /dev/fd

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
echo "== completion in bash, zsh and fish; manual pages"
cp /etc/resolv.conf "$root/etc/"
chroot "$root" sh -ec 'apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends man-db mandoc bash-completion zsh fish' >"$root/shells.log" 2>&1 || { tail -5 "$root/shells.log" >&2; exit 1; }
YOCTUNE_CLEAN_ROOT=$root go test ./tests/install -count=1
# shellcheck disable=SC2016 # runs in the root
chroot "$root" sh -c 'for page in /usr/share/man/man1/yoctune*.1.gz; do
	MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null
	mandoc -Tlint -W warning "$page"
	echo "$page" >>/pages
done' | tee "$root/warnings" >&2
[ ! -s "$root/warnings" ] || { echo "install: man or mandoc warns" >&2; exit 1; }
echo "$(wc -l <"$root/pages") pages without a warning of man and mandoc"
echo "== the packages for arm64, in the files of an arm64 Debian, under qemu-user"
if command -v qemu-aarch64 >/dev/null && [ "$arch" = amd64 ]; then
	if [ ! -e "$cache/debian-$suite-arm64.complete" ]; then
		rm -rf "$cache/debian-$suite-arm64"
		debootstrap --arch=arm64 --foreign --variant=minbase "$suite" "$cache/debian-$suite-arm64" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$cache/debian-$suite-arm64.log"
		touch "$cache/debian-$suite-arm64.complete"
	fi
	cp -a "$cache/debian-$suite-arm64/." "$other"
	touch "$other/var/lib/dpkg/status" # the root is unpacked, not configured: no foreign program ran
	dpkg --root="$other" --add-architecture arm64
	dpkg --root="$other" --force-depends -i "$dist"/yoctune*_arm64.deb >"$other/log" 2>&1 || { tail -5 "$other/log" >&2; exit 1; }
	foreign() { qemu-aarch64 -L "$other" "$other/usr/bin/$1" "${@:2}"; }
	foreign yoctune --version
	foreign yoctuned version
	foreign yoctuned-serve version
	foreign yoctune init "$other/v" >/dev/null
	foreign yoctune build "$other/v" -o "$other/layer" 2>&1 | sed "s#$other##g"
	foreign yoctune facts tree orin-nano-8gb -o "$other/device" | sed "s#$other##g"
	foreign yoctune plan "$other/v" >"$other/plan.json"
	foreign yoctuned apply --root "$other/device" "$other/plan.json"
else
	echo "not done: qemu-user is not installed"
fi
echo "== the Containerfile, built and run"
if command -v buildah >/dev/null; then
	tests/install/container.sh "$dist" "$clean"
else
	echo "not done: buildah is not installed"
fi
echo "== the workflows of init, with the archive; pre-commit and gitlab-ci-local"
tools=$(realpath "$cache")/ci-tools
if ! cmp -s tests/ci/requirements.txt "$tools/.requirements"; then
	rm -rf "$tools"
	python3 -m venv "$tools"
	"$tools/bin/pip" install --quiet --disable-pip-version-check -r tests/ci/requirements.txt
	npm install --silent --no-fund --no-audit --prefix "$tools" gitlab-ci-local@4.61.1 # newer ones want Node.js 22
	cp tests/ci/requirements.txt "$tools/.requirements"
fi
YOCTUNE_CI_TOOLS=$tools YOCTUNE_TEST_ARCHIVE=$(echo "$dist"/yoctune-*-linux-"$arch".tar.gz) go test ./tests/ci -count=1 -v | grep -E '^(---|ok|FAIL|panic)'
echo "== lintian"
if command -v lintian >/dev/null; then
	lintian --fail-on error,warning "$dist"/yoctune*.deb
else
	echo "not done: lintian is not installed"
fi
echo "== remove"
chroot "$root" sh -c 'dpkg --purge yoctuned-serve yoctuned yoctune'
[ ! -e "$root/usr/lib/yoctune" ] || { echo "install: files are left" >&2; exit 1; }
