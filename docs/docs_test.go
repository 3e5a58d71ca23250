// Package docs holds the pages against the tree that they speak of.
package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheReasonForEachDependencyIsGiven(t *testing.T) {
	page := read(t, "dependencies.md")
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`) // others end in "// indirect"
	for _, file := range []string{"../go.mod", "../tests/grafana/go.mod"} {
		for _, m := range direct.FindAllStringSubmatch(read(t, file), -1) {
			if !strings.Contains(page, "`"+m[1]) {
				t.Errorf("%s requires %s, and dependencies.md does not say why", file, m[1])
			}
		}
	}
}

// A package is named by its path, or behind one that is: "`runtime/device/enforce`, `planfile`".
func TestTheMapShowsEveryPackage(t *testing.T) {
	page := read(t, "architecture.md")
	for _, top := range []string{"cmd", "schema", "compiler", "emitters", "runtime", "internal", "bench"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			sources, err := filepath.Glob(filepath.Join(p, "*.go"))
			if err != nil {
				return err
			}
			sources = slices.DeleteFunc(sources, func(s string) bool { return strings.HasSuffix(s, "_test.go") })
			name := strings.TrimPrefix(filepath.ToSlash(p), "../")
			if len(sources) > 0 && !shown(page, name) {
				t.Errorf("architecture.md does not show %s", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func shown(page, name string) bool {
	folder, last := path.Split(name)
	if strings.Contains(page, "`"+name+"`") || strings.Contains(page, "`"+folder+"*`") || folder == "emitters/" {
		return true // of emitters there is one for each artefact
	}
	return slices.ContainsFunc(strings.Split(page, "\n"), func(row string) bool {
		return strings.HasPrefix(row, "| `"+folder) && strings.Contains(row, "`"+last+"`")
	})
}

func TestLinksLeadSomewhere(t *testing.T) {
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

// anchors are what GitHub makes of headings.
func anchors(page string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		out = append(out, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}
