package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
)

// screen is the terminal while monitor or pipeline top uses it. Only lines that change
// are written, because the console of a board is often a slow serial line.
type screen struct {
	in, out *os.File
	w       io.Writer
	initial *term.State
	events  chan string // keys, and "resize"
	quit    context.CancelFunc
	paused  bool
	help    bool
	note    string // beside the keys
	top     int    // first line of the view that is shown
	last    view
	shown   []string
	width   int
	height  int
}

// view is the content of a screen.
type view interface {
	// lines draws the view; a height of 0 is unlimited.
	lines(width, height int, colour bool) []string
	// press handles a key of the view, and reports whether it has one.
	press(key string) bool
	// keys describes the keys of the view.
	keys() []keyHelp
}

type keyHelp struct{ key, meaning string }

// Control sequences of xterm, which the Linux console, screen and tmux share. The alternate
// buffer keeps what was on the screen. Without wrapping, a wide character cannot break a line.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// openScreen switches the terminal of a command to raw mode. It returns nil if the command
// has no terminal. The context ends when the user quits.
func openScreen(ctx context.Context, cmd *cobra.Command) (*screen, context.Context, error) {
	in, _ := cmd.InOrStdin().(*os.File)
	out := cli.File(cmd.OutOrStdout())
	if !terminal.Is(in) || !terminal.Draws(out) {
		return nil, ctx, nil
	}
	initial, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, ctx, fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	s := &screen{in: in, out: out, w: cmd.OutOrStdout(), initial: initial, events: make(chan string, 64)}
	if _, err := io.WriteString(s.w, enterScreen); err != nil {
		s.close()
		return nil, ctx, err
	}
	ctx, s.quit = context.WithCancel(ctx)
	go s.readKeys()
	go s.watchSize(ctx)
	return s, ctx, nil
}

func (s *screen) close() {
	_, _ = io.WriteString(s.w, leaveScreen)
	_ = term.Restore(int(s.in.Fd()), s.initial)
}

// pending is the channel of keys and changes of the size; it blocks if s is nil.
func (s *screen) pending() <-chan string {
	if s == nil {
		return nil
	}
	return s.events
}

func (s *screen) watchSize(ctx context.Context) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	for {
		select {
		case <-ctx.Done():
			return
		case <-resized:
			s.events <- "resize"
		}
	}
}

// readKeys ends with the process: a read of a terminal cannot be cancelled.
func (s *screen) readKeys() {
	defer s.quit()
	buf := make([]byte, 64)
	for {
		n, err := s.in.Read(buf)
		if err != nil || n == 0 {
			return
		}
		for _, key := range decodeKeys(buf[:n]) {
			s.events <- key
		}
	}
}

