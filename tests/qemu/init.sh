#!/bin/sh
# The guest's init. It boots the system, changes values as another program would, kills
# yoctuned, and reads /proc and /sys independently of it. Each check prints one line that
# the Go test reads:
#
#   CHECK <name> ok
#   CHECK <name> FAIL <why>
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /run /var/lib /tmp
mount -t tmpfs tmpfs /run
for m in virtio_pci virtio_blk kyber-iosched bfq; do modprobe $m; done
n=0
while [ ! -e /sys/block/vda/queue/scheduler ] && [ $n -lt 100 ]; do usleep 50000; n=$((n + 1)); done
# Kernel messages must not end up inside a check's line.
echo 1 >/proc/sys/kernel/printk

ok() { echo "CHECK $1 ok"; }
fail() { echo "CHECK $1 FAIL $2"; }

# print_nodes prints the value of every node of the plan. It uses cat, because the shell's
# read requests one byte at a time, and a sysctl returns only the first byte that way.
print_nodes() { while read -r path want; do echo "$path $(cat "$path")"; done </expect; }

# expect_code NAME CODE COMMAND... runs a command and checks its exit code.
expect_code() {
	name=$1 code=$2
	shift 2
	"$@" >/tmp/out 2>/tmp/err
	got=$?
	if [ $got = "$code" ]; then ok "$name"; else
		fail "$name" "exit $got, wanted $code: $(tail -n 3 /tmp/err /tmp/out | tr '\n' ' ')"
	fi
}

# prints NAME TEXT checks that the last output contains TEXT.
prints() { if grep -qF "$2" /tmp/out /tmp/err; then ok "$1"; else fail "$1" "no '$2' in: $(tr '\n' ' ' </tmp/out)$(cat /tmp/err)"; fi; }

# as_wanted NAME compares every node with the plan, without yoctuned.
as_wanted() {
	bad=
	while read -r path want; do
		value=$(cat "$path")
		case " $value " in *" $want "* | *" [$want] "*) ;; *) bad="$bad $path=$value(wanted $want)" ;; esac
	done </expect
	if [ -z "$bad" ]; then ok "$1"; else fail "$1" "$bad"; fi
}

# as_before NAME checks that every node has its original value.
as_before() {
	print_nodes >/tmp/now
	if cmp -s /tmp/before /tmp/now; then ok "$1"; else fail "$1" "$(diff /tmp/before /tmp/now | tr '\n' ' ')"; fi
}

print_nodes >/tmp/before
# End the line on which the firmware left escape codes.
echo
echo "KERNEL $(uname -r), yoctuned $(yoctuned version)"

expect_code probe-runs 0 yoctuned probe --format json
prints probe-finds-the-disk '"name":"vda"'
expect_code verify-before-apply-exits-3 3 yoctuned verify /plan.json
as_before verify-changes-nothing

expect_code apply-exits-0 0 yoctuned apply /plan.json
as_wanted plan-is-in-force-after-apply
expect_code verify-after-apply-exits-0 0 yoctuned verify /plan.json

sh -c 'echo 77 >/proc/sys/vm/swappiness'
expect_code verify-after-drift-exits-3 3 yoctuned verify /plan.json --format json
prints verify-reports-the-drifted-setting '"id":"sysctl.vm.swappiness","path":"/proc/sys/vm/swappiness","wanted":"10","found":"77","outcome":"differs"'
prints verify-reports-the-line-of-the-configuration '"origin":"config.cue:12:3"'
prints only-the-drifted-setting-differs '"differs":1'
expect_code apply-repairs 0 yoctuned apply /plan.json
as_wanted plan-is-in-force-after-repair

expect_code rollback-exits-0 0 yoctuned rollback
as_before rollback-restores-everything

