# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Packages of the yoctune layer realtime-control"
DESCRIPTION = "Everything that an image needs to be tuned as the layer realtime-control says."

PACKAGE_ARCH = "${MACHINE_ARCH}"

inherit packagegroup

COMPATIBLE_MACHINE = "^(jetson-agx-orin-devkit)$"

# nvpmodel comes with packagegroup-base only, which a small image leaves out.
RDEPENDS:${PN} = "\
    tegra-nvpmodel \
    yoctune-realtime-control-config \
    yoctuned \
"
RDEPENDS:${PN}:append:yoctune-on-jetson-agx-orin-devkit = " \
    iproute2 \
    rt-tests \
"
RRECOMMENDS:${PN}:append:yoctune-on-jetson-agx-orin-devkit = " \
    kernel-module-can-raw \
    kernel-module-mttcan \
"
