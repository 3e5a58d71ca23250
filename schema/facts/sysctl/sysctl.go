// Package sysctl holds facts about kernel parameters below /proc/sys: type, range,
// and the kernels that have them. Types, ranges and presence were read
// from the ctl_table initialisers of the kernel trees that [Kernels] names; the
// rest from Documentation/admin-guide/sysctl and the handlers.
//
// "Since" numbers made by hand are wrong on vendor trees, which backport: only
// the trees answer here. Parameters that the kernel registers per interface or
// per device (net.ipv4.conf.*, net.ipv4.neigh.*, dev.*) are not listed.
package sysctl

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/spelling"
)

//go:embed data/sysctls.json
var embedded []byte

// Data is the embedded file.
type Data struct {
	Kernels []Kernel `json:"kernels"`
	Facts   []Fact   `json:"facts"`
}

// Kernel is a tree that was read.
type Kernel struct {
	Line string `json:"line"` // "5.15"
	Tree string `json:"tree"`
}

// Fact is one kernel parameter.
type Fact struct {
	Key      string   `json:"key"`              // "vm.swappiness"
	Config   string   `json:"config,omitempty"` // Kconfig symbols it needs, in words where a value decides
	Module   string   `json:"module,omitempty"` // module that registers it or that its value names
	Tags     []string `json:"tags,omitempty"`   // see the constants
	Excludes []string `json:"excludes,omitempty"`
	Note     string   `json:"note,omitempty"`
	// Min and Max are set where the handler, not the table, enforces the limit.
	Min       *int64    `json:"min,omitempty"`
	Max       *int64    `json:"max,omitempty"`
	RangeNote string    `json:"range_note,omitempty"`
	Source    string    `json:"source"` // file of the newest tree that has it
	Variants  []Variant `json:"variants"`
}

// Tags of a fact.
const (
	WriteOnly = "writeonly" // cannot be read back
	ReadOnly  = "readonly"
	OneShot   = "oneshot"  // best effort at the time of the write: reading back may show less
	Sticky    = "sticky"   // cannot be taken back without a reboot
	NetNS     = "netns"    // one per network namespace
	IPCNS     = "ipcns"    // one per IPC namespace
	UserNS    = "userns"   // one per user namespace
	Vector    = "vector"   // several numbers
	Mask      = "mask"     // a set of bits
	Moved     = "moved"    // newer kernels have it elsewhere: see Note
	FromMod   = "module"   // appears with Module
	AutoLoad  = "autoload" // writing a value loads the module it names
)

// Variant is an entry that the tables of several kernels share.
type Variant struct {
	Kernels []string `json:"kernels"`
	Type    string   `json:"type"` // int, uint, ulong, u8, bool, string, vector, int(jiffies)
	Mode    string   `json:"mode"` // octal
	Min     *int64   `json:"min,omitempty"`
	Max     *int64   `json:"max,omitempty"`
	// MinName and MaxName are kernel variables that hold the limit at run time.
	MinName string   `json:"min_name,omitempty"`
	MaxName string   `json:"max_name,omitempty"`
	Configs []string `json:"configs,omitempty"` // #ifdef around the entry, without CONFIG_
}

// State is whether a kernel has a parameter.
type State int

const (
	Unknown State = iota // no tree of this kernel line was read
	Absent
	Present
)

func (s State) String() string {
	switch s {
	case Absent:
		return "absent"
	case Present:
		return "present"
	}
	return "unknown"
}

// Presence is a parameter on one kernel.
type Presence struct {
	State State
	Tree  string // the tree that was read
	Variant
}

// Decoded once, on first use.
var load = sync.OnceValue(func() (d Data) {
	if err := json.Unmarshal(embedded, &d); err != nil {
		return Data{} // a test decodes the embedded file
	}
	return d
})

// The trees, without the facts: the first line of the file.
var kernels = sync.OnceValue(func() (k []Kernel) {
	line, _, _ := bytes.Cut(embedded, []byte("\n"))
	line = bytes.TrimSuffix(bytes.TrimPrefix(line, []byte(`{"kernels": `)), []byte(","))
	if err := json.Unmarshal(line, &k); err != nil {
		return load().Kernels
	}
	return k
})

// Kernels lists the trees that were read, oldest first.
func Kernels() []Kernel { return slices.Clone(load().Kernels) }

// Keys lists the parameters, sorted.
func Keys() []string {
	facts := load().Facts
	keys := make([]string, len(facts))
	for i, f := range facts {
		keys[i] = f.Key
	}
	return keys
}

// Lookup returns the fact about a parameter. A parameter without a fact may exist: the
// facts are incomplete.
func Lookup(key string) (f Fact, ok bool) {
	// One fact is a line of the file: a configuration that names ten parameters
	// need not decode them all.
	quoted, err := json.Marshal(key)
	if err != nil {
		return Fact{}, false
	}
	i := bytes.Index(embedded, slices.Concat([]byte(`{"key":`), quoted, []byte(",")))
	if i < 0 {
		return Fact{}, false
	}
	line, _, _ := bytes.Cut(embedded[i:], []byte("\n"))
	err = json.Unmarshal(bytes.TrimSuffix(line, []byte(",")), &f)
	return f, err == nil // a test looks every key up
}

