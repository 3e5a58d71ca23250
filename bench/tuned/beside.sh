#!/usr/bin/env bash
# Runs TuneD's daemon five times beside `yoctuned enforce`, with other values for two settings of the
# plan. usage: beside.sh YOCTUNE YOCTUNED
#
# It restores the values of this machine. The folders of both programs are empty ones in a private
# mount namespace.
set -euo pipefail
yoctune=$(readlink -f "$1") yoctuned=$(readlink -f "$2")
[ "${YOCTUNE_PRIVATE-}" ] || YOCTUNE_PRIVATE=1 exec unshare -m "$0" "$yoctune" "$yoctuned"
mount --make-rprivate /
for dir in /run/yoctune /var/lib/yoctune /etc/tuned /run/tuned /var/log/tuned; do
	mkdir -p "$dir"
	mount -t tmpfs tmpfs "$dir"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
values() { cat /proc/sys/vm/swappiness /proc/sys/vm/dirty_ratio; }
await() { # FILE TEXT
	local n
	for ((n = 0; n < 300; n++)); do
		if grep -q "$2" "$1" 2>/dev/null; then return; fi
		sleep 0.1
	done
	echo "$1 never had: $2"
	exit 1
}
# end waits for a process. TuneD waits for its threads before it ends, and sometimes for ever.
end() { # PID
	local n
	for ((n = 0; n < 300; n++)); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	if kill -KILL "$1" 2>/dev/null; then echo "killed: it did not end within 30 s of SIGTERM"; fi
	wait "$1" || true
}
before=$(values)
mkdir /etc/tuned/beside
printf '[main]\nsummary=beside\n[sysctl]\nvm.swappiness=33\nvm.dirty_ratio=33\n' >/etc/tuned/beside/tuned.conf
printf 'daemon = 1\ndynamic_tuning = 0\nsleep_interval = 1\nupdate_interval = 10\nreapply_sysctl = 0\n' >/etc/tuned/tuned-main.conf
printf '/proc/sys/vm/swappiness\t10\n/proc/sys/vm/dirty_ratio\t30\n' >"$work/table"
"$yoctune" plan --knobs "$work/table" -o "$work/plan.json" >/dev/null
"$yoctuned" enforce "$work/plan.json" >"$work/log" 2>&1 &
enforcer=$!
await "$work/log" ^watching
for _ in 1 2 3 4 5; do
	rm -f /var/log/tuned/log
	tuned --profile beside -l /var/log/tuned/log --no-dbus &
	tuned=$!
	await /var/log/tuned/log 'static tuning from profile'
	kill "$tuned"
	end "$tuned"
done
"$yoctuned" status "$work/plan.json" | grep '^contested '
kill "$enforcer"
wait "$enforcer"
cat "$work/log"
[ "$(values)" = "$before" ] || { echo "the values are not those from before"; exit 1; }
grep -q '^ALARM: vm.swappiness: contested by tuned' "$work/log"
