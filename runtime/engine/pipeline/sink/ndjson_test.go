package sink

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
)

// A power failure may leave an incomplete line.
func TestResultsAfterAnIncompleteLineStartANewLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results")
	if err := os.WriteFile(name, []byte("{\"whole\":1}\n{\"ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := OpenNDJSON(name, plan.Rotate{})
		if err == nil {
			err = errors.Join(s.Write(&result.Record{Pipeline: "p"}), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(name)
	lines := strings.Split(string(b), "\n")
	if err != nil || len(lines) != 5 || lines[1] != `{"ha` || lines[2] != lines[3] || !strings.HasPrefix(lines[2], `{"type":"result","pipeline":"p"`) || lines[4] != "" {
		t.Errorf("%v %q", err, lines)
	}
	if _, err := OpenNDJSON(namedPipe(t), plan.Rotate{}); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "is a pipe") {
		t.Errorf("%v", err)
	}
}

// namedPipe creates a named pipe without a reader.
func namedPipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
