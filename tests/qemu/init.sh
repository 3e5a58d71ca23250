#!/bin/sh
# The guest's init. It plays everybody around yoctuned: the system that boots, a
# stranger who changes a value, a power cut, and an outside observer who reads
# /proc and /sys by himself. Each check prints one line that the driver reads:
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
# What the stranger wrote last must not scroll into a check's line.
echo 1 >/proc/sys/kernel/printk

ok() { echo "CHECK $1 ok"; }
fail() { echo "CHECK $1 FAIL $2"; }

# knobs prints what every node of the plan says. The shell's own read takes one
# byte at a time, and a sysctl gives only the first that way: cat takes all.
knobs() { while read -r path want; do echo "$path $(cat "$path")"; done </expect; }

# expect_code NAME CODE COMMAND... runs a command and judges its exit code.
expect_code() {
	name=$1 code=$2
	shift 2
	"$@" >/tmp/out 2>/tmp/err
	got=$?
	if [ $got = "$code" ]; then ok "$name"; else
		fail "$name" "exit $got, wanted $code: $(tail -n 3 /tmp/err /tmp/out | tr '\n' ' ')"
	fi
}

# says NAME TEXT judges the last output.
says() { if grep -qF "$2" /tmp/out /tmp/err; then ok "$1"; else fail "$1" "no '$2' in: $(tr '\n' ' ' </tmp/out)$(cat /tmp/err)"; fi; }

# as_wanted NAME: the outside observer compares with the plan.
as_wanted() {
	bad=
	while read -r path want; do
		value=$(cat "$path")
		case " $value " in *" $want "* | *" [$want] "*) ;; *) bad="$bad $path=$value(wanted $want)" ;; esac
	done </expect
	if [ -z "$bad" ]; then ok "$1"; else fail "$1" "$bad"; fi
}

# as_before NAME: every node says what it said before anything was done.
as_before() {
	knobs >/tmp/now
	if cmp -s /tmp/before /tmp/now; then ok "$1"; else fail "$1" "$(diff /tmp/before /tmp/now | tr '\n' ' ')"; fi
}

knobs >/tmp/before
# The firmware left escape codes on the line.
echo
echo "KERNEL $(uname -r), yoctuned $(yoctuned version)"

expect_code probe-runs 0 yoctuned probe --format json
says probe-finds-the-disk '"name":"vda"'
expect_code verify-before-apply-says-no 3 yoctuned verify /plan.json
as_before verify-changes-nothing

expect_code apply-says-yes 0 yoctuned apply /plan.json
as_wanted outside-observer-sees-the-plan
expect_code verify-after-apply-says-yes 0 yoctuned verify /plan.json

sh -c 'echo 77 >/proc/sys/vm/swappiness'
expect_code verify-after-drift-says-no 3 yoctuned verify /plan.json --format json
says drift-is-named '"id":"sysctl.vm.swappiness","path":"/proc/sys/vm/swappiness","wanted":"10","found":"77","outcome":"differs"'
says drift-names-the-line-that-asked '"origin":"config.cue:12:3"'
says only-the-drifted-setting-differs '"differs":1'
expect_code apply-repairs 0 yoctuned apply /plan.json
as_wanted outside-observer-sees-the-repair

expect_code rollback-says-yes 0 yoctuned rollback
as_before rollback-restores-everything

# A power cut for the process: killed when its first writes are seen, while the
# slow ones are still to come.
total=$(wc -l </expect)
midway=0
for round in 1 2 3; do
	yoctuned apply /plan.json >/tmp/out 2>&1 &
	pid=$!
	# Swappiness goes from 60 to 10: its first byte tells, without a fork.
	value=
	while [ "$value" != 1 ] && [ -d /proc/$pid ]; do read -r value </proc/sys/vm/swappiness; done
	kill -9 $pid 2>/dev/null && midway=$((midway + 1))
	wait $pid 2>/dev/null
	knobs >/tmp/now
	changed=$(diff /tmp/before /tmp/now | grep -c '^+/')
	echo "KILLED round $round: $changed of $total nodes had changed"
	yoctuned rollback >/tmp/out 2>&1 || fail "rollback-after-kill-$round" "$(tail -n 3 /tmp/out | tr '\n' ' ')"
	as_before "rollback-after-SIGKILL-restores-everything-$round"
done
if [ $midway -gt 0 ]; then ok some-kill-came-midway; else fail some-kill-came-midway "apply was always done before the kill"; fi

