#!/usr/bin/env bash
# Puts what the images are made of into a cache folder: the packages of an arm64 Debian root,
# which debootstrap downloads and does not install, and the sources of a kernel version. Does
# nothing for what is there already.
#
#   tests/image/fetch.sh CACHE KERNEL_VERSION
#
# Needs a Debian host, root, and debootstrap.
set -euo pipefail
cache=$(realpath -m "${1:?usage: fetch.sh CACHE KERNEL_VERSION}") version=${2:?usage: fetch.sh CACHE KERNEL_VERSION}
suite=bookworm
mkdir -p "$cache/src"
exec 8>"$cache/lock"
flock 8
sources=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true)
mirror=$(sed -n 's/^URIs: *//p; s/^deb  *\(\[[^]]*\]  *\)\{0,1\}\([^ ]*\) .*/\2/p' <<<"$sources" | sed -n 1p)
[ -n "$mirror" ] || { echo "fetch: no Debian mirror in /etc/apt" >&2; exit 1; }

if [ ! -e "$cache/debs/ready" ]; then
	part=$(mktemp -d "$cache/root.XXXXXX")
	debootstrap --variant=minbase --arch=arm64 --foreign --include=systemd,systemd-sysv,udev,dbus,kmod,procps,util-linux,iproute2 $suite "$part" "$mirror" >"$cache/debootstrap.log" 2>&1 || { tail "$cache/debootstrap.log" >&2; exit 1; }
	mkdir -p "$cache/debs"
	cp "$part"/var/cache/apt/archives/*.deb "$cache/debs/"
	rm -rf "$part"
	touch "$cache/debs/ready"
fi

if [ ! -e "$cache/src/linux-source-$version/Makefile" ]; then
	part=$(mktemp -d "$cache/src.XXXXXX")
	# The version may belong to another suite than this host's.
	mkdir -p "$part"/apt/{lists,archives}/partial "$part/apt/parts"
	: >"$part/apt/status"
	for s in $suite $suite-backports; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $s main"
	done >"$part/apt/sources"
	apt=(-q -o "Dir::Etc::sourcelist=$part/apt/sources" -o "Dir::Etc::sourceparts=$part/apt/parts" -o "Dir::State::lists=$part/apt/lists"
		-o "Dir::Cache=$part/apt" -o "Dir::State::status=$part/apt/status" -o APT::Sandbox::User=root -o Acquire::Languages=none)
	apt-get "${apt[@]}" update >/dev/null
	(cd "$part" && apt-get "${apt[@]}" download "linux-source-$version" >/dev/null)
	dpkg-deb --fsys-tarfile "$part"/linux-source-*.deb | tar -x -C "$part" --wildcards './usr/src/linux-source-*.tar.xz'
	tar -x -C "$part" -f "$part"/usr/src/linux-source-*.tar.xz
	mv "$part/linux-source-$version" "$cache/src/"
	rm -rf "$part"
fi
