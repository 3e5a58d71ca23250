package resolve

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/load"
)

// ErrInexact says that a quantity is no whole number of base units.
var ErrInexact = errors.New("not a whole number of base units")

// unit is a suffix and how many base units it stands for.
type unit struct {
	suffix string
	factor int64
}

// Longest suffixes first: "GHz" before "Hz", "KiB" before "B".
func frequencies() []unit {
	return []unit{{"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}, {"Hz", 1}}
}

func sizes() []unit {
	return []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	}
}

func rates() []unit {
	units := []unit{{"kbit/s", 125}, {"Mbit/s", 125e3}, {"Gbit/s", 125e6}}
	for _, u := range sizes() {
		units = append(units, unit{u.suffix + "/s", u.factor})
	}
	return units
}

func durations() []unit {
	return []unit{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"min", 60e9}, {"s", 1e9}, {"h", 3600e9}}
}

// Frequency reads "918MHz" or an integer as Hz.
func Frequency(n *load.Node) (int64, error) { return quantity(n, frequencies(), "Hz") }

// Size reads "2GiB" or an integer as bytes.
func Size(n *load.Node) (int64, error) { return quantity(n, sizes(), "bytes") }

// Rate reads "20MB/s", "100Mbit/s" or an integer as bytes a second.
func Rate(n *load.Node) (int64, error) { return quantity(n, rates(), "bytes a second") }

// Duration reads "5ms" or an integer as nanoseconds.
func Duration(n *load.Node) (int64, error) { return quantity(n, durations(), "ns") }

func quantity(n *load.Node, units []unit, base string) (int64, error) {
	if n.Kind == load.Int {
		v, ok := n.Int64()
		if !ok {
			return 0, fmt.Errorf("%s %s is too large", n.Text, base)
		}
		return v, nil
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(n.Text, u.suffix)
		if !ok {
			continue
		}
		r, ok := new(big.Rat).SetString(digits)
		if !ok {
			continue // "5MB" also ends in "B"
		}
		r.Mul(r, new(big.Rat).SetInt64(u.factor))
		if !r.IsInt() {
			return 0, fmt.Errorf("%s in %s: %w", n.Text, base, ErrInexact)
		}
		if !r.Num().IsInt64() {
			return 0, fmt.Errorf("%s is too large", n.Text)
		}
		return r.Num().Int64(), nil
	}
	return 0, fmt.Errorf("%q has no unit known here", n.Text)
}

// decimal writes a number as plain decimal text without needless zeros, so that
// 0.50, 5e-1 and "0.5" are one value.
func decimal(n *load.Node) string {
	r, ok := new(big.Rat).SetString(n.Text)
	if !ok {
		return n.Text
	}
	s := r.FloatString(18)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// ShowHz writes a frequency for people, exactly.
func ShowHz(hz int64) string {
	for _, u := range []unit{{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}} {
		if hz >= u.factor {
			s := new(big.Rat).SetFrac64(hz, u.factor).FloatString(9)
			return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + u.suffix
		}
	}
	return fmt.Sprintf("%dHz", hz)
}
