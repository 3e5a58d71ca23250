package checklayer

import (
	"bufio"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// Readers of what bitbake and its tools print. They take output as it was seen
// with bitbake 2.8 and 2.18 and skip unknown lines.

// maxErrorLines bounds the excerpt of one step; the log has the rest.
const maxErrorLines = 40

var logPrefix = lazyregexp.New(`^(NOTE|WARNING|ERROR|INFO|DEBUG|FATAL|Summary|Loading|Loaded|Parsing|Build Configuration)\b`)

// maxContinuation bounds what one error may drag along: bitbake lists every
// folder it searched for a file.
const maxContinuation = 5

var pythonNoise = lazyregexp.New(`^\s*(Traceback \(most recent call last\):|File ".*", line \d+|>?\s*raise \w+|[\^~]+)`)

// errorsIn returns the ERROR entries of bitbake's output, each with the lines
// that continue it, without repetitions and without the Python that raised it.
func errorsIn(out string) []string {
	var found []string
	in, more := false, 0
	for _, s := range strings.Split(out, "\n") {
		s = strings.TrimRight(s, " \t\r")
		switch {
		case strings.HasPrefix(s, "ERROR:"), strings.HasPrefix(s, "FATAL:"):
			in, more = !slices.Contains(found, s), 0
			if in {
				found = append(found, s)
			}
		case logPrefix.MatchString(s) || s == "":
			in = false
		case in && !pythonNoise.MatchString(s):
			if more++; more <= maxContinuation {
				found = append(found, "  "+strings.TrimSpace(s))
			}
		}
		if len(found) >= maxErrorLines {
			return append(found, "… more in the log")
		}
	}
	if len(found) > 1 {
		const halted = "ERROR: Parsing halted due to errors, see error messages above"
		found = slices.DeleteFunc(found, func(s string) bool { return s == halted })
	}
	return found
}

// lastLines returns the last lines that are not empty, for a program that failed
// without an ERROR.
func lastLines(out string, n int) []string {
	var lines []string
	for _, s := range strings.Split(out, "\n") {
		if s = strings.TrimRight(s, " \t\r"); s != "" {
			lines = append(lines, s)
		}
	}
	return lines[max(0, len(lines)-n):]
}

var notFoundFile = lazyregexp.New(`(?m)^WARNING: .*Unable to get checksum for .* SRC_URI entry .*: file could not be found.*$`)

// fatalWarnings are the warnings that mean a build would fail later.
func fatalWarnings(out string) []string {
	return notFoundFile.FindAllString(out, -1)
}

var appendedRecipe = lazyregexp.New(`^(\S+)\.bb( \(skipped\))?:$`)

// appendedTo is one recipe of `bitbake-layers show-appends`.
type appendedTo struct {
	Recipe  string `json:"recipe"`  // file name without .bb
	Skipped bool   `json:"skipped"` // the recipe is not available for this machine
}

// showAppends reads `bitbake-layers show-appends`: the path of each append and
// the recipes it applies to.
func showAppends(out string) map[string][]appendedTo {
	found := map[string][]appendedTo{}
	var now appendedTo
	for _, s := range strings.Split(out, "\n") {
		if m := appendedRecipe.FindStringSubmatch(s); m != nil {
			now = appendedTo{Recipe: m[1], Skipped: m[2] != ""}
		} else if p, ok := strings.CutPrefix(s, "  "); ok && strings.HasSuffix(p, ".bbappend") && now.Recipe != "" {
			found[p] = append(found[p], now)
		}
	}
	return found
}

// unresolved is a name that `bitbake -S none` could not resolve.
type unresolved struct {
	Name    string
	Runtime bool   // a package, not a recipe
	By      string // files that ask for it, as bitbake lists them
}

var (
	nothingProvides = lazyregexp.New(`Nothing (R?)PROVIDES '([^']+)'(?: \(but (.*?) R?DEPENDS on)?`)
	missingTask     = lazyregexp.New(`depends upon non-existent task (do_\w+) in (\S+)`)
)

// parseUnresolved lists what bitbake found no provider for, in order, once each.
func parseUnresolved(out string) []unresolved {
	var found []unresolved
	for _, m := range nothingProvides.FindAllStringSubmatch(out, -1) {
		u := unresolved{Name: m[2], Runtime: m[1] == "R", By: m[3]}
		if !slices.Contains(found, u) {
			found = append(found, u)
		}
	}
	return found
}

// missingTasksIn lists tasks that recipes below dir would need.
func missingTasksIn(out, dir string) []string {
	var found []string
	for _, m := range missingTask.FindAllStringSubmatch(out, -1) {
		if strings.Contains(m[2], dir) && !slices.Contains(found, m[1]) {
			found = append(found, m[1])
		}
	}
	return found
}

// environment reads `bitbake -e`: NAME="value", with quotes and dollars escaped
// and each line but the last ended by a backslash. Functions are passed over.
func environment(out string) map[string]string {
	values := map[string]string{}
	sc := bufio.NewScanner(strings.NewReader(out))
	sc.Buffer(make([]byte, 0, 1<<16), 1<<26)
	for sc.Scan() {
		s := strings.TrimPrefix(sc.Text(), "export ")
		name, rest, ok := strings.Cut(s, `="`)
		if !ok || name == "" || strings.ContainsAny(name, "# \t\"'") {
			continue
		}
		var b strings.Builder
		for {
			end := strings.HasSuffix(rest, `"`) && !strings.HasSuffix(rest, `\"`)
			if end {
				b.WriteString(strings.TrimSuffix(rest, `"`))
				break
			}
			b.WriteString(strings.TrimSuffix(rest, `\`))
			b.WriteByte('\n')
			if !sc.Scan() {
				break
			}
			rest = sc.Text()
		}
		values[name] = strings.NewReplacer(`\"`, `"`, `\$`, `$`).Replace(b.String())
	}
	return values
}

var (
	layerTest   = lazyregexp.New(`^INFO: (test_\w+) \(`)
	layerResult = lazyregexp.New(`^INFO:  \.\.\. (.+)$`)
	layerState  = lazyregexp.New(`^INFO: (\S+) \.\.\. (PASS|FAIL|SKIPPED)(.*)$`)
)

// checkedLayer is the result of yocto-check-layer.
type checkedLayer struct {
	Tests  map[string]string // name -> ok, FAIL, ERROR, unexpected success, skipped …
	Result string            // PASS, FAIL, SKIPPED, "" when it did not get that far
	Errors []string
}

// checkLayerOutput reads yocto-check-layer's output.
func checkLayerOutput(out string) checkedLayer {
	c := checkedLayer{Tests: map[string]string{}}
	test := ""
	for _, s := range strings.Split(out, "\n") {
		if m := layerTest.FindStringSubmatch(s); m != nil {
			test = m[1]
		} else if m := layerResult.FindStringSubmatch(s); m != nil && test != "" {
			c.Tests[test], test = m[1], ""
		} else if m := layerState.FindStringSubmatch(s); m != nil && m[1] != "" {
			c.Result = m[2]
			if m[2] != Pass && m[3] != "" {
				c.Errors = append(c.Errors, strings.TrimPrefix(s, "INFO: "))
			}
		}
	}
	// A failed test is explained between its headline and the next rule.
	in := false
	for _, s := range strings.Split(out, "\n") {
		s = strings.TrimRight(strings.TrimPrefix(s, "INFO: "), " \t\r")
		switch {
		case strings.HasPrefix(s, "FAIL: test_"), strings.HasPrefix(s, "ERROR: test_"):
			in = true
			c.Errors = append(c.Errors, s)
		case strings.HasPrefix(s, "====") || strings.HasPrefix(s, "Ran ") || strings.HasPrefix(s, "FAILED") || s == "Stdout:":
			in = false
		case !in || s == "" || strings.HasPrefix(s, "----") || strings.HasPrefix(s, "Traceback") || strings.HasPrefix(s, "  File ") || strings.HasPrefix(s, "    ") ||
			(logPrefix.MatchString(s) && !strings.HasPrefix(s, "ERROR")) || strings.HasPrefix(s, "Consider defining"):
			// neither the Python of the test tool nor bitbake's chatter explains
		case len(c.Errors) < maxErrorLines:
			c.Errors = append(c.Errors, "  "+strings.TrimSpace(s))
		}
	}
	return c
}

var parsedLine = lazyregexp.New(`Parsing of (\d+) \.bb files complete \((\d+) cached, (\d+) parsed\)\. (\d+) targets, (\d+) skipped, (\d+) masked, (\d+) errors`)

// parsedIn returns bitbake's own count of what it parsed.
func parsedIn(out string) string {
	m := parsedLine.FindStringSubmatch(out)
	if m == nil {
		return ""
	}
	return m[1] + " recipes, " + m[4] + " targets, " + m[5] + " skipped, " + m[6] + " masked"
}
