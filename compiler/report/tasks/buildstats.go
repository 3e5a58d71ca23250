package tasks

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errNoStats means that a folder holds no buildstats.
var errNoStats = errors.New("no buildstats")

// maxStats bounds what is read of one file of buildstats, in bytes; bitbake
// writes about one kilobyte.
const maxStats = 64 << 10

// Stats counts how measurements and graph match.
type Stats struct {
	Build     string        // folder of the build that was read, bitbake's time stamp
	Elapsed   time.Duration // of the whole build, 0 where not written
	Ran       int           // tasks with a measurement
	Hits      int           // tasks that were restored from shared state instead
	Unknown   int           // tasks of the graph without either
	Strangers int           // recipes of the buildstats that the graph lacks
	Failed    int           // tasks that failed: their time counts, but they did not finish
	Work      time.Duration // sum over the tasks
	CPU       time.Duration
}

// Measure reads the buildstats of a build (the folder bitbake names after the
// time, or tmp/buildstats, of which the newest build is taken) and gives the
// tasks their times.
//
// The format is that of buildstats.bbclass: a folder for each recipe named
// PN-[PE_]PV-PR, in it a file for each task. CPU time is the sum of the rusage
// lines, in seconds; the lines "utime" and "stime" beside them are clock ticks.
func (g *Graph) Measure(fsys fs.FS) (*Stats, error) {
	dir, err := newestBuild(fsys)
	if err != nil {
		return nil, err
	}
	s := &Stats{Build: dir}
	if head, err := read(fsys, path.Join(dir, "build_stats")); err == nil {
		s.Elapsed = parse(head).took
	}
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("reading buildstats: %w", err)
	}
	find := g.finder()
	tasks := g.groupByRecipe()
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		recipes := find(e.Name())
		if len(recipes) == 0 {
			s.Strangers++
			continue
		}
		for _, r := range recipes {
			for _, t := range tasks[r] {
				if err := g.measure(fsys, path.Join(dir, e.Name()), t, s); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, t := range g.Tasks {
		if !t.Ran && !t.Hit {
			s.Unknown++
		}
		s.Work += t.Took
		s.CPU += t.CPU
	}
	if s.Ran+s.Hits == 0 {
		return nil, fmt.Errorf("%w of this graph: %s has none of its tasks; take both from the same build", errNoStats, dir)
	}
	return s, nil
}

// measure reads what the buildstats have of one task.
func (g *Graph) measure(fsys fs.FS, dir string, id int32, s *Stats) error {
	t := &g.Tasks[id]
	for _, variant := range []string{"", "_setscene"} {
		data, err := read(fsys, path.Join(dir, t.Kind+variant))
		if errors.Is(err, fs.ErrNotExist) || t.Kind == "" {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading buildstats: %w", err)
		}
		m := parse(data)
		if !m.ok {
			continue
		}
		if m.failed {
			s.Failed++
		}
		t.Took, t.CPU = m.took, m.cpu
		if variant == "" {
			t.Ran = true
			s.Ran++
		} else {
			t.Hit = true
			s.Hits++
		}
		return nil
	}
	return nil
}

func read(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxStats {
		return nil, fmt.Errorf("%s: not a file of at most %d KiB", name, maxStats>>10)
	}
	return fs.ReadFile(fsys, name)
}

// newestBuild finds the folder of one build: this one, or the last by name below it.
func newestBuild(fsys fs.FS) (string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return "", fmt.Errorf("reading buildstats: %w", err)
	}
	if _, err := fs.Stat(fsys, "build_stats"); err == nil {
		return ".", nil
	}
	for _, e := range slices.Backward(entries) {
		if _, err := fs.Stat(fsys, path.Join(e.Name(), "build_stats")); e.IsDir() && err == nil {
			return e.Name(), nil
		}
	}
	for _, e := range entries { // one build without its head, as copied by hand
		tasks, err := fs.Glob(fsys, path.Join(escape(e.Name()), "do_*"))
		if e.IsDir() && err == nil && len(tasks) > 0 {
			return ".", nil
		}
	}
	return "", fmt.Errorf("%w: no builds here; give tmp/buildstats, which bitbake fills when USER_CLASSES has \"buildstats\"", errNoStats)
}

// escape keeps a folder's name from being a pattern.
func escape(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

func (g *Graph) groupByRecipe() [][]int32 {
	out := make([][]int32, len(g.Recipes))
	for i, t := range g.Tasks {
		out[t.Recipe] = append(out[t.Recipe], int32(i))
	}
	return out
}

// finder maps folders of buildstats to recipes: by PF where the graph has
// versions, otherwise by the longest recipe name the folder begins with.
func (g *Graph) finder() func(folder string) []int32 {
	exact, loose := map[string][]int32{}, map[string][]int32{}
	for i, r := range g.Recipes {
		pn := r.Name
		if parts := strings.SplitN(pn, ":", 3); len(parts) == 3 && parts[0] == "mc" {
			pn = parts[2]
		}
		if r.Version != "" {
			pf := pn + "-" + strings.Replace(r.Version, ":", "_", 1)
			exact[pf] = append(exact[pf], int32(i))
		}
		loose[pn] = append(loose[pn], int32(i))
	}
	return func(folder string) []int32 {
		if r, ok := exact[folder]; ok {
			return r
		}
		for i := len(folder) - 1; i > 0; i-- {
			if folder[i] != '-' || i+1 == len(folder) {
				continue
			}
			// What follows the name is a version, not the rest of a longer name.
			if c := folder[i+1]; c < '0' || c > '9' {
				if !strings.HasPrefix(folder[i+1:], "git") {
					continue
				}
			}
			if r, ok := loose[folder[:i]]; ok {
				return r
			}
		}
		return nil
	}
}

type measured struct {
	ok, failed bool
	took, cpu  time.Duration
}

func parse(data []byte) measured {
	var m measured
	var started, ended float64
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch key {
		case "Elapsed time":
			m.took, m.ok = seconds(strings.TrimSuffix(value, " seconds"))
		case "Started":
			started, _ = strconv.ParseFloat(value, 64)
		case "Ended":
			ended, _ = strconv.ParseFloat(value, 64)
		case "Status":
			m.failed = strings.HasPrefix(value, "FAILED")
		case "rusage ru_utime", "rusage ru_stime", "Child rusage ru_utime", "Child rusage ru_stime":
			d, _ := seconds(value)
			m.cpu += d
		}
	}
	if !m.ok && ended > started && started > 0 {
		m.took, m.ok = seconds(strconv.FormatFloat(ended-started, 'f', -1, 64))
	}
	return m
}

// seconds reads a duration; what cannot be one (negative, a month) is refused.
func seconds(text string) (time.Duration, bool) {
	f, err := strconv.ParseFloat(text, 64)
	const month = 31 * 24 * 3600
	if err != nil || !(f >= 0 && f < month) {
		return 0, false
	}
	return time.Duration(f * float64(time.Second)), true
}