# A board of one's own: its file, twice the same, and a power mode without nvpmodel.
expect_code board-file-is-written 0 yoctuned probe --board-file /tmp/board.json
prints board-file-is-whole 'facts about'
expect_code board-file-again 0 yoctuned probe --board-file /tmp/board2.json
if cmp -s /tmp/board.json /tmp/board2.json && grep -q '"name": "vda"' /tmp/board.json; then ok board-file-is-the-same-twice; else fail board-file-is-the-same-twice "$(diff /tmp/board.json /tmp/board2.json | tr '\n' ' ')"; fi
expect_code held-mode-is-entered 0 yoctuned apply /held.json
if [ "$(cat /sys/devices/system/cpu/cpu1/online)" = 0 ]; then ok held-mode-switches-a-core; else fail held-mode-switches-a-core "cpu1 is online"; fi
expect_code held-mode-verifies 0 yoctuned verify /held.json
sh -c 'echo 1 >/sys/devices/system/cpu/cpu1/online'
expect_code held-mode-drifts 3 yoctuned verify /held.json
prints held-mode-reports-the-mode 'power.default'
expect_code held-mode-is-entered-again 0 yoctuned apply /held.json
expect_code held-mode-rolls-back 0 yoctuned rollback
if [ "$(cat /sys/devices/system/cpu/cpu1/online)" = 1 ]; then ok held-mode-is-restored; else fail held-mode-is-restored "cpu1 is offline"; fi

# Kill apply after its first writes, before the slow ones.
total=$(wc -l </expect)
midway=0
for round in 1 2 3; do
	yoctuned apply /plan.json >/tmp/out 2>&1 &
	pid=$!
	# Swappiness goes from 60 to 10: the first byte shows the change, without a fork.
	value=
	while [ "$value" != 1 ] && [ -d /proc/$pid ]; do read -r value </proc/sys/vm/swappiness; done
	kill -9 $pid 2>/dev/null && midway=$((midway + 1))
	wait $pid 2>/dev/null
	print_nodes >/tmp/now
	changed=$(diff /tmp/before /tmp/now | grep -c '^+/')
	echo "KILLED round $round: $changed of $total nodes had changed"
	yoctuned rollback >/tmp/out 2>&1 || fail "rollback-after-kill-$round" "$(tail -n 3 /tmp/out | tr '\n' ' ')"
	as_before "rollback-after-SIGKILL-restores-everything-$round"
done
if [ $midway -gt 0 ]; then ok at-least-one-kill-interrupted-apply; else fail at-least-one-kill-interrupted-apply "apply was always done before the kill"; fi

expect_code apply-with-unsupported-values-exits-3 3 yoctuned apply /hard.json --format json
prints reports-refused-choice '"cfq\" not offered'
prints reports-refused-range 'vm.swappiness: kernel refused 9999'
prints reports-rounded-value 'vda read_ahead_kb: wrote 130, kernel uses 128'
prints reports-unknown-value '\"nosuch\" is unknown to the kernel'
prints reports-absent-node 'kernel.no_such_thing: no such node'
prints reports-missing-module 'waits for module nf_conntrack'
prints reports-read-only-node 'read-only node'
prints reports-write-only-node 'write-only: an action, not a setting'
prints other-settings-are-applied '"wanted":"51","found":"51","outcome":"ok"'
expect_code rollback-after-refusals 0 yoctuned rollback
as_before rollback-after-refusals-restores-everything

mkdir -p /etc
echo 'nobody:x:65534:65534::/:/bin/sh' >/etc/passwd
expect_code apply-without-root-exits-1 1 su nobody -c 'yoctuned apply /plan.json'
prints apply-without-root-reports-the-reason 'run it as root'
as_before apply-without-root-changes-nothing
mount -o remount,ro /sys
expect_code apply-with-read-only-sys-exits-3 3 yoctuned apply /plan.json
prints apply-with-read-only-sys-reports-the-reason 'read-only'
if [ "$(cat /proc/sys/vm/swappiness)" = 10 ]; then ok apply-with-read-only-sys-writes-the-sysctls; else fail apply-with-read-only-sys-writes-the-sysctls "$(cat /proc/sys/vm/swappiness)"; fi
mount -o remount,rw /sys
expect_code rollback-of-a-partly-applied-plan 0 yoctuned rollback
as_before rollback-of-a-partly-applied-plan-restores-everything
printf 'garbage\n\377garbage\n' >/run/yoctune/journal
expect_code apply-with-a-damaged-journal 0 yoctuned apply /plan.json
expect_code rollback-with-a-damaged-journal-exits-1 1 yoctuned rollback
prints rollback-reports-lost-originals 'lost records: 2'
as_before rollback-with-a-damaged-journal-restores-everything

expect_code plan-of-another-board-is-refused 1 yoctuned apply /orin.json
prints plan-of-another-board-reports-the-reason 'the plan is for orin-nano-8gb, this device has no device tree'
as_before plan-of-another-board-changes-nothing
expect_code edited-plan-is-refused 1 yoctuned apply /edited.json
prints edited-plan-reports-the-digest 'digest'

