// Package docs compares the pages with the tree that they describe.
package docs

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// -update rewrites the map of packages in architecture.md.
var update = flag.Bool("update", false, "rewrite the map of packages in architecture.md")

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDependenciesHaveReasons(t *testing.T) {
	page := read(t, "dependencies.md")
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`) // others end in "// indirect"
	for _, file := range []string{"../go.mod", "../tests/grafana/go.mod"} {
		for _, m := range direct.FindAllStringSubmatch(read(t, file), -1) {
			if !strings.Contains(page, "`"+m[1]) {
				t.Errorf("%s requires %s, but dependencies.md gives no reason", file, m[1])
			}
		}
	}
}

// The map in architecture.md has a table below each mark "<!-- packages: FOLDER... -->",
// with the first sentence of each package's own comment. A package is listed below the mark
// that names the longest part of its path.
func TestTheMapShowsEveryPackage(t *testing.T) {
	page := read(t, "architecture.md")
	mark := regexp.MustCompile(`(?s)<!-- packages: ([^>]*) -->\n.*?<!-- end -->`)
	tables := map[string]*strings.Builder{} // by folder; folders of one mark share theirs
	for _, m := range mark.FindAllStringSubmatch(page, -1) {
		table := &strings.Builder{}
		table.WriteString("\n| package | |\n|---|---|\n")
		for _, folder := range strings.Fields(m[1]) {
			tables[folder] = table
		}
	}
	for _, p := range packages(t) {
		folder := p.path
		for tables[folder] == nil && folder != "." {
			folder = path.Dir(folder)
		}
		if folder == "." {
			t.Errorf("architecture.md has no mark for %s", p.path)
			continue
		}
		if p.purpose == "" {
			t.Errorf("%s has no package comment", p.path)
		}
		fmt.Fprintf(tables[folder], "| `%s` | %s |\n", p.path, p.purpose)
	}
	for folder, table := range tables {
		if !strings.Contains(table.String(), "`"+folder) {
			t.Errorf("architecture.md has a mark for %s, which has no package", folder)
		}
	}
	want := mark.ReplaceAllStringFunc(page, func(old string) string {
		folders := mark.FindStringSubmatch(old)[1]
		return "<!-- packages: " + folders + " -->\n" + tables[strings.Fields(folders)[0]].String() + "\n<!-- end -->"
	})
	if *update {
		if err := os.WriteFile("architecture.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if page != want {
		t.Error("the map of packages in architecture.md is not up to date: make update")
	}
}

type pkg struct{ path, purpose string }

// packages lists the packages that are not only tests, with the first sentence of their comments.
func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", "{{if or .GoFiles .CgoFiles}}{{.ImportPath}}\t{{.Doc}}{{end}}", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.Bytes())
	}
	subject := regexp.MustCompile(`^(Package|Command) \S+ `)
	for line := range strings.Lines(string(out)) {
		name, doc, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue // a test
		}
		doc = strings.TrimSuffix(subject.ReplaceAllString(doc, ""), ":")
		doc = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.TrimSuffix(doc, "."))
		all = append(all, pkg{strings.TrimPrefix(name, "github.com/yoctune/yoctune/"), doc})
	}
	return all
}

// scripts/update.sh runs every generator and every test that rewrites files.
func TestMakeUpdateRunsEveryGenerator(t *testing.T) {
	script := read(t, "../scripts/update.sh")
	marked := regexp.MustCompile(`(?m)^// Code generated .*by go (?:run|test) \./(\S+)`)
	rewriter := regexp.MustCompile(`flag\.Bool\("update"`)
	found := 0
	want := func(file, dir string) {
		found++
		if !strings.Contains(script, dir+" ") {
			t.Errorf("%s: scripts/update.sh does not run %s", file, dir)
		}
	}
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "build" || d.Name() == ".git" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		text := read(t, p)
		file := strings.TrimPrefix(filepath.ToSlash(p), "../")
		if m := marked.FindStringSubmatch(text); m != nil {
			want(file, m[1])
		}
		if dir := path.Dir(file); rewriter.MatchString(text) {
			want(file, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 8 {
		t.Errorf("only %d generators found: have they changed their form?", found)
	}
}

func TestLinksResolve(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"} {
		pages = append(pages, filepath.Join("..", top))
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s: %s has no such heading", page, m[1])
			}
		}
	}
	readme := read(t, "../README.md")
	for _, page := range pages {
		if !strings.Contains(page, "..") && !strings.Contains(readme, "docs/"+page) {
			t.Errorf("README.md does not lead to docs/%s", page)
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors that GitHub makes of headings.
func anchors(page string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		out = append(out, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}
