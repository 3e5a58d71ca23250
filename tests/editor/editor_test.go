// Package editor drives `yoctune lsp` with a client that the Language Server Protocol's own
// tools are built on.
package editor

import (
	"os"
	"os/exec"
	"path/filepath"
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

// The sessions are in Python, as the client is: test_*.py.
func TestSessions(t *testing.T) {
	interpreter := python(t)
	program := filepath.Join(t.TempDir(), "yoctune")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/yoctune").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sessions := exec.Command(interpreter, "-B", "-m", "unittest", "-v")
	sessions.Env = append(os.Environ(), "YOCTUNE="+program)
	out, err := sessions.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
