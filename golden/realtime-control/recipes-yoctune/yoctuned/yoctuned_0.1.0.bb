# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "Applies and holds a yoctune plan"
SUMMARY:${PN}-bench = "Measures the compute core of the device"
DESCRIPTION = "Makes the tuning plan true on the device and runs inference pipelines."
HOMEPAGE = "https://github.com/yoctune/yoctune"
BUGTRACKER = "https://github.com/yoctune/yoctune/issues"
SECTION = "base"
# What is linked into the program, and the texts of it all.
LICENSE = "Apache-2.0 & BSD-2-Clause & BSD-3-Clause & MIT"
LIC_FILES_CHKSUM = "\
    file://src/${GO_IMPORT}/LICENSE;md5=920d76114a32b0fb75b3f2718c5a91be \
    file://src/${GO_IMPORT}/LICENSES.txt;md5=00000000000000000000000000000006 \
"

# go.bbclass looks for the module below src/ of S; the archive has one folder at
# its top, which goes away.
SRC_URI = "\
    https://downloads.example.com/yoctune/0.1.0/yoctuned-source.tar.gz;subdir=${BP}/src/${GO_IMPORT};striplevel=1 \
    file://yoctuned.service \
    file://yoctuned-pipeline@.service \
    file://yoctuned-bench.service \
"
SRC_URI[sha256sum] = "0000000000000000000000000000000000000000000000000000000000000002"

S = "${UNPACKDIR}/${BP}"

inherit go-mod systemd useradd features_check

COMPATIBLE_HOST = "aarch64.*-linux"
REQUIRED_DISTRO_FEATURES = "systemd"

GO_IMPORT = "github.com/yoctune/yoctune"
GO_INSTALL = "${GO_IMPORT}/cmd/yoctuned"
# One program that needs no go-runtime package: by default oe-core links Go
# programs against its shared library.
GO_DYNLINK:class-target = ""

# The archive carries its modules: tasks have no network.
export GOFLAGS = "-mod=vendor"
export GOPROXY = "off"
export CGO_ENABLED = "1"

SYSTEMD_SERVICE:${PN} = "yoctuned.service"

# Measures when it is started: systemctl start yoctuned-bench
PACKAGE_BEFORE_PN = "${PN}-bench"
SYSTEMD_PACKAGES = "${PN} ${PN}-bench"
SYSTEMD_SERVICE:${PN}-bench = "yoctuned-bench.service"
SYSTEMD_AUTO_ENABLE:${PN}-bench = "disable"

# Whoever may ask the device for a lease without being root.
USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "--system yoctune"

do_install:append() {
    # the program, not its sources
    rm -rf ${D}${libdir}/go
    install -D -m 0644 ${UNPACKDIR}/yoctuned.service ${D}${systemd_system_unitdir}/yoctuned.service
    install -D -m 0644 ${UNPACKDIR}/yoctuned-pipeline@.service ${D}${systemd_system_unitdir}/yoctuned-pipeline@.service
    install -D -m 0644 ${UNPACKDIR}/yoctuned-bench.service ${D}${systemd_system_unitdir}/yoctuned-bench.service
}

FILES:${PN} += "${systemd_system_unitdir}/yoctuned-pipeline@.service"
FILES:${PN}-bench += "${systemd_system_unitdir}/yoctuned-bench.service"
RDEPENDS:${PN}-bench = "${PN}"
