# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Device configuration of the yoctune layer realtime-control"
DESCRIPTION = "The tuning plan, and the files that are in force before it is read."
HOMEPAGE = "https://github.com/yoctune/yoctune"
SECTION = "base"
LICENSE = "MIT"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/MIT;md5=0835ade698e0bcf8506ecda2f7b4f302"

# files/<machine>/ is found through FILESOVERRIDES
SRC_URI = ""
SRC_URI:append:yoctune-on-jetson-agx-orin-devkit = " \
    file://95-yoctune.conf \
    file://canbus.service \
    file://motion.service \
    file://yoctune-modules-load.conf \
    file://yoctune-tmpfiles.conf \
    file://yoctuned.service.d-40-scheduling.conf \
    file://plan \
"

S = "${UNPACKDIR}"

PACKAGE_ARCH = "${MACHINE_ARCH}"

inherit systemd features_check

INHIBIT_DEFAULT_DEPS = "1"
COMPATIBLE_MACHINE = "^(jetson-agx-orin-devkit)$"
REQUIRED_DISTRO_FEATURES = "systemd"

SYSTEMD_SERVICE:${PN}:append:yoctune-on-jetson-agx-orin-devkit = " canbus.service motion.service"

do_configure[noexec] = "1"
do_compile[noexec] = "1"

# A folder that was unpacked before may hold a signature that is gone.
do_unpack[cleandirs] += "\
    ${UNPACKDIR}/plan \
"

do_install() {
    install -d ${D}${nonarch_libdir}/yoctune
}

do_install:append:yoctune-on-jetson-agx-orin-devkit() {
    install -D -m 0644 ${S}/95-yoctune.conf ${D}${sysconfdir}/sysctl.d/95-yoctune.conf
    install -D -m 0644 ${S}/canbus.service ${D}${systemd_system_unitdir}/canbus.service
    install -D -m 0644 ${S}/motion.service ${D}${systemd_system_unitdir}/motion.service
    install -D -m 0644 ${S}/plan/plan.json ${D}${nonarch_libdir}/yoctune/plan.json
    install -D -m 0644 ${S}/plan/plan.origins.json ${D}${nonarch_libdir}/yoctune/plan.origins.json
    install -D -m 0644 ${S}/yoctune-modules-load.conf ${D}${sysconfdir}/modules-load.d/yoctune.conf
    install -D -m 0644 ${S}/yoctune-tmpfiles.conf ${D}${nonarch_libdir}/tmpfiles.d/yoctune.conf
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
