#!/bin/sh
# What a service after yoctuned.service finds under a real systemd. As process 1 it
# first puts everything onto a root of its own: systemd cannot make the sandboxes
# of services on the kernel's initial one.
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
	while read -r path want; do echo "$path $(cat "$path")"; done </expect >/root.d/before
	umount /proc /sys
	mount --move /dev /root.d/dev
	exec switch_root /root.d /lib/systemd/systemd
fi

ok() { echo "CHECK $1 ok"; }
fail() { echo "CHECK $1 FAIL $2"; }
is() { if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "'$2', wanted '$3'"; fi; }
show() { systemctl show -P "$1" yoctuned.service; }
await() {
	name=$1
	shift
	n=0
	while [ $n -lt 600 ]; do
		if "$@"; then ok "$name"; return; fi
		usleep 50000
		n=$((n + 1))
	done
	fail "$name" "$* never came true: $(show ActiveState) $(show Result) $(tail -n 5 /log | tr '\n' ' ')"
}
now_is() { [ "$(show "$1")" = "$2" ]; }
node_says() { [ "$(cat "$1")" = "$2" ]; }
differs() {
	while read -r path want; do
		value=$(tr -s '\t ' '  ' <"$path")
		case " $value " in *" $want "* | *" [$want] "*) ;; *) echo "$path=$value, wanted $want" ;; esac
	done </expect
}
as_wanted() { if [ -z "$(differs)" ]; then ok "$1"; else fail "$1" "$(differs | tr '\n' ' ')"; fi; }

echo
echo "KERNEL $(uname -r), $(systemctl --version | head -n 1)"
# This runs after the unit, and a unit of Type=notify is started once it says so.
is the-unit-is-active "$(show ActiveState)/$(show SubState)" active/running
is it-is-a-notify-unit "$(show Type)" notify
case $(show StatusText) in *" ok"*) ok its-status-line-counts ;; *) fail its-status-line-counts "$(show StatusText)" ;; esac
echo "STATUS $(show StatusText)"
as_wanted the-sandbox-lets-the-plan-be-written
if grep -q '^no events' /log; then fail events-reach-the-sandbox "$(grep '^no events' /log)"; else ok events-reach-the-sandbox; fi
yoctuned status >/tmp/status 2>&1
if grep -q 'signature required: 1 key' /tmp/status && ! grep -q '^refused' /tmp/status; then ok the-plan-is-signed; else fail the-plan-is-signed "$(tr '\n' ' ' </tmp/status)"; fi
is it-runs-one-mount-namespace-of-its-own "$(readlink "/proc/$(show MainPID)/ns/mnt" | grep -c "$(readlink /proc/1/ns/mnt | tr -d '[]')")" 0

# Units that ran before the plan came to be: what systemd is asked, what the kernel
# was given, and how the task runs, each by somebody else than yoctuned.
vision=/sys/fs/cgroup/inference.slice/vision.service
property() { systemctl show -P "$1" "$2"; }
task() { cut -d' ' -f40,41 "/proc/$(property MainPID vision.service)/stat"; }
is systemd-keeps-the-cores-of-a-slice "$(property AllowedCPUs inference.slice)" 1
is the-kernel-was-given-them "$(cat /sys/fs/cgroup/inference.slice/cpuset.cpus)" 1
is and-the-task-may-use-no-other "$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' "/proc/$(property MainPID vision.service)/status")" 1
is systemd-keeps-the-weight "$(property CPUWeight vision.service) $(cat $vision/cpu.weight)" "200 200"
is systemd-keeps-the-memory-limit "$(property MemoryMax vision.service) $(cat $vision/memory.max)" "67108864 67108864"
is systemd-keeps-the-quota "$(property CPUQuotaPerSecUSec vision.service) $(cat $vision/cpu.max)" "1.500000s 150000 100000"
is a-running-task-is-scheduled-as-planned "$(task)" "10 2"
systemctl set-property --runtime inference.slice AllowedCPUs=0
await another-admins-property-is-put-back node_says /sys/fs/cgroup/inference.slice/cpuset.cpus 1
await and-named grep -q '^inference.slice AllowedCPUs: set to 0 by systemd (pid 1' /log
is in-systemd-too "$(property AllowedCPUs inference.slice)" 1
echo 100 >$vision/cpu.weight
await a-write-behind-systemds-back-is-put-right node_says $vision/cpu.weight 200
yoctuned verify >/tmp/verify-units 2>&1
is verify-finds-the-units-as-wanted $? 0

yoctuned doctor --duration 1s --format json >/tmp/doctor 2>&1
if grep -q '"check":"services".*"verdict":"ok"' /tmp/doctor; then ok doctor-asks-systemd-for-services; else fail doctor-asks-systemd-for-services "$(grep '"services"' /tmp/doctor)"; fi

exposure() {
	systemd-analyze security --no-pager yoctuned.service >/tmp/security 2>&1
	sed -n 's/.*exposure level for yoctuned.service: \([0-9.]*\).*/\1/p' /tmp/security
}
little() { if [ -n "$exposure" ] && [ "$(echo "$exposure" | tr -d .)" -le 25 ]; then ok "$1"; else fail "$1" "$exposure"; fi; }
# The right to schedule other tasks is given by a drop-in, to plans that need it.
exposure=$(exposure)
echo "EXPOSURE $exposure, and may schedule other units' tasks"
little exposure-with-it-is-at-most-2.5
rm /lib/systemd/system/yoctuned.service.d/40-scheduling.conf
systemctl daemon-reload
exposure=$(exposure)
echo "EXPOSURE $exposure"
little exposure-is-at-most-2.5
if systemd-analyze verify /lib/systemd/system/yoctuned.service /lib/systemd/system/yoctuned-pipeline@.service >/tmp/verify 2>&1 && ! grep -q yoctuned /tmp/verify; then ok verify-is-clean; else fail verify-is-clean "$(tr '\n' ' ' </tmp/verify)"; fi

