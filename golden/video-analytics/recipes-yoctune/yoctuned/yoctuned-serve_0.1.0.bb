# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Serves what yoctuned measures"
DESCRIPTION = "A page with live charts, metrics for Prometheus, health and a bounded history."
HOMEPAGE = "https://github.com/yoctune/yoctune"
BUGTRACKER = "https://github.com/yoctune/yoctune/issues"
SECTION = "base"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/Apache-2.0;md5=89aea4e17d99a7cacdbeed46a0096b10"

SRC_URI = "\
    https://downloads.example.com/yoctune/0.1.0/yoctuned-serve-arm64;downloadfilename=yoctuned-serve-0.1.0-linux-arm64 \
    file://yoctuned-serve.service \
"
SRC_URI[sha256sum] = "0000000000000000000000000000000000000000000000000000000000000004"

S = "${UNPACKDIR}"

inherit systemd features_check

COMPATIBLE_HOST = "aarch64.*-linux"
REQUIRED_DISTRO_FEATURES = "systemd"

SYSTEMD_SERVICE:${PN} = "yoctuned-serve.service"

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    install -D -m 0755 ${S}/yoctuned-serve-0.1.0-linux-arm64 ${D}${bindir}/yoctuned-serve
    install -D -m 0644 ${S}/yoctuned-serve.service ${D}${systemd_system_unitdir}/yoctuned-serve.service
}

# The release's program has no debug information left to split off.
INHIBIT_PACKAGE_STRIP = "1"
INHIBIT_PACKAGE_DEBUG_SPLIT = "1"
