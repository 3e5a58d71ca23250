package fuse

import (
	"fmt"
	"math"
)

// demand is a condition on numbers of an expression: constants, and what is computed of them and of
// the values of a channel.
type demand struct {
	at        Error // position, without a message
	clamp     bool  // low and high do not descend; otherwise divisor is not 0
	divisor   value
	low, high value
}

// CheckChannels checks the values of p and q, one list for each operand in the order of Operands, all
// of one length. An error is of type *Error: a division by 0, or limits of clamp that descend.
func (c *Chain) CheckChannels(values [][]float32) error {
	if len(values) == 0 {
		return nil
	}
	channel := make([]float32, len(values))
	for i := range values[0] {
		for k := range values {
			channel[k] = values[k][i]
		}
		if err := c.checkDemands(channel, fmt.Sprintf(" in channel %d, counted from 0", i)); err != nil {
			return err
		}
	}
	return nil
}

// checkDemands checks what constants and the values of a channel decide. where ends a message.
func (c *Chain) checkDemands(channel []float32, where string) error {
	if len(c.demands) == 0 {
		return nil
	}
	results := make([]float64, len(c.written)) // NaN: not decided
	get := func(v value) float64 {
		if v.step < 0 {
			return float64(v.number)
		}
		return results[v.step]
	}
	for i, s := range c.written {
		switch {
		case s.op != opLoad:
			results[i] = estimate(s.op, get(s.x), get(s.y))
		case s.x.step > 0 && s.x.step <= len(channel):
			results[i] = float64(channel[s.x.step-1])
		default:
			results[i] = math.NaN()
		}
	}
	for _, d := range c.demands {
		err := d.at
		switch low, high := get(d.low), get(d.high); {
		case !d.clamp && get(d.divisor) == 0:
			err.Msg = "division by 0" + where
		case d.clamp && low > high:
			err.Msg = fmt.Sprintf("the limits of clamp descend from %v to %v%s", float32(low), float32(high), where)
		default:
			continue
		}
		return &err
	}
	return nil
}

// estimate computes an operation about as the kernels do; exactly where the result is 0.
func estimate(o op, x, y float64) float64 {
	round := func(f float64) float64 { return float64(float32(f)) }
	switch o {
	case opAdd:
		return round(x + y)
	case opSub:
		return round(x - y)
	case opMul:
		return round(x * y)
	case opDiv:
		return round(x / y)
	case opMin:
		return min(x, y)
	case opMax:
		return max(x, y)
	case opLeaky:
		if x < 0 {
			return round(x * y)
		}
		return x
	case opNeg:
		return -x
	case opAbs:
		return math.Abs(x)
	case opSqrt:
		return math.Sqrt(x)
	case opExp:
		return round(math.Exp(x))
	case opLog:
		return round(math.Log(x))
	case opSigmoid:
		return round(1 / (1 + math.Exp(-x)))
	case opTanh:
		return round(math.Tanh(x))
	case opGelu:
		return round(x * (1 + math.Erf(x/math.Sqrt2)) / 2)
	case opSilu:
		return round(x / (1 + math.Exp(-x)))
	case opRelu:
		return max(x, 0)
	case opRound:
		return math.RoundToEven(x)
	case opI8:
		return min(max(math.RoundToEven(x), math.MinInt8), math.MaxInt8)
	case opU8:
		return min(max(math.RoundToEven(x), 0), math.MaxUint8)
	}
	return math.NaN() // f16 and bf16
}
