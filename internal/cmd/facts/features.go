package main

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	fact "github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/formats/bitbake"
)

// The names of features are those that some file of the metadata asks for or sets.

var (
	// 'DISTRO_FEATURES', 'a b' in a call such as bb.utils.contains_any.
	askedFeatures = regexp.MustCompile(`['"](DISTRO|MACHINE|COMBINED)_FEATURES['"]\s*,\s*(?:'([^']*)'|"([^"]*)")`)
	// 'a' in d.getVar('DISTRO_FEATURES')
	foundFeature    = regexp.MustCompile(`['"]([a-z0-9][a-z0-9-]*)['"] (?:not )?in [^\n]*['"](DISTRO|MACHINE|COMBINED)_FEATURES['"]`)
	featureWord     = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*$`)
	imageFeature    = regexp.MustCompile(`^(?:FEATURE_PACKAGES|PACKAGE_GROUP)_([a-z0-9][a-z0-9-]*)$`)
	upstreamAddress = regexp.MustCompile(`\b(?:https?|ftp|git|gitsm)://(?:[A-Za-z0-9._-]+@)?([a-z0-9][a-z0-9.-]*\.[a-z]{2,})(?::[0-9]+)?/`)
)

func isFeatureFile(name string) bool {
	return isRecipeFile(name) || strings.HasSuffix(name, ".conf") && !strings.Contains(name, "/templates/") && !strings.HasPrefix(name, "meta-selftest/")
}

// featureKinds are the kinds of features by the first part of a variable's name.
func featureKinds(prefix string) []fact.Kind {
	switch prefix {
	case "DISTRO":
		return []fact.Kind{fact.DistroFeature}
	case "MACHINE":
		return []fact.Kind{fact.MachineFeature}
	}
	return []fact.Kind{fact.DistroFeature, fact.MachineFeature}
}

// addFeatures marks the features, collections and hosts in files, which are texts by LAYER/PATH.
func addFeatures(files map[string]string, mark func(name string, kind fact.Kind)) {
	add := func(kind fact.Kind, words string) {
		for word := range strings.FieldsSeq(words) {
			if featureWord.MatchString(word) {
				mark(word, kind)
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		for _, m := range askedFeatures.FindAllStringSubmatch(text, -1) {
			for _, kind := range featureKinds(m[1]) {
				add(kind, m[2]+m[3])
			}
		}
		for _, m := range foundFeature.FindAllStringSubmatch(text, -1) {
			for _, kind := range featureKinds(m[2]) {
				add(kind, m[1])
			}
		}
		for _, s := range statements(text) {
			if a, ok := bitbake.ParseAssignment(s); ok {
				addAssigned(a, add)
			}
		}
		if strings.HasPrefix(file, "meta-tegra/") && (path.Ext(file) == ".bb" || path.Ext(file) == ".inc" || path.Ext(file) == ".bbclass") {
			addHosts(text, add)
		}
	}
}

// addHosts adds the hosts that assignments of a file fetch from.
func addHosts(text string, add func(fact.Kind, string)) {
	for _, s := range statements(text) {
		a, ok := bitbake.ParseAssignment(s)
		if !ok {
			continue
		}
		variable, _, _ := a.Split()
		if a.Flag == "" && (strings.HasSuffix(variable, "SRC_URI") || strings.HasPrefix(variable, "SRC_") || strings.HasSuffix(variable, "_MIRROR") || strings.HasSuffix(variable, "_REPO") || strings.HasSuffix(variable, "_BASE")) {
			for _, m := range upstreamAddress.FindAllStringSubmatch(a.Value, -1) {
				add(fact.Host, m[1])
			}
		}
	}
}

// addAssigned adds the names in an assignment.
func addAssigned(a bitbake.Assignment, add func(fact.Kind, string)) {
	variable, _, _ := a.Split()
	value := openPython(a.Value)
	switch {
	case a.Flag != "":
		switch {
		case variable == "IMAGE_FEATURES" && a.Flag == "validitems":
			add(fact.ImageFeature, value)
		case variable == "COMPLEMENTARY_GLOB":
			add(fact.ImageFeature, a.Flag)
		}
	case variable == "BBFILE_COLLECTIONS":
		add(fact.Collection, value)
	case strings.HasSuffix(variable, "DISTRO_FEATURES") || strings.HasPrefix(variable, "DISTRO_FEATURES_"):
		add(fact.DistroFeature, value)
	case strings.HasSuffix(variable, "MACHINE_FEATURES") || strings.HasPrefix(variable, "MACHINE_FEATURES_"):
		add(fact.MachineFeature, value)
	case strings.HasSuffix(variable, "COMBINED_FEATURES"):
		add(fact.DistroFeature, value)
		add(fact.MachineFeature, value)
	default:
		if m := imageFeature.FindStringSubmatch(variable); m != nil {
			add(fact.ImageFeature, m[1])
		}
	}
}

// optionNames lists the options of PACKAGECONFIG that a recipe has.
func (r *reading) optionNames() []string {
	var all []string
	for _, o := range r.options {
		if option := r.expand(o); !strings.Contains(option, wild) {
			all = append(all, option)
		}
	}
	return all
}
