#!/bin/sh
# Turns the log of the test into a record, from standard input.
cat <<'END'
Images of the layers of the examples, booted.
real:       yoctune, bitbake, openembedded-core and meta-tegra of the release (parse, signatures,
            tasks up to the packages of the layer's own recipes and their scripts); Debian's
            systemd, udev, kmod and tools for arm64; the kernel, built with the layer's fragment;
            yoctuned and ONNX Runtime for arm64; the guest's reboot, SIGKILL and upgrade
stand-in:   qemu's machine "virt" in software emulation, with a device tree that names the board;
            a kernel of Debian's source instead of NVIDIA's; a Debian root instead of
            openembedded-core's packages; empty recipes for what the layer depends on; what is
            named "stand-in" below
calculated: nothing
not shown:  CPU and GPU clocks, power modes, fans, NVIDIA's drivers, do_rootfs and do_image

END
uptime | sed 's/.*load/load/'
grep -E '^=== RUN|RECORD |^ *--- |^ok|^FAIL' | sed -E 's/^( *)[a-z_]+\.go:[0-9]+: RECORD /\1/'
