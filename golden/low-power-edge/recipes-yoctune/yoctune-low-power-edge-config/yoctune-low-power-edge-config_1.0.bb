# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Device configuration of the yoctune layer low-power-edge"
DESCRIPTION = "The tuning plan, and the files that are in force before it is read."
HOMEPAGE = "https://github.com/yoctune/yoctune"
SECTION = "base"
LICENSE = "MIT"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/MIT;md5=0835ade698e0bcf8506ecda2f7b4f302"

# files/<machine>/ is found through FILESOVERRIDES
SRC_URI = ""
SRC_URI:append:yoctune-on-jetson-orin-nano-devkit-nvme = " \
    file://95-yoctune.conf \
    file://99-yoctune.rules \
    file://sensors.service \
    file://uplink.service \
    file://yoctune-modprobe.conf \
    file://yoctune-tmpfiles.conf \
    file://yoctune-zram.service \
    file://yoctune-zram.sh \
    file://yoctuned.service.d-40-scheduling.conf \
    file://plan \
"

S = "${UNPACKDIR}"

PACKAGE_ARCH = "${MACHINE_ARCH}"

inherit systemd features_check

INHIBIT_DEFAULT_DEPS = "1"
COMPATIBLE_MACHINE = "^(jetson-orin-nano-devkit-nvme)$"
REQUIRED_DISTRO_FEATURES = "systemd"

SYSTEMD_SERVICE:${PN}:append:yoctune-on-jetson-orin-nano-devkit-nvme = " sensors.service uplink.service yoctune-zram.service"

do_configure[noexec] = "1"
do_compile[noexec] = "1"

# A folder that was unpacked before may hold a signature that is gone.
do_unpack[cleandirs] += "\
    ${UNPACKDIR}/plan \
"

do_install() {
    install -d ${D}${nonarch_libdir}/yoctune
}

do_install:append:yoctune-on-jetson-orin-nano-devkit-nvme() {
    install -D -m 0644 ${S}/95-yoctune.conf ${D}${sysconfdir}/sysctl.d/95-yoctune.conf
    install -D -m 0644 ${S}/99-yoctune.rules ${D}${nonarch_base_libdir}/udev/rules.d/99-yoctune.rules
    install -D -m 0644 ${S}/plan/plan.json ${D}${nonarch_libdir}/yoctune/plan.json
    install -D -m 0644 ${S}/plan/plan.origins.json ${D}${nonarch_libdir}/yoctune/plan.origins.json
    install -D -m 0644 ${S}/sensors.service ${D}${systemd_system_unitdir}/sensors.service
    install -D -m 0644 ${S}/uplink.service ${D}${systemd_system_unitdir}/uplink.service
    install -D -m 0644 ${S}/yoctune-modprobe.conf ${D}${sysconfdir}/modprobe.d/yoctune.conf
    install -D -m 0644 ${S}/yoctune-tmpfiles.conf ${D}${nonarch_libdir}/tmpfiles.d/yoctune.conf
    install -D -m 0644 ${S}/yoctune-zram.service ${D}${systemd_system_unitdir}/yoctune-zram.service
    install -D -m 0755 ${S}/yoctune-zram.sh ${D}${nonarch_libdir}/yoctune/yoctune-zram
    install -D -m 0644 ${S}/yoctuned.service.d-40-scheduling.conf ${D}${systemd_system_unitdir}/yoctuned.service.d/40-scheduling.conf
    if [ -e ${S}/plan/plan.json.minisig ]; then
        install -m 0644 ${S}/plan/plan.json.minisig ${D}${nonarch_libdir}/yoctune/plan.json.minisig
    fi
}

FILES:${PN} += "\
    ${nonarch_base_libdir}/udev/rules.d \
    ${nonarch_libdir}/tmpfiles.d \
    ${nonarch_libdir}/yoctune \
    ${systemd_system_unitdir} \
"
