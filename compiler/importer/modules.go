package importer

import (
	"slices"
	"strings"

	facts "github.com/yoctune/yoctune/schema/facts/directive"
)

// readModulesLoad reads modules-load.d(5): a module a line.
func (im *importer) readModulesLoad(lines []*Line, _ Source) {
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		name, comment, ok := cutTrailingComment(l.Text)
		if ok {
			l.addTrap(trailingComment)
			l.markAdjusted("the format has no comments after names; %q would become part of the name", comment)
		}
		im.setModule(l, name, "load")
	}
}

func (im *importer) setModule(l *Line, name, action string) {
	if !isWord(name) {
		l.leave("not the name of a module")
		return
	}
	im.setField(l, quoteCUE(action), "modules", name)
}

// readModprobe reads modprobe.d(5).
func (im *importer) readModprobe(lines []*Line, _ Source) {
	for _, group := range groupContinuedLines(lines) {
		l := group[0]
		words := strings.Fields(joinLines(group))
		switch {
		case len(words) == 0:
			l.leave("an empty line with a continuation")
		case words[0] == "blacklist" && len(words) == 2:
			im.setModule(l, words[1], "blacklist")
		case words[0] == "options" && len(words) > 2 && isWord(words[1]):
			// modprobe reads module parameters from the kernel command line too.
			l.markAdjusted("as a kernel argument, which also applies to a built-in driver")
			for _, w := range words[2:] {
				im.addArgument(l, words[1]+"."+w)
			}
		case words[0] == "remove":
			l.leave("yoctune runs no commands when modules are unloaded")
		case words[0] == "install":
			l.addTrap(customInstall)
			l.leave("yoctune runs no commands when modules are loaded")
			if len(words) > 2 && (words[2] == "/bin/true" || words[2] == "/bin/false") && isWord(words[1]) {
				l.Verdict, l.Why = "", ""
				l.markAdjusted("install %s %s blocks the module; blacklist prevents automatic loading, but not modprobe by name", words[1], words[2])
				im.setModule(l, words[1], "blacklist")
			}
		case !slices.Contains(facts.Names(facts.Modprobe), words[0]):
			l.leavef("modprobe.d has no command %s, and modprobe ignores the line%s", clean(words[0]), suggestDirective(facts.Modprobe, words[0]))
		default:
			l.leavef("yoctune has no field for %s", clean(words[0]))
		}
		copyVerdict(group)
	}
}
