# shellcheck shell=sh
# Checks of yoctuned.service under a real systemd, after root.sh. They run as a service after
# yoctuned.service.
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
node_is() { [ "$(cat "$1")" = "$2" ]; }
differs() {
	while read -r path want; do
		value=$(tr -s '\t ' '  ' <"$path")
		case " $value " in *" $want "* | *" [$want] "*) ;; *) echo "$path=$value, wanted $want" ;; esac
	done </expect
}
as_wanted() { if [ -z "$(differs)" ]; then ok "$1"; else fail "$1" "$(differs | tr '\n' ' ')"; fi; }

echo
echo "KERNEL $(uname -r), $(systemctl --version | head -n 1)"
# This runs after the unit, and a unit of Type=notify has started once it notifies systemd.
is unit-is-active "$(show ActiveState)/$(show SubState)" active/running
is unit-has-type-notify "$(show Type)" notify
case $(show StatusText) in *" ok"*) ok status-text-counts-settings ;; *) fail status-text-counts-settings "$(show StatusText)" ;; esac
echo "STATUS $(show StatusText)"
as_wanted sandbox-permits-all-writes-of-the-plan
if grep -q '^no events' /log; then fail write-events-reach-the-sandbox "$(grep '^no events' /log)"; else ok write-events-reach-the-sandbox; fi
yoctuned status >/tmp/status 2>&1
if grep -q 'signature required: 1 key' /tmp/status && ! grep -q '^refused' /tmp/status; then ok plan-signature-is-verified; else fail plan-signature-is-verified "$(tr '\n' ' ' </tmp/status)"; fi
is service-has-its-own-mount-namespace "$(readlink "/proc/$(show MainPID)/ns/mnt" | grep -c "$(readlink /proc/1/ns/mnt | tr -d '[]')")" 0

# Units that ran before the plan was applied: systemd's properties, the kernel's cgroup
# files and the scheduling of the task, each read without yoctuned.
vision=/sys/fs/cgroup/inference.slice/vision.service
property() { systemctl show -P "$1" "$2"; }
task() { cut -d' ' -f40,41 "/proc/$(property MainPID vision.service)/stat"; }
is systemd-has-the-cores-of-the-slice "$(property AllowedCPUs inference.slice)" 1
is kernel-has-the-cores-of-the-slice "$(cat /sys/fs/cgroup/inference.slice/cpuset.cpus)" 1
is task-is-limited-to-the-cores "$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' "/proc/$(property MainPID vision.service)/status")" 1
is cpu-weight-is-set "$(property CPUWeight vision.service) $(cat $vision/cpu.weight)" "200 200"
is memory-limit-is-set "$(property MemoryMax vision.service) $(cat $vision/memory.max)" "67108864 67108864"
is cpu-quota-is-set "$(property CPUQuotaPerSecUSec vision.service) $(cat $vision/cpu.max)" "1.500000s 150000 100000"
is running-task-has-the-policy-and-priority "$(task)" "10 2"
systemctl set-property --runtime inference.slice AllowedCPUs=0
await changed-unit-property-is-repaired node_is /sys/fs/cgroup/inference.slice/cpuset.cpus 1
await changed-unit-property-is-reported grep -q '^inference.slice AllowedCPUs: set to 0 by systemd (pid 1' /log
is changed-unit-property-is-repaired-in-systemd "$(property AllowedCPUs inference.slice)" 1
echo 100 >$vision/cpu.weight
await direct-cgroup-write-is-repaired node_is $vision/cpu.weight 200
yoctuned verify >/tmp/verify-units 2>&1
is verify-of-units-exits-0 $? 0

# The timer of a service has no cgroup: systemd shows whether it waits, and how.
is timer-of-a-layer-waits "$(property ActiveState report.timer) $(property ActiveState report.service)" "active inactive"
mkdir -p /run/systemd/system/report.timer.d
printf '[Timer]\nAccuracySec=2min\n' >/run/systemd/system/report.timer.d/other.conf
systemctl daemon-reload
yoctuned verify >/tmp/verify-timer 2>&1
is verify-of-a-changed-timer-exits-3 $? 3
if grep -q 'report.timer: AccuracyUSec is 120000000, wanted 1000000' /tmp/verify-timer; then ok verify-names-what-differs-of-a-timer; else fail verify-names-what-differs-of-a-timer "$(grep report /tmp/verify-timer)"; fi
rm -r /run/systemd/system/report.timer.d
systemctl daemon-reload
systemctl stop report.timer
yoctuned verify >/tmp/verify-timer 2>&1
if grep -q 'report.timer is inactive' /tmp/verify-timer; then ok stopped-timer-is-pending; else fail stopped-timer-is-pending "$(grep report /tmp/verify-timer)"; fi
systemctl start report.timer

