# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Packages of the yoctune layer vision-tuning"
DESCRIPTION = "Everything that an image needs to be tuned as the layer vision-tuning says."

PACKAGE_ARCH = "${MACHINE_ARCH}"

inherit packagegroup

COMPATIBLE_MACHINE = "^(jetson-orin-nano-devkit)$"

# nvpmodel comes with packagegroup-base only, which a small image leaves out.
RDEPENDS:${PN} = "\
    tegra-nvpmodel \
    yoctune-cuda \
    yoctune-vision-tuning-config \
    yoctuned \
"
RDEPENDS:${PN}:append:yoctune-on-jetson-orin-nano-devkit = " \
    kmod \
    perf \
    util-linux-mkswap \
    util-linux-swapoff \
    util-linux-swapon \
    util-linux-zramctl \
    yoctuned-serve \
"
RRECOMMENDS:${PN}:append:yoctune-on-jetson-orin-nano-devkit = " \
    kernel-module-sch-fq \
    kernel-module-tcp-bbr \
    kernel-module-zram \
"
