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
		return voteMean, nil
	case "max":
		return voteMax, nil
	case "majority":
		return voteMajority, nil
	}
	return nil, fmt.Errorf("%w: vote %q; use one of mean, majority, max", registry.ErrPlan, kind)
}

func voteMean(into []float32, others [][]float32, _ int) {
	n := 1 / float32(len(others)+1)
	for i := range into {
		sum := into[i]
		for _, o := range others {
			sum += o[i]
		}
		into[i] = sum * n
	}
}

func voteMax(into []float32, others [][]float32, _ int) {
	for i := range into {
		for _, o := range others {
			into[i] = max(into[i], o[i])
		}
	}
}

// voteMajority sets each class of a row to the fraction of models whose best class it is.
func voteMajority(into []float32, others [][]float32, cols int) {
	one := 1 / float32(len(others)+1)
	for at := 0; at < len(into); at += cols {
		row := into[at:][:cols]
		best, _ := maximum(row)
		clear(row)
		row[best] = one
		for _, o := range others {
			best, _ := maximum(o[at:][:cols])
			row[best] += one
		}
	}
}