# Units that start after the plan was applied are pending until then, and nobody is blamed for
# what systemd sets when it starts them.
log_lacks() { if grep -E "$2" /log >/tmp/found; then fail "$1" "$(head -n 3 /tmp/found | tr '\n' ' ')"; else ok "$1"; fi; }
yoctuned verify >/tmp/verify-late 2>&1
if grep -q '^(pending)  *late.service ' /tmp/verify-late && grep -q 'late.service is not running in late.slice/late.service' /tmp/verify-late; then ok stopped-unit-is-pending; else fail stopped-unit-is-pending "$(tr '\n' ' ' </tmp/verify-late)"; fi
unit_is() { [ "$(property "$2" "$1")" = "$3" ]; }
is unit-file-of-a-later-unit-is-in-force "$(property MemoryMax uplink.service) $(property Nice uplink.service)" "33554432 -5"
status_ends() { show StatusText | grep -Eq -- "$1\$"; }
await status-text-follows-a-unit-that-started status_ends " ok, 1 pending"
systemctl start late.service
await property-of-a-unit-that-starts-later-is-set unit_is late.service MemoryMax 33554432
late_nice() { [ "$(cut -d' ' -f19 "/proc/$(property MainPID late.service)/stat")" = -5 ]; }
await task-of-a-unit-that-starts-later-is-set late_nice
await log-reports-the-start-as-the-cause grep -q '^late.service started: re-applied 2 knobs' /log
await status-text-has-nothing-pending status_ends "[0-9] ok"
log_lacks nothing-is-forbidden '^forbidden|forbidden: '
log_lacks nobody-is-blamed-for-a-start '^(uplink|late).service .*: set to'
log_lacks unit-that-starts-as-its-file-wants-is-left-alone '^uplink.service .*, was '
systemctl stop late.service
await status-text-follows-a-unit-that-stopped status_ends " ok, 1 pending"

# The state is root's alone, as tmpfiles.d declares it. Others still see the status, and
# pipelines only what they may.
is state-directory-is-private "$(stat -c %a /var/lib/yoctune)" 700
su nobody -s /bin/sh -c '/usr/bin/yoctuned status' >/tmp/status-nobody 2>&1
is status-of-another-user-is-accepted $? 0
if grep -q 'run it as root: .*/var/lib/yoctune/serial' /tmp/status-nobody && ! grep -q '^refused' /tmp/status-nobody; then ok status-of-another-user-names-what-it-cannot-read; else fail status-of-another-user-names-what-it-cannot-read "$(tr '\n' ' ' </tmp/status-nobody)"; fi

yoctuned doctor --duration 1s --format json >/tmp/doctor 2>&1
if grep -q '"check":"services".*"verdict":"ok"' /tmp/doctor; then ok doctor-checks-services; else fail doctor-checks-services "$(grep '"services"' /tmp/doctor)"; fi

exposure() {
	systemd-analyze security --no-pager yoctuned.service >/tmp/security 2>&1
	sed -n 's/.*exposure level for yoctuned.service: \([0-9.]*\).*/\1/p' /tmp/security
}
exposure_at_most() { if [ -n "$exposure" ] && [ "$(echo "$exposure" | tr -d .)" -le "$(echo "$1" | tr -d .)" ]; then ok "$2-is-at-most-$1"; else fail "$2-is-at-most-$1" "$exposure"; fi; }
# A drop-in grants the right to schedule other tasks, to plans that need it. This plan also
# has network settings, whose capability the drop-in keeps.
exposure=$(exposure)
echo "EXPOSURE $exposure, and may schedule other units' tasks"
exposure_at_most 2.6 exposure-with-the-scheduling-drop-in
rm /lib/systemd/system/yoctuned.service.d/40-scheduling.conf
systemctl daemon-reload
exposure=$(exposure)
echo "EXPOSURE $exposure"
exposure_at_most 2.5 exposure-without-the-drop-in
if systemd-analyze verify /lib/systemd/system/yoctuned.service /lib/systemd/system/yoctuned-pipeline@.service >/tmp/verify 2>&1 && ! grep -q yoctuned /tmp/verify; then ok systemd-analyze-verify-is-clean; else fail systemd-analyze-verify-is-clean "$(tr '\n' ' ' </tmp/verify)"; fi

# Only pipelines with counters may read the processor's counters. On a machine without
# counters, the error differs from a denied request.
top_reports() { yoctuned pipeline top "$1" --once --interval 200ms --format json 2>&1 | grep -q "$2"; }
counters_permitted() { top_reports counted '"pipeline"' && ! top_reports counted 'cycles: not permitted'; }
systemctl start yoctuned-pipeline@counted.service yoctuned-pipeline@plain.service
await pipeline-without-counters-is-denied top_reports plain 'cycles: not permitted'
await pipeline-with-counters-is-permitted counters_permitted
mkdir -p /var/lib/yoctune/engines
echo engine >/var/lib/yoctune/engines/one
systemctl restart yoctuned-pipeline@plain.service
await pipeline-restarts top_reports plain '"pipeline"'
sees="nsenter --target $(property MainPID yoctuned-pipeline@plain.service) --mount"
is pipeline-sees-nothing-else-of-the-state "$($sees ls /var/lib/yoctune) $($sees cat /var/lib/yoctune/engines/one)" "engines engine"
is counters-need-no-capability "$(property CapabilityBoundingSet yoctuned-pipeline@counted.service)" "$(property CapabilityBoundingSet yoctuned-pipeline@plain.service)"
systemctl stop yoctuned-pipeline@counted.service yoctuned-pipeline@plain.service
is stopped-pipeline-exits-cleanly "$(property Result yoctuned-pipeline@counted.service)" success

