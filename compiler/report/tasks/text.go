package tasks

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Length writes a length of the analysis: "187 tasks", or a time.
func (a *Analysis) Length(n int64) string {
	if !a.Measured {
		return count(n, "task")
	}
	return clock(time.Duration(n))
}

// count writes a number of things: "1 task", "41,987 tasks".
func count[T int | int64](n T, what string) string {
	if n != 1 {
		what += "s"
	}
	return number(n) + " " + what
}

// number groups thousands: 41,987.
func number[T int | int64](n T) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// clock writes a time to a tenth of a second, or whole seconds from a minute on.
func clock(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	h, m, s := d/time.Hour, d/time.Minute%60, d/time.Second%60
	if h == 0 {
		return fmt.Sprintf("%d min %02d s", m, s)
	}
	return fmt.Sprintf("%d h %02d min %02d s", h, m, s)
}

// DecisivePath returns the path that sets the length of the build: by time where there are
// measurements, by count otherwise.
func (a *Analysis) DecisivePath() Path {
	if a.Time != nil {
		return *a.Time
	}
	return a.Count
}

// WidestLevel returns the level with the most tasks.
func (a *Analysis) WidestLevel() (level, tasks int) {
	if len(a.Levels) == 0 {
		return 0, 0
	}
	tasks = slices.Max(a.Levels)
	return slices.Index(a.Levels, tasks), tasks
}

// Percentile is the number of tasks that p percent of the levels do not exceed.
func (a *Analysis) Percentile(p int) int {
	if len(a.Levels) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(a.Levels))
	return sorted[(len(sorted)-1)*p/100]
}

// Advice returns recommendations that follow from the figures.
func (a *Analysis) Advice() []string {
	var out []string
	path := a.DecisivePath().Length
	if path == 0 {
		return nil
	}
	enough := 0
	for _, r := range a.Threads {
		if float64(r.Length) <= float64(path)*1.05 && (enough == 0 || r.Threads < enough) {
			enough = r.Threads
		}
	}
	now := a.run(a.Chosen)
	switch {
	case enough == 0:
		out = append(out, fmt.Sprintf("Even %d threads are kept busy: more threads shorten the build.", a.Threads[len(a.Threads)-1].Threads))
	case enough <= a.Chosen:
		out = append(out, fmt.Sprintf("BB_NUMBER_THREADS above %d gains nothing: the longest path is the limit.", enough))
	default:
		then := a.run(enough)
		out = append(out, fmt.Sprintf("BB_NUMBER_THREADS = %d instead of %d: %s instead of %s (%s); beyond it the longest path is the limit.",
			enough, a.Chosen, a.Length(then.Length), a.Length(now.Length), formatGain(now.Length, then.Length)))
	}
	if len(a.Caches) == 3 {
		base := a.Caches[0]
		for _, c := range a.Caches[1:] {
			out = append(out, fmt.Sprintf("Shared state with %s: %s of %s tasks remain, %s instead of %s on %s (%s).",
				c.Name, number(c.Runs), number(base.Runs), a.Length(c.Length), a.Length(base.Length),
				count(a.Chosen, "thread"), formatGain(base.Length, c.Length)))
		}
	}
	if l, ok := a.heaviestRecipe(); ok {
		out = append(out, fmt.Sprintf("%s delays the build most: without it the longest path is %s shorter.", l.Recipe, a.Length(l.Gain)))
	}
	if !a.Measured {
		out = append(out, "Every task counts as one, a fetch as much as the build of a compiler: --buildstats gives times.")
	}
	if s := a.Stats; s != nil && s.Elapsed > 0 && s.CPU > 0 {
		out = append(out, fmt.Sprintf("The build kept %.1f cores busy on average: more threads gain nothing on a machine with that many cores.", s.CPU.Seconds()/s.Elapsed.Seconds()))
	}
	if s := a.Stats; s != nil && now.Length > 0 && float64(s.Elapsed) > 1.1*float64(now.Length) {
		out = append(out, fmt.Sprintf("The build took %s, %.1f times as long as simulated with %s: tasks that run together slow each other down, and bitbake needs time between them. Take simulated lengths as lower bounds.",
			clock(s.Elapsed), float64(s.Elapsed)/float64(now.Length), count(a.Chosen, "thread")))
	}
	if a.Stats != nil && a.Stats.Unknown > 0 {
		out = append(out, fmt.Sprintf("%s of %s tasks have no measurement and count as no time: take buildstats of a full build with an empty cache.",
			number(a.Stats.Unknown), number(a.Tasks)))
	}
	return out
}

// heaviestRecipe returns the recipe with the greatest gain, except the last of the path: the
// image that is built.
func (a *Analysis) heaviestRecipe() (Gain, bool) {
	steps := a.DecisivePath().Steps
	for _, l := range a.Limits {
		if l.Gain > 0 && l.Recipe != steps[len(steps)-1].Recipe {
			return l, true
		}
	}
	return Gain{}, false
}

