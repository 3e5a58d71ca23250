package ci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runner returns a program of the folder YOCTUNE_CI_TOOLS, which scripts/prove.sh install fills:
// pre-commit and check-jsonschema from PyPI, gitlab-ci-local from npm.
func runner(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("YOCTUNE_CI_TOOLS")
	if dir == "" {
		t.Skip("set YOCTUNE_CI_TOOLS, as scripts/prove.sh install does")
	}
	for _, below := range []string{"bin", "node_modules/.bin"} {
		path := filepath.Join(dir, below, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("%s has no %s", dir, name)
	return ""
}

// installed installs yoctune as CI does, and returns the variable with its folder.
func (p *project) installed(t *testing.T) string {
	t.Helper()
	to := filepath.Join(p.home, "own")
	script := `eval "$(sed -n 's/^  \(YOCTUNE_[A-Z0-9]*\): /\1=/p' .gitlab-ci.yml)"; export YOCTUNE_ARCHIVE YOCTUNE_SHA256; sh .ci/install-yoctune.sh ` + to
	if got := p.sh(t, p.dir, nil, script, nil); got.code != 0 {
		t.Fatal(got.out)
	}
	return "PATH=" + filepath.Join(to, "bin") + ":" + strings.TrimPrefix(p.variables[0], "PATH=")
}

// pre-commit takes the project's file and the hooks of the repository, and runs them.
func TestPreCommitRunsTheHooks(t *testing.T) {
	pre := runner(t, "pre-commit")
	p := start(t)
	path := p.installed(t)
	hooks := filepath.Join(p.home, "hooks")
	text := read(t, "../../.pre-commit-hooks.yaml")
	if got := p.sh(t, p.home, nil, "git init -q -b main hooks && cat >hooks/.pre-commit-hooks.yaml && cd hooks && git add -A && git commit -qm hooks", []byte(text)); got.code != 0 {
		t.Fatal(got.out)
	}
	for _, command := range []string{"run --all-files", "try-repo " + hooks + " --ref main --all-files"} {
		got := p.sh(t, p.dir, []string{path}, pre+" "+command, nil)
		if got.code != 0 || strings.Count(got.out, "Passed") != 3 {
			t.Errorf("pre-commit %s: exit %d: %s", command, got.code, got.out)
		}
	}
	p.change(t, `\("vm.dirty_ratio": *\)10`, `\1200`)
	if got := p.sh(t, p.dir, []string{path}, pre+" run --all-files", nil); got.code == 0 || !strings.Contains(got.out, "vm.dirty_ratio does not accept 200") {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
}

// gitlab-ci-local runs the job in a shell; apt-get is a stand-in.
func TestGitLabCILocalRunsTheJob(t *testing.T) {
	local := runner(t, "gitlab-ci-local")
	p := start(t)
	if got := p.sh(t, p.dir, nil, "git remote add origin git@example.com:team/box.git", nil); got.code != 0 {
		t.Fatal(got.out)
	}
	path := "PATH=" + strings.TrimPrefix(p.variables[0], "PATH=") + ":/usr/local/bin"
	if got := p.sh(t, p.dir, []string{path}, local+" --force-shell-executor", nil); got.code != 0 || !strings.Contains(got.out, "PASS") {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
	p.change(t, `\("vm.dirty_ratio": *\)10`, `\1200`)
	if got := p.sh(t, p.dir, []string{path}, local+" --force-shell-executor", nil); got.code == 0 || !strings.Contains(got.out, "FAIL") {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
}

// The files fit the schemas that GitLab and the editors use.
func TestFilesFitTheirSchemas(t *testing.T) {
	check := runner(t, "check-jsonschema")
	p := start(t)
	for schema, file := range map[string]string{"vendor.gitlab-ci": ".gitlab-ci.yml", "vendor.github-workflows": ".github/workflows/yoctune.yml"} {
		if got := p.sh(t, p.dir, nil, check+" --builtin-schema "+schema+" "+file, nil); got.code != 0 {
			t.Error(got.out)
		}
		if got := p.sh(t, p.dir, nil, "sed 's/^  image: .*/  image: [7]/; s/^on:/onn:/' "+file+" >broken.yml; "+check+" --builtin-schema "+schema+" broken.yml", nil); got.code == 0 {
			t.Errorf("%s: the schema takes a broken file", schema)
		}
	}
}
