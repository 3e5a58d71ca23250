// Package editor drives `yoctune lsp` with a client that the Language Server Protocol's own
// tools are built on.
package editor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// python returns the interpreter that has the client.
func python(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "build", "lsp-venv", "bin", "python"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_LSP") != "" {
			t.Fatalf("%v, and YOCTUNE_REQUIRE_LSP is set", err)
		}
		t.Skipf("the client is not installed (%v): scripts/setup.sh python", err)
	}
	return path
}

// build builds yoctune.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "yoctune")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/yoctune").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// The sessions are in Python, as the client is: test_*.py.
func TestSessions(t *testing.T) {
	runSessions(t, python(t))
}

// CUE needs 30 seconds to be found endless.
func TestEndlessEvaluation(t *testing.T) {
	if os.Getenv("YOCTUNE_REQUIRE_NEOVIM") == "" {
		t.Skip("part of scripts/prove.sh editor: it takes half a minute")
	}
	runSessions(t, python(t), "endless")
}

func runSessions(t *testing.T, interpreter string, modules ...string) {
	t.Helper()
	sessions := exec.Command(interpreter, append([]string{"-B", "-m", "unittest", "-v"}, modules...)...)
	sessions.Env = append(os.Environ(), "YOCTUNE="+build(t))
	out, err := sessions.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// Neovim's own client: neovim.lua.
func TestNeovim(t *testing.T) {
	if os.Getenv("YOCTUNE_REQUIRE_NEOVIM") == "" {
		t.Skip("part of scripts/prove.sh editor: it needs Neovim")
	}
	nvim, err := exec.LookPath("nvim")
	if err != nil {
		t.Fatal(err)
	}
	write := exec.Command(python(t), "-B", "session.py", t.TempDir())
	write.Env = append(os.Environ(), "YOCTUNE=")
	names, err := write.Output()
	if err != nil {
		t.Fatal(err)
	}
	session := exec.Command(nvim, append([]string{"--headless", "--clean", "-S", "neovim.lua"}, strings.Fields(string(names))...)...)
	session.Env = append(os.Environ(), "YOCTUNE="+build(t), "XDG_CACHE_HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	out, err := session.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