sh -c 'echo 77 >/proc/sys/vm/swappiness; usleep 300000; :' &
writer=$!
await drift-is-repaired node_is /proc/sys/vm/swappiness 10
writer_logged() { grep -q "^vm.swappiness: set to 77 by sh (pid $writer" /log; }
await log-reports-the-process-of-the-drift writer_logged
sed -n 's/^vm.swappiness: set to 77/REPAIRED &/p' /log

# The unit's watchdog timeout is three minutes; the drop-in shortens it to twenty seconds: a busy host runs the guest slowly.
first=$(show WatchdogTimestampMonotonic)
notified() { [ "$(show WatchdogTimestampMonotonic)" != "$first" ]; }
await watchdog-is-notified notified
usleep 4000000
is service-was-not-restarted "$(show NRestarts)" 0
kill -STOP "$(show MainPID)"
await hung-process-is-restarted-by-the-watchdog now_is NRestarts 1
await unit-is-active-after-the-watchdog now_is ActiveState active
as_wanted plan-is-in-force-after-the-watchdog
kill -KILL "$(show MainPID)"
await killed-process-is-restarted now_is NRestarts 2
await unit-is-active-after-the-kill now_is ActiveState active

# A sandbox with its own /proc mount hides the writes of others: yoctuned detects and logs
# that, and checks everything every few seconds.
systemctl stop yoctuned.service
printf '[Service]\nProtectControlGroups=yes\n' >/etc/systemd/system/yoctuned.service.d/proc.conf
systemctl daemon-reload
systemctl start yoctuned.service
await private-proc-mount-is-reported grep -q '^no events from /proc: this process has its own mount of /proc' /log
sh -c 'echo 78 >/proc/sys/vm/swappiness'
await drift-is-found-by-polling node_is /proc/sys/vm/swappiness 10
rm /etc/systemd/system/yoctuned.service.d/proc.conf
systemctl stop yoctuned.service
systemctl daemon-reload
systemctl start yoctuned.service
is active-before-stop "$(show ActiveState)" active

begin=$(cut -d' ' -f1 /proc/uptime)
systemctl stop yoctuned.service
echo "STOP from $begin to $(cut -d' ' -f1 /proc/uptime)"
is stop-succeeds "$(show ActiveState)/$(show Result)" inactive/success
as_wanted settings-stay-after-stop
yoctuned rollback >/tmp/rollback 2>&1
while read -r path want; do echo "$path $(cat "$path")"; done </expect >/tmp/now
is rollback-restores-the-cores-of-the-slice "$(property AllowedCPUs inference.slice)|$(cat /sys/fs/cgroup/inference.slice/cpuset.cpus 2>/dev/null)" "|"
is rollback-removes-the-memory-limit "$(property MemoryMax vision.service) $(cat $vision/memory.max)" "infinity max"
# Without users the controller may be disabled, and its file removed.
is rollback-restores-the-weight "$(property CPUWeight vision.service) $(cat $vision/cpu.weight 2>/dev/null)" "[not set] $(if [ -e $vision/cpu.weight ]; then echo 100; fi)"
is rollback-restores-the-scheduling "$(task)" "0 0"
if cmp -s /before /tmp/now; then ok rollback-restores-everything; else fail rollback-restores-everything "$(diff /before /tmp/now | tr '\n' ' ')"; fi

# A plan that was changed after signing: the unit fails, logs the reason, and is not restarted.
sed -i 's/"want": "10"/"want": "11"/' /usr/lib/yoctune/plan.json
systemctl start yoctuned.service 2>/dev/null
is edited-plan-fails-the-unit "$(show ActiveState)/$(show Result)/$(show ExecMainStatus)" failed/exit-code/1
is edited-plan-is-not-retried "$(show NRestarts)" 0
if tail -n 3 /log | grep -q 'not signed by a trusted key'; then ok log-reports-the-signature; else fail log-reports-the-signature "$(tail -n 3 /log | tr '\n' ' ')"; fi
while read -r path want; do echo "$path $(cat "$path")"; done </expect >/tmp/now
if cmp -s /before /tmp/now; then ok edited-plan-changes-nothing; else fail edited-plan-changes-nothing "$(diff /before /tmp/now | tr '\n' ' ')"; fi
echo DONE
systemctl poweroff --force --force
