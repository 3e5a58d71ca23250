// Package cpulist reads and writes the kernel's lists of processors: "0-3,5", and
// reads the strided form "0-7:2/4" (Documentation/admin-guide/kernel-parameters.rst, "cpu lists").
package cpulist

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Max is the largest NR_CPUS a kernel can be built with.
const Max = 8192

// ErrList means that a text is not a list of processors.
var ErrList = errors.New("not a list of processors")

// Parse returns the processors of a list, each once, ascending. An empty list has none.
func Parse(text string) ([]int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		bad := func() ([]int, error) { return nil, fmt.Errorf("%w: %.40q in %.80q", ErrList, part, text) }
		span, stride, strided := strings.Cut(strings.TrimSpace(part), ":")
		low, high, ranged := strings.Cut(span, "-")
		if !ranged {
			high = low
		}
		first, ok1 := number(low)
		last, ok2 := number(high)
		if !ok1 || !ok2 || last < first {
			return bad()
		}
		used, group := 1, 1
		if strided {
			u, g, ok := strings.Cut(stride, "/")
			used, ok1 = number(u)
			group, ok2 = number(g)
			if !ok || !ranged || !ok1 || !ok2 || used < 1 || used > group {
				return bad()
			}
		}
		for cpu := first; cpu <= last; cpu++ {
			if (cpu-first)%group < used {
				out = append(out, cpu)
			}
		}
		if len(out) > 2*Max { // "0-8191,0-8191,…"
			slices.Sort(out)
			out = slices.Compact(out)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func number(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && n < Max
}

// Format writes processors, ascending, as the kernel does: 0-3,5.
func Format(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(cpus[i]))
		} else {
			parts = append(parts, strconv.Itoa(cpus[i])+"-"+strconv.Itoa(cpus[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
