package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/spelling"
)

// The rules of this file check the words that build adds to lists of the metadata, and removes
// from them.
func featureRules() []Rule {
	const see = "yoctune facts; conf/documentation.conf of openembedded-core"
	return []Rule{
		{
			ID: "build-feature", Severity: diag.Error,
			Title: "nothing reads the feature",
			Cause: "Recipes and classes ask for the features of distribution, machine and image by name. No file of openembedded-core, meta-tegra, meta-openembedded, meta-tegra-community and meta-virtualization asks for this one at this release, and one there is spelt almost like it. For IMAGE_FEATURES image.bbclass then stops the build. Without a similar name this is a warning.",
			Fix:   "correct the name; a feature of your own layer belongs under build.variables with external: true",
			Wrong: `build: image: features: ["ssh-server-dropbare"]`, Right: `build: image: features: ["ssh-server-dropbear"]`,
			See:   see,
			build: checkFeatures,
		},
		{
			ID: "build-feature-needed", Severity: diag.Error, Firm: true,
			Title: "the layer needs a feature that is removed",
			Cause: "The recipes of the layer require the distro feature systemd and the layer's own (REQUIRED_DISTRO_FEATURES). Without them no image gets its settings.",
			Fix:   "do not remove the feature, or remove the field that needs it",
			Wrong: `build: distroFeatures: remove: ["systemd"]`, Right: `build: distroFeatures: remove: ["x11"]`,
			See:   "oe-core meta/classes-recipe/features_check.bbclass: REQUIRED_DISTRO_FEATURES",
			build: checkNeededFeatures,
		},
		{
			ID: "build-option", Severity: diag.Error,
			Title: "the recipe has no such option",
			Cause: "An option of PACKAGECONFIG that the recipe does not describe has no effect: bitbake only warns about it, or not at all.",
			Fix:   "choose an option of the recipe",
			Wrong: `build: packageConfig: opencv: append: ["gstremer"]`, Right: `build: packageConfig: opencv: append: ["gstreamer"]`,
			See:   "oe-core meta/classes-global/base.bbclass: PACKAGECONFIG",
			build: checkOptions,
		},
		{
			ID: "disk-monitor", Severity: diag.Error, Firm: true,
			Title: "an entry of the disk monitor has no limit",
			Cause: "bitbake splits the entry at its commas, and stops where it has neither space nor inodes. A folder without a limit is not watched, and a limit below a stronger one never acts.",
			Fix:   "set space, inodes or both",
			Wrong: `build: diskMonitor: "${TMPDIR}": stop: {}`, Right: `build: diskMonitor: "${TMPDIR}": stop: space: "1GiB"`,
			See:   "bitbake lib/bb/monitordisk.py",
			build: checkDiskMonitor,
		},
		{
			ID: "optional-collection", Severity: diag.Warning,
			Title: "no known layer has the collection",
			Cause: "BBFILES_DYNAMIC names a layer by its collection (BBFILE_COLLECTIONS in its conf/layer.conf), not by its folder. The packages of a collection that no layer has are never installed.",
			Fix:   "write the name that the layer's conf/layer.conf adds to BBFILE_COLLECTIONS",
			Wrong: `build: optional: "meta-tegra-community": ["cuda-samples"]`, Right: `build: optional: "tegra-community": ["cuda-samples"]`,
			See:   "bitbake user manual: BBFILES_DYNAMIC",
			build: checkCollections,
		},
		{
			ID: "download-hosts", Severity: diag.Warning,
			Title: "sources of the BSP may not be fetched",
			Cause: "BB_ALLOWED_NETWORKS holds for all recipes. The BSP's come from hosts that are not in the list, and no mirror serves them: their fetch stops the build.",
			Fix:   "add the hosts, or name a mirror that has the sources",
			Wrong: `build: downloads: hosts: ["git.example.com"]`,
			Right: `build: downloads: {hosts: ["mirror.example.com"], own: "https://mirror.example.com/src"}`,
			See:   "bitbake lib/bb/fetch2/__init__.py: trusted_network",
			build: checkHosts,
		},
	}
}

// editedWords are those that one part of the configuration adds to a list and removes from it.
func (b *builder) editedWords(change *config.WordChange, name string) []config.String {
	all := slices.Concat(change.Append.Items, change.Remove.Items)
	if v := b.Variables.Get(name); v.Struct.IsSet() && !v.Struct.External.On {
		all = slices.Concat(all, v.Struct.Append.Items, v.Struct.Remove.Items)
	}
	return all
}

func checkFeatures(b *builder) {
	for _, list := range []struct {
		variable string
		kind     recipe.Kind
		words    []config.String
	}{
		{"DISTRO_FEATURES", recipe.DistroFeature, b.editedWords(&b.DistroFeatures, "DISTRO_FEATURES")},
		{"MACHINE_FEATURES", recipe.MachineFeature, b.editedWords(&b.MachineFeatures, "MACHINE_FEATURES")},
		{"IMAGE_FEATURES", recipe.ImageFeature, slices.Concat(b.Image.Features.Items, b.Image.RemoveFeatures.Items)},
	} {
		for _, w := range list.words {
			b.judgeWord(w, list.kind, list.variable)
		}
	}
}

