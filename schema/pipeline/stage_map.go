package pipeline

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/yoctune/yoctune/schema/fuse"
	"github.com/yoctune/yoctune/schema/plan"
)

// Map computes each element of a tensor anew, by a chain of expressions that runs as one kernel.
var Map = Stage{
	Kind: "map", Takes: []Data{Tensors}, Device: true,
	configured: func(s *plan.PipelineStage) bool { return s.Map != nil },
	gives:      func(*plan.PipelineStage) Output { return Output{Data: Tensors} }, // the shape that it takes
	check:      checkMap,
	describe: func(s *plan.PipelineStage) Description {
		text := ""
		if n := len(s.Map.Expressions); n > 0 {
			text = s.Map.Expressions[n-1]
			if n > 1 {
				text = fmt.Sprintf("%d expressions … %s", n, text)
			}
		}
		return Description{Text: text}
	},
}

// Chain parses the expressions of a map stage.
func Chain(m *plan.Map) (*fuse.Chain, error) { return fuse.Parse(fuse.F32, fuse.F32, m.Expressions...) }

// ChannelValues returns the numbers by channel that a chain reads, in its order. The error is a fault of
// the settings.
func ChannelValues(m *plan.Map, c *fuse.Chain) ([][]float32, error) {
	given := map[string][]string{"p": m.P, "q": m.Q}
	var all [][]float32
	for _, o := range c.Operands() {
		list := given[o.Name]
		if !o.Channel {
			return nil, fmt.Errorf("%w: %s is an element of a second tensor, and a map stage takes one", ErrPlan, o.Name)
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%w: the expressions read %s, which has no values", ErrPlan, o.Name)
		}
		delete(given, o.Name)
		values := make([]float32, len(list))
		for i, text := range list {
			var err error
			if values[i], err = Decimal(text); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrPlan, o.Name, err)
			}
		}
		all = append(all, values)
	}
	for _, name := range []string{"p", "q"} {
		if len(given[name]) > 0 {
			return nil, fmt.Errorf("%w: %s has values, and the expressions do not read it", ErrPlan, name)
		}
	}
	if len(all) == 2 && len(all[0]) != len(all[1]) {
		return nil, fmt.Errorf("%w: p and q have %d and %d values, one for each channel", ErrPlan, len(m.P), len(m.Q))
	}
	if err := c.CheckChannels(all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	return all, nil
}

func checkMap(s *plan.PipelineStage, in Output) []Fault {
	fault := func(path []string, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: Expression, Path: path, Value: value, Advice: advice, Reason: "stage " + s.ID + ": " + fmt.Sprintf(format, args...)}}
	}
	inExpression := func(err error, advice string) []Fault {
		at := (*fuse.Error)(nil)
		if !errors.As(err, &at) || at.Expr >= len(s.Map.Expressions) {
			return nil
		}
		return fault(stagePath(s, "expressions", strconv.Itoa(at.Expr)), s.Map.Expressions[at.Expr], advice,
			"expression %d, line %d, column %d: %s", at.Expr+1, at.Line, at.Col, at.Msg)
	}
	chain, err := Chain(s.Map)
	if faults := inExpression(err, "write names, functions, numbers, parentheses and + - * /"); faults != nil {
		return faults
	}
	if err != nil {
		return fault(stagePath(s, "expressions"), "", "", "%s", ReasonText(err))
	}
	if in.Shape != nil && in.DType != F32 {
		return []Fault{inputFault(s, "stage %s computes float32, and its input is %v", s.ID, in.Tensor())}
	}
	values, err := ChannelValues(s.Map, chain)
	if faults := inExpression(err, "correct the expression, or the values of p and q"); faults != nil {
		return faults
	}
	switch {
	case err != nil:
		return fault(stagePath(s, "expressions"), "", "give p and q one value for each channel, or leave them out of the expressions", "%s", ReasonText(err))
	case len(values) > 0 && in.Shape != nil && (len(in.Shape) < 2 || in.Shape[1] != int64(len(values[0]))):
		return fault(stagePath(s, chain.Operands()[0].Name), "", "give one value for each channel, the second axis", "%d values for the channels of a tensor %v", len(values[0]), in.Shape)
	}
	return nil
}
