package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Preprocess makes a tensor of a frame in one pass.
var Preprocess = Stage{
	Kind: "preprocess", Takes: []Data{Frames}, Device: true, Direct: true, Ladder: LadderSizes,
	configured: func(s *plan.PipelineStage) bool { return s.Preprocess != nil },
	gives: func(s *plan.PipelineStage) Output {
		p := s.Preprocess
		t, _ := ParseDType(p.DType) // checkPreprocess reports an unknown one
		out := Output{Data: Tensors, DType: t, Shape: []int64{1, 3, int64(p.Height), int64(p.Width)}}
		if p.Layout == NHWC {
			out.Shape = []int64{1, int64(p.Height), int64(p.Width), 3}
		}
		return out
	},
	check: checkPreprocess,
	describe: func(s *plan.PipelineStage) Description {
		p := s.Preprocess
		text := fmt.Sprintf("%s %d×%d %s", p.Fit, p.Width, p.Height, p.Color)
		for _, special := range []string{strings.TrimPrefix(p.DType, F32.String()), strings.TrimPrefix(p.Layout, NCHW)} {
			if special != "" {
				text += " " + special
			}
		}
		return Description{Text: text}
	},
}

// Layouts of the tensor of a preprocess stage: the order of frame, channel, row and column.
const (
	NCHW = "nchw"
	NHWC = "nhwc"
)

// PreprocessDTypes lists the element types that a preprocess stage writes.
func PreprocessDTypes() []DType { return []DType{F32, F16, I8, U8} }

// IsScaled reports whether the integers of a preprocess stage stand for normalised values. Those of
// others are the pixels themselves.
func IsScaled(p *plan.Preprocess) bool { return p.Scale != "" }

func checkPreprocess(s *plan.PipelineStage, _ Output) []Fault {
	p := s.Preprocess
	t, known := ParseDType(p.DType)
	fault := func(topic Topic, field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: topic, Path: stagePath(s, field), Value: value, Advice: advice, Reason: "stage " + s.ID + ": " + fmt.Sprintf(format, args...)}}
	}
	isSet := func(list []string, unset string) bool {
		return slices.ContainsFunc(list, func(v string) bool { return v != unset })
	}
	switch {
	case !known || !slices.Contains(PreprocessDTypes(), t):
		return fault(Range, "dtype", p.DType, "choose one of f32, f16, i8 and u8", "a preprocess stage does not write %s elements", p.DType)
	case p.Layout != "" && p.Layout != NCHW && p.Layout != NHWC:
		return fault(Range, "layout", p.Layout, "choose nchw or nhwc", "unknown layout %q", p.Layout)
	case !t.IsInteger() && (p.Scale != "" || p.Zero != 0):
		return fault(Range, "scale", p.Scale, "remove scale and zero, or choose dtype i8 or u8", "%s elements are not quantised", t)
	case t == I8 && p.Scale == "":
		return fault(Range, "dtype", p.DType, "write the scale and zero of the model's input", "i8 elements need a scale")
	case t == U8 && p.Scale == "" && (p.Zero != 0 || isSet(p.Mean, "0") || isSet(p.Std, "1")):
		return fault(Range, "dtype", p.DType, "write the scale and zero of the model's input, or remove mean, std and zero", "u8 elements without a scale are the pixels themselves")
	case t == U8 && (p.Zero < 0 || p.Zero > 255), t == I8 && (p.Zero < -128 || p.Zero > 127):
		return fault(Range, "zero", strconv.Itoa(p.Zero), "write the zero point of the model's input", "%s elements have no value %d", t, p.Zero)
	}
	if v, err := Decimal(p.Scale); p.Scale != "" && (err != nil || v <= 0) {
		return fault(Range, "scale", p.Scale, "write the scale of the model's input", "the scale is a number above 0")
	}
	return nil
}
