// Package directive holds facts about the directives of systemd's files: the names that each
// section of a unit, a .link, .network or .netdev file takes, the keys of udev rules, the
// line types of tmpfiles.d and the commands of modprobe.d. They were read from systemd's
// gperf tables and from udev's, tmpfiles' and kmod's sources, as were the words and names that values
// consist of.
package directive

import (
	"bytes"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/spelling"
)

//go:embed data/directives.txt
var embedded []byte

// Kinds of files.
const (
	Unit     = "unit"
	Network  = "network"
	NetDev   = "netdev"
	Link     = "link"
	Udev     = "udev"     // keys of a rule
	Tmpfiles = "tmpfiles" // types of a line
	Modprobe = "modprobe" // commands
)

// State is whether a version has a directive.
type State int

// States. A version that was not read is known where the versions before and after it agree.
const (
	Unknown State = iota
	Absent
	Present
	Legacy // accepted, without effect or under a newer name
)

type table struct {
	versions map[string][]string // by the program
	rows     []byte
}

var load = sync.OnceValue(func() (t table) {
	head, rows, _ := bytes.Cut(embedded, []byte("\n\n"))
	t.rows = append([]byte("\n"), rows...)
	t.versions = map[string][]string{}
	for line := range strings.Lines(string(head)) {
		program, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		t.versions[program] = append(t.versions[program], version)
	}
	return t
})

// Versions lists the versions of "systemd", "kmod" or "glibc" that were read, oldest first.
func Versions(program string) []string { return slices.Clone(load().versions[program]) }

// Fact is a directive in a version.
type Fact struct {
	State State
	// Type is how the value is read, in the words of systemd's sources, such as "sec" for a
	// time span or "bool".
	Type string
}

// Lookup returns a directive, "Service.Nice" of [Unit] or "KERNEL" of [Udev], in a version
// of systemd, or of kmod for [Modprobe].
func Lookup(kind, name, version string) Fact {
	program := "systemd"
	if kind == Modprobe {
		program = "kmod"
	}
	return between(load().versions[program], version, find(kind, name))
}

// between is what the versions around one agree on.
func between(versions []string, version string, row []string) Fact {
	before, after := around(versions, version)
	if before < 0 {
		return Fact{}
	}
	old, young := at(row, before), at(row, after)
	if old.State != young.State {
		return Fact{}
	}
	return old
}

// around returns the places of the versions that were read next to a version: twice the
// same where its own line was read, -1 where the version is outside.
func around(versions []string, version string) (before, after int) {
	want, before, after := major(version), -1, -1
	for i, v := range versions {
		switch m := major(v); {
		case m == want:
			return i, i
		case m < want:
			before = i
		case after < 0:
			after = i
		}
	}
	if before < 0 || after < 0 {
		return -1, -1
	}
	return before, after
}

// major returns the first number of a version, 0 for text without one.
func major(version string) int {
	number, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}

// find returns the groups of versions of a row, nil for none.
func find(kind, name string) []string {
	rows := load().rows
	_, row, ok := bytes.Cut(rows, []byte("\n"+kind+" "+name+" "))
	if !ok || strings.ContainsAny(name, " \n") {
		return nil
	}
	row, _, _ = bytes.Cut(row, []byte("\n"))
	return strings.Fields(string(row))
}

func at(row []string, i int) Fact {
	for _, group := range row {
		mask, kind, _ := strings.Cut(group, ":")
		bits, err := strconv.ParseUint(mask, 16, 16)
		if err != nil || bits>>i&1 == 0 {
			continue
		}
		if kind == "legacy" || kind == "compatibility" {
			return Fact{Legacy, kind}
		}
		return Fact{Present, kind}
	}
	return Fact{State: Absent}
}

// Names lists the directives of a kind, of every version.
func Names(kind string) []string {
	var names []string
	for line := range bytes.Lines(load().rows) {
		fields := strings.Fields(string(line))
		if len(fields) > 2 && fields[0] == kind {
			names = append(names, fields[1])
		}
	}
	return names
}

// Nearest returns what was probably meant by a name that a version lacks: the same directive
// of another section, else one of its section that is spelt almost alike or begins with the name;
// "" for none.
func Nearest(kind, name, version string) string {
	section, word, isIn := strings.Cut(name, ".")
	best, limit := "", max(1, min(len(name)/6, 3))
	longer := "" // the shortest one that begins with the name
	elsewhere := []string{"Unit." + word, "Install." + word, "Service." + word}
	for line := range bytes.Lines(load().rows) {
		fields := strings.Fields(string(line))
		if len(fields) < 3 || fields[0] != kind {
			continue
		}
		other := fields[1]
		isMoved := isIn && slices.Contains(elsewhere, other)
		begins := len(word) >= beginning && strings.HasPrefix(other, name)
		if !isMoved && !begins && (isIn && !strings.HasPrefix(other, section+".") || spelling.DistanceWithin(name, other, limit) > limit) {
			continue
		}
		versions := load().versions["systemd"]
		if between(versions, version, fields[2:]).State != Present {
			continue
		}
		if isMoved {
			return other
		}
		if begins && (longer == "" || len(other) < len(longer)) {
			longer = other
		}
		if d := spelling.DistanceWithin(name, other, limit); d <= limit {
			best, limit = other, d-1
		}
	}
	if longer != "" && (best == "" || spelling.DistanceWithin(name, best, 1) > 1) {
		return longer
	}
	return best
}

// beginning is the length from which the first letters of a directive stand for it.
const beginning = 5
