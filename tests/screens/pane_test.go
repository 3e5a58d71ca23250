// Package screens tests what people see: it starts the built programs in a pseudo terminal
// and reads the pane of a terminal emulator.
package screens

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
)

// patience bounds each wait; a loaded machine is slow.
const patience = time.Minute

var bin string // folder of the built programs

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "yoctune-screens")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "../../cmd/yoctune", "../../cmd/yoctuned").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	bin = dir
	return m.Run()
}

// pane is a program in a terminal.
type pane struct {
	t     *testing.T
	cmd   *exec.Cmd
	user  *os.File // the user's end
	tty   *os.File // the program's end, to read its settings
	was   unix.Termios
	ended chan error

	mu   sync.Mutex
	term vt10x.Terminal
	raw  strings.Builder
}

// start starts a program in a terminal of a size. env is added to a UTF-8 environment.
func start(t *testing.T, columns, rows int, env []string, args ...string) *pane {
	t.Helper()
	user, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{t: t, user: user, tty: tty, ended: make(chan error, 1), term: vt10x.New(vt10x.WithSize(columns, rows))}
	t.Cleanup(func() { _ = user.Close(); _ = tty.Close() })
	p.setSize(columns, rows)
	p.was = p.settings()
	p.cmd = exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", "LANG=C.UTF-8"}, env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read()
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// read feeds what the program prints to the emulator, which knows no DECAWM: a line that is
// too long would wrap, and show in the pane.
func (p *pane) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := p.user.Read(buf)
		p.mu.Lock()
		p.raw.Write(buf[:n])
		_, _ = p.term.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *pane) setSize(columns, rows int) {
	p.t.Helper()
	if err := pty.Setsize(p.user, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}); err != nil {
		p.t.Fatal(err)
	}
}

// resize changes the size of the terminal, as a user does with a window.
func (p *pane) resize(columns, rows int) {
	p.mu.Lock()
	p.term.Resize(columns, rows)
	p.mu.Unlock()
	p.setSize(columns, rows) // the kernel sends SIGWINCH
}

func (p *pane) settings() unix.Termios {
	p.t.Helper()
	s, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *s
}

// text is the pane as lines without blanks at their ends.
func (p *pane) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.term.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func (p *pane) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

// await waits until the pane satisfies a condition, and returns it.
func (p *pane) await(what string, right func(text string) bool) string {
	p.t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text := p.text()
		if right(text) {
			return text
		}
		if time.Now().After(late) {
			p.t.Fatalf("%s: the pane is\n%s", what, text)
		}
	}
}

// sees waits until the pane contains a text.
func (p *pane) sees(want string) string {
	p.t.Helper()
	return p.await("no "+want, func(text string) bool { return strings.Contains(text, want) })
}

func (p *pane) press(keys string) {
	p.t.Helper()
	if _, err := p.user.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits for the end and returns the exit code.
func (p *pane) exits() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("it still runs:\n%s", p.text())
		return -1
	}
}

// restored checks that the program left the terminal as it was.
func (p *pane) restored() {
	p.t.Helper()
	if now := p.settings(); now != p.was {
		p.t.Errorf("the terminal has other settings: %+v, was %+v", now, p.was)
	}
	p.await("the screen is left", func(string) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.term.Mode()&vt10x.ModeAltScreen == 0 && p.term.CursorVisible()
	})
	if raw := p.printed(); strings.LastIndex(raw, "\x1b[?7h") < strings.LastIndex(raw, "\x1b[?7l") {
		p.t.Error("lines do not wrap any more")
	}
}

// board makes a synthetic device. The path of a socket is short.
func board(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "yt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := devicetest.Build(dir, name); err != nil {
		t.Fatal(err)
	}
	return dir
}
