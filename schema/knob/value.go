// Package knob parses, normalises and compares the values of kernel files, and maps
// sysctl names to files. It also holds what both programs must agree on about single
// nodes: which must not be written, in which order the others are, and which module
// provides one.
//
// The kernel rarely prints the text that was written: it marks a choice with brackets,
// separates vectors with tabs, turns 0x2a into 42 and pads CPU masks. Comparing text would
// report false drift, so both sides are converted to one canonical form first. Nothing here
// opens a file.
package knob

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// Errors of this package; test with errors.Is.
var (
	ErrValue   = errors.New("not a value of this type")
	ErrType    = errors.New("unknown value type")
	errCompare = errors.New("unknown comparison")
)

// Found is a value read from the kernel.
type Found struct {
	Value   string   // canonical form
	Offered []string // the choices the kernel prints, chosen one included; nil when it prints none
}

// Parse normalises the text of a kernel file.
func Parse(typ, text string) (Found, error) {
	if typ != plan.TypeChoice {
		v, err := Canonical(typ, text)
		return Found{Value: v}, err
	}
	words := strings.Fields(text)
	// Drivers that offer one choice, and files of a tree after a write, print it
	// without brackets.
	if len(words) == 1 && !strings.HasPrefix(words[0], "[") {
		return Found{Value: words[0]}, nil
	}
	f := Found{Offered: make([]string, 0, len(words))}
	for _, w := range words {
		if strings.HasPrefix(w, "[") && strings.HasSuffix(w, "]") && len(w) > 2 {
			if f.Value != "" {
				return Found{}, fmt.Errorf("%w: two choices are marked in %q", ErrValue, Clip(text))
			}
			w = w[1 : len(w)-1]
			f.Value = w
		}
		f.Offered = append(f.Offered, w)
	}
	if f.Value == "" {
		return Found{}, fmt.Errorf("%w: no choice is marked in %q", ErrValue, Clip(text))
	}
	return f, nil
}

// Canonical converts a value of a type to its canonical text: equal values have equal
// texts.
func Canonical(typ, text string) (string, error) {
	text = strings.TrimSpace(text)
	switch typ {
	case plan.TypeInt:
		n, err := parseInt(text)
		return n.String(), err
	case plan.TypeVector:
		v, err := parseVector(text)
		if err != nil {
			return "", err
		}
		words := make([]string, len(v))
		for i, n := range v {
			words[i] = n.String()
		}
		return strings.Join(words, " "), nil
	case plan.TypeChoice:
		if text == "" || strings.ContainsAny(text, "[] \t\n") {
			return "", fmt.Errorf("%w: %q is not one choice", ErrValue, Clip(text))
		}
		return text, nil
	case plan.TypeCPUList:
		cpus, err := parseCPUList(text)
		return cpulist.Format(cpus), err
	case plan.TypeCPUMask:
		cpus, err := ParseCPUMask(text)
		return cpulist.Format(cpus), err
	case plan.TypeBool:
		switch strings.ToLower(text) {
		case "1", "y", "yes", "on", "true", "enabled":
			return "1", nil
		case "0", "n", "no", "off", "false", "disabled":
			return "0", nil
		}
		return "", fmt.Errorf("%w: %q is neither 0 nor 1", ErrValue, Clip(text))
	case plan.TypeString, plan.TypePresent:
		return text, nil
	}
	return "", fmt.Errorf("%w %q", ErrType, typ)
}

