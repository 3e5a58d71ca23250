#!/bin/bash
# Puts a Debian kernel, its .config and the few modules the guest needs into a cache folder,
# without installing anything. Does nothing when it is there already.
#
#   tests/qemu/fetch-kernel.sh build/cache/qemu
#
# Needs a Debian or Ubuntu host: apt-get, dpkg-deb, depmod (kmod).
set -euo pipefail

cache=${1:?usage: fetch-kernel.sh CACHE_DIR}
# The camera driver came last to the list below.
[[ -e $cache/ready && -e $cache/config && -e $cache/lib/modules/$(<"$cache/ready")/kernel/drivers/media/test-drivers/vivid/vivid.ko ]] && exit 0

for tool in apt-get apt-cache dpkg-deb depmod; do
	command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin:/sbin
	command -v "$tool" >/dev/null || { echo "fetch-kernel: $tool is not installed" >&2; exit 1; }
done

package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)/\1/p' | head -n 1)
[[ -n $package ]] || { echo "fetch-kernel: apt knows no linux-image-amd64; run apt-get update" >&2; exit 1; }
release=${package#linux-image-}

mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download -q -o APT::Sandbox::User=root "$package" >/dev/null)

modules=lib/modules/$release
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work" --wildcards \
	"./boot/vmlinuz-$release" "./boot/config-$release" \
	"./$modules/modules.builtin*" "./$modules/modules.order" \
	"./$modules/kernel/block/*" \
	"./$modules/kernel/drivers/virtio/*" \
	"./$modules/kernel/drivers/block/virtio_blk.ko*" \
	"./$modules/kernel/drivers/media/mc/*" \
	"./$modules/kernel/drivers/media/cec/core/*" \
	"./$modules/kernel/drivers/media/rc/rc-core.ko*" \
	"./$modules/kernel/drivers/media/v4l2-core/*" \
	"./$modules/kernel/drivers/media/common/v4l2-tpg/*" \
	"./$modules/kernel/drivers/media/common/videobuf2/*" \
	"./$modules/kernel/drivers/media/test-drivers/vivid/*"
depmod -b "$work" "$release"

rm -rf "${cache:?}/lib" "$cache/vmlinuz"
mv "$work/lib" "$cache/lib"
mv "$work/boot/vmlinuz-$release" "$cache/vmlinuz"
mv "$work/boot/config-$release" "$cache/config"
echo "$release" >"$cache/ready"
