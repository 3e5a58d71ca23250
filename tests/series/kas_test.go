package series

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// kas reads the file of each target, resolves it, and prints what it would check out and write.
// Cloning is left out, because it needs the network.
func TestKasReadsEachTargetsFile(t *testing.T) {
	kas := kasProgram(t)
	for _, l := range layers(t) {
		r := facts(t, l)
		dir := writeLayer(t, l)
		for _, target := range l.Targets {
			var got struct {
				Header  struct{ Version int }
				Machine string
				Distro  string
				Target  string
				Repos   map[string]struct {
					URL, Branch string
					Layers      map[string]any
				}
				LocalConf map[string]string `json:"local_conf_header"`
			}
			cmd := exec.Command(kas, "dump", "--format", "json", "--skip", "repos_checkout", "--skip", "finish_setup_repos",
				"--skip", "repos_apply_patches", filepath.Join(dir, "kas-"+target.Name+".yml"))
			cmd.Env = append(os.Environ(), "KAS_WORK_DIR="+t.TempDir())
			cmd.Dir = dir
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s", target.Name, err, stderr(err))
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%s: %v\n%s", target.Name, err, out)
			}
			if got.Machine != target.Machine || got.Distro != "nodistro" || got.Target != "core-image-base" {
				t.Errorf("%s: %+v", target.Name, got)
			}
			if _, ok := got.Repos[l.Name].Layers["."]; !ok || got.Repos[l.Name].URL != "" {
				t.Errorf("%s: the layer itself is %+v", target.Name, got.Repos[l.Name])
			}
			core := r.Series
			if r.Name == "master" {
				core = "master"
			}
			for repo, branch := range map[string]string{"bitbake": r.BitBake, "openembedded-core": core, "meta-tegra": r.Name} {
				if got.Repos[repo].Branch != branch {
					t.Errorf("%s: branch %q of %s, want %q", target.Name, got.Repos[repo].Branch, repo, branch)
				}
			}
			want := "require conf/yoctune/series.conf\n"
			if r.Fragments {
				want = "OE_FRAGMENTS += \"series/series\"\n"
			}
			if got.LocalConf["yoctune-series"] != want {
				t.Errorf("%s: local.conf gets %q, want %q", target.Name, got.LocalConf["yoctune-series"], want)
			}
		}
	}
}

func kasProgram(t *testing.T) string {
	t.Helper()
	venv := os.Getenv("YOCTUNE_KAS_VENV")
	if venv == "" {
		venv = filepath.Join("..", "..", "build", "kas-venv")
	}
	kas, err := filepath.Abs(filepath.Join(venv, "bin", "kas"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kas); err != nil {
		t.Skipf("kas is not installed: %v (scripts/setup.sh python)", err)
	}
	return kas
}

func stderr(err error) []byte {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.Stderr
	}
	return nil
}
