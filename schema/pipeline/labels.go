package pipeline

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/yoctune/yoctune/schema/plan"
)

// MaxLabels limits the size of a labels file, in bytes.
const MaxLabels = 4 << 20

// ParseLabels reads one label per line. Spaces inside a line belong to the label. The error wraps
// [ErrPlan]; name is the file in its text.
func ParseLabels(name string, b []byte) ([]string, error) {
	if len(b) > MaxLabels {
		return nil, fmt.Errorf("%w: labels %s is not a file of at most %d bytes", ErrPlan, name, MaxLabels)
	}
	text := strings.TrimSuffix(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
	if text == "" {
		return nil, fmt.Errorf("%w: labels %s is empty", ErrPlan, name)
	}
	labels := strings.Split(text, "\n")
	for n, l := range labels {
		if !utf8.ValidString(l) {
			return nil, fmt.Errorf("%w: line %d of labels %s is not UTF-8: %.40q; convert the file with iconv", ErrPlan, n+1, name, l)
		}
	}
	return labels, nil
}

// CheckLabels checks the number of labels against the classes of a model; 0 classes are unknown. The
// error wraps [ErrPlan].
func CheckLabels(p *plan.Post, labels, classes int) error {
	switch {
	case classes < 1:
	case p.Kind == CTC && labels != classes-1 && labels != classes-2:
		return fmt.Errorf("%w: the labels file has %d lines, but a model with %d classes needs %d (and a blank), or %d (and a blank and a space)",
			ErrPlan, labels, classes, classes-1, classes-2)
	case p.Kind != CTC && labels != 0 && labels != classes:
		return fmt.Errorf("%w: the labels file has %d lines, but the model has %d classes", ErrPlan, labels, classes)
	}
	return nil
}

// ClassesOf returns the number of classes of a model's output; 0 if the shape does not tell, and for
// decodes whose outputs have more than classes.
func ClassesOf(p *plan.Post, shape []int64) int {
	if len(shape) == 0 {
		return 0
	}
	last := int(shape[len(shape)-1])
	switch {
	case p.Kind == CTC || p.Kind == Argmax:
		return last
	case p.Kind != Detect || len(shape) != 3 || shape[1] == 0 || shape[2] == 0:
		return 0
	}
	switch cmp.Or(p.Head, DefaultHead) {
	case "v5":
		return last - 5
	case "v8", "v11":
		return int(min(shape[1], shape[2])) - 4
	}
	return 0
}
