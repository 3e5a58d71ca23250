package browser

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/compiler/report/tasks"
)

// layer builds the example with texts replaced: change holds pairs of old and new.
func layer(t *testing.T, label string, change ...string) review.Side {
	t.Helper()
	const example = "../../examples/video-analytics"
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(example, "config.cue"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(text, change[i]) {
			t.Fatalf("the example has no %q any more", change[i])
		}
		text = strings.Replace(text, change[i], change[i+1], 1)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.cue"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := compiler.Options{Runtime: "../../golden/runtime"}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	layers := p.Layers(compiler.Selection{})
	if p.Report.Failed() || len(layers) != 1 {
		t.Fatalf("%s does not build: %+v", label, p.Report)
	}
	return review.Side{Label: label, Files: layers[0].Files, Origins: layers[0].Origins}
}

// second is a second device with the same profiles.
const second = "\ttargets: \"spare\": {board: \"orin-nano-8gb\", machine: \"p3768-0000-p3767-0003\", release: \"scarthgap\", use: [\"quiet-box\", \"network\", \"inference\"]}\n"

// A review with changes of every kind, of two devices.
func reviewPage(t *testing.T) []byte {
	begin := []string{"\t// For every device that must not drop frames.", second + "\t// For every device that must not drop frames."}
	was := layer(t, "main", begin...)
	now := layer(t, "this branch", append(begin,
		"isolate: [4, 5]", "isolate: [5]", "cpus: [4, 5]", "cpus: [5]",
		`size: "2GiB", algorithm: "lz4"`, `size: "3GiB", algorithm: "zstd"`, `"vm.swappiness":             10`, `"vm.swappiness":             60`,
		`gpu: {min: "306MHz", max: "918MHz"}`, `gpu: {min: "306MHz", max: "816MHz"}`,
		`minFps: 30`, `minFps: 25`, `memory: "1GiB"`, `memory: "2GiB"`, `perf: "install"`, `htop: "install"`, `modules: sch_fq: "load"`, `modules: {sch_fq: "load", nouveau: "blacklist"}`,
		`runtime: cuda: true`, `runtime: keys: release: "RWSab7fjgFtOEj6oTTo4ynhSTGPkjCXYHgljsZGLzQmiZEXsvRKyw/ro"`)...)
	r, err := review.Compare(was, now, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Targets) != 2 || len(r.Shared) < 10 {
		t.Fatalf("%d targets, %d changes in both", len(r.Targets), len(r.Shared))
	}
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tasksPage(t *testing.T) []byte {
	f, err := os.Open("../../compiler/report/tasks/testdata/task-depends.dot")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := tasks.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := g.Analyse(nil, 8).WriteHTML(&b, "task-depends.dot"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What a person saw of a report.
type read struct {
	Complaints, Elsewhere, Nameless []string
	Misfits, Faint                  map[string][]string
	Light, Dark, Outline            string
	Load, Paint                     float64 // ms
	Stops, Keys                     []string
	Opened, Closed                  bool
	Revealed                        *bool // nil when the page lists no files
}

func TestReportsRenderInChromium(t *testing.T) {
	for name, page := range map[string]func(*testing.T) []byte{"review": reviewPage, "tasks": tasksPage} {
		t.Run(name, func(t *testing.T) {
			html := page(t)
			file := filepath.Join(t.TempDir(), name+".html")
			if err := os.WriteFile(file, html, 0o644); err != nil {
				t.Fatal(err)
			}
			var s read
			runBrowserScript(t, &s, "report.cjs", file, name, screenshots(t))
			if len(s.Complaints)+len(s.Elsewhere)+len(s.Nameless) > 0 {
				t.Errorf("Chromium complains of %q; asked elsewhere: %q; without a name: %q", s.Complaints, s.Elsewhere, s.Nameless)
			}
			if len(s.Misfits) != 4 || len(s.Faint) != 4 {
				t.Errorf("looked at %d and %d pages", len(s.Misfits), len(s.Faint))
			}
			for where := range s.Misfits {
				if len(s.Misfits[where])+len(s.Faint[where]) > 0 {
					t.Errorf("%s: does not fit: %q; hard to read: %q", where, s.Misfits[where], s.Faint[where])
				}
			}
			// Tab and Enter skip the contents; j goes to each stop and stays at the last one, k
			// goes back.
			want := append([]string{"skip", "content"}, s.Stops...)
			want = append(want, s.Stops[len(s.Stops)-1], s.Stops[max(0, len(s.Stops)-2)])
			if len(s.Stops) < 3 || !slices.Equal(s.Keys, want) || s.Outline == "none" || s.Outline == "" {
				t.Errorf("keys lead to %q, want %q; outline %q", s.Keys, want, s.Outline)
			}
			if !s.Opened || !s.Closed || (name == "review") != (s.Revealed != nil) || s.Revealed != nil && !*s.Revealed {
				t.Errorf("files: all open %t, all shut %t, opened by its link %v", s.Opened, s.Closed, s.Revealed)
			}
			if s.Light == s.Dark || s.Light == "" {
				t.Errorf("light %q, dark %q", s.Light, s.Dark)
			}
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := z.Write(html); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("saw: %s: %d bytes, %d compressed; first painted after %.0f ms, loaded after %.0f ms; %d stops by keyboard, light %q, dark %q",
				name, len(html), packed.Len(), s.Paint, s.Load, len(s.Stops), s.Light, s.Dark)
		})
	}
}
