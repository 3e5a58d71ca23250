// Package install checks what the packages give a shell: completion, as a user types it.
// YOCTUNE_CLEAN_ROOT names a root file system in which they and the shells are installed.
// Otherwise the program is built, and completes in those shells that this machine has.
package install

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// shells start without the files of a user.
var shells = []struct {
	name string
	args []string
	load string // what a system's own start files do, with the file of the completion
	file string // in the package
}{
	{"bash", []string{"--norc", "--noprofile", "-i"}, ". /usr/share/bash-completion/bash_completion; . FILE", "/usr/share/bash-completion/completions/yoctune"},
	{"zsh", []string{"-f", "-i"}, "autoload -Uz compinit; compinit -u; . FILE", "/usr/share/zsh/vendor-completions/_yoctune"},
	{"fish", []string{"--no-config", "-i"}, "source FILE", "/usr/share/fish/vendor_completions.d/yoctune.fish"},
}

func TestShellsComplete(t *testing.T) {
	root := os.Getenv("YOCTUNE_CLEAN_ROOT")
	var program string
	if root == "" {
		program = filepath.Join(t.TempDir(), "yoctune")
		if out, err := exec.Command("go", "build", "-o", program, "../../cmd/yoctune").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, shell := range shells {
		t.Run(shell.name, func(t *testing.T) {
			file := shell.file
			if root == "" {
				if _, err := exec.LookPath(shell.name); err != nil {
					t.Skipf("%v: completion in this shell is not tried", err)
				}
				if _, err := os.Stat("/usr/share/bash-completion/bash_completion"); err != nil && shell.name == "bash" {
					t.Skipf("%v: bash completes programs with the package bash-completion", err)
				}
				text, err := exec.Command(program, "completion", shell.name).Output()
				if err != nil {
					t.Fatal(err)
				}
				file = filepath.Join(t.TempDir(), "_yoctune")
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s := start(t, root, shell.name, shell.args, filepath.Dir(program))
			s.send(t, strings.ReplaceAll(shell.load, "FILE", file)+"; echo load''ed\r", "loaded")
			// A command, and the value of a flag, which the program itself knows.
			s.send(t, "yoctune facts sh\t", "facts show ")
			s.send(t, "\x15yoctune init --board orin-nx-1\t", "orin-nx-16gb")
		})
	}
}

// terminal is a shell in a pseudo-terminal, with an emulator that shows its screen.
type terminal struct {
	tty    *os.File
	screen vt10x.Terminal
}

func start(t *testing.T, root, shell string, args []string, path string) *terminal {
	t.Helper()
	found := "/usr/bin/" + shell
	if root == "" {
		var err error
		if found, err = exec.LookPath(shell); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), found, args...)
	cmd.Env = []string{"PATH=" + path + ":/usr/bin:/bin", "HOME=/tmp", "TERM=xterm", "LANG=C.UTF-8"}
	cmd.Dir = "/tmp"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	s := &terminal{tty, vt10x.New(vt10x.WithSize(200, 24))}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The end of the shell ends the copy with an error of the terminal.
		_, _ = io.Copy(s.screen, tty)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = tty.Close()
		<-done
	})
	return s
}

// send types a text, and waits until the screen shows another one.
func (s *terminal) send(t *testing.T, text, want string) {
	t.Helper()
	if _, err := s.tty.WriteString(text); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !strings.Contains(s.screen.String(), want); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%q gives no %q:\n%s", text, want, s.screen)
		}
	}
}
