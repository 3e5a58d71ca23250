package measurement

import (
	"cmp"
	"maps"
	"slices"
)

// Names of metrics.
const (
	Top1   = "top-1"  // share of the examples whose best class is the label
	F1     = "f1"     // harmonic mean of precision and recall, over all labels
	CER    = "cer"    // wrong characters per character of the label; lower is better
	MAP    = "map"    // mean average precision of boxes, over classes and overlaps from 0.5 to 0.95
	Cosine = "cosine" // similarity of the outputs with those of the original, one example at a time
)

// Metric turns the scores of examples into one number.
type Metric struct {
	Name   string
	Lower  bool // lower is better
	Labels string
	counts int // of an example
	value  func(examples []Example, pick []int) (float64, bool)
}

var metrics = []Metric{
	{Name: Cosine, counts: 1, value: meanOfBillionths},
	{Name: Top1, Labels: "label", counts: 1, value: meanOfCounts},
	{Name: F1, Labels: "label", counts: 3, value: f1},
	{Name: CER, Lower: true, Labels: "label", counts: 2, value: errorRate},
	{Name: MAP, Labels: "boxes", value: meanPrecision},
}

// Metrics lists the names of metrics.
func Metrics() []string {
	var names []string
	for _, m := range metrics {
		names = append(names, m.Name)
	}
	return names
}

// MetricOf finds a metric.
func MetricOf(name string) (Metric, bool) {
	i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return metrics[i], true
}

// Value is the metric over some examples, by index; one may be picked several times. It is not
// known where the examples have nothing to count, such as no object.
func (m Metric) Value(examples []Example, pick []int) (value float64, known bool) {
	return m.value(examples, pick)
}

// Loss is how much worse a value is than the original's: above 0 is worse.
func (m Metric) Loss(original, candidate float64) float64 {
	if m.Lower {
		return candidate - original
	}
	return original - candidate
}

func meanOfCounts(examples []Example, pick []int) (float64, bool) {
	sum := int64(0)
	for _, i := range pick {
		sum += examples[i].Counts[0]
	}
	return float64(sum) / float64(max(len(pick), 1)), len(pick) > 0
}

// Billionth is the unit of a cosine.
const Billionth = 1e9

func meanOfBillionths(examples []Example, pick []int) (float64, bool) {
	mean, ok := meanOfCounts(examples, pick)
	return mean / Billionth, ok
}

// f1 counts true positives, false positives and false negatives.
func f1(examples []Example, pick []int) (float64, bool) {
	var tp, wrong int64
	for _, i := range pick {
		c := examples[i].Counts
		tp, wrong = tp+c[0], wrong+c[1]+c[2]
	}
	if tp+wrong == 0 {
		return 0, false
	}
	return float64(2*tp) / float64(2*tp+wrong), true
}

// errorRate counts edits and characters.
func errorRate(examples []Example, pick []int) (float64, bool) {
	var edits, characters int64
	for _, i := range pick {
		edits, characters = edits+examples[i].Counts[0], characters+examples[i].Counts[1]
	}
	if characters == 0 {
		return 0, false
	}
	return float64(edits) / float64(characters), true
}

// Overlaps are the thresholds of overlap of [MAP], in percent.
func Overlaps() []int { return []int{50, 55, 60, 65, 70, 75, 80, 85, 90, 95} }

// meanPrecision is the mean over classes with objects, and over overlaps, of the area below the
// curve of precision and recall: precision made monotonic, at 101 steps of recall, as COCO has it.
func meanPrecision(examples []Example, pick []int) (float64, bool) {
	type detection struct{ score, met int64 }
	found, objects := map[int64][]detection{}, map[int64]int64{}
	for _, i := range pick {
		for _, d := range examples[i].Detections {
			found[d[0]] = append(found[d[0]], detection{d[1], d[2]})
		}
		for _, o := range examples[i].Objects {
			objects[o[0]] += o[1]
		}
	}
	sum, n := 0.0, 0
	for _, class := range slices.Sorted(maps.Keys(objects)) { // in one order: sums of floats depend on it
		total, all := objects[class], found[class]
		if total <= 0 {
			continue
		}
		slices.SortStableFunc(all, func(a, b detection) int { return cmp.Compare(b.score, a.score) })
		for bit := range Overlaps() {
			tp := make([]int64, len(all))
			hits := int64(0)
			for k, d := range all {
				hits += d.met >> bit & 1
				tp[k] = hits
			}
			sum += areaBelow(tp, total)
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// areaBelow takes the true positives among the k+1 best detections.
func areaBelow(tp []int64, total int64) float64 {
	precision := make([]float64, len(tp))
	for k := len(tp) - 1; k >= 0; k-- {
		precision[k] = float64(tp[k]) / float64(k+1)
		if k+1 < len(tp) {
			precision[k] = max(precision[k], precision[k+1])
		}
	}
	// Compared as COCO's own program does, in floating point: 0.28 is above 7 of 25 there.
	const steps = 100
	area, k := 0.0, 0
	for s := range steps + 1 {
		for k < len(tp) && float64(tp[k])/float64(total) < float64(s)*(1.0/steps) {
			k++
		}
		if k == len(tp) {
			break
		}
		area += precision[k]
	}
	return area / (steps + 1)
}
