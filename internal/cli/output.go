package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
)

// output is a program's standard output. After the first failed write it only repeats
// that error, so that a program that prints line by line can report it once at its end.
type output struct {
	w     io.Writer
	ascii bool // for a terminal whose characters are not UTF-8
	err   error
}

func newOutput(w io.Writer) *output {
	return &output{w: w, ascii: terminal.Is(File(w)) && !terminal.IsUTF8()}
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	if o.ascii {
		_, o.err = io.WriteString(o.w, terminal.ASCII(string(p)))
		return len(p), o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// File returns the file that w writes to, which may be a terminal; nil when w is not a file.
func File(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *output:
		return File(w.w)
	case heldFile:
		return w.file
	case Printer:
		return File(w.w)
	}
	return nil
}

// Colour reports whether text for w may be coloured.
func Colour(w io.Writer) bool { return terminal.Colour(File(w)) }

// Columns returns the width of the terminal that w writes to. It is 0 if w is not a terminal.
func Columns(w io.Writer) int {
	columns, _ := terminal.Size(File(w))
	return columns
}

// Printer prints the results of a command: text, or objects in JSON, one per line.
// [Run] reports a write that fails; nothing is written after it.
type Printer struct {
	*output
	JSON bool
}

// NewPrinter returns the printer of a command's standard output.
func NewPrinter(cmd *cobra.Command) Printer {
	out, ok := cmd.OutOrStdout().(*output)
	if !ok {
		out = newOutput(cmd.OutOrStdout())
	}
	return Printer{out, Format(cmd) == "json"}
}

// To returns a printer with the same format that writes to w.
func (p Printer) To(w io.Writer) Printer { return Printer{&output{w: w}, p.JSON} }

// AtOnce calls write and prints what it prints in one piece.
func (p Printer) AtOnce(write func()) {
	w, all := p.w, &bytes.Buffer{}
	p.w = heldFile{all, File(w)}
	write()
	p.w = w
	if p.err == nil {
		_, p.err = all.WriteTo(w)
	}
}

// heldFile is output that is held back for a file, whose properties it has.
type heldFile struct {
	*bytes.Buffer
	file *os.File
}

// Err returns the error of the first write that failed. Commands that run until they are
// stopped end when it is set.
func (p Printer) Err() error { return p.err }

// Printf prints text. Strings and errors among args are made printable, see package
// printable.
func (p Printer) Printf(format string, args ...any) { printable.Fprintf(p, format, args...) }

// Encode prints v in JSON, as one line.
func (p Printer) Encode(v any) {
	enc := json.NewEncoder(p)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); p.err == nil {
		p.err = err // v may have a value that JSON lacks
	}
}

// Line prints a line of JSON: the type of the line, and the fields of objects.
func (p Printer) Line(kind string, objects ...any) {
	line := fmt.Sprintf(`{"type":%q`, kind)
	for _, v := range objects {
		var b bytes.Buffer
		part := p.To(&b)
		if part.Encode(v); p.err == nil {
			p.err = part.err
		}
		fields := strings.TrimPrefix(strings.TrimSuffix(b.String(), "}\n"), "{")
		if fields != "" {
			line += "," + fields
		}
	}
	fmt.Fprintln(p, line+"}")
}

// Summary prints the last line of a command's JSON: the name of the command, and the
// fields of objects.
func (p Printer) Summary(command string, objects ...any) {
	p.Line("summary", slices.Insert(objects, 0, any(struct {
		Command string `json:"command"`
	}{command}))...)
}

// Error prints a line of JSON about an error.
func (p Printer) Error(err error) {
	p.Line("error", struct {
		Message string `json:"message"`
	}{err.Error()})
}

// Summary is the last line of a command's JSON.
type Summary struct {
	Type     string         `json:"type"` // "summary"
	Command  string         `json:"command"`
	Outcomes map[string]int `json:"outcomes,omitempty"`
	Exit     int            `json:"exit"`
}

// End prints the last line in JSON, and ends the command with an exit code. outcomes
// counts the results, and may be nil.
func (p Printer) End(command string, exit int, outcomes map[string]int) error {
	if p.JSON {
		p.Encode(Summary{"summary", command, outcomes, exit})
	}
	return Exit(exit)
}

// Open opens a file or pipe that an argument names, or standard input for "-".
func Open(cmd *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), nil
	}
	return infile.Open(name)
}

// Warn prints a warning to standard error.
func Warn(cmd *cobra.Command, format string, args ...any) {
	printable.Fprintf(cmd.ErrOrStderr(), cmd.Root().Name()+": warning: "+format+"\n", args...)
}
