// Package units parses and prints quantities: bytes, frequencies, rates and durations.
package units

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// ErrInexact means that a quantity is not a whole number of base units.
var ErrInexact = errors.New("not a whole number of base units")

// unit is a suffix and the base units that it stands for.
type unit struct {
	suffix string
	factor int64
}

// In each list, a suffix that ends in another one precedes it: "GHz" before "Hz". Units
// of one base ascend, for printing.
var (
	hertz = []unit{{"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}, {"Hz", 1}}
	sizes = []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	}
	bits      = []unit{{"kbit/s", 125}, {"Mbit/s", 125e3}, {"Gbit/s", 125e6}}
	durations = []unit{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"min", 60e9}, {"s", 1e9}, {"h", 3600e9}}
)

// ParseFrequency parses "918MHz" and returns Hz. The errors of this package's parsers
// name the text; those of quantities that are too fine match [ErrInexact].
func ParseFrequency(text string) (int64, error) { return parse(text, hertz, "Hz") }

// ParseSize parses "2GiB" and returns bytes.
func ParseSize(text string) (int64, error) { return parse(text, sizes, "bytes") }

// ParseRate parses "20MB/s" or "100Mbit/s" and returns bytes a second.
func ParseRate(text string) (int64, error) {
	const base = "bytes a second"
	if size, ok := strings.CutSuffix(text, "B/s"); ok {
		return parse(size+"B", sizes, base)
	}
	return parse(text, bits, base)
}

// ParseDuration parses "5ms" and returns nanoseconds.
func ParseDuration(text string) (int64, error) { return parse(text, durations, "ns") }

func parse(text string, units []unit, base string) (int64, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		r, ok := new(big.Rat).SetString(digits)
		if !ok {
			continue // "5MB" also ends in "B"
		}
		r.Mul(r, new(big.Rat).SetInt64(u.factor))
		if !r.IsInt() {
			return 0, fmt.Errorf("%s in %s: %w", text, base, ErrInexact)
		}
		if !r.Num().IsInt64() {
			return 0, fmt.Errorf("%s is too large", text)
		}
		return r.Num().Int64(), nil
	}
	return 0, fmt.Errorf("%q has no unit known here", text)
}

// Frequency prints Hz exactly, in a form that [ParseFrequency] parses: "1.4208GHz".
func Frequency(hz int64) string {
	for _, u := range []unit{hertz[2], hertz[1], hertz[0]} {
		if hz >= u.factor {
			s := new(big.Rat).SetFrac64(hz, u.factor).FloatString(9)
			return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + u.suffix
		}
	}
	return strconv.FormatInt(hz, 10) + "Hz"
}

// Size prints bytes exactly, in the largest unit of which they are a whole number and in
// a form that [ParseSize] parses: "1536MiB".
func Size(bytes int64) string {
	u := unit{"B", 1}
	for _, larger := range sizes[:4] {
		if bytes != 0 && bytes%larger.factor == 0 {
			u = larger
		}
	}
	return strconv.FormatInt(bytes/u.factor, 10) + u.suffix
}

// SpaceUnit puts a space between the number and the unit of a printed quantity, as prose
// has it: "1536 MiB".
func SpaceUnit(quantity string) string {
	i := strings.IndexFunc(quantity, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' })
	if i < 0 {
		return quantity
	}
	return quantity[:i] + " " + quantity[i:]
}

// RoundFrequency prints Hz for people: "1.42 GHz", "918 MHz".
func RoundFrequency(hz int64) string {
	if hz >= 1e9 {
		return fmt.Sprintf("%.2f GHz", float64(hz)/1e9)
	}
	return fmt.Sprintf("%.0f MHz", float64(hz)/1e6)
}

// RoundSize prints bytes for people, in binary units and two digits or more: "1.5 GiB",
// "12 MiB".
func RoundSize(bytes int64) string {
	for _, u := range []unit{sizes[2], sizes[1], sizes[0]} {
		switch whole := bytes / u.factor; {
		case whole >= 1 && (whole < 10 || u.suffix == "GiB") && bytes%u.factor != 0:
			return fmt.Sprintf("%.1f %s", float64(bytes)/float64(u.factor), u.suffix)
		case whole >= 1:
			return fmt.Sprintf("%d %s", whole, u.suffix)
		}
	}
	return fmt.Sprintf("%d B", bytes)
}

// RoundDecimal prints bytes for people, in the decimal units of disks and networks, with
// four digits: "12.5 MB".
func RoundDecimal(bytes float64) string {
	for _, suffix := range []string{"B", "kB", "MB"} {
		if bytes < 1000 {
			return fmt.Sprintf("%.4g %s", bytes, suffix)
		}
		bytes /= 1000
	}
	return fmt.Sprintf("%.4g GB", bytes)
}
