// Package system holds the names of the units, users and groups that recipes of each release
// bring, and the recipe of each. They were read from systemd's meson.build, from base-passwd,
// and from the recipes of openembedded-core, meta-tegra, meta-openembedded, meta-tegra-community
// and meta-virtualization at the commits that the table names ([Sources]).
package system

import (
	"cmp"
	_ "embed"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/facts/nametable"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/spelling"
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

// IsInEveryImage reports whether every image with systemd contains a package:
// packagegroup-core-boot and systemd need or
// recommend it.
func IsInEveryImage(name string) bool {
	switch name {
	case "base-passwd", "systemd", "dbus", "dbus-common", "systemd-serialgetty", "systemd-conf", "udev", "systemd-networkd":
		return true
	}
	return false
}

// Origin is what brings a name.
type Origin struct {
	Package string // "" for a unit that systemd names and other recipes may bring
	Recipe  string // the recipe whose PACKAGECONFIG decides, "" if none does
	Words   []Word // of its PACKAGECONFIG, all of which the name needs
}

// Word is a word of PACKAGECONFIG.
type Word struct {
	Name      string
	IsDefault bool // the recipe sets it by default, or if the distribution has a feature
}

// Missing lists the words that the default PACKAGECONFIG lacks.
func (o Origin) Missing() []string {
	var all []string
	for _, w := range o.Words {
		if !w.IsDefault {
			all = append(all, w.Name)
		}
	}
	return all
}

// IsAlwaysThere reports whether every image with systemd has what comes from there.
func (o Origin) IsAlwaysThere() bool { return len(o.Missing()) == 0 && IsInEveryImage(o.Package) }

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

// Find returns what brings a name; false if no recipe of the release does.
func Find(rel string, kind Kind, name string) (from Origin, ok bool) {
	row, _ := table().Find(string(kind) + " " + name)
	return originIn(row, mask(rel))
}

// Template returns the template that a unit is an instance of, or the unit.
func Template(name string) string {
	if stem, instance, ok := strings.Cut(name, "@"); ok {
		return stem + "@" + path.Ext(instance)
	}
	return name
}

// stem is the name of a unit up to its instance and its type.
func stem(name string) string {
	name, _, _ = strings.Cut(name, "@")
	return strings.TrimSuffix(name, path.Ext(name))
}

// Relatives yields the units that the recipe or the package of a unit brings and that differ from it
// in the type, or in being a template.
func Relatives(rel, name string, of Origin) iter.Seq2[string, Origin] {
	return func(yield func(string, Origin) bool) {
		for other, from := range Names(rel, Unit) {
			isRelated := stem(other) == stem(name) && other != name && (from.Recipe == of.Recipe || from.Package == of.Package)
			if isRelated && !yield(other, from) {
				return
			}
		}
	}
}

// FindUnit returns what brings a unit, the template that it is an instance of, or the socket,
// timer or path that starts it and has its name. A socket that has a template starts no such unit.
func FindUnit(rel, name string) (from Origin, ok bool) {
	name = Template(name)
	if from, ok = Find(rel, Unit, name); ok {
		return from, ok
	}
	stem, isService := strings.CutSuffix(name, ".service")
	if _, isTemplate := Find(rel, Unit, stem+"@.service"); isTemplate {
		return Origin{}, false
	}
	for _, starts := range []string{".socket", ".timer", ".path"} {
		if from, ok = Find(rel, Unit, stem+starts); ok && isService {
			return from, ok
		}
	}
	return Origin{}, false
}

// Nearest returns the name of a kind that another one was probably meant to be, or "". Units are
// of the same type.
func Nearest(rel string, kind Kind, name string) string {
	ext := ""
	if kind == Unit {
		ext = path.Ext(name)
		template := strings.TrimSuffix(name, ext) + "@" + ext
		if _, exists := Find(rel, Unit, template); exists {
			return template
		}
	}
	stem, begins := strings.TrimSuffix(name, ext), ""
	near := NearestOf(stem, func(yield func(string) bool) {
		for other := range Names(rel, kind) {
			other, ok := strings.CutSuffix(other, ext)
			if !ok || other == "root" { // a user of one's own is often "robot"
				continue
			}
			if begins == "" && strings.HasPrefix(stem, "systemd-") && strings.HasPrefix(other, stem) {
				begins = other + ext
			}
			if !yield(other) {
				return
			}
		}
	}, ext)
	return cmp.Or(near, begins)
}

// NearestOf returns the candidate that a stem was probably meant to be, with ext. Names that
// differ in digits alone are of a series, such as cam1 and cam2.
func NearestOf(stem string, candidates iter.Seq[string], ext string) string {
	best, limit := "", min((len(stem)+1)/4, 2)
	for other := range candidates {
		if d := spelling.DistanceWithin(stem, other, limit); d <= limit && d > 0 && withoutDigits(other) != withoutDigits(stem) {
			best, limit = other+ext, d-1
		}
	}
	return best
}

func withoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// Names yields the names of a kind that recipes of a release bring, sorted, with their origins.
func Names(rel string, kind Kind) iter.Seq2[string, Origin] { return names(rel, string(kind)+" ") }

func names(rel, prefix string) iter.Seq2[string, Origin] {
	bit := mask(rel)
	return func(yield func(string, Origin) bool) {
		for line, row := range table().All() {
			name, ok := strings.CutPrefix(line, prefix)
			if !ok {
				continue
			}
			if from, held := originIn(row, bit); held && !yield(name, from) {
				return
			}
		}
	}
}

// readOrigin reads a package, and after it a recipe and words of its PACKAGECONFIG.
func readOrigin(text string) Origin {
	name, rest, _ := strings.Cut(text, " ")
	recipe, words, _ := strings.Cut(rest, " ")
	o := Origin{Package: name, Recipe: recipe}
	for word := range strings.FieldsSeq(words) {
		plain, isDefault := strings.CutPrefix(word, "+")
		o.Words = append(o.Words, Word{plain, isDefault})
	}
	return o
}

// originIn reads the row of a name.
func originIn(row string, bit uint64) (Origin, bool) {
	for group := range strings.SplitSeq(row, "\t") {
		set, from, _ := strings.Cut(group, ";")
		if n, err := strconv.ParseUint(set, 16, 16); err == nil && n&bit != 0 {
			return readOrigin(from), true
		}
	}
	return Origin{}, false
}
