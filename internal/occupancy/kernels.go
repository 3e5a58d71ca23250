package occupancy

import (
	_ "embed"
	"strconv"
	"strings"
)

// figures are what ptxas says of the built-in kernels, a line each: architecture,
// operation, kernel, registers a thread, bytes of static shared memory; of a template's
// instances the most. tests/cuda/compile.sh writes them (--update) and refuses others.
//
//go:embed kernels.tsv
var figures string

// figure is one kernel compiled for one architecture.
type figure struct {
	SM                int
	Op                string // as launch configurations name it: "preprocess"
	Name              string // the kernel's own
	Registers, Shared int
}

// figuresOf are those of an architecture; none: it was not compiled for.
func figuresOf(sm int) []figure {
	var out []figure
	for line := range strings.Lines(figures) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 || f[0] != strconv.Itoa(sm) {
			continue
		}
		number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n } // a test reads every line
		out = append(out, figure{SM: sm, Op: f[1], Name: f[2], Registers: number(3), Shared: number(4)})
	}
	return out
}

// BuiltIn is the neediest of an operation's kernels on an architecture; false when it was
// not compiled for.
func BuiltIn(sm int, op string) (Kernel, bool) {
	k, found := Kernel{MaxDynamic: -1, Carveout: -1}, false
	for _, f := range figuresOf(sm) {
		if f.Op == op {
			k.Registers, k.Shared, found = max(k.Registers, f.Registers), max(k.Shared, f.Shared), true
		}
	}
	return k, found
}
