package variable

import (
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// Field is the field of the language that stands for a variable, "" if there is none.
func Field(name string) string {
	return map[string]string{
		"BB_NUMBER_THREADS": "build.parallel.tasks", "PARALLEL_MAKE": "build.parallel.make",
		"BB_PRESSURE_MAX_CPU": "build.pressure.cpu", "BB_PRESSURE_MAX_IO": "build.pressure.io",
		"BB_PRESSURE_MAX_MEMORY": "build.pressure.memory", "BB_LOADFACTOR_MAX": "build.parallel.load",
		"RM_WORK_EXCLUDE": "build.rmWorkExclude", "PACKAGE_CLASSES": "build.format",
		"SSTATE_DIR": "build.sstate.dir", "SSTATE_MIRRORS": "build.sstate.mirrors",
		"DL_DIR": "build.downloads.dir", "PREMIRRORS": "build.downloads.mirrors", "SOURCE_MIRROR_URL": "build.downloads.own",
		"BB_GENERATE_MIRROR_TARBALLS": "build.downloads.archive", "BB_ALLOWED_NETWORKS": "build.downloads.hosts",
		"BB_FETCH_PREMIRRORONLY": "build.downloads.network", "BB_NO_NETWORK": "build.downloads.network",
		"BB_HASHSERVE": "build.hashserve.address", "BB_HASHSERVE_UPSTREAM": "build.hashserve.upstream",
		"BB_HASHSERVE_DB_DIR": "build.hashserve.database", "BAD_RECOMMENDATIONS": "build.image.badRecommendations",
		"IMAGE_FEATURES": "build.image.features", "EXTRA_IMAGE_FEATURES": "build.image.features",
		"PACKAGE_EXCLUDE": "packages", "KERNEL_ARGS": "kernel.args", "NVPMODEL_CONFIG_DEFAULT": "power.default",
	}[name]
}

// tool matches variables that hold the command of a tool, as bitbake.conf assigns them for the
// target and with a prefix for the build machine and the SDK.
var tool = lazyregexp.New(`^((BUILD|HOST|SDK|TARGET)_)?(CC|CXX|CPP|CCLD|LD|AR|AS|NM|FC|RANLIB|STRIP|OBJCOPY|OBJDUMP|READELF)$|^(CCACHE|PATCHTOOL|OE_TERMINAL)$`)

// Reserved is why a layer may not set a variable, "" if it may. With edit the layer only
// adds words to it, or removes some.
func Reserved(name string, edit bool) string {
	switch name {
	case "MACHINE", "DISTRO", "BBLAYERS", "BBPATH", "BBFILES", "BBMASK", "OVERRIDES", "MACHINEOVERRIDES", "DISTROOVERRIDES", "PATH", "HOSTTOOLS",
		"HOSTTOOLS_NONFATAL", "TMPDIR", "TOPDIR", "COREBASE", "LAYERDIR", "ASSUME_PROVIDED", "BB_ENV_PASSTHROUGH",
		"BB_ENV_PASSTHROUGH_ADDITIONS", "BB_ORIGENV", "CONF_VERSION", "IMAGE_PREPROCESS_COMMAND",
		"IMAGE_POSTPROCESS_COMMAND", "ROOTFS_POSTPROCESS_COMMAND", "ROOTFS_PREPROCESS_COMMAND", "OE_FRAGMENTS":
		return "the build's owner sets it in local.conf"
	case "INHERIT", "INHERIT_DISTRO", "OE_IMPORTS", "BB_GLOBAL_PYMODULES":
		return "a class or module runs code in every recipe; put it into local.conf"
	case "UBOOT_EXTLINUX_KERNEL_ARGS":
		return "the boot image would not get the arguments; use kernel.args"
	case "NO_RECOMMENDATIONS":
		return "kernel modules that the layer loads are only recommended, because they may be built in, and would be missing; use image.badRecommendations"
	case "IMAGE_INSTALL":
		if edit {
			return "use packages"
		}
		return "an assignment would empty every image; use packages"
	}
	switch {
	case strings.HasSuffix(name, "_CLASSES"):
		return "a class runs code in every recipe that inherits it; put it into local.conf"
	case strings.HasSuffix(name, "_COMMAND"), strings.HasSuffix(name, "_COMMANDS"), strings.HasSuffix(name, "FUNCS"), tool.MatchString(name):
		return "the build runs its value; put it into local.conf"
	}
	if edit {
		return ""
	}
	return map[string]string{
		"DISTRO_FEATURES": "an assignment would switch the layer off",
		"IMAGE_FSTYPES":   "the machine sets what is flashed",
	}[name]
}
