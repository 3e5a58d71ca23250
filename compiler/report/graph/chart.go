package graph

import (
	"fmt"
	"slices"
	"strconv"
)

// Bar is one bar of a chart.
type Bar struct {
	Name  string
	Value int64
	Label string
}

// DrawBars draws values as horizontal bars from zero.
func DrawBars(title string, bars []Bar) *Drawing {
	d := &Drawing{Title: title}
	const label, width, row = 110.0, 520.0, 24.0
	most := int64(1)
	for _, b := range bars {
		most = max(most, b.Value)
	}
	for i, b := range bars {
		y := margin + float64(i)*row
		d.text("small", "end", margin+label-10, y+14, short(b.Name, 16))
		d.rect("track", margin+label, y+3, width, 14, 3, "")
		d.rect("bar", margin+label, y+3, max(fraction(b.Value, most)*width, 1), 14, 3, b.Name+": "+b.Label)
		d.text("small", "start", margin+label+width+8, y+14, b.Label)
	}
	d.extendTo(0, margin*2+float64(len(bars))*row)
	return d
}

// Columns draws counts as a column chart. Many columns are merged into groups, each with
// the height of its highest column.
func Columns(title, axis string, counts []int) *Drawing {
	d := &Drawing{Title: title}
	if len(counts) == 0 {
		return d
	}
	const width, height, left = 760.0, 180.0, 44.0
	const most = 380
	n := min(len(counts), most)
	top := max(slices.Max(counts), 1)
	for _, v := range slices.Compact([]int{0, top / 2, top}) {
		y := margin + height*(1-float64(v)/float64(top))
		d.line("rule", left, y, left+width, y)
		d.text("soft small", "end", left-6, y+4, strconv.Itoa(v))
	}
	w := width / float64(n)
	for i := range n {
		from, to := i*len(counts)/n, max((i+1)*len(counts)/n, i*len(counts)/n+1)
		v := slices.Max(counts[from:to])
		h := height * float64(v) / float64(top)
		name := fmt.Sprintf("%s %d: %d", axis, from, v)
		if to-from > 1 {
			name = fmt.Sprintf("%s %d to %d: at most %d", axis, from, to-1, v)
		}
		d.rect("area", left+float64(i)*w, margin+height-h, max(w-0.8, 0.6), h, 0, name)
	}
	d.text("soft small", "start", left, margin+height+16, axis+" 0")
	d.text("soft small", "end", left+width, margin+height+16, strconv.Itoa(len(counts)-1))
	d.extendTo(left+width+margin, margin+height+24)
	return d
}

// Span is one part of a time line.
type Span struct {
	Name          string
	Start, Length int64
	Label         string
}

// Timeline draws spans that follow each other, a row for each; the longest 60
// when there are more.
func Timeline(title string, spans []Span) *Drawing {
	d := &Drawing{Title: title}
	const label, width, row, most = 230.0, 480.0, 18.0, 60
	end := int64(1)
	for _, s := range spans {
		end = max(end, s.Start+s.Length)
	}
	left := 0
	if len(spans) > most {
		lengths := make([]int64, len(spans))
		for i, s := range spans {
			lengths[i] = s.Length
		}
		slices.Sort(lengths)
		least := lengths[len(lengths)-most]
		kept := spans[:0:0]
		for _, s := range spans {
			if s.Length >= least && len(kept) < most {
				kept = append(kept, s)
			}
		}
		left = len(spans) - len(kept)
		spans = kept
	}
	for i, s := range spans {
		y := margin + float64(i)*row
		d.text("small", "end", margin+label-10, y+12, short(s.Name, 32))
		x := margin + label + width*float64(s.Start)/float64(end)
		d.rect("bar", x, y+2, max(width*float64(s.Length)/float64(end), 1.5), 11, 2, s.Name+": "+s.Label)
		d.text("soft small", "start", x+max(width*float64(s.Length)/float64(end), 1.5)+6, y+12, s.Label)
	}
	y := margin + float64(len(spans))*row
	if left > 0 {
		d.text("soft small", "end", margin+label-10, y+14, fmt.Sprintf("%d shorter ones left out", left))
		y += row
	}
	d.extendTo(margin+label+width+90, y+margin)
	return d
}
