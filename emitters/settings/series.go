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