// exclusions maps each parameter to those that it excludes, without decoding the
// other facts.
var exclusions = sync.OnceValue(func() map[string][]string {
	m := map[string][]string{}
	for line := range bytes.Lines(embedded) {
		if !bytes.Contains(line, []byte(`"excludes":`)) {
			continue
		}
		var f Fact
		line = bytes.TrimSuffix(bytes.TrimRight(line, "\n"), []byte(","))
		if json.Unmarshal(line, &f) == nil { // a test compares with the decoded facts
			m[f.Key] = f.Excludes
		}
	}
	return m
})

// ExcludedBy lists the parameters that the kernel sets to 0 when key is written: they
// express the same limit in another unit.
func ExcludedBy(key string) []string { return exclusions()[key] }

// Exclusive names the group of parameters that exclude each other and of which key
// is one, by what their names have in common ("vm.dirty" for vm.dirty_bytes and
// vm.dirty_ratio). It is "" for other parameters.
func Exclusive(key string) string {
	others := ExcludedBy(key)
	if len(others) == 0 {
		return ""
	}
	common := key
	for _, other := range others {
		for !strings.HasPrefix(other, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.TrimRight(common, "._")
}

// PresenceIn returns the parameter on a kernel, given as a line ("5.15") or a version
// ("5.15.185").
func (f Fact) PresenceIn(kernel string) Presence {
	line := lineOf(kernel)
	var p Presence
	for _, k := range kernels() {
		if k.Line == line {
			p.State, p.Tree = Absent, k.Tree
		}
	}
	for _, v := range f.Variants {
		if p.State == Absent && slices.Contains(v.Kernels, line) {
			p.State, p.Variant = Present, v
			// A limit in a variable is unknown: the handler's must not stand in for
			// it on one side only where the table has its own.
			if p.Min == nil {
				p.Min = f.Min
			}
			if p.Max == nil {
				p.Max = f.Max
			}
			return p
		}
	}
	return p
}

// PresenceAmong returns what several kernels agree on about the parameter: whether they have it, and
// the widest range of any. Its state is unknown where they disagree.
func (f Fact) PresenceAmong(kernels []string) Presence {
	var all Presence
	for i, kernel := range kernels {
		p := f.PresenceIn(kernel)
		switch {
		case i == 0:
			all = p
		case p.State != all.State || p.Type != all.Type:
			return Presence{}
		default:
			all.Min, all.Max = wider(all.Min, p.Min, -1), wider(all.Max, p.Max, 1)
		}
	}
	return all
}

// wider returns the greater of two limits, or the lesser with sign -1; a nil limit is unknown.
func wider(a, b *int64, sign int) *int64 {
	switch {
	case a == nil || b == nil:
		return nil
	case cmp.Compare(*b, *a) == sign:
		return b
	}
	return a
}

// lineOf cuts a version to major and minor.
func lineOf(kernel string) string {
	major, rest, ok := strings.Cut(kernel, ".")
	if !ok {
		return kernel
	}
	minor, _, _ := strings.Cut(rest, ".")
	minor, _, _ = strings.Cut(minor, "-")
	return major + "." + minor
}

// Has reports whether the fact has a tag.
func (f Fact) Has(tag string) bool { return slices.Contains(f.Tags, tag) }

// Stays reports whether the kernel keeps a value of the parameter until the next boot.
func (f Fact) Stays(value string) bool {
	switch f.Key {
	case "kernel.unprivileged_bpf_disabled":
		return value == "1" // 2 can be changed
	case "kernel.yama.ptrace_scope":
		return value == "3"
	}
	return f.Has(Sticky) && value != "0"
}

// Range returns the limits of a number, both inclusive: those of the table or the
// handler, else those of the type. A nil limit is unknown.
func (p Presence) Range() (low, high *int64) {
	var a, z int64
	switch p.Type {
	case "int", "int(jiffies)":
		a, z = -1<<31, 1<<31-1
	case "uint":
		a, z = 0, 1<<32-1
	case "ulong":
		// The upper limit does not fit into an int64.
		if p.Min != nil {
			return p.Min, p.Max
		}
		return &a, p.Max
	case "u8":
		a, z = 0, 255
	case "bool":
		a, z = 0, 1
	default:
		return nil, nil
	}
	low, high = &a, &z
	if p.Min != nil {
		low = p.Min
	}
	if p.Max != nil {
		high = p.Max
	}
	return low, high
}

// Nearest returns the parameter that was probably meant: one with the same last component
// under another prefix, else the one with the fewest edits. It returns false where none is
// near.
func Nearest(name string) (string, bool) {
	best, limit := "", min(len(name)/4, 4)
	last := name[strings.LastIndexAny(name, "./")+1:]
	for _, f := range load().Facts {
		if last != "" && f.Key[strings.LastIndexByte(f.Key, '.')+1:] == last && f.Key != name {
			return f.Key, true
		}
		if d := spelling.DistanceWithin(name, f.Key, limit); d <= limit {
			best, limit = f.Key, d-1 // only a nearer one replaces it
		}
	}
	return best, best != ""
}
