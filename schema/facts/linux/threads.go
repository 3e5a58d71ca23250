package linux

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/nametable"
)

//go:embed threads.bin
var threadData []byte

//go:embed features.bin
var featureData []byte

var (
	threadTable  = sync.OnceValue(func() *nametable.Table { return nametable.Open(threadData) })
	featureTable = sync.OnceValue(func() *nametable.Table { return nametable.Open(featureData) })
)

// Thread is a kind of kernel threads of one kernel.
type Thread struct {
	// Name is a pattern, such as ksoftirqd/#: "#" stands for a number, "?" for a character and "*"
	// for any text.
	Name string
	// Needs are alternatives, each of them options that must all be on; none where every kernel
	// starts the threads.
	Needs [][]string
	Bound bool // each to one processor, for good
}

// Kernels lists the kernels of the tables.
func Kernels() []string {
	var lines []string
	for _, s := range kernel.Sets() {
		lines = append(lines, s.Name)
	}
	return lines
}

// Threads returns the kernel threads of a kernel whose names are known, by name. The caller must not
// change them. Threads that are
// named after a device or a work queue only are not among them.
func Threads(line string) []Thread { return threadKinds(line) }

var threadKinds = perLine(func(n int) []Thread {
	var found []Thread
	for name, rest := range threadTable().All() {
		if t, ok := parseThread(name, rest, n); ok {
			found = append(found, t)
		}
	}
	return found
})

// Matches reports whether a glob can select such a thread. The * of the glob stands for any text.
// A name that begins with any text is a device's: only the fixed rest of the glob counts there.
func (t Thread) Matches(glob string) bool {
	if strings.HasPrefix(t.Name, "*") {
		glob = strings.NewReplacer("*", "\x00", "?", "\x00").Replace(glob)
	}
	return matches(t.Name, glob)
}

// matches reports whether a glob can select a name of a pattern of the tables.
func matches(pattern, glob string) bool {
	type place struct{ i, j int }
	seen := map[place]bool{}
	var match func(i, j int) bool
	match = func(i, j int) bool {
		if seen[place{i, j}] {
			return false // tried before
		}
		seen[place{i, j}] = true
		a, b := pattern[i:], glob[j:]
		switch {
		case a == "" && b == "":
			return true
		case a != "" && a[0] == '*':
			return match(i+1, j) || b != "" && match(i, j+1)
		case b != "" && b[0] == '*':
			return match(i, j+1) || a != "" && match(i+1, j)
		case a == "" || b == "":
			return false
		case a[0] == '#' && b[0] == '0' && len(b) > 1 && isDigit(b[1]) && (j == 0 || !isDigit(glob[j-1])):
			return false // the kernel writes no leading zero
		case a[0] == '#':
			return (b[0] == '?' || isDigit(b[0])) && (match(i, j+1) || match(i+1, j+1))
		}
		return (a[0] == b[0] || a[0] == '?' || b[0] == '?') && match(i+1, j+1)
	}
	return match(0, 0)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func parseThread(name, rest string, n int) (Thread, bool) {
	for variant := range strings.SplitSeq(rest, "\t") {
		f := strings.Split(variant, ";")
		if len(f) != 3 || !holds(f[0], n) {
			continue
		}
		t := Thread{Name: name, Bound: f[2] != ""}
		if f[1] != "" {
			for alternative := range strings.SplitSeq(f[1], "/") {
				t.Needs = append(t.Needs, strings.Split(alternative, "&"))
			}
		}
		return t, true
	}
	return Thread{}, false
}

// NetFeatures lists the features of network interfaces of a kernel, by name.
func NetFeatures(line string) []string {
	n := lineIndex(line)
	var names []string
	for name, rest := range featureTable().All() {
		for variant := range strings.SplitSeq(rest, "\t") {
			if mask, _, _ := strings.Cut(variant, ";"); holds(mask, n) {
				names = append(names, name)
			}
		}
	}
	return names
}

// shortFeatures are ethtool's short and long name of features, and its pattern of the kernel's
// names (off_flag_def in ethtool.c).
const shortFeatures = `rx rx-checksumming rx-checksum
tx tx-checksumming tx-checksum-*
sg scatter-gather tx-scatter-gather*
tso tcp-segmentation-offload tx-tcp*-segmentation
ufo udp-fragmentation-offload tx-udp-fragmentation
gso generic-segmentation-offload tx-generic-segmentation
gro generic-receive-offload rx-gro
lro large-receive-offload rx-lro
rxvlan rx-vlan-offload rx-vlan-hw-parse
txvlan tx-vlan-offload tx-vlan-hw-insert
ntuple ntuple-filters rx-ntuple-filter
rxhash receive-hashing rx-hashing`

// FeaturesOf lists the features of network interfaces that a name of ethtool stands for on a
// kernel; none where it stands for none.
func FeaturesOf(line, name string) []string {
	pattern := name
	for row := range strings.Lines(shortFeatures) {
		if words := strings.Fields(row); name == words[0] || name == words[1] {
			pattern = words[2]
		}
	}
	return slices.DeleteFunc(NetFeatures(line), func(feature string) bool {
		ok, err := path.Match(pattern, feature)
		return err != nil || !ok
	})
}