# The processor's counters are for pipelines that ask for them. Where there are none
# the kernel says so to those that may ask.
unknown() { yoctuned pipeline top "$1" --once --interval 200ms --format json 2>&1 | grep -q "$2"; }
asked() { unknown counted '"pipeline"' && ! unknown counted 'cycles: not permitted'; }
systemctl start yoctuned-pipeline@counted.service yoctuned-pipeline@plain.service
await a-pipeline-may-not-count-for-nothing unknown plain 'cycles: not permitted'
await one-that-asks-for-counters-may asked
is counting-costs-no-capability "$(property CapabilityBoundingSet yoctuned-pipeline@counted.service)" "$(property CapabilityBoundingSet yoctuned-pipeline@plain.service)"
systemctl stop yoctuned-pipeline@counted.service yoctuned-pipeline@plain.service
is stopped-pipelines-end-well "$(property Result yoctuned-pipeline@counted.service)" success

sh -c 'echo 77 >/proc/sys/vm/swappiness; usleep 300000; :' &
stranger=$!
await drift-is-repaired node_says /proc/sys/vm/swappiness 10
named() { grep -q "^vm.swappiness: set to 77 by sh (pid $stranger" /log; }
await the-log-names-who-did-it named
sed -n 's/^vm.swappiness: set to 77/REPAIRED &/p' /log

# The unit's own timeout would be a minute; the drop-in says eight seconds.
first=$(show WatchdogTimestampMonotonic)
fed() { [ "$(show WatchdogTimestampMonotonic)" != "$first" ]; }
await the-watchdog-is-fed fed
usleep 4000000
is and-nobody-was-restarted "$(show NRestarts)" 0
kill -STOP "$(show MainPID)"
await a-hung-process-is-restarted-by-the-watchdog now_is NRestarts 1
await and-is-active-again now_is ActiveState active
as_wanted and-the-plan-is-in-force
kill -KILL "$(show MainPID)"
await a-killed-process-is-restarted now_is NRestarts 2
await and-active now_is ActiveState active

# A sandbox that has a /proc of its own hides what others write there: that is found
# out and said, and everything is looked at every few seconds.
systemctl stop yoctuned.service
printf '[Service]\nProtectControlGroups=yes\n' >/etc/systemd/system/yoctuned.service.d/proc.conf
systemctl daemon-reload
systemctl start yoctuned.service
await a-proc-of-its-own-is-found grep -q '^no events from /proc: this process has its own mount of /proc' /log
sh -c 'echo 78 >/proc/sys/vm/swappiness'
await and-drift-is-found-by-looking node_says /proc/sys/vm/swappiness 10
rm /etc/systemd/system/yoctuned.service.d/proc.conf
systemctl stop yoctuned.service
systemctl daemon-reload
systemctl start yoctuned.service
is active-before-stop "$(show ActiveState)" active

begin=$(cut -d' ' -f1 /proc/uptime)
systemctl stop yoctuned.service
echo "STOP from $begin to $(cut -d' ' -f1 /proc/uptime)"
is stop-ends-it "$(show ActiveState)/$(show Result)" inactive/success
as_wanted and-the-settings-stay
yoctuned rollback >/tmp/rollback 2>&1
while read -r path want; do echo "$path $(cat "$path")"; done </expect >/tmp/now
is rollback-gives-the-slice-all-cores "$(property AllowedCPUs inference.slice)|$(cat /sys/fs/cgroup/inference.slice/cpuset.cpus 2>/dev/null)" "|"
is rollback-takes-limits-away "$(property MemoryMax vision.service) $(cat $vision/memory.max)" "infinity max"
# The controller may be gone with its last user, and the file with it.
is rollback-of-the-weight "$(property CPUWeight vision.service) $(cat $vision/cpu.weight 2>/dev/null)" "[not set] $(if [ -e $vision/cpu.weight ]; then echo 100; fi)"
is rollback-of-the-scheduling "$(task)" "0 0"
if cmp -s /before /tmp/now; then ok rollback-restores-everything; else fail rollback-restores-everything "$(diff /before /tmp/now | tr '\n' ' ')"; fi

# A plan that is not as it was signed: the unit fails, says why, and is not tried again.
sed -i 's/"want": "10"/"want": "11"/' /usr/lib/yoctune/plan.json
systemctl start yoctuned.service 2>/dev/null
is a-bad-plan-fails-the-unit "$(show ActiveState)/$(show Result)/$(show ExecMainStatus)" failed/exit-code/1
is and-is-not-tried-again "$(show NRestarts)" 0
if tail -n 3 /log | grep -q 'not signed by a trusted key'; then ok and-the-log-says-why; else fail and-the-log-says-why "$(tail -n 3 /log | tr '\n' ' ')"; fi
while read -r path want; do echo "$path $(cat "$path")"; done </expect >/tmp/now
if cmp -s /before /tmp/now; then ok and-nothing-was-written; else fail and-nothing-was-written "$(diff /before /tmp/now | tr '\n' ' ')"; fi
echo DONE
systemctl poweroff --force --force
