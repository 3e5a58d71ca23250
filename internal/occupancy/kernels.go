package occupancy

import (
	_ "embed"
	"strconv"
	"strings"
)

// figures is the resource use of the built-in kernels as reported by ptxas, one kernel per
// line: architecture, operation, kernel, registers per thread, bytes of static shared memory.
// For templates it is the maximum of all instances. tests/cuda/compile.sh --update writes
// the file; without --update it compares it.
//
//go:embed kernels.tsv
var figures string

// figure is the resource use of a kernel on one architecture.
type figure struct {
	SM                int
	Op                string // operation, as in launch configurations: "preprocess"
	Name              string // of the kernel
	Registers, Shared int
}

// figuresOf returns the figures of an architecture, or nil if the kernels are not compiled
// for it.
func figuresOf(sm int) []figure {
	var out []figure
	for line := range strings.Lines(figures) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 || f[0] != strconv.Itoa(sm) {
			continue
		}
		number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n } // a test checks every line
		out = append(out, figure{SM: sm, Op: f[1], Name: f[2], Registers: number(3), Shared: number(4)})
	}
	return out
}

// BuiltIn returns the highest resource use of an operation's kernels on an architecture. ok
// is false if they are not compiled for it.
func BuiltIn(sm int, op string) (k Kernel, ok bool) {
	k = Kernel{MaxDynamic: -1, Carveout: -1}
	for _, f := range figuresOf(sm) {
		if f.Op == op {
			k.Registers, k.Shared, ok = max(k.Registers, f.Registers), max(k.Shared, f.Shared), true
		}
	}
	return k, ok
}
