package resolve

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/units"
)

// Frequency returns Hz of "918MHz", or of an integer.
func Frequency(n *load.Node) (int64, error) { return quantity(n, units.ParseFrequency, "Hz") }

// Size returns bytes of "2GiB", or of an integer.
func Size(n *load.Node) (int64, error) { return quantity(n, units.ParseSize, "bytes") }

// Rate returns bytes a second of "20MB/s", "100Mbit/s", or of an integer.
func Rate(n *load.Node) (int64, error) { return quantity(n, units.ParseRate, "bytes a second") }

// Duration returns nanoseconds of "5ms", or of an integer.
func Duration(n *load.Node) (int64, error) { return quantity(n, units.ParseDuration, "ns") }

func quantity(n *load.Node, parse func(string) (int64, error), base string) (int64, error) {
	if n.Kind != load.Int {
		return parse(n.Text)
	}
	v, ok := n.Int64()
	if !ok {
		return 0, fmt.Errorf("%s %s is too large", n.Text, base)
	}
	return v, nil
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
