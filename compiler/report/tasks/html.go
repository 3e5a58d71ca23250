package tasks

import (
	_ "embed"
	"html/template"
	"io"
	"strconv"
	"time"

	"github.com/yoctune/yoctune/compiler/report/graph"
	"github.com/yoctune/yoctune/compiler/report/htmlpage"
)

//go:embed tasks.html.tmpl
var parts string

// WriteHTML writes the analysis as one page with pictures; name is the file it
// is about.
func (a *Analysis) WriteHTML(w io.Writer, name string) error {
	return htmlpage.Report{
		Title: "Task graph " + name,
		Parts: parts,
		Funcs: template.FuncMap{
			"number": func(n int) string { return number(n) }, "count": func(n int64) string { return number(n) },
			"length": a.Length, "clock": clock, "percent": func(f float64) string { return strconv.FormatFloat(100*f, 'f', 0, 64) + " %" },
			"seconds": func(n int64) string { return clock(time.Duration(n)) }, "inc": func(n int) int { return n + 1 },
		},
		Data: struct {
			*Analysis
			Name, Widest, Half                string
			LevelPicture, Schedules, Timeline template.HTML
		}{
			a, name, number(a.widest()), number(a.Percentile(50)),
			htmlpage.Picture(graph.Columns("Tasks at each level", "level", a.Levels)),
			htmlpage.Picture(a.threadsPicture()), htmlpage.Picture(a.timeline()),
		},
	}.Write(w)
}

func (a *Analysis) widest() int {
	_, n := a.WidestLevel()
	return n
}

func (a *Analysis) threadsPicture() *graph.Drawing {
	bars := make([]graph.Bar, 0, len(a.Threads))
	for _, r := range a.Threads {
		name := count(r.Threads, "thread")
		if r.Threads == a.Chosen {
			name += " •"
		}
		bars = append(bars, graph.Bar{Name: name, Value: r.Length, Label: a.Length(r.Length)})
	}
	return graph.DrawBars("Length of the build by number of threads", bars)
}

// timeline draws the recipes of the longest path in the order they run.
func (a *Analysis) timeline() *graph.Drawing {
	var spans []graph.Span
	for _, s := range a.DecisivePath().Steps {
		if n := len(spans) - 1; n >= 0 && spans[n].Name == s.Recipe {
			spans[n].Length = add(spans[n].Length, s.Took)
			spans[n].Label = a.Length(spans[n].Length)
			continue
		}
		spans = append(spans, graph.Span{Name: s.Recipe, Start: s.Start, Length: s.Took, Label: a.Length(s.Took)})
	}
	return graph.Timeline("The longest path, recipe by recipe", spans)
}