// decodeKeys splits what a terminal in raw mode sends into keys: letters, or the names of
// special keys. Other sequences are dropped.
func decodeKeys(b []byte) (keys []string) {
	special := map[string]string{
		"[A": "up", "OA": "up", "[B": "down", "OB": "down", "[C": "right", "OC": "right", "[D": "left", "OD": "left",
		"[5~": "page up", "[6~": "page down", "[H": "home", "OH": "home", "[1~": "home",
	}
	for len(b) > 0 {
		if b[0] == 27 && len(b) > 1 && (b[1] == '[' || b[1] == 'O') {
			end := 2
			for end < len(b)-1 && (b[end] < '@' || b[end] > '~') {
				end++
			}
			end = min(end, len(b)-1)
			if key := special[string(b[1:end+1])]; key != "" {
				keys = append(keys, key)
			}
			b = b[end+1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		switch r {
		case 3:
			keys = append(keys, "ctrl-c")
		case 27:
			keys = append(keys, "escape")
		case '\t':
			keys = append(keys, "tab")
		default:
			keys = append(keys, string(r))
		}
	}
	return keys
}

// handle handles a key or a change of the size.
func (s *screen) handle(key string) error {
	page := max(s.height-2, 1)
	switch key {
	case "q", "ctrl-c":
		s.quit()
		return nil
	case "escape":
		if !s.help {
			s.quit()
			return nil
		}
		s.help = false
	case "?", "h":
		s.help, s.top = !s.help, 0
	case "p", " ":
		s.paused = !s.paused
	case "down", "j":
		s.top++
	case "up", "k":
		s.top--
	case "page down":
		s.top += page
	case "page up":
		s.top -= page
	case "home":
		s.top = 0
	case "resize":
	default:
		if s.last == nil || !s.last.press(key) {
			return nil
		}
		s.help, s.top = false, 0
	}
	return s.redraw()
}

func (s *screen) draw(v view) error {
	if s.paused {
		return nil
	}
	s.last = v
	return s.redraw()
}

func (s *screen) redraw() error {
	if s.last == nil {
		return nil
	}
	width, height := terminal.Size(s.out)
	if width != s.width || height != s.height {
		s.shown, s.width, s.height = nil, width, height
	}
	colour := terminal.Colour(s.out)
	var all []string
	if s.help {
		all = helpLines(width, colour, s.last.keys())
	} else {
		all = s.last.lines(width, height-1, colour)
	}
	room := max(height-1, 0)
	s.top = max(min(s.top, len(all)-room), 0)
	shown := all[s.top:min(s.top+room, len(all))]
	now := append(slices.Clone(shown), slices.Repeat([]string{""}, room-len(shown))...)
	now = append(now, s.footer(width, colour, len(all)-s.top-len(shown)))
	var b bytes.Buffer
	if s.shown == nil {
		b.WriteString("\x1b[2J")
	}
	for i, line := range now {
		if i < len(s.shown) && s.shown[i] == line {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[0m\x1b[K", i+1, line)
	}
	s.shown = now
	_, err := s.w.Write(b.Bytes())
	return err
}

// footer is the last line: the most important keys, and how many lines are below.
func (s *screen) footer(width int, colour bool, below int) string {
	parts := []string{"q quit"}
	if s.paused {
		parts = []string{"PAUSED: p continues", "q quit"}
	}
	if below > 0 {
		parts = append(parts, fmt.Sprintf("↓ %d more", below))
	}
	parts = append(parts, "? help")
	if !s.paused {
		parts = append(parts, "p pause")
	}
	if s.note != "" {
		parts = append(parts, s.note)
	}
	if !s.help {
		for _, k := range s.last.keys() {
			parts = append(parts, k.key+" "+k.meaning)
		}
	}
	text := parts[0]
	for _, part := range parts[1:] {
		if utf8.RuneCountInString(text)+2+utf8.RuneCountInString(part) > width-labelWidth {
			break
		}
		text += "  " + part
	}
	p := &page{width: width, colour: colour}
	p.row("", terminal.Dim, text)
	return p.lines[0]
}

func helpLines(width int, colour bool, own []keyHelp) []string {
	p := &page{width: width, colour: colour}
	p.row("", terminal.Bold, "Keys")
	for _, k := range append(own, []keyHelp{
		{"up down", "scroll; also k j, page up, page down, home"}, {"p", "pause, and continue"}, {"?", "this help"}, {"q", "quit; also Escape, Ctrl-C"},
	}...) {
		p.row("", terminal.Plain, fmt.Sprintf("%-8s %s", k.key, k.meaning))
	}
	p.row("", terminal.Plain, "")
	p.row("", terminal.Plain, "\"-\" is an unknown value; it is never shown as 0.")
	return p.lines
}

// writeView prints a view once, as wide as the terminal or 80 characters.
func writeView(p cli.Printer, v view) {
	width := cli.Columns(p)
	if width == 0 {
		width = 80
	}
	fmt.Fprintln(p, strings.Join(v.lines(width, 0, cli.Colour(p)), "\n"))
}

// labelWidth is the column of labels of a page.
const labelWidth = 9

// page collects the lines of a screen.
type page struct {
	width  int
	colour bool
	lines  []string
}

// cell is a part of a line.
type cell struct {
	text  string
	style terminal.Style
}

// row adds a label and text, which is cut to the width.
func (p *page) row(label string, style terminal.Style, text string) {
	p.cells(label, cell{text, style})
}

// cells adds a label and cells side by side, which are cut to the width.
func (p *page) cells(label string, cells ...cell) {
	line := terminal.Dim.Paint(p.colour, fmt.Sprintf("%-*s", labelWidth, label))
	left := p.width - labelWidth
	for _, c := range cells {
		text := terminal.Truncate(printable.Line(c.text), max(left, 0), "")
		left -= utf8.RuneCountInString(text)
		line += c.style.Paint(p.colour, text)
	}
	p.lines = append(p.lines, strings.TrimRight(line, " "))
}

// wrap adds cells under one label, on as many lines as they need.
func (p *page) wrap(label string, items ...cell) {
	var line []cell
	used := 0
	for _, it := range items {
		n := utf8.RuneCountInString(it.text)
		if len(line) > 0 && used+2+n > p.width-labelWidth {
			p.cells(label, line...)
			label, line, used = "", nil, 0
		}
		if len(line) > 0 {
			line, used = append(line, cell{text: "  "}), used+2
		}
		line, used = append(line, it), used+n
	}
	if len(line) > 0 {
		p.cells(label, line...)
	}
}

// wrapText is wrap for texts in one style.
func (p *page) wrapText(label string, style terminal.Style, items ...string) {
	cells := make([]cell, len(items))
	for i, it := range items {
		cells[i] = cell{it, style}
	}
	p.wrap(label, cells...)
}
