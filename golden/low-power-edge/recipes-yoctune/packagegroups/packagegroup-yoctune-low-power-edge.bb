# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Packages of the yoctune layer low-power-edge"
DESCRIPTION = "Everything that an image needs to be tuned as the layer low-power-edge says."

PACKAGE_ARCH = "${MACHINE_ARCH}"

inherit packagegroup

COMPATIBLE_MACHINE = "^(jetson-orin-nano-devkit-nvme)$"

# nvpmodel comes with packagegroup-base only, which a small image leaves out.
RDEPENDS:${PN} = "\
    tegra-nvpmodel \
    yoctune-low-power-edge-config \
    yoctuned \
"
RDEPENDS:${PN}:append:yoctune-on-jetson-orin-nano-devkit-nvme = " \
    kmod \
    util-linux-mkswap \
    util-linux-swapoff \
    util-linux-swapon \
    util-linux-zramctl \
"
RRECOMMENDS:${PN}:append:yoctune-on-jetson-orin-nano-devkit-nvme = " \
    kernel-module-zram \
"
