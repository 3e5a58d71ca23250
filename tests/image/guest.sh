#!/bin/sh
# Checks in the booted image, by the kernel's files and systemd's own tools.
#
#   guest.sh early    before yoctuned: what the layer's plain files have done
#   guest.sh late     after everything was started; ends the boot
#
# /check/expect has a line for each setting: KIND NAME WHERE WANTED, separated by tabs.
# /check/boot counts the boots.
#
#   CHECK <name> ok
#   CHECK <name> FAIL <why>
# shellcheck disable=SC2317 # functions that await calls
set -u
tab=$(printf '\t')
boot=$(cat /check/boot)
ok() { echo "CHECK boot$boot-$1 ok"; }
fail() { echo "CHECK boot$boot-$1 FAIL $2"; }
is() { if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "'$2', wanted '$3'"; fi; }
show() { systemctl show -P "$1" "$2"; }
# await NAME SECONDS COMMAND...: waits until the command is true
await() {
	name=$1 end=$(($(cut -d. -f1 /proc/uptime) + $2))
	shift 2
	while
		if "$@"; then ok "$name"; return; fi
		[ "$(cut -d. -f1 /proc/uptime)" -lt $end ]
	do sleep 0.2; done
	fail "$name" "$* never came true: $(journalctl -b -q --no-pager -o cat -u yoctuned | tail -n 3 | tr '\n' ' ')"
}
# value KIND WHERE: the value in force
value() {
	case $1 in
	text) text=$(tr -s '\t ' '  ' <"$2") && case $text in *'['*']'*) text=${text#*[} && text=${text%%]*} ;; esac && echo "$text" ;;
	mask) tr -d , <"$2" | sed 's/^0*\([0-9a-f]\)/\1/' ;;
	exists) if [ -d "$2" ]; then echo 1; else echo 0; fi ;;
	folder) stat -c '%a %U' "$2" ;;
	option) gzip -dc /proc/config.gz | sed -n "s/^CONFIG_$2=//p" ;;
	version) uname -v | tr ' ' '\n' | grep -Fx -e "$2" ;;
	argument) tr ' ' '\n' </proc/cmdline | grep -Fx -e "$2" ;;
	interrupt)
		for irq in /sys/kernel/irq/*; do
			# shellcheck disable=SC2254 # a pattern
			case $(cat "$irq/actions") in $2) cat "/proc/irq/${irq##*/}/smp_affinity_list" ;; esac
		done | sort -u | tr '\n' ' ' | sed 's/ $//'
		;;
	property) show "${2%/*}" "${2##*/}" ;;
	task)
		pid=$(show MainPID "${2%/*}")
		case ${2##*/} in
		nice) sed 's/.*) //' "/proc/$pid/stat" | cut -d' ' -f17 ;;
		policy) sed 's/.*) //' "/proc/$pid/stat" | cut -d' ' -f39,38 ;; # cut keeps the order of the line: priority, policy
		cpus) sed -n 's/^Cpus_allowed_list:[^0-9]*//p' "/proc/$pid/status" ;;
		esac
		;;
	esac 2>&1
}
# each TIME: compares each setting; a setting of another time is skipped
compare() {
	while IFS=$tab read -r when kind name where want; do
		case $when in "$1" | both) ;; *) continue ;; esac
		is "$1-$name" "$(value "$kind" "$where")" "$want"
	done </check/expect
}
# snapshot prints everything that must not change.
snapshot() {
	while IFS=$tab read -r when kind name where want; do
		[ "$when" = early ] || echo "$name $(value "$kind" "$where")"
	done </check/expect
}
verify() {
	echo "VERIFY-BEGIN boot$boot-$1"
	yoctuned verify --format json
	echo "VERIFY-END $?"
}
log() { journalctl -b -q --no-pager -o cat -u yoctuned | sed "s/^/LOG /"; }

if [ "$1" = early ]; then
	udevadm settle
	echo "KERNEL $(uname -rv), $(systemctl --version | head -n 1)"
	compare early
	exit
fi

echo "TIMES multi-user $(show ActiveEnterTimestampMonotonic multi-user.target) us"
sed 's/^/CMDLINE /' /proc/cmdline
compare late
failed_units() { systemctl --failed --no-legend --plain | cut -d' ' -f1; }
is failed-units "$(failed_units)" "$(cat /check/failing)"
if [ ! -e /usr/bin/yoctuned ]; then
	echo "FACT this image has no yoctuned"
	is no-unit-of-yoctuned "$(find /usr/lib/systemd/system /etc/systemd/system -name 'yoctuned*' | wc -l)" 0
	echo GUEST-DONE
	sync
	systemctl poweroff
	exit
