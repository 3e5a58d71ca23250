#!/usr/bin/env bash
# Builds a kernel for the image: allnoconfig, the given base, then the layer's fragment, as
# merge_config.sh merges them. The result is cached under the hash of source version and
# configuration, so that a second run builds nothing.
#
#   tests/image/kernel.sh CACHE VERSION OUT BASE.cfg FRAGMENT.cfg
#
# OUT gets base.config (without the fragment), config, Image, modules/ and release.
set -euo pipefail
cache=${1:?usage: kernel.sh CACHE VERSION OUT BASE.cfg FRAGMENT.cfg} version=$2 out=$3 base=$4 fragment=$5
source=$cache/src/linux-source-$version
objects=$cache/objects-$version
export ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- KBUILD_BUILD_TIMESTAMP=1970-01-01 KBUILD_BUILD_USER=yoctune KBUILD_BUILD_HOST=yoctune KCONFIG_NOTIMESTAMP=1

make() { command make -s -C "$source" O="$objects" "$@"; }
# resolve OUT: what kconfig makes of .config
resolve() {
	make olddefconfig >/dev/null
	grep -v '^# Linux/' "$objects/.config" >"$1"
}
mkdir -p "$objects" "$out"
base=$(realpath "$base") fragment=$(realpath "$fragment") out=$(realpath "$out")
exec 8>"$objects/lock"
flock 8
make allnoconfig >/dev/null
cat "$base" >>"$objects/.config"
resolve "$out/base.config" 2>"$objects/base.log" # each option of the base replaces one of allnoconfig
(cd "$objects" && "$source/scripts/kconfig/merge_config.sh" -m -O "$objects" .config "$fragment") >"$objects/merge.log" 2>&1
resolve "$out/config" 2>>"$objects/merge.log"

key=$(make -s kernelversion; sha256sum <"$out/config")
kept=$cache/kernel/$(echo "$key" | sha256sum | cut -c 1-16)
if [ ! -e "$kept/release" ]; then
	echo "kernel: building $(make kernelversion) for $fragment" >&2
	make -j"$(nproc)" Image modules >"$objects/build.log" 2>&1 || { tail -20 "$objects/build.log" >&2; exit 1; }
	rm -rf "$kept"
	mkdir -p "$kept"
	make modules_install INSTALL_MOD_PATH="$kept/modules" INSTALL_MOD_STRIP=1 >/dev/null
	find "$kept/modules" -type l -delete # to source and objects
	cp "$objects/arch/arm64/boot/Image" "$kept/Image"
	make kernelrelease >"$kept/release.part"
	mv "$kept/release.part" "$kept/release"
fi
cp -r "$kept/." "$out/"