func (a *Analysis) run(threads int) Run {
	return a.Threads[slices.IndexFunc(a.Threads, func(r Run) bool { return r.Threads == threads })]
}

// formatGain writes how much shorter a length has become.
func formatGain(was, now int64) string {
	p := 100 * (float64(was) - float64(now)) / float64(was)
	if was == 0 || p < 0.5 {
		return "no change"
	}
	return fmt.Sprintf("%.0f %% less", p)
}

// WriteText writes the analysis for people; steps bounds the rows of the path,
// 0 means all.
func (a *Analysis) WriteText(w io.Writer, steps int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s tasks of %s recipes, %s edges\n", number(a.Tasks), number(a.Recipes), number(a.Edges))
	if s := a.Stats; s != nil {
		fmt.Fprintf(&b, "buildstats %s: %s tasks ran, %s restored, %s not in them; %s of work, %s of CPU time",
			s.Build, number(s.Ran), number(s.Hits), number(s.Unknown), clock(s.Work), clock(s.CPU))
		if s.Elapsed > 0 {
			fmt.Fprintf(&b, ", %s on the clock", clock(s.Elapsed))
		}
		b.WriteByte('\n')
		if s.Failed > 0 {
			fmt.Fprintf(&b, "%s failed; their times are incomplete\n", count(s.Failed, "task"))
		}
	}
	fmt.Fprintf(&b, "\nLongest path by count: %s tasks\n", number(len(a.Count.Steps)))
	if a.Time != nil {
		fmt.Fprintf(&b, "Longest path by time: %s in %s tasks\n", clock(time.Duration(a.Time.Length)), number(len(a.Time.Steps)))
	}
	a.writePath(&b, steps)
	level, widest := a.WidestLevel()
	fmt.Fprintf(&b, "\nParallelism: %s levels, at most %s tasks at once (level %s), half of the levels have %s or fewer\n",
		number(len(a.Levels)), number(widest), number(level), number(a.Percentile(50)))
	if len(a.Levels) > 0 {
		fmt.Fprintf(&b, "  %s\n", drawSparkline(a.Levels))
	}

	b.WriteString("\nRecipes that delay the build\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "on the path\tsaves\t  recipe\n")
	for i, l := range a.Limits {
		if i == 12 || l.Gain == 0 {
			break
		}
		fmt.Fprintf(t, "%s\t%s\t  %s\n", a.Length(l.Took), a.Length(l.Gain), l.Recipe)
	}
	if err := t.Flush(); err != nil {
		return err
	}

	b.WriteString("\nSimulated builds\n")
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "threads\tlength\tbusy\t\n")
	for _, r := range a.Threads {
		mark := ""
		if r.Threads == a.Chosen {
			mark = "  <- BB_NUMBER_THREADS"
		}
		fmt.Fprintf(t, "%d\t%s\t%.0f %%\t%s\n", r.Threads, a.Length(r.Length), 100*r.Busy, mark)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nShared state, on %s\n", count(a.Chosen, "thread"))
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "tasks\trestored\tlongest path\tlength\t  the cache has\n")
	for _, c := range a.Caches {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t  %s\n", number(c.Runs), number(c.Restored), a.Length(c.Path), a.Length(c.Length), c.Name)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteByte('\n')
	for _, line := range a.Advice() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	_, err := io.WriteString(w, trimLines(b.String()))
	return err
}

// trimLines removes the blanks that tables leave at the ends of lines.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}

func (a *Analysis) writePath(b *strings.Builder, most int) {
	path := a.DecisivePath()
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, s := range path.Steps {
		if most > 0 && i == most && len(path.Steps) > most {
			fmt.Fprintf(t, "\t\t  … %d more, see --steps 0\n", len(path.Steps)-most)
			break
		}
		if a.Measured {
			fmt.Fprintf(t, "%d\t%s\t  %s\n", i+1, clock(time.Duration(s.Took)), s.Task)
		} else {
			fmt.Fprintf(t, "%d\t  %s\n", i+1, s.Task)
		}
	}
	_ = t.Flush() // into memory
}

// drawSparkline draws the levels in at most 72 characters.
func drawSparkline(levels []int) string {
	const width = 72
	bars := []rune("▁▂▃▄▅▆▇█")
	n := min(width, len(levels))
	most := slices.Max(levels)
	var b strings.Builder
	for i := range n {
		part := levels[i*len(levels)/n : max((i+1)*len(levels)/n, i*len(levels)/n+1)]
		b.WriteRune(bars[(slices.Max(part)*(len(bars)-1)+most-1)/max(most, 1)])
	}
	return b.String()
}
