#!/bin/sh
# The first part of the scripts of guests with a real systemd. As process 1 it copies
# everything to a new root, because systemd cannot build the sandboxes of services on the
# initramfs; then the script runs again as a service.
#
#   CHECK <name> ok
#   CHECK <name> FAIL <why>
export PATH=/bin:/usr/bin
if [ $$ = 1 ]; then
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs dev /dev
	for m in virtio_pci virtio_blk kyber-iosched; do modprobe $m; done
	n=0
	while [ ! -e /sys/block/vda/queue/scheduler ] && [ $n -lt 100 ]; do usleep 50000; n=$((n + 1)); done
	mkdir -p /root.d
	mount -t tmpfs -o mode=0755 tmpfs /root.d
	for d in /*; do
		case $d in /proc | /sys | /dev | /root.d) mkdir -p "/root.d$d" ;; *) cp -a "$d" /root.d/ ;; esac
	done
	mkdir -p /root.d/run /root.d/tmp /root.d/var/lib /root.d/var/tmp /root.d/root /root.d/home
	echo 1 >/proc/sys/kernel/printk
	while read -r path _; do echo "$path $(cat "$path")"; done </expect >/root.d/before
	umount /proc /sys
	mount --move /dev /root.d/dev
	exec switch_root /root.d /lib/systemd/systemd
fi

ok() { echo "CHECK $1 ok"; }
fail() { echo "CHECK $1 FAIL $2"; }
is() { if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "'$2', wanted '$3'"; fi; }
