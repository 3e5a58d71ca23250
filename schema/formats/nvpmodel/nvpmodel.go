// Package nvpmodel parses nvpmodel.conf, the file in which NVIDIA describes
// the power modes of a Jetson module.
//
// The format has no published grammar; this one was gathered from the stock
// files of L4T R32 to R39 and holds for all of them:
//
//	file    = { "#" comment | blank | param | model | config | fan }
//	param   = "<" "PARAM" "TYPE=" ("FILE"|"CLOCK"|"HWMON") "NAME=" name ">" { arg path [attribute] }
//	model   = "<" "POWER_MODEL" "ID=" number "NAME=" name ">" { param arg value }
//	config  = "<" "PM_CONFIG" "DEFAULT=" number ">"
//	fan     = "<" "FAN_CONFIG" "DEFAULT=" name ">"            L4T R32 only
//
// There are no end tags and no trailing comments. A section lasts until the next
// line that begins with "<".
package nvpmodel

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of what [Parse] reads. The largest stock file has 400 lines.
const (
	MaxBytes = 1 << 20
	maxModes = 64
)

// errTooLarge means that a text exceeds the bounds of a power mode file.
var errTooLarge = errors.New("larger than a power mode file can be")

// File is a power mode file.
type File struct {
	Params  []Param
	Modes   []Mode
	Default *int   // id in PM_CONFIG; nil when the section is missing
	Fan     string // profile in FAN_CONFIG; "" when the section is missing
}

// Param is a PARAM section: a label for files of the kernel.
type Param struct {
	Type string // FILE, CLOCK or HWMON
	Name string
	Args []Arg
	Line int
}

// Arg binds an argument's name to a file.
type Arg struct {
	Name string
	Path string // for HWMON the folder that holds hwmonN
	Attr string // HWMON: the file in hwmonN
	Line int
}

// Mode is a POWER_MODEL section.
type Mode struct {
	ID       int
	Name     string
	Settings []Setting
	Line     int
}

// Setting is a line of a mode. Clocks of CPUs are in kHz, all others in Hz; -1 is
// "no limit" for a CLOCK.
type Setting struct {
	Param, Arg, Value string
	Line              int
	column            int
}

// Trap names a mistake that files of this format are known for.
type Trap string

// The traps.
const (
	EndTag          Trap = "end-tag"          // < /POWER_MODEL >
	TrailingComment Trap = "trailing-comment" // text after a value
	Undeclared      Trap = "undeclared-param" // a setting names a PARAM or argument that no section declares
	Dangling        Trap = "dangling-default" // PM_CONFIG names an id that no mode has
	Repeated        Trap = "repeated"         // an id, a name or a setting a second time
	NoConfig        Trap = "no-pm-config"     // nvpmodel refuses a file without PM_CONFIG
)

// Problem is a fault in a line. A line without Ignored is parsed as its author meant it.
type Problem struct {
	Line, Column int // from 1
	Message      string
	Trap         Trap // "" for plain faults
	Ignored      bool // nothing was taken from the line
	// Fatal marks a fault after which the meaning of a mode or of the default is a
	// guess. A device must not switch modes by such a file.
	Fatal bool
}

// Parse reads a file. It accepts what real files contain beyond the stock form:
// "<PARAM" without a blank, tabs, several blanks, Windows line ends. The error is
// [errTooLarge]; every other fault is a problem of its line.
func Parse(text []byte) (*File, []Problem, error) {
	if len(text) > MaxBytes {
		return nil, nil, fmt.Errorf("%d bytes: %w", len(text), errTooLarge)
	}
	p := &parser{file: &File{}, declared: map[[2]string]bool{}}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	n := 0
	for raw := range bytes.Lines(text) {
		n++
		p.line = n
		line := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
		p.column = 1 + len(line) - len(strings.TrimLeft(line, " \t"))
		line = strings.Trim(line, " \t")
		switch {
		case !utf8.ValidString(line) || strings.ContainsFunc(line, isControl):
			p.addFault("", "control characters")
		case line == "" || line[0] == '#':
		case line[0] == '<':
			if err := p.parseSection(line); err != nil {
				return nil, nil, err
			}
		default:
			p.parseEntry(line)
		}
	}
	p.finish()
	return p.file, p.problems, nil
}

// isControl reports characters that do not belong in the file. Some programs end a line
// at them, so that what follows in a comment is not part of the comment.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029'
}

