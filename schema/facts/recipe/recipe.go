// Package recipe holds the names of the recipes, packages, images and features of each release,
// and the options of recipes. The tables were extracted from openembedded-core, meta-tegra, meta-openembedded,
// meta-tegra-community and meta-virtualization at the commits that it names ([Sources]).
package recipe

import (
	_ "embed"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/facts/nametable"
	"github.com/yoctune/yoctune/schema/facts/variable"
	"github.com/yoctune/yoctune/schema/spelling"
)

var (
	//go:embed recipes.bin
	embedded []byte
	//go:embed options.bin
	embeddedOptions []byte
)

var (
	table       = sync.OnceValue(func() *nametable.Table { return nametable.Open(embedded) })
	optionTable = sync.OnceValue(func() *nametable.Table { return nametable.Open(embeddedOptions) })
)

// Kind is what a name stands for.
type Kind byte

// Kinds of names.
const (
	Package Kind = 'p' // can be installed into an image
	Recipe  Kind = 'r'
	Image   Kind = 'i' // a recipe that makes an image
	CUDA    Kind = 'c' // a package whose recipe inherits cuda

	DistroFeature  Kind = 'd' // in DISTRO_FEATURES
	MachineFeature Kind = 'm' // in MACHINE_FEATURES
	ImageFeature   Kind = 'f' // in IMAGE_FEATURES
	Collection     Kind = 'l' // of a layer
	Host           Kind = 'h' // that a recipe of meta-tegra fetches from
)

const (
	sourcePrefix  = "!source "
	suffixPrefix  = "!suffix "
	patternPrefix = "!pattern "
)

// Sources lists the commits that were read for a release, each as NAME@COMMIT.
func Sources(release string) []string { return slices.Collect(special(mask(release), sourcePrefix)) }

// mask is the bit of a release; 0 where its metadata were not read.
func mask(release string) uint64 {
	if i := slices.Index(variable.Releases(), release); i >= 0 {
		return 1 << i
	}
	return 0
}

// kindsOf reads the row of a name.
func kindsOf(row string, bit uint64) (kinds string, ok bool) {
	for group := range strings.SplitSeq(row, "\t") {
		set, rest, _ := strings.Cut(group, ";")
		if n, err := strconv.ParseUint(set, 16, 16); err == nil && n&bit != 0 {
			return rest, true
		}
	}
	return "", false
}

// IsLayer reports whether a layer that builds of a release use has a name.
func IsLayer(release, name string) bool {
	switch name {
	case "core", "tegra", "yocto", "yoctobsp", "selftest": // the last three are poky's
		return true
	}
	return len(Sources(release)) > 0 && Has(release, name, Collection)
}

// Has reports whether a release has a name of a kind. A release that was not read has every
// name, and so has one of whose packages Python computes the names.
func Has(release, name string, kind Kind) bool {
	bit := mask(release)
	if bit == 0 || has(bit, name, kind) {
		return true
	}
	if kind != Package {
		return false
	}
	for suffix := range special(bit, suffixPrefix) {
		if base, ok := strings.CutSuffix(name, suffix); ok && (has(bit, base, Recipe) || has(bit, base, Package)) {
			return true
		}
	}
	for _, p := range patterns(release) {
		if p.MatchString(name) {
			return true
		}
	}
	return false
}

func has(bit uint64, name string, kind Kind) bool {
	row, _ := table().Find(name)
	kinds, ok := kindsOf(row, bit)
	return ok && strings.ContainsRune(kinds, rune(kind))
}

// Options lists the options that PACKAGECONFIG of a recipe takes, sorted; none where the recipe has
// none, or the release was not read.
func Options(release, recipe string) []string {
	row, _ := optionTable().Find(recipe)
	list, _ := kindsOf(row, mask(release))
	return strings.Fields(list)
}

// special lists the rows of a release that begin with a prefix, which sort before all names.
func special(bit uint64, prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, row := range table().All() {
			if name[0] != '!' {
				return
			}
			rest, ok := strings.CutPrefix(name, prefix)
			if _, held := kindsOf(row, bit); ok && held && !yield(rest) {
				return
			}
		}
	}
}

var patterns = func() func(string) []*regexp.Regexp {
	var known sync.Map
	return func(release string) []*regexp.Regexp {
		list, ok := known.Load(release)
		if !ok {
			var all []*regexp.Regexp
			for text := range special(mask(release), patternPrefix) {
				if re, err := regexp.Compile(text); err == nil {
					all = append(all, re)
				}
			}
			list, _ = known.LoadOrStore(release, all)
		}
		return list.([]*regexp.Regexp)
	}
}()

// Names yields the names of a kind that a release has, sorted. Packages of the standard
// suffixes, such as NAME-dev, are not among them.
func Names(release string, kind Kind) iter.Seq[string] {
	bit := mask(release)
	return func(yield func(string) bool) {
		for name, row := range table().All() {
			if kinds, ok := kindsOf(row, bit); ok && name[0] != '!' && strings.ContainsRune(kinds, rune(kind)) && !yield(name) {
				return
			}
		}
	}
}

// Nearest returns the name of a kind that a slip turns into name; "" where there is none. A name
// of fewer than four letters is near too many.
func Nearest(release, name string, kind Kind) string {
	best, limit := "", min(len(name)/4, 2)
	if limit == 0 {
		return ""
	}
	for other := range Names(release, kind) {
		if d := spelling.DistanceWithin(name, other, limit); d <= limit {
			best, limit = other, d-1
		}
	}
	return best
}
