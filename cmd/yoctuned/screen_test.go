package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// pseudoTerminal is a pseudo terminal: what a user sees and types.
type pseudoTerminal struct{ user, program *os.File }

func newTerminal(t *testing.T, columns, rows uint16) pseudoTerminal {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = user.Close() })
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	if err := unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return pseudoTerminal{user, program}
}

func TestMonitorOnATerminalDrawsAndRestoresIt(t *testing.T) {
	t.Setenv("TERM", "xterm")
	dir := t.TempDir()
	if err := devicetest.Build(dir, "agx-orin-64gb"); err != nil {
		t.Fatal(err)
	}
	tty := newTerminal(t, 100, 30)
	before, err := unix.IoctlGetTermios(int(tty.program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	root := newRootCommand()
	root.SetArgs([]string{"monitor", "--root", dir, "--interval", "100ms"})
	root.SetIn(tty.program)
	root.SetOut(tty.program)
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { ended <- root.ExecuteContext(ctx) }()
	var seen strings.Builder
	buf := make([]byte, 64<<10)
	for !strings.Contains(seen.String(), "q quit") {
		n, err := tty.user.Read(buf)
		if err != nil {
			t.Fatal(err, seen.String())
		}
		seen.Write(buf[:n])
	}
	for _, want := range []string{"\x1b[?1049h", "power mode MODE_30W", "VIN_SYS_5V0", "612 MHz"} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("no %q on the screen:\n%s", want, seen.String())
		}
	}
	if _, err := tty.user.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	after, err := unix.IoctlGetTermios(int(tty.program.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal was left different: %v", err)
	}
	n, err := tty.user.Read(buf)
	if err != nil || !strings.HasSuffix(string(buf[:n]), "\x1b[?25h\x1b[?1049l") {
		t.Errorf("the screen was left as %q, %v", buf[max(n-40, 0):n], err)
	}
}

func sampleOf(t *testing.T, board string) *monitor.Sample {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, board); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return monitor.New(dev).Take()
}

func TestNoLineIsLongerThanTheTerminal(t *testing.T) {
	s := sampleOf(t, "agx-orin-64gb")
	s.Zones[0].Name = strings.Repeat("x", 300)
	for _, width := range []int{1, 10, 20, 40, 80, 200} {
		for _, line := range slices.Concat(frame{sample: s}.lines(width, false), []string{(&screen{}).footer(width, false)}) {
			if n := utf8.RuneCountInString(line); n > max(width, 9) {
				t.Errorf("%d columns: %d in %q", width, n, line)
			}
		}
	}
}

func TestOnlyLinesThatChangeAreWritten(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	tty := newTerminal(t, 80, 24)
	var out bytes.Buffer
	s := &screen{w: &out, out: int(tty.program.Fd())}
	sample := sampleOf(t, "orin-nano-8gb")
	if err := s.draw(frame{sample: sample}); err != nil {
		t.Fatal(err)
	}
	whole := out.Len()
	out.Reset()
	if err := s.draw(frame{sample: sample}); err != nil || out.Len() != 0 {
		t.Errorf("nothing changed and %d bytes were written (%v)", out.Len(), err)
	}
	changed := *sample
	changed.PowerMode = new("MAXN_SUPER")
	if err := s.draw(frame{sample: &changed}); err != nil || out.Len() == 0 || out.Len() > whole/5 {
		t.Errorf("one line changed and %d of %d bytes were written (%v)", out.Len(), whole, err)
	}
}

func TestTextOfADeviceIsEscapedForTheTerminal(t *testing.T) {
	s := sampleOf(t, "orin-nano-8gb")
	evil := "\x1b[2Jx\n"
	s.PowerMode, s.Rails[0].Label, s.Zones[0].Name, s.CPUs[0].Governor = &evil, evil, evil, &evil
	text := strings.Join(frame{model: evil, sample: s}.lines(200, false), "\n")
	if strings.ContainsRune(text, 27) {
		t.Errorf("%q", text)
	}
	if line := printable.Line(logLine(s)); strings.ContainsRune(line, 27) {
		t.Errorf("%q", line)
	}
}
