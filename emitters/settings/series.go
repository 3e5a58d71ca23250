package settings

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

// refuse finds settings without effect on the release. bitbake does not report
// variables that nothing reads, and skips an image with an unknown feature.
func refuse(b plan.Build, r release.Release) error {
	no := func(id, format string, args ...any) error {
		return &emitters.Error{Emitter: "settings", Ref: emitters.Ref{ID: id}, Err: fmt.Errorf(format, args...)}
	}
	if !r.HashServeWSS && strings.HasPrefix(b.HashUpstream, "ws") {
		return no("build.hashserve.upstream", "the bitbake %s of %s reaches a hash server as host:port only", r.BitBake, r.Name)
	}
	for _, v := range []struct{ name, id, value string }{
		{"BB_HASHSERVE_DB_DIR", "build.hashserve.database", b.HashDatabase},
		{"BB_LOADFACTOR_MAX", "build.parallel.load", b.LoadFactor},
	} {
		if a, ok := r.FindAbsent(v.name); ok && v.value != "" {
			return no(v.id, "%s has no effect before %s, and this is %s; %s", a.Name, a.Since, r.Name, a.Instead)
		}
	}
	if b.HashOff && b.HashServe+b.HashUpstream+b.HashDatabase != "" {
		return no("build.hashserve.off", "hash equivalence is off, so its other settings have no effect; remove one of the two")
	}
	if err := checkMirrorsReachable(b); err != nil {
		return err
	}
	for _, f := range b.ImageFeatures {
		if !r.LacksImageFeature(f) {
			continue
		}
		instead := "leave it out"
		if f == "debug-tweaks" {
			// Its replacements exist in every series.
			instead = "write " + strings.Join([]string{"allow-empty-password", "empty-root-password", "allow-root-login", "post-install-logging"}, ", ")
		}
		return no("build.image.features", "%s has no image feature %q and would leave the image out of the build; %s", r.Name, f, instead)
	}
	if len(b.NotRecommended) > 0 && b.PackageFormat == "deb" {
		return no("build.image.badRecommendations", "openembedded-core does not do this with packages in the format deb (rootfs_deb.bbclass); exclude them under packages")
	}
	for _, v := range b.Variables {
		if err := refuseVariable(v.Name, r); err != nil {
			return no("build.variables."+v.Name, "%w", err)
		}
	}
	return nil
}

// checkMirrorsReachable refuses a mirror that is not among the allowed hosts.
func checkMirrorsReachable(b plan.Build) error {
	if len(b.Hosts) == 0 {
		return nil
	}
	mirrors := map[string]string{"build.downloads.own": b.OwnMirror}
	for _, m := range b.SStateMirrors {
		mirrors["build.sstate.mirrors."+m.ID] = m.URL
	}
	for _, m := range b.Premirrors {
		mirrors["build.downloads.mirrors."+m.ID] = m.URL
	}
	for _, id := range slices.Sorted(maps.Keys(mirrors)) {
		// Invalid URLs are refused where they are written.
		u, err := url.Parse(mirrors[id])
		if err != nil || u.Host == "" || isAllowedHost(u.Hostname(), b.Hosts) {
			continue
		}
		return &emitters.Error{Emitter: "settings", Ref: emitters.Ref{ID: id},
			Err: fmt.Errorf("bitbake will not ask this mirror: downloads.hosts does not name %s", u.Hostname())}
	}
	return nil
}

// isAllowedHost matches a host as bitbake does for BB_ALLOWED_NETWORKS (lib/bb/fetch2/__init__.py).
func isAllowedHost(host string, hosts []string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool {
		domain, wild := strings.CutPrefix(h, "*.")
		return strings.EqualFold(host, h) || wild && strings.HasSuffix("."+strings.ToLower(host), "."+strings.ToLower(domain))
	})
}

// refuseVariable returns an error if a variable may not be set by its name.
func refuseVariable(name string, r release.Release) error {
	if n, ok := r.FindRenamed(name); ok {
		if n.New != "" {
			return fmt.Errorf("%s stops the build of %s: it is called %s there", name, r.Name, n.New)
		}
		return fmt.Errorf("%s stops the build of %s: %s", name, r.Name, n.Message)
	}
	if a, ok := r.FindAbsent(name); ok {
		if a.Since != "" {
			return fmt.Errorf("%s has no effect before %s, and this is %s; %s", name, a.Since, r.Name, a.Instead)
		}
		return fmt.Errorf("nothing in bitbake or openembedded-core reads %s; %s", name, a.Instead)
	}
	if field := Field(name); field != "" {
		return fmt.Errorf("%s is %s in a configuration", name, field)
	}
	if reason, ok := forbiddenVariables()[name]; ok {
		return fmt.Errorf("a layer must not set %s: %s", name, reason)
	}
	return nil
}

// Field is the field of the language that stands for a variable, "" if there is
// none.
func Field(variable string) string {
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
	}[variable]
}

// forbiddenVariables returns the variables that a layer must not set, with the reasons.
func forbiddenVariables() map[string]string {
	const owner = "the build's owner sets it in local.conf"
	m := map[string]string{
		"INHERIT": "a class runs code in every recipe; put it into local.conf", "USER_CLASSES": "a class runs code in every recipe; put it into local.conf",
		"IMAGE_INSTALL": "an assignment would empty every image; use packages", "DISTRO_FEATURES": "an assignment would switch the layer off",
		"UBOOT_EXTLINUX_KERNEL_ARGS": "the boot image would not get the arguments; use kernel.args",
		"IMAGE_FSTYPES":              "the machine sets what is flashed",
		"NO_RECOMMENDATIONS":         "kernel modules that the layer loads are only recommended, because they may be built in, and would be missing; use image.badRecommendations",
	}
	for _, name := range []string{
		"MACHINE", "DISTRO", "BBLAYERS", "BBPATH", "BBFILES", "BBMASK", "OVERRIDES", "MACHINEOVERRIDES", "DISTROOVERRIDES", "PATH", "HOSTTOOLS",
		"HOSTTOOLS_NONFATAL", "TMPDIR", "TOPDIR", "COREBASE", "LAYERDIR", "SRC_URI", "ASSUME_PROVIDED", "BB_ENV_PASSTHROUGH",
		"BB_ENV_PASSTHROUGH_ADDITIONS", "BB_ORIGENV", "BB_HASHCHECK_FUNCTION", "SSTATEPOSTUNPACKFUNCS", "IMAGE_PREPROCESS_COMMAND",
		"IMAGE_POSTPROCESS_COMMAND", "ROOTFS_POSTPROCESS_COMMAND", "ROOTFS_PREPROCESS_COMMAND", "OE_FRAGMENTS",
	} {
		m[name] = owner
	}
	return m
}
