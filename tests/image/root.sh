#!/usr/bin/env bash
# Makes a root file system without running a foreign program: unpacks Debian's packages, then
# installs the layer's packages as do_rootfs does, with openembedded-core's own systemctl.
#
#   tests/image/root.sh ROOT DEBIAN_FOLDER SYSTEMCTL_FOLDER KERNEL_FOLDER PACKAGE.deb...
set -euo pipefail
root=$1 debian=$2 systemctl=$3 kernel=$4
shift 4
mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib"
root=$(realpath "$root")
# Packages of bookworm still carry /lib and /bin: without the links first, they become folders.
for dir in bin sbin lib; do ln -s "usr/$dir" "$root/$dir"; done
for package in "$debian"/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -p --keep-directory-symlink -C "$root"; done
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
[ -e "$root/etc/nsswitch.conf" ] || cp "$root/usr/share/libc-bin/nsswitch.conf" "$root/etc/nsswitch.conf"
systemd-sysusers --root="$root"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp"
chmod 1777 "$root/tmp"
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale"
# systemd-firstboot would ask on the console. No network card is configured.
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
ln -s /dev/null "$root/etc/systemd/system/systemd-networkd-wait-online.service"
ln -s /dev/null "$root/etc/systemd/system/serial-getty@ttyAMA0.service"
echo "/dev/vda / ext4 defaults 0 0" >"$root/etc/fstab"
cp -r "$kernel/modules/lib/modules" "$root/usr/lib/"

scripts=$(mktemp -d)
trap 'rm -rf "$scripts"' EXIT
for package; do
	rm -rf "$scripts"
	dpkg-deb -e "$package" "$scripts"
	[ ! -e "$scripts/preinst" ] || D=$root PATH=$systemctl:$PATH sh "$scripts/preinst" install
	dpkg-deb -x "$package" "$root"
	chmod 755 "$root" # the packages have their root folder with 0777
	[ ! -e "$scripts/postinst" ] || D=$root PATH=$systemctl:$PATH sh "$scripts/postinst" configure
done