type parser struct {
	file         *File
	problems     []Problem
	declared     map[[2]string]bool
	line, column int
	in           string // kind of the section that lines belong to
	configLine   int
}

func (p *parser) addFault(trap Trap, format string, args ...any) {
	p.report(Problem{Trap: trap, Ignored: true}, format, args)
}

// addFatal adds a fault and drops the lines of the section that the line opens.
func (p *parser) addFatal(format string, args ...any) {
	p.report(Problem{Ignored: true, Fatal: true}, format, args)
}

func (p *parser) reportTrap(trap Trap, format string, args ...any) {
	p.report(Problem{Trap: trap}, format, args)
}

func (p *parser) report(problem Problem, format string, args []any) {
	problem.Line, problem.Column, problem.Message = p.line, p.column, fmt.Sprintf(format, args...)
	p.problems = append(p.problems, problem)
}

// parseSection reads a line in angle brackets.
func (p *parser) parseSection(line string) error {
	body, rest, closed := strings.Cut(line[1:], ">")
	if !closed {
		p.in = ""
		p.addFatal("the section's > is missing")
		return nil
	}
	if strings.TrimSpace(rest) != "" {
		p.reportTrap(TrailingComment, "text after >: nvpmodel does not support comments after a line")
	}
	words := strings.Fields(body)
	if len(words) == 0 {
		p.in = ""
		p.addFatal("an empty section")
		return nil
	}
	if strings.HasPrefix(words[0], "/") {
		p.in = ""
		p.addFault(EndTag, "the format has no end tags: a section lasts until the next one")
		return nil
	}
	attr := map[string]string{}
	for _, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		if ok {
			attr[k] = v
		}
		if !isWord(k) || !isWord(v) {
			defer p.reportTrap("", "%q is not KEY=VALUE", w) // after what the section makes of it
		}
	}
	p.in = words[0]
	switch words[0] {
	case "PARAM":
		p.parseParam(attr)
	case "POWER_MODEL":
		return p.parseModel(attr)
	case "PM_CONFIG":
		id, err := strconv.Atoi(attr["DEFAULT"])
		if err != nil || id < 0 {
			p.addFatal("DEFAULT=%s is not the id of a mode", attr["DEFAULT"])
			return nil
		}
		if p.file.Default != nil {
			p.addFault(Repeated, "a second PM_CONFIG; line %d has the first", p.configLine)
			return nil
		}
		p.file.Default, p.configLine = &id, p.line
	case "FAN_CONFIG":
		if !isWord(attr["DEFAULT"]) {
			p.addFault("", "DEFAULT=%s is not the name of a fan profile", attr["DEFAULT"])
			return nil
		}
		p.file.Fan = attr["DEFAULT"]
	default:
		p.in = ""
		p.addFault("", "unknown section %s", words[0])
	}
	return nil
}

func (p *parser) parseParam(attr map[string]string) {
	switch attr["TYPE"] {
	case "FILE", "CLOCK", "HWMON":
	default:
		p.in = ""
		p.addFault("", "TYPE=%s: a PARAM is FILE, CLOCK or HWMON", attr["TYPE"])
		return
	}
	if !isWord(attr["NAME"]) {
		p.in = ""
		p.addFault("", "NAME=%s: a name is letters, digits and _", attr["NAME"])
		return
	}
	for _, o := range p.file.Params {
		if o.Name == attr["NAME"] {
			p.in = ""
			p.addFault(Repeated, "PARAM %s is declared a second time; line %d has the first", o.Name, o.Line)
			return
		}
	}
	p.file.Params = append(p.file.Params, Param{Type: attr["TYPE"], Name: attr["NAME"], Line: p.line})
}

func (p *parser) parseModel(attr map[string]string) error {
	id, err := strconv.Atoi(attr["ID"])
	if err != nil || id < 0 {
		p.in = ""
		p.addFatal("ID=%s is not a number", attr["ID"])
		return nil
	}
	if !isWord(attr["NAME"]) {
		p.in = ""
		p.addFatal("NAME=%s: a name is letters, digits and _", attr["NAME"])
		return nil
	}
	for _, o := range p.file.Modes {
		if o.ID == id || o.Name == attr["NAME"] {
			p.in = ""
			p.addFault(Repeated, "mode %d %s repeats the id or the name of line %d", id, attr["NAME"], o.Line)
			return nil
		}
	}
	if len(p.file.Modes) == maxModes {
		return fmt.Errorf("more than %d modes: %w", maxModes, errTooLarge)
	}
	p.file.Modes = append(p.file.Modes, Mode{ID: id, Name: attr["NAME"], Line: p.line})
	return nil
}

