#!/bin/sh
# Cameras of the kernel's vivid test driver, which draws a known picture: the first uses
# the single-planar API, the second the multi-planar one, the third is an HDMI input.
# Each check prints one line that the Go test reads:
#
#   CHECK <name> ok
#   CHECK <name> FAIL <why>
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /run /var/lib /tmp /tmp/rec
mount -t tmpfs tmpfs /run
echo 1 >/proc/sys/kernel/printk
modprobe vivid n_devs=3 multiplanar=1,2,1 node_types=0x1,0x1,0x1 num_inputs=4,4,1 input_types=0xe4,0xe4,0x3 ccs_cap_mode=-1,-1,0

ok() { echo "CHECK $1 ok"; }
fail() { echo "CHECK $1 FAIL $2"; }
await() {
	name=$1
	shift
	n=0
	while [ $n -lt 1500 ]; do
		if "$@"; then ok "$name"; return; fi
		usleep 20000
		n=$((n + 1))
	done
	fail "$name" "$* never came true: $(tail -n 3 /tmp/out | tr '\n' ' ')"
}
cameras_exist() { [ -e /dev/video0 ] && [ -e /dev/video1 ] && [ -e /dev/video2 ]; }

echo
echo "KERNEL $(uname -r)"
await driver-has-two-cameras-and-an-input cameras_exist

export YOCTUNE_CAMERAS=/dev/video0,/dev/video1 YOCTUNE_CAMERA_HDMI=/dev/video2 YOCTUNE_CAMERA_UNBIND='/sys/bus/platform/drivers/vivid vivid.0' YOCTUNE_CAMERA_RECORD=/tmp/rec
v4l2.test -test.v -test.run RealDriver >/tmp/log 2>&1
grep '^CAMERA' /tmp/log
sed -n 's/^ *--- PASS: \([^ ]*\).*/CHECK \1 ok/p; s/^ *--- \(FAIL\|SKIP\): \([^ ]*\).*/CHECK \2 FAIL \1/p' /tmp/log
if grep -q 'FAIL\|panic\|SKIP' /tmp/log; then grep -v '^=== ' /tmp/log; fi
# A pipeline whose HDMI source is switched off and on again.
signal() { YOCTUNE_CAMERA_SIGNAL="/dev/video2,$1" v4l2.test -test.run SwitchOfAnHDMISource >>/tmp/log 2>&1; }
stop() {
	kill -TERM $reader
	wait $reader
	code=$?
	tail -n 1 /tmp/out | sed 's/^/SUMMARY /'
}
results_at_least() { [ "$(grep -c '"type":"result"' /tmp/out)" -ge "$1" ]; }
yoctuned pipeline run /camera.json hdmi --format json >/tmp/out 2>&1 &
reader=$!
await pipeline-reads-the-hdmi-input results_at_least 3
signal 'No Signal' || fail switch-off-the-signal 'failed'
signal 'Current DV Timings' || fail switch-on-the-signal 'failed'
seen=$(grep -c '"type":"result"' /tmp/out)
await pipeline-resumes-when-the-signal-returns results_at_least $((seen + 5))
stop
for s in 'the signal of the input has changed' 'is back after'; do
	if tail -n 1 /tmp/out | grep -qF "$s"; then ok "signal-events-contain-$(echo "$s" | tr -c 'a-z0-9\n' -)"; else fail signal-events "no $s"; fi
done

# A stage in a separate process receives the driver's memory, not a copy.
yoctuned pipeline run /camera.json own --format json --frames 10 >/tmp/out 2>&1
code=$?
grep -m 1 brightness /tmp/out | sed 's/^/CAMERA stage: /'
if [ $code = 0 ]; then ok custom-stage-reads-the-camera; else fail custom-stage-reads-the-camera "exit $code: $(tail -n 2 /tmp/out | tr '\n' ' ')"; fi
# The test picture has a non-zero mean; unmapped or unwritten memory would give 0.
if grep -q '"brightness":[1-9][0-9]' /tmp/out; then ok custom-stage-reads-the-pixels-of-the-driver; else fail custom-stage-reads-the-pixels-of-the-driver "$(head -n 1 /tmp/out)"; fi
if tail -n 1 /tmp/out | grep -qF '"copies":{"batch":0,"source":0}'; then ok custom-stage-needs-no-copy; else fail custom-stage-needs-no-copy "$(tail -n 1 /tmp/out)"; fi

for f in /tmp/rec/*; do sed "s|^|RECORDED ${f#/tmp/rec/} |" "$f"; done

# A pipeline that reads a camera by its port; the camera is unplugged and plugged in again.
mkdir -p /dev/v4l/by-path
ln -s ../../video0 /dev/v4l/by-path/platform-vivid.0-video-index0
yoctuned pipeline run /camera.json bars --format json >/tmp/out 2>&1 &
reader=$!
await pipeline-reads-the-bars results_at_least 5
echo vivid.0 >/sys/bus/platform/drivers/vivid/unbind
usleep 500000
echo vivid.0 >/sys/bus/platform/drivers/vivid/bind
# As udev does. The camera gets another number while a process still holds a frame.
linked() {
	for n in /sys/class/video4linux/*; do
		if [ "$(cat "$n/name")" = vivid-000-vid-cap ]; then
			echo "KERNEL now it is ${n##*/}"
			ln -sf "../../${n##*/}" /dev/v4l/by-path/platform-vivid.0-video-index0
			return 0
		fi
	done
	return 1
}
await camera-is-plugged-in-again linked
seen=$(grep -c '"type":"result"' /tmp/out)
await pipeline-resumes-after-the-camera-returns results_at_least $((seen + 5))
stop
if [ $code = 0 ]; then ok pipeline-exits-cleanly; else fail pipeline-exits-cleanly "exit $code: $(tail -n 2 /tmp/out | tr '\n' ' ')"; fi
for s in 'the camera is gone' 'is back after' 'platform-vivid.0-video-index0' '"source":0'; do
	if tail -n 1 /tmp/out | grep -qF "$s"; then ok "summary-contains-$(echo "$s" | tr -c 'a-z0-9\n' -)"; else fail summary-contains "no $s"; fi
done
echo DONE
poweroff -f