// judgeWord reports a word of a list that no release of the project has.
func (b *builder) judgeWord(w config.String, kind recipe.Kind, variable string) {
	for _, r := range b.releases() {
		if len(recipe.Sources(r.Name)) == 0 || recipe.Has(r.Name, w.Text, kind) || strings.HasPrefix(w.Text, "yoctune-") {
			continue
		}
		near := recipe.Nearest(r.Name, w.Text, kind)
		d := b.raise(w, "nothing reads %s in %s at %s", w.Text, variable, r.Name).withValue(w.Show())
		if near != "" {
			d.Help = fmt.Sprintf("did you mean %q?", near)
		} else {
			d.Severity = diag.Warning
		}
		return
	}
}

func checkNeededFeatures(b *builder) {
	removed := slices.Clone(b.DistroFeatures.Remove.Items)
	if v := b.Variables.Get("DISTRO_FEATURES"); v.Struct.IsSet() {
		removed = append(removed, v.Struct.Remove.Items...)
	}
	for _, w := range removed {
		if w.Text == "systemd" || w.Text == "yoctune-"+b.project.Config.Layer.Name.Text {
			b.reportAt(w, w.Show(), "", "the layer needs the distro feature %s", w.Text)
		}
	}
}

func checkOptions(b *builder) {
	for _, change := range b.PackageConfig.Entries {
		for _, r := range b.releases() {
			known := recipe.Options(r.Name, change.Key())
			if len(known) == 0 {
				continue // recipe-name judges the name
			}
			for _, w := range slices.Concat(change.Append.Items, change.Remove.Items) {
				if slices.Contains(known, w.Text) {
					continue
				}
				help := "choose one of " + strings.Join(known, ", ")
				if near := spelling.Nearest(w.Text, known); near != "" {
					help = fmt.Sprintf("did you mean %q?", near)
				}
				b.reportAt(w, w.Show(), help, "recipe %s of %s has no option %s", change.Key(), r.Name, w.Text)
			}
			break
		}
	}
}

func checkDiskMonitor(b *builder) {
	for _, d := range b.DiskMonitor.Entries {
		if strings.Contains(d.Key(), ",") {
			b.reportKey(d, "choose a folder without a comma", "the disk monitor splits %s at its comma", d.Key())
		}
		limits := []*config.DiskLimit{&d.Warn, &d.Stop, &d.Halt}
		if !slices.ContainsFunc(limits, func(l *config.DiskLimit) bool { return l.IsSet() }) {
			b.reportKey(d, "set warn, stop or halt", "nothing happens when the disk of %s fills up", d.Key())
		}
		for i, l := range limits {
			if l.IsSet() && !l.Space.IsSet() && !l.Inodes.IsSet() {
				b.reportAt(l, "", "", "the limit of %s has neither space nor inodes", d.Key())
			}
			for _, stronger := range limits[i+1:] {
				if !l.Space.IsSet() || !stronger.Space.IsSet() {
					continue
				}
				mine, err1 := resolve.Size(l.Space.Node())
				other, err2 := resolve.Size(stronger.Space.Node())
				if err1 == nil && err2 == nil && other > mine {
					b.reportAt(l.Space, l.Space.Show(), "give it more space than "+stronger.Space.Show(), "a stronger limit of %s acts first", d.Key())
					break
				}
			}
		}
	}
}

func checkCollections(b *builder) {
	for _, o := range b.Optional.Entries {
		name := o.Key()
		for _, r := range b.releases() {
			if len(recipe.Sources(r.Name)) == 0 || recipe.Has(r.Name, name, recipe.Collection) {
				continue
			}
			near := strings.TrimPrefix(name, "meta-")
			if near == name || !recipe.Has(r.Name, near, recipe.Collection) {
				near = recipe.Nearest(r.Name, name, recipe.Collection)
			}
			if near != "" {
				b.reportKey(o, fmt.Sprintf("did you mean %q?", near), "no layer of %s has the collection %s", r.Name, name)
				break
			}
		}
	}
}

func checkHosts(b *builder) {
	hosts := b.Downloads.Hosts
	if len(hosts.Items) == 0 || b.Downloads.Own.IsSet() || len(b.Downloads.Mirrors.Entries) > 0 || b.Downloads.Network.Text == "none" {
		return
	}
	allowed := func(host string) bool {
		return slices.ContainsFunc(hosts.Items, func(h config.String) bool {
			suffix, wild := strings.CutPrefix(h.Text, "*")
			return h.Text == host || wild && strings.HasSuffix(host, suffix)
		})
	}
	for _, r := range b.releases() {
		var missing []string
		if r.CoreOnly || len(recipe.Sources(r.Name)) == 0 {
			continue
		}
		for host := range recipe.Names(r.Name, recipe.Host) {
			if !allowed(host) {
				missing = append(missing, host)
			}
		}
		if len(missing) > 0 {
			b.reportAt(hosts, hosts.Show(), "", "recipes of meta-tegra at %s fetch from %s", r.Name, strings.Join(missing, ", "))
			return
		}
	}
}