expect_code a-real-kernel-refuses-and-rounds 3 yoctuned apply /hard.json --format json
says refused-choice '"cfq\" not offered'
says refused-range 'vm.swappiness: kernel refused 9999'
says rounded 'vda read_ahead_kb: wrote 130, kernel uses 128'
says unknown-value '\"nosuch\" is unknown to the kernel'
says absent-node 'kernel.no_such_thing: no such node'
says waits-for-module 'waits for module nf_conntrack'
says read-only-node 'read-only node'
says action 'write-only: an action, not a setting'
says the-rest-was-applied '"wanted":"51","found":"51","outcome":"ok"'
expect_code rollback-after-refusals 0 yoctuned rollback
as_before rollback-after-refusals-restores-everything

mkdir -p /etc
echo 'nobody:x:65534:65534::/:/bin/sh' >/etc/passwd
expect_code without-rights-nothing-is-done 1 su nobody -c 'yoctuned apply /plan.json'
says and-it-says-what-is-missing 'run it as root'
as_before and-nothing-changed
mount -o remount,ro /sys
expect_code a-read-only-sys-costs-its-own-settings 3 yoctuned apply /plan.json
says and-it-says-why 'read-only'
if [ "$(cat /proc/sys/vm/swappiness)" = 10 ]; then ok and-the-others-are-applied; else fail and-the-others-are-applied "$(cat /proc/sys/vm/swappiness)"; fi
mount -o remount,rw /sys
expect_code rollback-of-half-a-plan 0 yoctuned rollback
as_before and-everything-is-back
printf 'garbage\n\377garbage\n' >/run/yoctune/journal
expect_code a-damaged-journal-is-no-reason-not-to-apply 0 yoctuned apply /plan.json
expect_code nor-to-roll-back 3 yoctuned rollback
says and-it-says-that-originals-are-lost 'damaged records: 2'
as_before and-it-restores-everything

expect_code another-boards-plan-is-refused 1 yoctuned apply /orin.json
says and-says-why 'the plan is for orin-nano-8gb, this device has no device tree'
as_before and-nothing-was-written
expect_code an-edited-plan-is-refused 1 yoctuned apply /edited.json
says by-its-digest 'digest'

# await NAME COMMAND... tries a command for ten seconds: what it waits for is
# another process's doing.
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
node_says() { [ "$(cat "$1")" = "$2" ]; }
node_offers() { grep -qF "[$2]" "$1"; }
same() { knobs >/tmp/now; cmp -s /tmp/before /tmp/now; }

# enforced starts the enforcer and waits until it watches. What an earlier one
# said must be gone before: the child empties the file only when it gets to run.
enforced() {
	: >/tmp/enforce
	yoctuned enforce /plan.json >/tmp/enforce 2>&1 &
	enforcer=$!
	await "$1" grep -q '^watching' /tmp/enforce
}

enforced enforce-starts
as_wanted enforce-applies
if grep -q '^no events' /tmp/enforce; then fail this-kernel-tells-of-writes "$(grep '^no events' /tmp/enforce | tr '\n' ' ')"; else ok this-kernel-tells-of-writes; fi
sh -c 'echo 77 >/proc/sys/vm/swappiness; usleep 300000; :' &
stranger=$!
await drift-is-named-with-its-author grep -q "^vm.swappiness: set to 77 by sh (pid $stranger" /tmp/enforce
grep "^vm.swappiness: set to 77" /tmp/enforce | sed 's/^/REPAIRED /'
as_wanted drift-is-repaired
# When memory is short the kernel forgets the names of nodes, not their watchers.
echo 2 >/proc/sys/vm/drop_caches
sh -c 'echo 78 >/proc/sys/vm/swappiness; usleep 300000; :' &
await drift-is-seen-after-the-kernel-forgot-names grep -q "^vm.swappiness: set to 78 by sh (pid $!" /tmp/enforce
sh -c 'echo none >/sys/block/vda/queue/scheduler; usleep 300000; :' &
await sysfs-drift-is-repaired grep -q "^vda scheduler: set to none by sh" /tmp/enforce
as_wanted also-what-the-scheduler-reset
expect_code why-tells-the-story 0 yoctuned why vm.swappiness --plan /plan.json
says why-names-the-line 'set at config.cue:12:3'
says why-names-the-original 'was        60, before it was first written'
expect_code a-second-instance-is-refused 1 yoctuned enforce /plan.json
says and-told-who-holds-it "pid $enforcer (yoctuned enforce /plan.json)"

# The disk is unplugged and comes back with the kernel's defaults.
disk=$(readlink -f /sys/block/vda/device/..)
echo 1 >"$disk/remove"
echo 1 >/sys/bus/pci/rescan
await a-disk-that-comes-back-is-set-again node_offers /sys/block/vda/queue/scheduler kyber
await with-all-its-settings grep -q '^vda read_ahead_kb: 512, was' /tmp/enforce
as_wanted and-nothing-else-moved