# await NAME COMMAND... retries a command for ten seconds, because another process
# does what it checks.
await() {
	name=$1
	shift
	n=0
	while [ $n -lt 500 ]; do
		if "$@" >/tmp/out 2>/tmp/err; then ok "$name"; return; fi
		usleep 20000
		n=$((n + 1))
	done
	fail "$name" "$* never came true: $(tail -n 3 /tmp/out /tmp/err /tmp/enforce | tr '\n' ' ')"
}
node_is() { [ "$(cat "$1")" = "$2" ]; }
node_offers() { grep -qF "[$2]" "$1"; }
same() { print_nodes >/tmp/now; cmp -s /tmp/before /tmp/now; }

# start_enforcer NAME starts the enforcer and waits until it watches. The log is emptied
# first, because the child empties it only when it starts to run.
start_enforcer() {
	: >/tmp/enforce
	yoctuned enforce /plan.json >/tmp/enforce 2>&1 &
	enforcer=$!
	await "$1" grep -q '^watching' /tmp/enforce
}

start_enforcer enforce-starts
as_wanted enforce-applies
if grep -q '^no events' /tmp/enforce; then fail kernel-reports-writes "$(grep '^no events' /tmp/enforce | tr '\n' ' ')"; else ok kernel-reports-writes; fi
sh -c 'echo 77 >/proc/sys/vm/swappiness; usleep 300000; :' &
writer=$!
await drift-is-reported-with-its-process grep -q "^vm.swappiness: set to 77 by sh (pid $writer" /tmp/enforce
grep "^vm.swappiness: set to 77" /tmp/enforce | sed 's/^/REPAIRED /'
as_wanted drift-is-repaired
# Under memory pressure the kernel drops the names of nodes, but not their watches.
echo 2 >/proc/sys/vm/drop_caches
sh -c 'echo 78 >/proc/sys/vm/swappiness; usleep 300000; :' &
await drift-is-reported-after-drop-caches grep -q "^vm.swappiness: set to 78 by sh (pid $!" /tmp/enforce
sh -c 'echo none >/sys/block/vda/queue/scheduler; usleep 300000; :' &
await sysfs-drift-is-repaired grep -q "^vda scheduler: set to none by sh" /tmp/enforce
as_wanted settings-that-the-scheduler-reset-are-repaired
expect_code why-exits-0 0 yoctuned why vm.swappiness --plan /plan.json
prints why-reports-the-line-of-the-configuration 'set at config.cue:12:3'
prints why-reports-the-original-value 'was        60, before it was first written'
expect_code second-instance-is-refused 1 yoctuned enforce /plan.json
prints second-instance-reports-the-first "pid $enforcer (yoctuned enforce /plan.json)"

# The disk is unplugged and comes back with the kernel's defaults.
disk=$(readlink -f /sys/block/vda/device/..)
echo 1 >"$disk/remove"
echo 1 >/sys/bus/pci/rescan
await returning-disk-gets-its-scheduler node_offers /sys/block/vda/queue/scheduler kyber
await returning-disk-gets-its-read-ahead grep -q '^vda read_ahead_kb: 512, was' /tmp/enforce
as_wanted plan-is-in-force-after-the-disk-returned

# Loading a module creates a node that the plan waits for.
expect_code status-with-a-missing-module-exits-0 0 yoctuned status /plan.json
prints status-names-the-missing-module 'module nf_conntrack'
# The kernel would load crc32c_generic through /sbin/modprobe, which the guest lacks.
modprobe crc32c_generic
modprobe nf_conntrack
await sysctl-of-a-loaded-module-is-set node_is /proc/sys/net/netfilter/nf_conntrack_max 65536
await log-reports-the-sysctl-of-the-module grep -q '^net.netfilter.nf_conntrack_max: 65536, was' /tmp/enforce

