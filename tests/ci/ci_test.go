// Package ci runs the checks that `yoctune init` writes for GitHub, GitLab and pre-commit. The
// commands are run as they stand; a stand-in for the runner evaluates the few expressions, and
// stand-ins for its programs gh and apt-get record what they are called with.
package ci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// project is a new project in a git repository, with its layer committed.
type project struct {
	dir, home string
	variables []string
}

// archive is a release's archive: YOCTUNE_TEST_ARCHIVE, or one of the same layout with a fresh
// build and the fixture of the goldens.
func archive(t *testing.T) []byte {
	t.Helper()
	if name := os.Getenv("YOCTUNE_TEST_ARCHIVE"); name != "" {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	root := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "bin", "yoctune"), "../../cmd/yoctune")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.CopyFS(filepath.Join(root, "lib", "yoctune"), os.DirFS("../../golden/runtime")); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	tw := tar.NewWriter(gz)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if err := tw.WriteHeader(&tar.Header{Name: "yoctune-0.2.0-linux-amd64/" + filepath.ToSlash(below), Mode: 0o755, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = tw.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func start(t *testing.T) *project {
	t.Helper()
	data := archive(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/yoctune.tar.gz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(data)
	p := &project{dir: filepath.Join(t.TempDir(), "meta-box"), home: t.TempDir()}
	p.variables = []string{
		"PATH=" + filepath.Join(p.home, "stand-ins") + ":/usr/bin:/bin", "HOME=" + p.home, "LANG=C.UTF-8", "NO_COLOR=1",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.com",
	}
	if err := os.MkdirAll(filepath.Join(p.home, "stand-ins"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gh", "apt-get"} {
		script := "#!/bin/sh\necho " + name + " \"$@\" >>\"$HOME/calls\"\n"
		if name == "gh" { // the first comment is yet to be made
			script += "case \" $* \" in *--edit-last*) exit 1 ;; esac\n"
		}
		if err := os.WriteFile(filepath.Join(p.home, "stand-ins", name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tool := filepath.Join(t.TempDir(), "first")
	installer := p.sh(t, ".", nil, "mkdir -p "+tool+" && tar -xzf - --strip-components=1 -C "+tool, data)
	if installer.code != 0 {
		t.Fatal(installer.out)
	}
	made := p.sh(t, ".", nil, filepath.Join(tool, "bin", "yoctune")+" init "+p.dir+" --pre-commit --archive "+server.URL+"/yoctune.tar.gz --sha256 "+hex.EncodeToString(sum[:]), nil)
	if made.code != 0 {
		t.Fatal(made.out)
	}
	made = p.sh(t, p.dir, nil, filepath.Join(tool, "bin", "yoctune")+" build . -o layer && git init -q -b main . && git add -A && git commit -q -m first", nil)
	if made.code != 0 {
		t.Fatal(made.out)
	}
	return p
}

type result struct {
	out  string
	code int
}

func (p *project) sh(t *testing.T, dir string, variables []string, script string, input []byte) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(p.variables[:len(p.variables):len(p.variables)], variables...), bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{string(out), cmd.ProcessState.ExitCode()}
}

// change is a commit on a branch.
func (p *project) change(t *testing.T, from, to string) (base string) {
	t.Helper()
	base = strings.TrimSpace(p.sh(t, p.dir, nil, "git rev-parse HEAD", nil).out)
	made := p.sh(t, p.dir, nil, "sed -i 's/"+from+"/"+to+"/' config.cue && git commit -qam change", nil)
	if made.code != 0 {
		t.Fatal(made.out)
	}
	return base
}

// workflow is the part of GitHub's format that the file uses.
type workflow struct {
	Env  map[string]string
	Jobs map[string]struct {
		Steps []struct {
			Name, Uses, Run, If string
			Env                 map[string]string
		}
	}
}

var (
	expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)
	variable   = regexp.MustCompile(`^vars\.\w+ \|\| '(.*)'$`)
	pinned     = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)
)

// github runs a job as a pull request, up to its end or the first step that fails; steps with
// always() run after that too. It returns the names of the steps that failed.
func (p *project) github(t *testing.T, base string) (failed []string, log string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, ".github", "workflows", "yoctune.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	known := map[string]string{"github.event.pull_request.base.sha": base, "github.token": "secret", "github.event.pull_request.number": "7"}
	evaluate := func(s string) string {
		return expression.ReplaceAllStringFunc(s, func(e string) string {
			inner := expression.FindStringSubmatch(e)[1]
			if m := variable.FindStringSubmatch(inner); m != nil {
				return m[1]
			}
			value, ok := known[inner]
			if !ok {
				t.Fatalf("the stand-in for the runner has no value of %s", inner)
			}
			return value
		})
	}
	path := filepath.Join(p.home, "path")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	variables := []string{"RUNNER_TEMP=" + p.home, "GITHUB_PATH=" + path, "GITHUB_STEP_SUMMARY=" + filepath.Join(p.home, "summary.md")}
	for name, value := range w.Env {
		variables = append(variables, name+"="+evaluate(value))
	}
	if len(w.Jobs["check"].Steps) < 8 {
		t.Fatalf("%d steps", len(w.Jobs["check"].Steps))
	}
	for _, step := range w.Jobs["check"].Steps {
		if step.Uses != "" && !pinned.MatchString(step.Uses) {
			t.Errorf("%s is not pinned by commit", step.Uses)
		}
		if step.Run == "" || len(failed) > 0 && !strings.Contains(step.If, "always()") {
			continue
		}
		own := variables[:len(variables):len(variables)]
		for name, value := range step.Env {
			own = append(own, name+"="+evaluate(value))
		}
		if more := read(t, path); more != "" {
			own = append(own, "PATH="+strings.TrimSpace(more)+":"+strings.TrimPrefix(p.variables[0], "PATH="))
		}
		got := p.sh(t, p.dir, own, step.Run, nil)
		log += got.out
		if got.code != 0 {
			failed = append(failed, step.Name)
		}
	}
	return failed, log
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestGitHubWorkflowRuns(t *testing.T) {
	p := start(t)
	if failed, log := p.github(t, "HEAD"); failed != nil {
		t.Fatalf("%v\n%s", failed, log)
	}
	// The review of a change is posted; the layer that was not built again fails.
	base := p.change(t, `\("vm.dirty_ratio": *\)10`, `\120`)
	failed, log := p.github(t, base)
	if strings.Join(failed, ",") != "Check that the layer is up to date" {
		t.Errorf("failed: %v\n%s", failed, log)
	}
	if got := p.sh(t, p.dir, nil, filepath.Join(p.home, "yoctune", "bin", "yoctune")+" build . -o layer && git add -A && git commit -qm layer", nil); got.code != 0 {
		t.Fatal(got.out)
	}
	if failed, log := p.github(t, base); failed != nil {
		t.Fatalf("%v\n%s", failed, log)
	}
	if review := read(t, filepath.Join(p.dir, "review.md")); !strings.Contains(review, "vm.dirty_ratio") {
		t.Error(review)
	}
	if calls := read(t, filepath.Join(p.home, "calls")); !strings.Contains(calls, "gh pr comment 7 --body-file review.md") {
		t.Error(calls)
	}
	// An error stops the job and is among the findings that are uploaded.
	p.change(t, `\("vm.dirty_ratio": *\)20`, `\1200`)
	failed, log = p.github(t, base)
	if strings.Join(failed, ",") != "Check the configuration" || !strings.Contains(log, "::error file=config.cue,") {
		t.Errorf("failed: %v\n%s", failed, log)
	}
	if sarif := read(t, filepath.Join(p.dir, "yoctune.sarif")); !strings.Contains(sarif, `"level": "error"`) {
		t.Error(sarif)
	}
}

// An archive with another digest is not installed, and neither is one without.
func TestInstallNeedsTheDigest(t *testing.T) {
	p := start(t)
	for name, variables := range map[string][]string{
		"has another SHA-256":       {"YOCTUNE_ARCHIVE=" + filepath.Join(p.dir, "README.md"), "YOCTUNE_SHA256=" + strings.Repeat("0", 64)},
		"set YOCTUNE_SHA256":        {"YOCTUNE_ARCHIVE=" + filepath.Join(p.dir, "README.md")},
		"set YOCTUNE_ARCHIVE":       nil,
		"No such file or directory": {"YOCTUNE_CHECKOUT=/nonexistent"},
	} {
		to := t.TempDir()
		got := p.sh(t, p.dir, variables, "sh .ci/install-yoctune.sh "+to, nil)
		if got.code == 0 || !strings.Contains(got.out, name) {
			t.Errorf("%s: exit %d: %s", name, got.code, got.out)
		}
		if _, err := os.Stat(filepath.Join(to, "bin")); err == nil {
			t.Errorf("%s: something was installed", name)
		}
	}
}

func TestGitLabPipelineRuns(t *testing.T) {
	p := start(t)
	var file struct {
		Variables map[string]string
		Yoctune   struct {
			Before []string `yaml:"before_script"`
			Script []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(p.dir, ".gitlab-ci.yml"))), &file); err != nil {
		t.Fatal(err)
	}
	variables := []string{"CI_PROJECT_DIR=" + p.dir}
	for name, value := range file.Variables {
		variables = append(variables, name+"="+value)
	}
	script := strings.Join(append(file.Yoctune.Before, file.Yoctune.Script...), "\n")
	if got := p.sh(t, p.dir, variables, script, nil); got.code != 0 {
		t.Fatal(got.out)
	}
	report := func() (issues []struct {
		Fingerprint, Severity string
		CheckName             string `json:"check_name"`
		Location              struct {
			Path  string
			Lines struct{ Begin int }
		}
	}) {
		if err := json.Unmarshal([]byte(read(t, filepath.Join(p.dir, "gl-code-quality-report.json"))), &issues); err != nil {
			t.Fatal(err)
		}
		return issues
	}
	if got := report(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	p.change(t, `\("vm.dirty_ratio": *\)10`, `\1200`)
	if got := p.sh(t, p.dir, variables, script, nil); got.code != 1 {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
	got := report()
	if len(got) == 0 || got[0].Location.Path != "config.cue" || got[0].Location.Lines.Begin < 10 || got[0].Severity != "critical" || len(got[0].Fingerprint) != 64 {
		t.Errorf("%+v", got)
	}
}

// The hooks of a project and those of the repository are the same commands, and pass.
func TestHooksRun(t *testing.T) {
	p := start(t)
	type hook struct{ ID, Entry string }
	var own struct{ Repos []struct{ Hooks []hook } }
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(p.dir, ".pre-commit-config.yaml"))), &own); err != nil {
		t.Fatal(err)
	}
	var shared []hook
	if err := yaml.Unmarshal([]byte(read(t, "../../.pre-commit-hooks.yaml")), &shared); err != nil {
		t.Fatal(err)
	}
	if len(own.Repos) != 1 || len(shared) != 3 || len(own.Repos[0].Hooks) != len(shared) {
		t.Fatalf("%+v %+v", own, shared)
	}
	var w workflow
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(p.dir, ".github", "workflows", "yoctune.yml"))), &w); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for name, value := range w.Env {
		if m := expression.FindStringSubmatch(value); m != nil {
			variables = append(variables, name+"="+variable.FindStringSubmatch(m[1])[1])
		}
	}
	for i, h := range shared {
		if own.Repos[0].Hooks[i] != h {
			t.Errorf("%+v and %+v", own.Repos[0].Hooks[i], h)
		}
		to := filepath.Join(p.home, "hooks")
		if got := p.sh(t, p.dir, variables, "sh .ci/install-yoctune.sh "+to+" && export PATH="+to+"/bin:$PATH && "+h.Entry, nil); got.code != 0 {
			t.Errorf("%s: %s", h.ID, got.out)
		}
	}
}

// The workflow is what GitHub accepts.
func TestWorkflowIsValid(t *testing.T) {
	lint, err := filepath.Abs("../../build/tools/actionlint")
	if err == nil {
		_, err = os.Stat(lint)
	}
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_PACKAGES") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; make build/tools/actionlint installs it", err)
	}
	p := start(t)
	files := []string{filepath.Join(p.dir, ".github", "workflows", "yoctune.yml")}
	if own, err := filepath.Glob("../../.github/workflows/*.yml"); err == nil {
		files = append(files, own...)
	}
	if out, err := exec.Command(lint, append([]string{"-no-color"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.Command("shellcheck", filepath.Join(p.dir, ".ci", "install-yoctune.sh")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
