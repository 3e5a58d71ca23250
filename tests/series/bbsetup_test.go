package series

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/emitters/assemble"
)

// The real bitbake-setup reads the file offline, with folders in place of the checkouts. It finds
// the layer beside the file and sets the machine and the fragment that switches the layer on.
func TestBitBakeSetupReadsTheFileOfATarget(t *testing.T) {
	setUp(t, "one")
}

// Names with unusual characters survive its shell commands and folder names.
func TestBitBakeSetupReadsTheStrangestNames(t *testing.T) {
	setUp(t, "A.b_c@d+e-f")
}

// setUp makes a build folder with bitbake-setup for a layer whose target has this name.
func setUp(t *testing.T, target string) {
	t.Helper()
	python, err := filepath.Abs(filepath.Join("..", "..", "build", "bb-venv", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	if venv := os.Getenv("YOCTUNE_BITBAKE_VENV"); venv != "" {
		python = filepath.Join(venv, "bin", "python")
	}
	if _, err := os.Stat(python); err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_BITBAKE") == "1" {
			t.Fatal(err)
		}
		t.Skip("no bitbake-setup: ", err)
	}
	layers := open("wrynose", "\tbuild: bitbakeSetup: true").Layers(compiler.Selection{})
	if len(layers) != 1 {
		t.Fatal("it does not build")
	}
	l := layers[0]
	l.Targets[0].Name = target
	if l.Files, err = assemble.Emit(l.Layer); err != nil {
		t.Fatal(err)
	}
	layer, work := writeLayer(t, l), t.TempDir()
	checkRemotes(t, filepath.Join(layer, "bitbake-setup-"+target+".conf.json"))
	put := func(text string, path ...string) string {
		p := filepath.Join(append([]string{work}, path...)...)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	put("bitbake-config-build() { echo \"$@\" > "+filepath.Join(work, "asked")+"; }\n", "openembedded-core", "oe-init-build-env")
	put("", "openembedded-core", "scripts", "oe-setup-build")
	sources := map[string]any{}
	for _, name := range []string{"bitbake", "openembedded-core", "meta-tegra"} {
		put("", name, "README")
		sources[name] = map[string]any{"local": map[string]string{"path": filepath.Join(work, name)}}
	}
	overrides, err := json.Marshal(map[string]any{"description": "stand-ins", "version": "1.0", "sources": sources})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-m", "bitbake_setup", "--setting", "default", "top-dir-prefix", work, "--setting", "default", "top-dir-name", "top",
		"init", "--non-interactive", "--source-overrides", put(string(overrides), "overrides.json"), filepath.Join(layer, "bitbake-setup-"+target+".conf.json"))
	cmd.Env = append(os.Environ(), "HOME="+work)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asked, err := os.ReadFile(filepath.Join(work, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(asked)); got != "enable-fragment machine/jetson-agx-orin-devkit x/x" {
		t.Errorf("it requests %q", got)
	}
	conf, err := os.ReadFile(filepath.Join(work, "top", "x-"+target, "build", "conf", "bblayers.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(conf), layer+"/.") {
		t.Errorf("the layer is not in bblayers.conf:\n%s", conf)
	}
}

// checkRemotes checks the form of the addresses: bitbake 2.16 requires "remotes", and 2.18 takes
// "uri" too. The test runs 2.18.
func checkRemotes(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var setup struct {
		Sources map[string]struct {
			Git struct {
				Remotes map[string]struct {
					URI string `json:"uri"`
				} `json:"remotes"`
			} `json:"git-remote"`
		} `json:"sources"`
	}
	if err := json.Unmarshal(raw, &setup); err != nil {
		t.Fatal(err)
	}
	for name, s := range setup.Sources {
		if !strings.HasPrefix(s.Git.Remotes["origin"].URI, "https://") {
			t.Errorf("source %s has no remote origin:\n%s", name, raw)
		}
	}
	if len(setup.Sources) == 0 {
		t.Errorf("no sources:\n%s", raw)
	}
}

func TestBitBakeSetupIsRefusedOnOldReleases(t *testing.T) {
	p := open("scarthgap", "\tbuild: {\n\t\tbitbakeSetup: true\n\t}")
	p.Layers(compiler.Selection{})
	for _, d := range p.Report.All() {
		if strings.Contains(d.Message, "whinlatter is the first") && d.Pos.Line == 9 {
			return
		}
	}
	t.Errorf("not refused at its line: %v", p.Report.All())
}
