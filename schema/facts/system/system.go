// Package system holds the names of the units, users and groups that recipes of each release
// bring, and the recipe of each. They were read from systemd's meson.build, from base-passwd,
// and from the recipes of openembedded-core, meta-tegra, meta-openembedded, meta-tegra-community
// and meta-virtualization at the commits that the table names ([Sources]).
package system

import (
	_ "embed"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/facts/nametable"
	"github.com/yoctune/yoctune/schema/facts/release"
)

//go:embed system.bin
var embedded []byte

var table = sync.OnceValue(func() *nametable.Table { return nametable.Open(embedded) })

// Kind is what a name stands for.
type Kind string

// Kinds of names.
const (
	Unit  Kind = "unit"
	User  Kind = "user"
	Group Kind = "group"
)

// IsInEveryImage reports whether every image with systemd contains what a recipe brings.
func IsInEveryImage(recipe string) bool {
	switch recipe {
	case "base-passwd", "systemd", "dbus", "systemd-serialgetty", "systemd-conf":
		return true
	}
	return false
}

// Has reports whether a release was read.
func Has(rel string) bool { return mask(rel) != 0 }

// Sources lists the commits that were read for a release, each as NAME@COMMIT.
func Sources(rel string) []string {
	var all []string
	for name := range names(rel, "!source ") {
		all = append(all, name)
	}
	return all
}

func mask(rel string) uint64 {
	if i := slices.Index(release.Names(), rel); i >= 0 {
		return 1 << i
	}
	return 0
}

// Find returns the recipe that brings a name; false if no recipe of the release does.
func Find(rel string, kind Kind, name string) (recipe string, ok bool) {
	row, _ := table().Find(string(kind) + " " + name)
	return recipeIn(row, mask(rel))
}

// Names yields the names of a kind that recipes of a release bring, sorted, with the recipes.
func Names(rel string, kind Kind) iter.Seq2[string, string] { return names(rel, string(kind)+" ") }

func names(rel, prefix string) iter.Seq2[string, string] {
	bit := mask(rel)
	return func(yield func(string, string) bool) {
		for line, row := range table().All() {
			name, ok := strings.CutPrefix(line, prefix)
			if !ok {
				continue
			}
			if recipe, held := recipeIn(row, bit); held && !yield(name, recipe) {
				return
			}
		}
	}
}

// recipeIn reads the row of a name.
func recipeIn(row string, bit uint64) (string, bool) {
	for group := range strings.SplitSeq(row, "\t") {
		set, recipe, _ := strings.Cut(group, ";")
		if n, err := strconv.ParseUint(set, 16, 16); err == nil && n&bit != 0 {
			return recipe, true
		}
	}
	return "", false
}