// Alternatives returns the values that would satisfy want, best first: the parts
// between "|" with first_available, else want alone.
func Alternatives(compare, want string) []string {
	if compare != plan.FirstAvailable {
		return []string{want}
	}
	var out []string
	for part := range strings.SplitSeq(want, "|") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// Satisfies reports whether found is what compare and want ask for. An error
// means that want is not a value of the type.
func Satisfies(typ, compare, want string, found Found) (bool, error) {
	switch compare {
	case plan.Exact:
		w, err := Canonical(typ, want)
		return err == nil && w == found.Value, err
	case plan.FirstAvailable:
		alternatives := Alternatives(compare, want)
		if len(alternatives) == 0 {
			return false, fmt.Errorf("%w: no alternative in %q", ErrValue, Clip(want))
		}
		for _, a := range alternatives {
			w, err := Canonical(typ, a)
			if err != nil {
				return false, err
			}
			if w == found.Value {
				return true, nil
			}
			// A better one is on offer, so a later one is not "first".
			if slices.Contains(found.Offered, w) {
				return false, nil
			}
		}
		return false, nil
	case plan.AtLeast, plan.AtMost:
		w, err := parseNumbers(typ, want)
		if err != nil {
			return false, err
		}
		f, err := parseNumbers(typ, found.Value)
		if err != nil {
			return false, err
		}
		if len(w) != len(f) {
			return false, nil
		}
		for i := range w {
			if c := f[i].cmp(w[i]); compare == plan.AtLeast && c < 0 || compare == plan.AtMost && c > 0 {
				return false, nil
			}
		}
		return true, nil
	}
	return false, fmt.Errorf("%w %q", errCompare, compare)
}

func parseNumbers(typ, text string) ([]integer, error) {
	switch typ {
	case plan.TypeInt:
		n, err := parseInt(strings.TrimSpace(text))
		return []integer{n}, err
	case plan.TypeVector:
		return parseVector(text)
	}
	return nil, fmt.Errorf("%w: a %s has no order", errCompare, typ)
}

// integer spans what the kernel prints: shmmax exceeds int64, others are negative.
type integer struct {
	negative  bool
	magnitude uint64
}

func (n integer) String() string {
	s := strconv.FormatUint(n.magnitude, 10)
	if n.negative {
		return "-" + s
	}
	return s
}

func (n integer) cmp(m integer) int {
	switch {
	case n.negative != m.negative:
		if n.negative {
			return -1
		}
		return 1
	case n.magnitude == m.magnitude:
		return 0
	case (n.magnitude < m.magnitude) != n.negative:
		return -1
	}
	return 1
}

func parseInt(text string) (integer, error) {
	bad := fmt.Errorf("%w: %q is not an integer", ErrValue, Clip(text))
	digits, negative := strings.CutPrefix(text, "-")
	base := 10
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok {
		digits, base = hex, 16
	} else if len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0") != "" {
		// Some kernel parsers would read it as octal, others as decimal.
		return integer{}, fmt.Errorf("%w: leading zero in %q", ErrValue, Clip(text))
	}
	if digits == "" || digits[0] == '+' || digits[0] == '-' {
		return integer{}, bad
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return integer{}, bad
	}
	return integer{negative: negative && v != 0, magnitude: v}, nil
}

func parseVector(text string) ([]integer, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: empty list of integers", ErrValue)
	}
	v := make([]integer, len(words))
	for i, w := range words {
		n, err := parseInt(w)
		if err != nil {
			return nil, err
		}
		v[i] = n
	}
	return v, nil
}

func parseCPUList(text string) ([]int, error) {
	cpus, err := cpulist.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrValue, err)
	}
	return cpus, nil
}

// Show writes a value for people: a set of processors is a list, also where the node takes a
// mask, and what must or must not exist is present
// or absent.
func Show(typ, value string) string {
	if typ == plan.TypePresent {
		if word, ok := map[string]string{"0": "absent", "1": "present"}[value]; ok {
			return word
		}
	}
	if typ == plan.TypeCPUMask {
		if list, err := Canonical(typ, value); err == nil {
			return list
		}
	}
	return value
}

// ParseCPUMask reads hexadecimal words of 32 bits, most significant first, and
// returns the processors in ascending order.
func ParseCPUMask(text string) ([]int, error) {
	words := strings.Split(strings.TrimPrefix(text, "0x"), ",")
	if len(words) > cpulist.Max/32 {
		return nil, fmt.Errorf("%w: cpu mask %q is too wide", ErrValue, Clip(text))
	}
	slices.Reverse(words)
	var cpus []int
	for i, w := range words {
		v, err := strconv.ParseUint(w, 16, 64)
		// Only a mask without commas may have a word of more than 32 bits.
		if err != nil || len(words) > 1 && v>>32 != 0 || strings.ContainsAny(w, "+-_") {
			return nil, fmt.Errorf("%w: %q is not a cpu mask", ErrValue, Clip(text))
		}
		for bit := range 64 {
			if v>>bit&1 == 1 {
				cpus = append(cpus, 32*i+bit)
			}
		}
	}
	return cpus, nil
}

// formatCPUMask is the inverse of [ParseCPUMask].
func formatCPUMask(cpus []int) string {
	if len(cpus) == 0 {
		return ""
	}
	words := make([]uint32, 2*(cpus[len(cpus)-1]/64+1))
	for _, cpu := range cpus {
		words[len(words)-1-cpu/32] |= 1 << (cpu % 32)
	}
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = fmt.Sprintf("%08x", w)
	}
	return strings.Join(text, ",")
}

// RestrictCPUs removes from a CPU list or mask the processors that are not in list. The
// result has a form that the kernel reads for the type; changed is false where no
// processor was removed. Values of other types, and values that cannot be parsed,
// are returned unchanged.
func RestrictCPUs(typ, text, list string) (kept string, changed bool) {
	parse, format := parseCPUList, cpulist.Format
	switch typ {
	case plan.TypeCPUList:
	case plan.TypeCPUMask:
		parse, format = ParseCPUMask, formatCPUMask
	default:
		return text, false
	}
	wanted, err1 := parse(strings.TrimSpace(text))
	present, err2 := parseCPUList(list)
	if err1 != nil || err2 != nil || len(present) == 0 {
		return text, false
	}
	both := slices.DeleteFunc(slices.Clone(wanted), func(cpu int) bool {
		_, found := slices.BinarySearch(present, cpu)
		return !found
	})
	if len(both) == len(wanted) {
		return text, false
	}
	return format(both), true
}

// Clip shortens a value for a message to about 80 bytes.
func Clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
