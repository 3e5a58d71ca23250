package importer

import (
	"strings"

	"github.com/yoctune/yoctune/compiler/kconfig"
)

// wholeConfig is how many lines make a file a whole configuration rather than a
// fragment.
const wholeConfig = 400

// readKconfig reads a fragment, a defconfig or a .config.
func (im *importer) readKconfig(lines []*Line, s Source) {
	cfg, problems := kconfig.ReadFragment(s.Name, s.Text)
	for _, p := range problems {
		if p.Line < 1 || p.Line > len(lines) || lines[p.Line-1].Verdict != "" {
			continue
		}
		l := lines[p.Line-1]
		if p.Ignored {
			l.addTrap(kconfigIgnored)
			l.leave(p.Message)
			continue
		}
		l.addNote("%s", p.Message)
	}
	var base *known
	if isWhole(s) {
		base = im.kernelBase()
	}
	for _, k := range cfg.Lines {
		if k.Line < 1 || k.Line > len(lines) {
			continue
		}
		l := lines[k.Line-1]
		if l.Verdict == Left {
			continue
		}
		if base != nil && base.isDefault(l, k) {
			continue
		}
		if value, ok := readSymbolValue(l, k.Value); ok {
			im.setField(l, symbolValue(value), "kernel", "config", k.Symbol)
		}
	}
	for _, l := range lines {
		if l.Verdict == "" {
			l.addTrap(kconfigIgnored)
			l.leave("not an option")
		}
	}
}

// readSymbolValue cuts a comment off a value as Kconfig does: of a bool or tristate it reads
// the first letter, and of a string the text in quotes. A number with a comment it refuses.
func readSymbolValue(l *Line, value string) (string, bool) {
	cut, comment, found := cutTrailingComment(value)
	if !found {
		if letter := strings.TrimRight(value, " \t"); letter == "y" || letter == "m" || letter == "n" {
			value = letter
		}
		return value, true
	}
	closed := len(cut) > 1 && cut[0] == '"' && cut[len(cut)-1] == '"'
	switch {
	case cut == "y" || cut == "m" || cut == "n" || closed:
		l.addTrap(trailingComment)
		l.markAdjusted("Kconfig reads %s and ignores %q", cut, comment)
		return cut, true
	case value[0] == '"':
		return value, true // the mark is part of the string
	}
	l.addTrap(trailingComment)
	l.leavef("Kconfig refuses the value: %q belongs to it", comment)
	return "", false
}

// symbolValue converts a value of a fragment to CUE.
func symbolValue(v string) string {
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		return quoteCUE(strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(v[1 : len(v)-1]))
	}
	return formatScalar(v)
}

// known is the base configuration of the release's kernel.
type known struct {
	facts  *kconfig.Facts
	result *kconfig.Result
	name   string
}

func (im *importer) kernelBase() *known {
	f, err := kconfig.ForRelease(im.release.Name)
	if err != nil {
		return nil
	}
	return &known{f, f.Evaluate(f.Base), im.release.Name}
}

// isDefault reports whether a line of a full .config need not be written, and sets its
// verdict: the kernel already has the value, or other options decide it.
func (k *known) isDefault(l *Line, line kconfig.Line) bool {
	i, ok := k.facts.Lookup(line.Symbol)
	if !ok {
		l.leavef("the kernel of %s has no such option", k.name)
		return true
	}
	got, present := k.result.Get(line.Symbol)
	if present && got == line.Value || !present && line.Value == "n" {
		l.markUnderstood("the kernel of %s has it anyway", k.name)
		return true
	}
	for _, d := range k.facts.Symbols[i].Defs {
		if d.Prompt {
			l.addTrap(kconfigFull)
			return false
		}
	}
	l.leave("it cannot be set: other options decide it")
	return true
}
