package decode

import (
	"fmt"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Vote combines the outputs of several models: into holds the first one's, others the rest, all
// of one shape. Cols is the length of the last axis, the classes.
type Vote func(into []float32, others [][]float32, cols int)

func ParseVote(kind string) (Vote, error) {
	switch kind {
	case "mean", "":
		return Mean, nil
	case "max":
		return largest, nil
	case "majority":
		return majority, nil
	}
	return nil, fmt.Errorf("%w: vote %q; use one of mean, majority, max", registry.ErrPlan, kind)
}

func Mean(into []float32, others [][]float32, _ int) {
	n := 1 / float32(len(others)+1)
	for i := range into {
		sum := into[i]
		for _, o := range others {
			sum += o[i]
		}
		into[i] = sum * n
	}
}

func largest(into []float32, others [][]float32, _ int) {
	for i := range into {
		for _, o := range others {
			into[i] = max(into[i], o[i])
		}
	}
}

// majority sets each class of a row to the fraction of models whose best class it is.
func majority(into []float32, others [][]float32, cols int) {
	one := 1 / float32(len(others)+1)
	for at := 0; at < len(into); at += cols {
		row := into[at:][:cols]
		best, _ := top(row)
		clear(row)
		row[best] = one
		for _, o := range others {
			best, _ := top(o[at:][:cols])
			row[best] += one
		}
	}
}
