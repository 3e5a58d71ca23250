#!/bin/bash
# Puts a Debian kernel, its .config and the few modules the guest needs into a cache folder,
# without installing anything. Does nothing when it is there already.
#
#   tests/qemu/fetch-kernel.sh build/cache/qemu [amd64|arm64]
#
# Needs a Debian or Ubuntu host: apt-get, dpkg-deb, depmod (kmod).
set -euo pipefail

cache=${1:?usage: fetch-kernel.sh CACHE_DIR [ARCHITECTURE]}
architecture=${2:-amd64}
# The virtual interface came last to the list below.
[[ -e $cache/ready && -e $cache/config && -e $cache/lib/modules/$(<"$cache/ready")/kernel/drivers/net/veth.ko && -e $cache/architecture ]] && exit 0

for tool in apt-get apt-cache dpkg-deb depmod; do
	command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin:/sbin
	command -v "$tool" >/dev/null || { echo "fetch-kernel: $tool is not installed" >&2; exit 1; }
done

mkdir -p "$cache"
# Another architecture's packages are looked up in lists of their own.
apt=()
if [[ $architecture != "$(dpkg --print-architecture)" ]]; then
	mkdir -p "$cache"/apt/{lists,archives}/partial
	: >"$cache/apt/status"
	apt=(-o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o "Dir::State::lists=$cache/apt/lists"
		-o "Dir::Cache=$cache/apt" -o "Dir::State::status=$cache/apt/status" -o APT::Sandbox::User=root)
	# Only the package lists are needed.
	apt-get -q "${apt[@]}" -o Acquire::Languages=none -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false update >/dev/null
fi
package=$(apt-cache "${apt[@]}" depends "linux-image-$architecture" | sed -n 's/.*Depends: \(linux-image-[^ ]*\)/\1/p' | head -n 1)
[[ -n $package ]] || { echo "fetch-kernel: apt has no package linux-image-$architecture; run apt-get update" >&2; exit 1; }
release=${package#linux-image-}

work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get "${apt[@]}" download -q -o APT::Sandbox::User=root "$package" >/dev/null)

modules=lib/modules/$release
dpkg-deb --fsys-tarfile "$work"/linux-image*.deb | tar -x -C "$work" --wildcards \
	"./boot/vmlinuz-$release" "./boot/config-$release" \
	"./$modules/modules.builtin*" "./$modules/modules.order" \
	"./$modules/kernel/block/*" \
	"./$modules/kernel/drivers/virtio/*" \
	"./$modules/kernel/drivers/block/virtio_blk.ko*" \
	"./$modules/kernel/drivers/net/veth.ko*" \
	"./$modules/kernel/crypto/crc32c_generic.ko*" \
	"./$modules/kernel/lib/libcrc32c.ko*" \
	"./$modules/kernel/net/netfilter/nf_conntrack.ko*" \
	"./$modules/kernel/net/ipv4/netfilter/nf_defrag_ipv4.ko*" \
	"./$modules/kernel/net/ipv6/netfilter/nf_defrag_ipv6.ko*" \
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
if [[ ${#apt[@]} != 0 ]]; then
	(cd "$work" && apt-get "${apt[@]}" download -q busybox-static >/dev/null)
	dpkg-deb --fsys-tarfile "$work"/busybox-static*.deb | tar -x -C "$work" --wildcards './*bin/busybox'
	find "$work" -path '*bin/busybox' -type f -exec mv {} "$cache/busybox" \;
	rm -rf "$cache/apt"
fi
echo "$architecture" >"$cache/architecture"
echo "$release" >"$cache/ready"
