#!/bin/sh
# Installs what the tests need from package registries. Everything except system
# packages goes below build/.
#
#   scripts/setup.sh system   Debian packages (needs root; lists what is missing otherwise)
#   scripts/setup.sh python   virtual environments for bitbake's parser, oelint-adv, kas, nvcc, SPDX, the editor client and optimised models
#   scripts/setup.sh models   ONNX Runtime and the models of the examples
#   scripts/setup.sh kernel   a Debian kernel to boot in qemu
#   scripts/setup.sh browser  headless Chromium and Playwright, for prove.sh browser
#   scripts/setup.sh editor   the editor client and Neovim, for prove.sh editor
#   scripts/setup.sh import   Augeas, Kconfiglib and oelint-parser, for prove.sh import
#   scripts/setup.sh rtsp     GStreamer's RTSP server and FFmpeg, for prove.sh rtsp
#   scripts/setup.sh image    what makes and boots an image, for prove.sh image
#   scripts/setup.sh serve    MLServer, tritonclient and perf_analyzer, for prove.sh serve
#   scripts/setup.sh peer     OpenCV and ONNX Runtime for Python, for the case study
set -eu
cd "$(dirname "$0")/.."

# need PROGRAM PACKAGE: adds the package to $want if the program is missing
need() { command -v "$1" >/dev/null 2>&1 || want="$want $2"; }
# installed PACKAGE: adds the package to $want if it is not installed
installed() { dpkg -s "$1" >/dev/null 2>&1 || want="$want $1"; }

system() {
	want=""
	need gcc gcc
	need g++ g++
	need python3 python3
	need systemd-analyze systemd
	need udevadm udev
	need shellcheck shellcheck
	need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	need qemu-aarch64 qemu-user
	need qemu-system-x86_64 qemu-system-x86
	need cpio cpio
	need depmod kmod
	need minisign minisign
	need dpkg-deb dpkg
	need npm npm
	need git git
	need patch patch
	need strace strace
	need sysctl procps
	need ethtool ethtool
	need irqbalance irqbalance
	need ip iproute2
	need objdump binutils
	need gst-launch-1.0 gstreamer1.0-tools
	need ssh openssh-client
	[ -x /usr/sbin/sshd ] || want="$want openssh-server"
	[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || want="$want libc6-dev-arm64-cross"
	[ -x /bin/busybox ] || [ -x /usr/bin/busybox ] || want="$want busybox-static"
		# Libraries have no program to look for.
	installed libturbojpeg0
	installed gstreamer1.0-plugins-base
	python3 -c 'import venv, ensurepip' 2>/dev/null || want="$want python3-venv"
	install
}

# install installs the wanted packages.
install() {
	[ -n "$want" ] || return 0
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "setup: missing packages:$want" >&2
		echo "setup: install them, as root on Debian: apt-get install --no-install-recommends$want" >&2
		exit 1
	fi
	echo "setup: installing$want" >&2
	apt-get update -qq
	# shellcheck disable=SC2086 # a list of package names
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $want >/dev/null
}

# venv DIR REQUIREMENTS: creates the environment, again when the requirements change
venv() {
	[ -f "$2" ] || { echo "setup: no $2" >&2; exit 1; }
	cmp -s "$2" "$1/.requirements" && return 0
	echo "setup: $1" >&2
	rm -rf "$1"
	python3 -m venv "$1"
	"$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
	cp "$2" "$1/.requirements"
}

# The environments are made side by side: each waits for its downloads.
python() {
	pids=""
	while read -r dir requirements; do
		venv "build/$dir" "$requirements" &
		pids="$pids $!"
	done <<-END
		cuda-venv tests/cuda/requirements.txt
		bb-venv tests/bitbake/requirements.txt
		oelint-venv emitters/assemble/testdata/oelint/requirements.txt
		kas-venv tests/series/requirements.txt
		spdx-venv compiler/layer/bom/testdata/spdx/requirements.txt
		lsp-venv tests/editor/requirements.txt
		trace-venv tests/trace/requirements.txt
		grpc-venv tests/grpc/requirements.txt
		nats-venv tests/nats/requirements.txt
	END
	optimiser &
	pids="$pids $!"
	for pid in $pids; do wait "$pid"; done
}

# The environment of `yoctune model`, in a cache folder of the tests' own.
optimiser() {
	mkdir -p build/cache
	go build -o build/cache/yoctune-setup ./cmd/yoctune
	XDG_CACHE_HOME=$PWD/build/cache build/cache/yoctune-setup model setup >/dev/null
	rm build/cache/yoctune-setup
}

models() { sh tests/models/fetch.sh; }

peer() { venv build/peer-venv bench/casestudy/requirements.txt; }

serve() {
	venv build/serve-venv bench/serve/requirements.txt
	bench/serve/fetch.sh build/perf-analyzer
}

browser() {
	want=""
	need chromium chromium
	need node nodejs
	need npm npm
	install
	cmp -s tests/browser/package-lock.json build/browser/package-lock.json && return 0
	mkdir -p build/browser
	cp tests/browser/package.json tests/browser/package-lock.json build/browser/
	npm ci --prefix build/browser --no-audit --no-fund --silent || { rm build/browser/package-lock.json; exit 1; }
}

editor() {
	want=""
	need nvim neovim
	install
	venv build/lsp-venv tests/editor/requirements.txt
}

import() {
	want=""
	need augtool augeas-tools
	install
	venv build/import-venv tests/import/requirements.txt
}

rtsp() {
	want=""
	need gst-launch-1.0 gstreamer1.0-tools
	need ffmpeg ffmpeg
	for package in gir1.2-gst-rtsp-server-1.0 python3-gi gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad; do
		installed $package
	done
	install
}

image() {
	want=""
	need debootstrap debootstrap
	need qemu-system-aarch64 qemu-system-arm
	need fdtput device-tree-compiler
	need pseudo pseudo
	need unzip unzip
	need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	need mke2fs e2fsprogs
	for tool in make flex bison bc; do need $tool $tool; done
	install
}

kernel() { tests/qemu/fetch-kernel.sh build/cache/qemu; }

[ $# -gt 0 ] || { sed -n 2,15p "$0" >&2; exit 2; }
for part; do
	case $part in
	system | python | models | kernel | peer | serve | browser | editor | import | rtsp | image) "$part" ;;
	*) echo "setup: unknown part $part" >&2; exit 2 ;;
	esac
done