# A module brings a node that the plan has been waiting for.
expect_code status-says-what-is-waited-for 0 yoctuned status /plan.json
says and-for-which-module 'module nf_conntrack'
# The kernel would load the first itself, by /sbin/modprobe.
modprobe crc32c_generic
modprobe nf_conntrack
await a-modules-node-is-set node_says /proc/sys/net/netfilter/nf_conntrack_max 65536
await and-the-log-says-so grep -q '^net.netfilter.nf_conntrack_max: 65536, was' /tmp/enforce

# An interface comes, and then somebody changes its driver's settings: no file tells.
modprobe veth
ip link add left type veth
await a-new-interface-is-set node_says /sys/class/net/left/tx_queue_len 500
await and-the-log-names-it grep -q '^left tx_queue_len: 500, was 1000 after' /tmp/enforce
if [ -x /bin/ethtool ]; then
	channels() { ethtool -l left 2>&1 | sed -n '/^Current/,$s/^RX:[^0-9]*//p'; }
	two_channels() { [ "$(channels)" = 2 ]; }
	await its-channels-too two_channels
	ethtool -L left rx 1 >/tmp/out 2>&1
	await a-drivers-drift-is-repaired grep -q '^left ethtool/channels/rx: set to 1 by' /tmp/enforce
	await as-ethtool-sees two_channels
fi

# The machine sleeps: pm_test ends that after five seconds, in the last step before the
# firmware. Somebody with a /proc of his own, of whose writes no event tells, changes a
# value all the while.
if grep -q core /sys/power/pm_test 2>/dev/null && grep -q deep /sys/power/mem_sleep; then
	mkdir -p /tmp/proc
	mount -t proc proc /tmp/proc
	while :; do echo 79 >/tmp/proc/sys/vm/swappiness; usleep 100000; done &
	unseen=$!
	echo deep >/sys/power/mem_sleep
	echo core >/sys/power/pm_test
	expect_code the-machine-sleeps-and-resumes 0 sh -c 'echo mem >/sys/power/state'
	await after-a-resume-everything-is-looked-at grep -q '^resume from sleep.*: re-applied' /tmp/enforce
	grep '^resume from sleep' /tmp/enforce | sed 's/^/REPAIRED /'
	kill $unseen
	wait $unseen 2>/dev/null
	echo 10 >/tmp/proc/sys/vm/swappiness
	umount /tmp/proc
	as_wanted and-is-as-wanted
fi

kill -9 $enforcer
wait $enforcer 2>/dev/null
sh -c 'echo 78 >/proc/sys/vm/swappiness'
enforced enforce-starts-again-after-SIGKILL
as_wanted and-finishes-what-was-begun

for value in 71 72 73 74; do
	sh -c "echo $value >/proc/sys/vm/swappiness; usleep 300000; :"
done
await who-insists-is-yielded-to grep -q '^ALARM: vm.swappiness: contested by sh (pid' /tmp/enforce
if node_says /proc/sys/vm/swappiness 74; then ok and-no-longer-fought; else fail and-no-longer-fought "$(cat /proc/sys/vm/swappiness)"; fi
yoctuned status /plan.json >/tmp/out 2>/tmp/err
says status-names-the-contest 'vm.swappiness is 74, wanted 10, by sh (pid'
grep -E 'ctxt_switches' /proc/$enforcer/status | tr '\n' ' ' | sed 's/^/IDLE /'
echo
kill -TERM $enforcer
wait $enforcer 2>/dev/null
expect_code rollback-after-enforce 0 yoctuned rollback
as_before rollback-after-enforce-restores-everything

# A trial whose process is killed is reverted by the one it left behind.
yoctuned apply --try 3s /plan.json >/tmp/out 2>&1 &
trier=$!
await a-trial-applies node_says /proc/sys/vm/swappiness 10
kill -9 $trier
wait $trier 2>/dev/null
await a-killed-trial-is-reverted same
expect_code the-plan-that-was-not-confirmed-is-not-enforced 1 yoctuned enforce /plan.json
says and-it-says-so 'tried and never confirmed'

# irqbalance is told, over its socket, which interrupts are not its to move.
if [ -x /bin/irqbalance ]; then
	mkdir -p /run/irqbalance
	irqbalance --debug --interval=1 >/tmp/irqbalance 2>&1 &
	balancer=$!
	await irqbalance-listens test -S /run/irqbalance/irqbalance$balancer.sock
	expect_code apply-places-an-interrupt-and-tells-irqbalance 0 yoctuned apply /irq.json
	says and-counts-both 'apply: 3 ok'
	await irqbalance-has-taken-it grep -q 'IRQ 9 was BANNED' /tmp/irqbalance
	expect_code rollback-gives-it-back 0 yoctuned rollback
	yoctuned verify /irq.json --format json >/tmp/out 2>/tmp/err
	says and-the-list-is-as-before '"path":"/proc/irq/irqbalance/banned","wanted":"9","found":"none"'
	kill $balancer
	wait $balancer 2>/dev/null
fi

echo DONE
poweroff -f