// parseEntry reads a line inside a section.
func (p *parser) parseEntry(line string) {
	words := strings.Fields(line)
	switch p.in {
	case "PARAM":
		p.parseArg(words)
	case "POWER_MODEL":
		p.parseSetting(words)
	case "":
		p.addFault("", "a line outside of every section")
	default:
		p.addFault("", "%s sections hold no lines", p.in)
	}
}

func (p *parser) parseArg(words []string) {
	param := &p.file.Params[len(p.file.Params)-1]
	want := 2
	if param.Type == "HWMON" {
		want = 3
	}
	words, ok := p.cutComment(words, want)
	if !ok {
		p.addFault("", "an argument of a %s has %d words", param.Type, want)
		return
	}
	if !isWord(words[0]) || !strings.HasPrefix(words[1], "/") {
		p.addFault("", "an argument is a name and an absolute path")
		return
	}
	if p.declared[[2]string{param.Name, words[0]}] {
		p.addFault(Repeated, "%s of %s is declared a second time", words[0], param.Name)
		return
	}
	p.declared[[2]string{param.Name, words[0]}] = true
	a := Arg{Name: words[0], Path: words[1], Line: p.line}
	if want == 3 {
		a.Attr = words[2]
	}
	param.Args = append(param.Args, a)
}

func (p *parser) parseSetting(words []string) {
	words, ok := p.cutComment(words, 3)
	if !ok || !isWord(words[0]) || !isWord(words[1]) {
		p.addFatal("a setting has three words: PARAM, argument, value")
		return
	}
	mode := &p.file.Modes[len(p.file.Modes)-1]
	for i, s := range mode.Settings {
		if s.Param == words[0] && s.Arg == words[1] {
			// nvpmodel writes both, so that the value of the later line remains.
			p.problems = append(p.problems, Problem{Line: s.Line, Column: s.column, Trap: Repeated, Ignored: true,
				Message: fmt.Sprintf("%s %s is set again on line %d of %s", s.Param, s.Arg, p.line, mode.Name)})
			mode.Settings = slices.Delete(mode.Settings, i, i+1)
			break
		}
	}
	if !p.declared[[2]string{words[0], words[1]}] {
		p.reportTrap(Undeclared, "no PARAM section above declares %s %s: nvpmodel abandons the mode", words[0], words[1])
	}
	mode.Settings = append(mode.Settings, Setting{words[0], words[1], words[2], p.line, p.column})
}

// cutComment removes a comment after the words of a line.
func (p *parser) cutComment(words []string, n int) ([]string, bool) {
	if len(words) > n && strings.HasPrefix(words[n], "#") {
		p.reportTrap(TrailingComment, "nvpmodel does not support comments after a line")
		words = words[:n]
	}
	return words, len(words) == n
}

func (p *parser) finish() {
	if p.file.Default == nil {
		if len(p.file.Modes) > 0 {
			p.reportTrap(NoConfig, "no PM_CONFIG section: nvpmodel refuses the file")
		}
		return
	}
	for _, m := range p.file.Modes {
		if m.ID == *p.file.Default {
			return
		}
	}
	p.line, p.column = p.configLine, 1
	p.addFault(Dangling, "DEFAULT=%d, but no mode has this id", *p.file.Default)
}

// isWord reports whether s is a name: letters, digits and "_", at most 64.
func isWord(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// Mode returns the mode of a name, or nil.
func (f *File) Mode(name string) *Mode {
	for i := range f.Modes {
		if f.Modes[i].Name == name {
			return &f.Modes[i]
		}
	}
	return nil
}

// ModeName returns the name of a mode's id, or "".
func (f *File) ModeName(id int) string {
	for _, m := range f.Modes {
		if m.ID == id {
			return m.Name
		}
	}
	return ""
}

// Param returns the section that declares a name, or nil.
func (f *File) Param(name string) *Param {
	for i := range f.Params {
		if f.Params[i].Name == name {
			return &f.Params[i]
		}
	}
	return nil
}

// Arg returns an argument of the section, or nil. The section may be nil.
func (p *Param) Arg(name string) *Arg {
	if p == nil {
		return nil
	}
	for i := range p.Args {
		if p.Args[i].Name == name {
			return &p.Args[i]
		}
	}
	return nil
}
