// Package guide runs the commands of README.md, docs/guide.md, docs/pipelines.md, docs/models.md and docs/serve.md in an empty
// folder, with nothing but the installed programs, and compares their output with the pages.
//
// YOCTUNE_CLEAN_ROOT names a root file system in which the packages are installed; the commands
// then run in it. Otherwise the programs are built and laid out as the packages do.
package guide

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/tests/models"
)

// step is a block of the page: a file to write, or commands to run.
type step struct {
	line     int
	file     string // to write
	text     string
	commands []command
	exit     int // of the last command
}

type command struct {
	line int
	text string
	want []string
}

var exitCode = regexp.MustCompile(`exit=([0-9]+)`)

func parseSteps(text string) ([]step, error) {
	var out []step
	var current *step
	file := ""
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case current == nil && isFence:
			current = &step{line: i + 1}
			switch {
			case strings.HasPrefix(fence, "console"):
				if m := exitCode.FindStringSubmatch(fence); m != nil {
					current.exit, _ = strconv.Atoi(m[1])
				}
			case file != "":
				current.file, file = file, ""
			default:
				current.line = 0 // shown only
			}
		case current != nil && isFence:
			if current.line > 0 {
				out = append(out, *current)
			}
			current = nil
		case current == nil:
			if name, ok := strings.CutPrefix(line, "<!-- write: "); ok {
				file = strings.TrimSuffix(name, " -->")
			}
		case current.file != "":
			current.text += line + "\n"
		case current.line > 0:
			if text, ok := strings.CutPrefix(line, "$ "); ok {
				current.commands = append(current.commands, command{line: i + 1, text: text})
			} else if n := len(current.commands); n > 0 {
				current.commands[n-1].want = append(current.commands[n-1].want, line)
			}
		}
	}
	if current != nil {
		return nil, fmt.Errorf("the block of line %d has no end", current.line)
	}
	return out, nil
}

// matchesPage compares output with the text of the page, in which "…" stands for any text and, on its
// own line, for any lines.
func matchesPage(want []string, got string) bool {
	if len(want) == 0 {
		return true
	}
	if got != "" && !strings.HasSuffix(got, "\n") {
		got += "\n" // a kernel file may lack the final newline
	}
	var b strings.Builder
	b.WriteString(`^`)
	for _, line := range want {
		if line == "…" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", `.*`) + `\n`)
	}
	b.WriteString(`$`)
	return regexp.MustCompile(b.String()).MatchString(got)
}

func TestREADMECommandsWork(t *testing.T) { runPage(t, "README.md", 8) }

func TestGuideCommandsWork(t *testing.T) { runPage(t, "docs/guide.md", 15) }

// Commands that the test cannot run say what they need.
func TestEveryCommandIsRunOrNeedsSomething(t *testing.T) {
	fence := regexp.MustCompile("(?m)^(.*)\n```(sh|bash|shell)\n")
	for _, page := range []string{"README.md", "docs/guide.md", "docs/install.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(m[1], "<!-- needs: ") {
				t.Errorf("%s: a block of commands after %q is neither run nor marked", page, m[1])
			}
		}
	}
}

func TestPipelinesPageCommandsWork(t *testing.T) {
	models.Dir(t) // skips with the reason when they are missing
	runPage(t, "docs/pipelines.md", 8, "YOCTUNE_ORT_LIBRARY="+models.Library(t))
}

func TestModelsPageCommandsWork(t *testing.T) {
	runPage(t, "docs/models.md", 8, "XDG_CACHE_HOME="+models.Python(t)) // its ONNX Runtime is that of this environment
}

func TestServePageCommandsWork(t *testing.T) {
	models.Dir(t) // skips with the reason when they are missing
	runPage(t, "docs/serve.md", 9)
}

// runPage writes the files and runs the commands of a page, which must have this many commands.
func runPage(t *testing.T, page string, least int, variables ...string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseSteps(string(text))
	if err != nil {
		t.Fatal(err)
	}
	in := install(t, root)
	if page == "docs/pipelines.md" || page == "docs/serve.md" { // their models and examples are in the checkout
		variables = append(variables, "YOCTUNE="+root)
	}
	in.variables = append(variables, in.variables...)
	ran := 0
	for _, s := range all {
		if s.file != "" {
			name := filepath.Join(in.root, in.dir, s.file)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(s.text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for i, c := range s.commands {
			want := 0
			if i == len(s.commands)-1 {
				want = s.exit
			}
			got, code := in.run(t, c.text)
			ran++
			if code != want {
				t.Fatalf("%s:%d: %s\nexit code %d, want %d\n%s", page, c.line, c.text, code, want, got)
			}
			if !matchesPage(c.want, got) {
				t.Fatalf("%s:%d: %s\nprints\n%s\nand the page shows\n%s", page, c.line, c.text, got, strings.Join(c.want, "\n"))
			}
		}
	}
	if ran < least {
		t.Errorf("only %d commands were found in the page", ran)
	}
}

// place is an empty folder and the programs that are used in it.
type place struct {
	root      string // of another file system, or ""
	dir       string // the folder in it
	variables []string
}

// install lays the programs out as a package does, or takes the root where they are installed.
func install(t *testing.T, checkout string) place {
	t.Helper()
	if root := os.Getenv("YOCTUNE_CLEAN_ROOT"); root != "" {
		dir, err := os.MkdirTemp(filepath.Join(root, "tmp"), "guide-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return place{root, "/tmp/" + filepath.Base(dir), []string{"PATH=/usr/bin:/bin", "NO_COLOR=1", "HOME=/root"}}
	}
	usr := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(usr, "bin")+string(filepath.Separator), "../../cmd/yoctune", "../../cmd/yoctuned")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	server := exec.Command("go", "build", "-tags", "serve", "-o", filepath.Join(usr, "bin", "yoctuned-serve"), "../../cmd/yoctuned")
	if out, err := server.CombinedOutput(); err != nil {
		t.Fatalf("building the server: %v\n%s", err, out)
	}
	if err := os.CopyFS(filepath.Join(usr, "lib", "yoctune"), os.DirFS(filepath.Join(checkout, "golden", "runtime"))); err != nil {
		t.Fatal(err)
	}
	// Pipelines would leave their folders in this machine's /run. A socket's path is short.
	sockets, err := os.MkdirTemp("/tmp", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	return place{"", t.TempDir(), []string{"RUNTIME_DIRECTORY=" + sockets, "PATH=" + filepath.Join(usr, "bin") + ":/usr/bin:/bin", "NO_COLOR=1", "HOME=" + t.TempDir()}}
}

func (p place) run(t *testing.T, command string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir = p.dir
	if p.root != "" {
		cmd.Dir, cmd.SysProcAttr = p.dir, &syscall.SysProcAttr{Chroot: p.root}
	}
	cmd.Env = p.variables
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("%s: %v", command, err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		want string
		got  string
		ok   bool
	}{
		{"a", "a\n", true},
		{"a", "a\nb\n", false},
		{"a\n…", "a\nb\nc\n", true},
		{"…\nc", "a\nb\nc\n", true},
		{"a … c", "a b c\n", true},
		{"a … c", "a b d\n", false},
	} {
		if matchesPage(strings.Split(tt.want, "\n"), tt.got) != tt.ok {
			t.Errorf("%q and %q", tt.want, tt.got)
		}
	}
}
