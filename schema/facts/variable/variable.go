// Package variable holds facts about the variables of bitbake's metadata: the names of each
// release, where each acts, and which file overrides a layer's setting. The table was
// extracted from bitbake, openembedded-core, meta-tegra, meta-openembedded and
// meta-tegra-community at the commits that it names ([Sources]).
//
// Names in capitals only: those in lower case are overrides, functions and paths.
package variable

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/spelling"
)

//go:embed data/variables.txt
var embedded []byte

// Scope is where an assignment of a variable acts.
type Scope byte

// Scopes. A variable of [Global] scope is meant for configuration files, and so is one of
// [Machine] scope; only machine configurations of the layers read set the latter.
const (
	Global  Scope = 'g'
	Machine Scope = 'm'
	Recipe  Scope = 'r' // describes one recipe: recipes and their classes assign it
)

// Fact is a variable in a release.
type Fact struct {
	Name  string
	Scope Scope
	// List: its value is a list of words, which files add to. Separator is " ", ":" or ",".
	List      bool
	Separator string
	// Lost is the file that assigns the variable after local.conf and the layer's settings,
	// so that their value is lost; "" where none does. Machines names the machines of
	// meta-tegra whose configuration reads the file; none for every machine.
	Lost     string
	Machines []string
	// Where is a recipe or class that uses a variable of [Recipe] scope.
	Where string
}

// Source is a commit that was read for a release.
type Source struct{ Release, Repository, Commit string }

// table is the head of the embedded file.
type table struct {
	releases []string
	sources  []Source
	files    []string
	rows     []byte // one line per variable, sorted
}

var load = sync.OnceValue(func() (t table) {
	head, rows, _ := bytes.Cut(embedded, []byte("\n\n"))
	t.rows = rows
	for line := range strings.Lines(string(head)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case fields[0] == "release":
			t.releases = append(t.releases, fields[1])
			for _, f := range fields[2:] {
				repository, commit, _ := strings.Cut(f, "@")
				t.sources = append(t.sources, Source{fields[1], repository, commit})
			}
		case fields[0] == "file":
			t.files = append(t.files, fields[1])
		}
	}
	return t
})

// Sources lists the commits that were read.
func Sources() []Source { return slices.Clone(load().sources) }

// find returns the row of a name: groups of releases with equal facts.
func find(name string) (string, bool) {
	rows := load().rows
	low, high := 0, len(rows)
	for low < high {
		start := (low + high) / 2
		start = bytes.LastIndexByte(rows[:start], '\n') + 1
		end := start + bytes.IndexByte(rows[start:], '\n')
		key, row, _ := strings.Cut(string(rows[start:end]), " ")
		switch strings.Compare(name, key) {
		case 0:
			return row, true
		case -1:
			high = start
		default:
			low = end + 1
		}
	}
	return "", false
}

// Lookup returns a variable of a release.
func Lookup(release, name string) (Fact, bool) {
	i := slices.Index(load().releases, release)
	if i < 0 {
		return Fact{}, false
	}
	row, ok := find(name)
	if !ok {
		return Fact{}, false
	}
	for group := range strings.FieldsSeq(row) {
		mask, rest, _ := strings.Cut(group, ":")
		bits, err := strconv.ParseUint(mask, 16, 16)
		if err == nil && bits>>i&1 == 1 {
			f, err := decode(name, rest)
			return f, err == nil // a test decodes every row
		}
	}
	return Fact{}, false
}

// decode reads "gL~3!12@machine,machine".
func decode(name, text string) (Fact, error) {
	f := Fact{Name: name}
	if text == "" {
		return f, fmt.Errorf("%s: the scope is missing", name)
	}
	f.Scope, text = Scope(text[0]), text[1:]
	text, lost, isLost := strings.Cut(text, "!")
	flags, where, isUsed := strings.Cut(text, "~")
	switch flags {
	case "L":
		f.List, f.Separator = true, " "
	case "P":
		f.List, f.Separator = true, ":"
	case "C":
		f.List, f.Separator = true, ","
	case "":
	default:
		return f, fmt.Errorf("%s: unknown flag %q", name, flags)
	}
	lost, machines, some := strings.Cut(lost, "@")
	if some {
		f.Machines = strings.Split(machines, ",")
	}
	var err error
	if isLost {
		f.Lost, err = file(lost)
	}
	if isUsed && err == nil {
		f.Where, err = file(where)
	}
	return f, err
}

func file(number string) (string, error) {
	i, err := strconv.Atoi(number)
	if files := load().files; err == nil && i >= 0 && i < len(files) {
		return files[i], nil
	}
	return "", fmt.Errorf("file %q is not in the table", number)
}

// IsRead reports whether the metadata of a release was read.
func IsRead(release string) bool { return slices.Contains(load().releases, release) }

// Names lists the variables of a release, sorted.
func Names(release string) []string {
	var names []string
	each(release, func(string) bool { return true }, func(name string) { names = append(names, name) })
	return names
}

// each calls use with the variables of a release that wanted accepts.
func each(release string, wanted func(name string) bool, use func(name string)) {
	i := slices.Index(load().releases, release)
	if i < 0 {
		return
	}
	for line := range bytes.Lines(load().rows) {
		key, row, _ := bytes.Cut(line, []byte(" "))
		name := string(key)
		if !wanted(name) {
			continue
		}
		for group := range bytes.FieldsSeq(row) {
			mask, _, _ := bytes.Cut(group, []byte(":"))
			if bits, err := strconv.ParseUint(string(mask), 16, 16); err == nil && bits>>i&1 == 1 {
				use(name)
			}
		}
	}
}

// Nearest returns the variable of a release that was probably meant, "" when none is near.
func Nearest(release, name string) string {
	best, limit := "", max(1, min(len(name)/5, 3))
	each(release, func(other string) bool { return spelling.DistanceWithin(name, other, limit) <= limit }, func(other string) {
		best, limit = other, spelling.DistanceWithin(name, other, limit)-1
	})
	return best
}

// Releases lists the releases whose metadata were read. The place of a release is its bit in
// the masks of the tables.
func Releases() []string { return load().releases }
