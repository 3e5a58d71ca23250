#!/bin/sh
# Compressed swap in memory: yoctune-zram start BYTES [ALGORITHM] | stop
set -eu

state=/run/yoctune/zram

case "${1-}" in
start)
    # modprobe fails where zram is built into the kernel.
    modprobe zram || [ -d /sys/class/zram-control ]
    if [ -n "${3-}" ]; then
        dev=$(zramctl --find --size "$2" --algorithm "$3")
    else
        dev=$(zramctl --find --size "$2")
    fi
    if ! mkswap "$dev" >/dev/null || ! swapon --priority 100 "$dev"; then
        zramctl --reset "$dev"
        exit 1
    fi
    mkdir -p "${state%/*}"
    printf '%s\n' "$dev" >"$state"
    ;;
stop)
    [ -f "$state" ] || exit 0
    dev=$(cat "$state")
    swapoff "$dev"
    zramctl --reset "$dev"
    rm -f "$state"
    ;;
*)
    echo "usage: yoctune-zram start BYTES [ALGORITHM] | stop" >&2
    exit 2
    ;;
esac
