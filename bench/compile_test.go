package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkBuildAgainstCueExport compares building the layer of an example with `cue export`
// of the same configuration and schema. The two run in turn. The ratio is that of the median
// CPU times.
func BenchmarkBuildAgainstCueExport(b *testing.B) {
	yoctune, cue := tool(b, "./cmd/yoctune", "-ldflags=-s -w"), cueTool(b)
	example := filepath.Join(repo(b), "examples", "video-analytics")
	module := cueModule(b, example)
	// A new directory for each run, removed at the end: ext4 avoids recently deleted
	// inodes, and the search would count towards the next build.
	work, n := b.TempDir(), 0
	ours, theirs := series(b, func() usage {
		n++
		return run(b, "", []int{0}, yoctune, "build", example, "-o", filepath.Join(work, strconv.Itoa(n)), "--runtime", programs(b))
	}, func() usage {
		return run(b, module, []int{0}, cue, "export", ".")
	})
	report(b, ours, "cue export", theirs)
}

// BenchmarkVetAgainstCueVet compares checking an example with `cue vet`.
func BenchmarkVetAgainstCueVet(b *testing.B) {
	yoctune, cue := tool(b, "./cmd/yoctune", "-ldflags=-s -w"), cueTool(b)
	example := filepath.Join(repo(b), "examples", "video-analytics")
	module := cueModule(b, example)
	ours, theirs := series(b, func() usage {
		return run(b, "", []int{0}, yoctune, "vet", example)
	}, func() usage {
		return run(b, module, []int{0}, cue, "vet", "-c", ".")
	})
	report(b, ours, "cue vet", theirs)
}

// BenchmarkVet100Targets loads, resolves and checks a fleet: 100 targets of one
// example.
func BenchmarkVet100Targets(b *testing.B) { benchmarkCommand(b, "vet", 100) }

func BenchmarkVet1000Targets(b *testing.B) { benchmarkCommand(b, "vet", 1000) }

// BenchmarkBuild100Targets also writes the layer.
func BenchmarkBuild100Targets(b *testing.B) { benchmarkCommand(b, "build", 100) }

// BenchmarkCheck1000Targets compares a layer with what a build would write.
func BenchmarkCheck1000Targets(b *testing.B) { benchmarkCommand(b, "build --check", 1000) }

// programs returns the folder of stand-ins of the programs that a layer contains.
func programs(tb testing.TB) string { return filepath.Join(repo(tb), "golden", "runtime") }

func benchmarkCommand(b *testing.B, command string, n int) {
	yoctune := tool(b, "./cmd/yoctune", "-ldflags=-s -w")
	project, work, built := fleet(b, n), b.TempDir(), 0
	build := func(out string, more ...string) []string {
		return append([]string{yoctune, "build", project, "-o", filepath.Join(work, out), "--runtime", programs(b)}, more...)
	}
	if command == "build --check" {
		run(b, "", []int{0}, build("checked")...)
	}
	b.ResetTimer()
	var best usage
	for b.Loop() {
		built++
		argv := []string{yoctune, command, project}
		switch command {
		case "build":
			argv = build(strconv.Itoa(built))
		case "build --check":
			argv = build("checked", "--check")
		}
		if u := run(b, "", []int{0}, argv...); best.cpu == 0 || u.cpu < best.cpu {
			best = u
		}
	}
	b.ReportMetric(float64(best.cpu)/1e6, "least-cpu-ms")
	b.ReportMetric(float64(best.rss)/1e6, "peak-MB")
}

// fleet writes a project with n targets for n machines. They share the example's profiles and
// differ in one field.
func fleet(tb testing.TB, n int) string {
	tb.Helper()
	src := filepath.Join(repo(tb), "examples", "video-analytics", "config.cue")
	raw, err := os.ReadFile(src)
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(src))); err != nil {
		tb.Fatal(err)
	}
	head, _, ok := strings.Cut(string(raw), "\ttargets:")
	if !ok {
		tb.Fatal("the example has no targets: at one tab")
	}
	_, rest, ok := strings.Cut(string(raw), "\n\tprofiles:")
	if !ok {
		tb.Fatal("the example has no profiles: at one tab")
	}
	var targets strings.Builder
	targets.WriteString("\ttargets: {\n")
	machines := make([]string, 0, n)
	for i := range n {
		machines = append(machines, fmt.Sprintf("%q", fmt.Sprintf("unit-%04d", i)))
		fmt.Fprintf(&targets, "\t\t\"unit-%04d\": {board: \"carrier\", release: \"scarthgap\", machine: \"unit-%04d\", use: %s, sysctl: \"vm.vfs_cache_pressure\": %d}\n", i, i, findUse(tb, string(raw)), 50+i)
	}
	fmt.Fprintf(&targets, "\t}\n\n\tboards: carrier: {base: \"orin-nano-8gb\", machines: scarthgap: [%s]}\n\n\tprofiles:", strings.Join(machines, ", "))
	if err := os.WriteFile(filepath.Join(dir, "config.cue"), []byte(head+targets.String()+rest), 0o644); err != nil {
		tb.Fatal(err)
	}
	return dir
}

func findUse(tb testing.TB, config string) string {
	tb.Helper()
	_, rest, ok := strings.Cut(config, "use:")
	if !ok {
		tb.Fatal("the example uses no profile")
	}
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		tb.Fatal("the example's use: has no end")
	}
	return strings.TrimSpace(rest[:end+1])
}

// series runs a and b in turn, so that noise affects both equally.
func series(tb *testing.B, a, b func() usage) (usage, usage) {
	a() // fill the page cache
	b()
	tb.ResetTimer()
	var as, bs []usage
	for tb.Loop() {
		as, bs = append(as, a()), append(bs, b())
	}
	tb.StopTimer()
	pick := func(s []usage) usage {
		i := 0
		return median(len(s), func() usage { u := s[i]; i++; return u })
	}
	return pick(as), pick(bs)
}

func report(b *testing.B, ours usage, reference string, theirs usage) {
	b.ReportMetric(0, "ns/op") // the time of a pair is meaningless
	b.ReportMetric(float64(ours.cpu)/float64(time.Millisecond), "cpu-ms")
	b.ReportMetric(float64(theirs.cpu)/float64(time.Millisecond), "reference-cpu-ms")
	b.ReportMetric(float64(ours.cpu)/float64(theirs.cpu), "ratio")
	b.Log("\n" + show("yoctune", ours) + "\n" + show(reference, theirs))
}
