# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Serves what yoctuned measures"
SUMMARY:${PN}-dashboards = "A dashboard for Grafana; scrape configuration and alert rules for Prometheus"
DESCRIPTION = "A page with live charts, metrics for Prometheus, health and a bounded history."
HOMEPAGE = "https://github.com/yoctune/yoctune"
BUGTRACKER = "https://github.com/yoctune/yoctune/issues"
SECTION = "base"
# What is linked into the program, and the texts of it all.
LICENSE = "Apache-2.0 & BSD-2-Clause & BSD-3-Clause & MIT & blessing"
LIC_FILES_CHKSUM = "file://yoctuned-serve-0.1.0-licenses.txt;md5=00000000000000000000000000000007"

SRC_URI = "\
    https://downloads.example.com/yoctune/0.1.0/yoctuned-serve-arm64;downloadfilename=yoctuned-serve-0.1.0-linux-arm64;name=program \
    https://downloads.example.com/yoctune/0.1.0/yoctuned-serve-licenses.txt;downloadfilename=yoctuned-serve-0.1.0-licenses.txt;name=licenses \
    file://yoctuned-serve.service \
    file://grafana/yoctuned.json \
    file://prometheus/prometheus.yml \
    file://prometheus/yoctuned.rules.yml \
"
SRC_URI[program.sha256sum] = "0000000000000000000000000000000000000000000000000000000000000004"
SRC_URI[licenses.sha256sum] = "0000000000000000000000000000000000000000000000000000000000000007"

S = "${UNPACKDIR}"

inherit systemd features_check

COMPATIBLE_HOST = "aarch64.*-linux"
REQUIRED_DISTRO_FEATURES = "systemd"

SYSTEMD_SERVICE:${PN} = "yoctuned-serve.service"

PACKAGE_BEFORE_PN = "${PN}-dashboards"

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    install -D -m 0755 ${S}/yoctuned-serve-0.1.0-linux-arm64 ${D}${bindir}/yoctuned-serve
    install -D -m 0644 ${S}/yoctuned-serve.service ${D}${systemd_system_unitdir}/yoctuned-serve.service
    install -D -m 0644 ${S}/grafana/yoctuned.json ${D}${datadir}/yoctune/grafana/yoctuned.json
    install -D -m 0644 ${S}/prometheus/prometheus.yml ${D}${datadir}/yoctune/prometheus/prometheus.yml
    install -D -m 0644 ${S}/prometheus/yoctuned.rules.yml ${D}${datadir}/yoctune/prometheus/yoctuned.rules.yml
}

FILES:${PN}-dashboards += "${datadir}/yoctune"

# The release's program has no debug information left to split off.
INHIBIT_PACKAGE_STRIP = "1"
INHIBIT_PACKAGE_DEBUG_SPLIT = "1"
