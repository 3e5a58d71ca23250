# Written by yoctune. Change the configuration and build the layer again.
SUMMARY = "CUDA kernels of yoctuned"
DESCRIPTION = "Preprocesses frames on the GPU; without it yoctuned does so on the CPU."
HOMEPAGE = "https://github.com/yoctune/yoctune"
BUGTRACKER = "https://github.com/yoctune/yoctune/issues"
SECTION = "libs"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE;md5=920d76114a32b0fb75b3f2718c5a91be"

SRC_URI = "https://downloads.example.com/yoctune/0.1.0/yoctune-cuda-source.tar.gz"
SRC_URI[sha256sum] = "0000000000000000000000000000000000000000000000000000000000000003"

S = "${UNPACKDIR}/${BP}"
B = "${WORKDIR}/build"

inherit cuda

COMPATIBLE_MACHINE = "(cuda)"

# The runtime library and the driver, not all of cuda-libraries.
CUDA_DEPENDS = "cuda-cudart cuda-driver ${CUDA_NATIVEDEPS}"

do_configure[noexec] = "1"

do_compile() {
    for source in ${S}/runtime/engine/core/cuda/*.cu; do
        object=$(basename $source .cu).o
        # --fmad=false: the GPU gives the CPU's results to the bit.
        ${CUDA_NVCC_EXECUTABLE} -ccbin ${CUDAHOSTCXX} ${CUDAFLAGS} -std=c++17 -O3 --fmad=false \
            -Xcompiler -fPIC,-fvisibility=hidden -DYT_CUDA_ARCHS="\"sm_${TEGRA_CUDA_ARCHITECTURE}\"" \
            -I${S}/runtime/engine/core/c -I${S}/runtime/engine/core/cuda -c $source -o $object
    done
    ${CXX} -shared -Wl,-soname,libyoctune_cuda.so -Wl,--version-script=${S}/runtime/engine/core/cuda/exports.map \
        -o libyoctune_cuda.so *.o ${LDFLAGS} -lcudart -lpthread -ldl
}

do_install() {
    install -D -m 0755 ${B}/libyoctune_cuda.so ${D}${nonarch_libdir}/yoctune/libyoctune_cuda.so
}

# Loaded by its path, never linked against.
FILES:${PN} += "${nonarch_libdir}/yoctune/libyoctune_cuda.so"
