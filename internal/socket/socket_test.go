package socket_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/yoctune/yoctune/internal/socket"
)

func TestOnlyDeadSocketsAreReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := socket.Listen(t.Context(), path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o660 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	if _, err := socket.Listen(t.Context(), path, 0o660); !errors.Is(err, socket.ErrTaken) {
		t.Errorf("of a process that lives: %v", err)
	}
	l.SetUnlinkOnClose(false) // as a process that is killed
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = socket.Listen(t.Context(), path, 0o600); err != nil {
		t.Fatalf("of a process that is gone: %v", err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Listen(t.Context(), file, 0o600); err == nil {
		t.Error("a file was taken for a socket")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "x" {
		t.Errorf("and is %q, %v", b, err)
	}
}
