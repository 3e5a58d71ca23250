package pipeline

import (
	"fmt"
	"math"
	"strconv"
)

// Decimal reads a decimal text of a plan, which has no floats.
func Decimal(text string) (float32, error) {
	x, err := strconv.ParseFloat(text, 32)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, fmt.Errorf("%q is not a decimal number", text)
	}
	return float32(x), nil
}

// Fraction reads a decimal text from 0 to 1. The error wraps [ErrPlan].
func Fraction(field, text string) (float32, error) {
	v, err := Decimal(text)
	if err != nil || v < 0 || v > 1 {
		return 0, fmt.Errorf("%w: %s %q is not a decimal number from 0 to 1", ErrPlan, field, text)
	}
	return v, nil
}
