package tasks

import (
	"io"

	"github.com/yoctune/yoctune/compiler/diag"
)

// WriteJSON writes the analysis as one object a line, a summary last. Lengths
// are tasks, or seconds if "unit" is seconds.
func (a *Analysis) WriteJSON(w io.Writer) error {
	unit, length := "tasks", func(n int64) float64 { return float64(n) }
	if a.Measured {
		unit, length = "seconds", func(n int64) float64 { return float64(n) / 1e9 }
	}
	var lines []any
	for i, s := range a.DecisivePath().Steps {
		lines = append(lines, struct {
			Type   string  `json:"type"`
			Step   int     `json:"step"`
			Task   string  `json:"task"`
			Recipe string  `json:"recipe"`
			Start  float64 `json:"start"`
			Took   float64 `json:"took"`
		}{"step", i + 1, s.Task, s.Recipe, length(s.Start), length(s.Took)})
	}
	for i, n := range a.Levels {
		lines = append(lines, struct {
			Type  string `json:"type"`
			Level int    `json:"level"`
			Tasks int    `json:"tasks"`
		}{"level", i, n})
	}
	for _, l := range a.Limits {
		lines = append(lines, struct {
			Type   string  `json:"type"`
			Recipe string  `json:"recipe"`
			Tasks  int     `json:"tasks"`
			Took   float64 `json:"took"`
			Saves  float64 `json:"saves"`
		}{"limit", l.Recipe, l.Steps, length(l.Took), length(l.Gain)})
	}
	for _, r := range a.Threads {
		lines = append(lines, struct {
			Type    string  `json:"type"`
			Threads int     `json:"threads"`
			Length  float64 `json:"length"`
			Busy    float64 `json:"busy"`
		}{"threads", r.Threads, length(r.Length), r.Busy})
	}
	for _, c := range a.Caches {
		lines = append(lines, struct {
			Type     string  `json:"type"`
			Has      string  `json:"has"`
			Tasks    int     `json:"tasks"`
			Restored int     `json:"restored"`
			Path     float64 `json:"path"`
			Length   float64 `json:"length"`
		}{"cache", c.Name, c.Runs, c.Restored, length(c.Path), length(c.Length)})
	}
	_, widest := a.WidestLevel()
	summary := struct {
		Type     string  `json:"type"`
		Command  string  `json:"command"`
		Unit     string  `json:"unit"`
		Tasks    int     `json:"tasks"`
		Recipes  int     `json:"recipes"`
		Edges    int     `json:"edges"`
		Path     float64 `json:"path"`       // length of the path that decides
		Count    int     `json:"path_tasks"` // tasks of the longest path by count
		Levels   int     `json:"levels"`
		Widest   int     `json:"widest"`
		Threads  int     `json:"threads"`
		Ran      int     `json:"ran"`
		Restored int     `json:"restored"`
		Unknown  int     `json:"unknown"`
		Work     float64 `json:"work_seconds,omitempty"`    // of all measured tasks
		CPU      float64 `json:"cpu_seconds,omitempty"`     // of all measured tasks
		Elapsed  float64 `json:"elapsed_seconds,omitempty"` // of the measured build, on the clock
	}{Type: "summary", Command: "tasks", Unit: unit, Tasks: a.Tasks, Recipes: a.Recipes, Edges: a.Edges,
		Path: length(a.DecisivePath().Length), Count: len(a.Count.Steps), Levels: len(a.Levels), Widest: widest, Threads: a.Chosen}
	if a.Stats != nil {
		summary.Ran, summary.Restored, summary.Unknown = a.Stats.Ran, a.Stats.Hits, a.Stats.Unknown
		summary.Work, summary.CPU, summary.Elapsed = a.Stats.Work.Seconds(), a.Stats.CPU.Seconds(), a.Stats.Elapsed.Seconds()
	}
	return diag.WriteLines(w, append(lines, summary)...)
}
