# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Applies and holds a yoctune plan"
SUMMARY:${PN}-bench = "Measures the compute core of the device"
DESCRIPTION = "Makes the tuning plan true on the device and runs inference pipelines."
HOMEPAGE = "https://github.com/yoctune/yoctune"
BUGTRACKER = "https://github.com/yoctune/yoctune/issues"
SECTION = "base"
# What is linked into the program, and the texts of it all.
LICENSE = "Apache-2.0 & BSD-2-Clause & BSD-3-Clause & MIT"
LIC_FILES_CHKSUM = "file://yoctuned-0.1.0-licenses.txt;md5=00000000000000000000000000000006"

SRC_URI = "\
    https://downloads.example.com/yoctune/0.1.0/yoctuned-arm64;downloadfilename=yoctuned-0.1.0-linux-arm64;name=program \
    https://downloads.example.com/yoctune/0.1.0/yoctuned-licenses.txt;downloadfilename=yoctuned-0.1.0-licenses.txt;name=licenses \
    file://yoctuned.service \
    file://yoctuned-pipeline@.service \
    file://yoctuned-bench.service \
"
SRC_URI[program.sha256sum] = "0000000000000000000000000000000000000000000000000000000000000001"
SRC_URI[licenses.sha256sum] = "0000000000000000000000000000000000000000000000000000000000000006"

S = "${UNPACKDIR}"

inherit systemd useradd features_check

COMPATIBLE_HOST = "aarch64.*-linux"
REQUIRED_DISTRO_FEATURES = "systemd"

SYSTEMD_SERVICE:${PN} = "yoctuned.service"

# Measures when it is started: systemctl start yoctuned-bench
PACKAGE_BEFORE_PN = "${PN}-bench"
SYSTEMD_PACKAGES = "${PN} ${PN}-bench"
SYSTEMD_SERVICE:${PN}-bench = "yoctuned-bench.service"
SYSTEMD_AUTO_ENABLE:${PN}-bench = "disable"

# Whoever may ask the device for a lease without being root.
USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "--system yoctune"

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    install -D -m 0755 ${S}/yoctuned-0.1.0-linux-arm64 ${D}${bindir}/yoctuned
    install -D -m 0644 ${S}/yoctuned.service ${D}${systemd_system_unitdir}/yoctuned.service
    install -D -m 0644 ${S}/yoctuned-pipeline@.service ${D}${systemd_system_unitdir}/yoctuned-pipeline@.service
    install -D -m 0644 ${S}/yoctuned-bench.service ${D}${systemd_system_unitdir}/yoctuned-bench.service
}

FILES:${PN} += "${systemd_system_unitdir}/yoctuned-pipeline@.service"
FILES:${PN}-bench += "${systemd_system_unitdir}/yoctuned-bench.service"
RDEPENDS:${PN}-bench = "${PN}"

# The release's program has no debug information left to split off.
INHIBIT_PACKAGE_STRIP = "1"
INHIBIT_PACKAGE_DEBUG_SPLIT = "1"