# An interface appears; then its driver's settings change, which no file event reports.
modprobe veth
ip link add left type veth
await new-interface-gets-its-queue-length node_is /sys/class/net/left/tx_queue_len 500
await log-reports-the-new-interface grep -q '^left tx_queue_len: 500, was 1000 after' /tmp/enforce
if [ -x /bin/ethtool ]; then
	channels() { ethtool -l left 2>&1 | sed -n '/^Current/,$s/^RX:[^0-9]*//p'; }
	two_channels() { [ "$(channels)" = 2 ]; }
	await new-interface-gets-its-channels two_channels
	ethtool -L left rx 1 >/tmp/out 2>&1
	# The event of the queue that goes may come before that of the process.
	await drift-of-channels-is-reported grep -q -e '^left ethtool/channels/rx: set to 1 by' -e '^left ethtool/channels/rx: 2, was 1 after remove of .*/queues/rx-1' /tmp/enforce
	await drift-of-channels-is-repaired two_channels
fi

# The machine suspends; pm_test resumes it after five seconds, at the last step before the
# firmware. Meanwhile a process changes a value through a /proc mount of its own, whose
# writes cause no event.
if grep -q core /sys/power/pm_test 2>/dev/null && grep -q deep /sys/power/mem_sleep; then
	mkdir -p /tmp/proc
	mount -t proc proc /tmp/proc
	while :; do echo 79 >/tmp/proc/sys/vm/swappiness; usleep 100000; done &
	hidden_writer=$!
	echo deep >/sys/power/mem_sleep
	echo core >/sys/power/pm_test
	expect_code machine-suspends-and-resumes 0 sh -c 'echo mem >/sys/power/state'
	await everything-is-checked-after-a-resume grep -q '^resume from sleep.*: re-applied' /tmp/enforce
	grep '^resume from sleep' /tmp/enforce | sed 's/^/REPAIRED /'
	kill $hidden_writer
	wait $hidden_writer 2>/dev/null
	echo 10 >/tmp/proc/sys/vm/swappiness
	umount /tmp/proc
	as_wanted plan-is-in-force-after-a-resume
fi

kill -9 $enforcer
wait $enforcer 2>/dev/null
sh -c 'echo 78 >/proc/sys/vm/swappiness'
start_enforcer enforce-restarts-after-SIGKILL
as_wanted plan-is-in-force-after-the-restart

for value in 71 72 73 74; do
	sh -c "echo $value >/proc/sys/vm/swappiness; usleep 300000; :"
done
await contested-setting-is-reported grep -q '^ALARM: vm.swappiness: contested by sh (pid' /tmp/enforce
if node_is /proc/sys/vm/swappiness 74; then ok contested-setting-is-left-alone; else fail contested-setting-is-left-alone "$(cat /proc/sys/vm/swappiness)"; fi
yoctuned status /plan.json >/tmp/out 2>/tmp/err
prints status-reports-the-contest 'vm.swappiness is 74, wanted 10, by sh (pid'
grep -E 'ctxt_switches' /proc/$enforcer/status | tr '\n' ' ' | sed 's/^/IDLE /'
echo
kill -TERM $enforcer
wait $enforcer 2>/dev/null
expect_code rollback-after-enforce 0 yoctuned rollback
as_before rollback-after-enforce-restores-everything

# When the process of a trial is killed, its guard reverts the plan.
yoctuned apply --try 3s /plan.json >/tmp/out 2>&1 &
trier=$!
await trial-applies-the-plan node_is /proc/sys/vm/swappiness 10
kill -9 $trier
wait $trier 2>/dev/null
await killed-trial-is-reverted same
expect_code unconfirmed-plan-is-not-enforced 1 yoctuned enforce /plan.json
prints unconfirmed-plan-reports-the-reason 'tried and never confirmed'

# yoctuned sends irqbalance, over its socket, the interrupts that it must not move.
if [ -x /bin/irqbalance ]; then
	mkdir -p /run/irqbalance
	irqbalance --debug --interval=1 >/tmp/irqbalance 2>&1 &
	balancer=$!
	await irqbalance-listens test -S /run/irqbalance/irqbalance$balancer.sock
	expect_code apply-places-an-interrupt 0 yoctuned apply /irq.json
	prints apply-counts-the-interrupt-and-its-exception 'apply: 3 ok'
	await irqbalance-accepts-the-exception grep -q 'IRQ 9 was BANNED' /tmp/irqbalance
	expect_code rollback-of-the-exception 0 yoctuned rollback
	yoctuned verify /irq.json --format json >/tmp/out 2>/tmp/err
	prints rollback-restores-the-list-of-irqbalance '"path":"/proc/irq/irqbalance/banned","wanted":"9","found":"none"'
	kill $balancer
	wait $balancer 2>/dev/null
fi

echo DONE
poweroff -f