fi
if [ -e /check/broken ]; then
	verify broken
	echo GUEST-DONE
	sync
	systemctl poweroff
	exit
fi
enforcing() { [ "$(show ActiveState yoctuned)" = active ]; }
await enforcer-is-active 60 enforcing
echo "STATUS $(show StatusText yoctuned)"
yoctuned status | sed 's/^/STATUS /'
snapshot >/check/snapshot
if [ "$boot" = 1 ]; then cp /check/snapshot /check/snapshot.1; else
	if cmp -s /check/snapshot.1 /check/snapshot; then ok same-after-the-reboot; else fail same-after-the-reboot "$(diff /check/snapshot.1 /check/snapshot | tr '\n' ' ')"; fi
fi
verify settled

# Nothing was forbidden, and nobody is blamed for what systemd, udev and the kernel do at boot.
if log | grep -E 'forbidden|unknown process|: set to ' >/tmp/blamed; then fail log-blames-nobody "$(tr '\n' ' ' </tmp/blamed)"; else ok log-blames-nobody; fi
log

unchanged() {
	snapshot >/tmp/snapshot
	if cmp -s /check/snapshot /tmp/snapshot; then ok "$1"; else fail "$1" "$(diff /check/snapshot /tmp/snapshot | tr '\n' ' ')"; fi
}
node_is() { [ "$(value text "$1")" = "$2" ]; }

if [ "$boot" = 1 ]; then
	# Another process writes a setting: it is repaired, and the process is named.
	drifting=$(sed -n "s/^both${tab}text${tab}sysctl\.vm\.[^$tab]*$tab//p" /check/expect | head -n 1)
	path=${drifting%%"$tab"*} want=${drifting#*"$tab"}
	sh -c "echo 3 >'$path'; sleep 0.3; :" &
	writer=$!
	await drift-is-repaired 30 node_is "$path" "$want"
	named() { journalctl -b -q --no-pager -o cat -u yoctuned | grep -q "set to 3 by sh (pid $writer"; }
	await drift-is-logged-with-its-process 30 named
	journalctl -b -q --no-pager -o cat -u yoctuned | grep 'set to 3 by' | sed 's/^/DRIFT /'

	# The enforcer is killed: systemd restarts it, and nothing else changes.
	systemctl kill -s KILL yoctuned
	restarted() { [ "$(show NRestarts yoctuned)" = 1 ] && enforcing; }
	await killed-enforcer-is-restarted 60 restarted
	unchanged same-after-the-kill
	verify killed

	[ -e /check/pipelines ] || : >/check/pipelines
	while read -r pipeline; do
		unit=yoctuned-pipeline@$pipeline.service
		echo "FACT $unit was $(show ActiveState "$unit") $(show UnitFileState "$unit")"
		systemctl start "$unit"
		lines() { journalctl -b -q --no-pager -o cat -u "$unit" | grep -c '^frame '; }
		wanted() { [ "$(lines)" -ge "$(cat /check/frames)" ]; }
		await "pipeline-$pipeline-prints-results" 600 wanted
		journalctl -b -q --no-pager -o cat -u "$unit" | sed "s/^/PIPELINE /"
		is "pipeline-$pipeline-was-not-restarted" "$(show NRestarts "$unit")" 0
		systemctl stop "$unit"
	done </check/pipelines
	echo 2 >/check/boot
	echo GUEST-DONE
	sync
	systemctl reboot
	exit
fi

# An upgrade of the layer: the packages' files and scripts, as a package manager runs them.
if [ -d /check/upgrade ]; then
	for package in /check/upgrade/*.deb; do
		scripts=$(mktemp -d)
		dpkg-deb -e "$package" "$scripts"
		[ ! -e "$scripts/prerm" ] || sh "$scripts/prerm" upgrade
		dpkg-deb -x "$package" /
		chmod 755 /
		if [ -e "$scripts/postinst" ] && ! sh "$scripts/postinst" configure >/tmp/postinst 2>&1; then fail "upgrade-${package##*/}" "$(tr '\n' ' ' </tmp/postinst)"; fi
	done
	systemctl daemon-reload
	systemctl restart yoctuned
	await enforcer-is-active-after-the-upgrade 60 enforcing
	unchanged same-after-the-upgrade
	verify upgraded
	yoctuned status | sed 's/^/UPGRADED /'
	is failed-units-after-the-upgrade "$(failed_units)" "$(cat /check/failing)"
fi
echo GUEST-DONE
sync
systemctl poweroff
