package importer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// readCmdlineFile reads a kernel command line: the whole file, or the APPEND lines of
// an extlinux.conf.
func (im *importer) readCmdlineFile(lines []*Line, _ Source) {
	extlinux := slices.ContainsFunc(lines, func(l *Line) bool {
		first, _, _ := strings.Cut(strings.ToUpper(l.Text), " ")
		return first == "APPEND" || first == "LABEL"
	})
	chosen := defaultLabel(lines)
	label := ""
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		text := l.Text
		if extlinux {
			if name, ok := cutFold(text, "LABEL "); ok {
				label = strings.TrimSpace(name)
			}
			rest, ok := cutFold(text, "APPEND ")
			if !ok {
				l.leave("an entry of the boot loader; yoctune sets kernel arguments only")
				continue
			}
			if label != chosen && label != "" && chosen != "" {
				l.leavef("the boot loader starts %s unless somebody chooses %s", clean(chosen), clean(label))
				continue
			}
			text = strings.TrimSpace(strings.Replace(rest, "${cbootargs}", "", 1))
		}
		im.addArguments(l, text)
	}
}

// defaultLabel is the entry that an extlinux.conf starts.
func defaultLabel(lines []*Line) string {
	first := ""
	for _, l := range lines {
		if name, ok := cutFold(l.Text, "DEFAULT "); ok && l.Verdict == "" {
			return strings.TrimSpace(name)
		}
		if name, ok := cutFold(l.Text, "LABEL "); ok && l.Verdict == "" && first == "" {
			first = strings.TrimSpace(name)
		}
	}
	return first
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

// addArguments puts the arguments of a command line into the configuration. What
// cpu.isolate implies becomes that field.
func (im *importer) addArguments(l *Line, text string) {
	words := argWords(text)
	if i := slices.Index(words, "--"); i >= 0 {
		for _, w := range words[i+1:] {
			l.leavePart(clean(w), "after -- it is an argument of the first program, not of the kernel")
		}
		l.leavePart("--", "yoctune sets only kernel arguments")
		words = words[:i]
	}
	isolated, implied := im.findIsolation(words)
	if isolated != nil {
		im.setField(l, coreList(isolated), "cpu", "isolate")
		l.addNote("%s have the same effect: these cores are isolated", strings.Join(implied, ", "))
	}
	words = im.joinRepeated(l, im.takeHugePages(l, words))
	stock := strings.Fields(stockArgs(im))
	seen := map[string]bool{}
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=")
		switch {
		case slices.Contains(implied, w):
			continue
		case slices.Contains(stock, w):
			l.markUnderstood("the machine sets %s itself", w)
			continue
		case seen[name]:
			l.addTrap(repeatedArg)
			l.leavePart(w, "an argument can be set only once")
			continue
		}
		seen[name] = true
		im.addArgument(l, w)
	}
	if l.Verdict == "" && !l.partial {
		l.markUnderstood("")
	}
}

// joinRepeated joins the values of an argument that is given more than once, where the kernel
// adds them up as a list.
func (im *importer) joinRepeated(l *Line, words []string) []string {
	var out []string
	for _, w := range words {
		name, value, has := strings.Cut(w, "=")
		i := slices.IndexFunc(out, func(o string) bool { return strings.HasPrefix(o, name+"=") })
		fact, _ := linux.FindArg(im.release.Kernel, name)
		if i < 0 || !has || fact.Value != "list" || out[i] == w {
			out = append(out, w)
			continue
		}
		l.addTrap(repeatedArg)
		out[i] += "," + value
		l.markAdjusted("%s is one list for the kernel", out[i])
	}
	return out
}

// takeHugePages turns pairs of hugepagesz= and hugepages=, which depend on their order, into
// memory.hugepages.
func (im *importer) takeHugePages(l *Line, words []string) []string {
	size, out := "", []string(nil)
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch {
		case name == "hugepagesz":
			size = hugePageSize(value)
		case name == "hugepages" && size != "" && isNumber(value):
			im.setField(l, value, "memory", "hugepages", size)
			size = ""
			continue
		}
		if name != "hugepagesz" || size == "" {
			out = append(out, w)
		}
	}
	return out
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// hugePageSize is the size as memory.hugepages has it; "" for another.
func hugePageSize(s string) string {
	switch strings.ToUpper(s) {
	case "64K":
		return "64KiB"
	case "2M":
		return "2MiB"
	case "32M":
		return "32MiB"
	case "1G":
		return "1GiB"
	}
	return ""
}

// removeArguments takes words of KERNEL_ARGS:remove. The language removes an argument whatever
// its value, so the words must be all that the machine has of it.
func (im *importer) removeArguments(l *Line, value string) {
	words := argWords(value)
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=")
		var others []string
		for _, stock := range argWords(stockArgs(im)) {
			if n, _, _ := strings.Cut(stock, "="); n == name && !slices.Contains(words, stock) {
				others = append(others, stock)
			}
		}
		switch {
		case leaveExpansion(l, w):
		case !slices.Contains(argWords(stockArgs(im)), w):
			l.leavePart(clean(w), "the machine does not set it")
		case len(others) > 0:
			l.leavePart(clean(w), "the machine also sets %s", strings.Join(others, " "))
		default:
			im.setField(l, "null", "kernel", "args", name)
		}
	}
}

// stockArgs are the arguments that the machine of meta-tegra sets.
func stockArgs(im *importer) string {
	m, ok := im.release.Machine(im.machine)
	if !ok {
		if machines := im.board.Releases[im.release.Name].Machines; len(machines) > 0 {
			m, _ = im.release.Machine(machines[0])
		}
	}
	return m.KernelArgs
}

// argWords splits a command line; double quotes keep blanks.
func argWords(text string) []string {
	var words []string
	var b strings.Builder
	quotes := false
	for _, r := range text {
		if r == '"' {
			quotes = !quotes
		}
		if (r == ' ' || r == '\t') && !quotes {
			if b.Len() > 0 {
				words = append(words, b.String())
				b.Reset()
			}
			continue
		}
		b.WriteRune(r)
	}
	if b.Len() > 0 {
		words = append(words, b.String())
	}
	return words
}

// addArgument puts one kernel argument into the configuration.
func (im *importer) addArgument(l *Line, w string) {
	name, value, has := strings.Cut(w, "=")
	switch {
	case strings.Contains(w, "${") || strings.Contains(w, "$("):
		l.addTrap(environmentOnly)
		l.leavePart(clean(w), "bitbake computes it")
	case !isWord(name):
		l.leavePart(clean(w), "not a kernel argument")
	case strings.ContainsAny(w, "\"'"):
		l.leavePart(clean(w), "bitbake or the boot loader would remove the quotes")
	case slices.Contains([]string{"root", "rootfstype", "rootflags", "rootwait", "ro", "rw", "initrd"}, name):
		l.leavePart(w, "the image and its boot loader decide where the root file system is")
	case !has:
		im.setField(l, "true", "kernel", "args", name)
	default:
		im.setField(l, formatScalar(value), "kernel", "args", name)
	}
}

// findIsolation finds the arguments that cpu.isolate implies, when they all name the
// same cores.
func (im *importer) findIsolation(words []string) (cores []int, implied []string) {
	list := func(value string) string {
		for _, flag := range []string{"managed_irq,", "domain,", "nohz,"} {
			for strings.HasPrefix(value, flag) {
				value = strings.TrimPrefix(value, flag)
			}
		}
		return value
	}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		if name != "isolcpus" && name != "nohz_full" && name != "rcu_nocbs" {
			continue
		}
		these, err := cpulist.Parse(list(value))
		if err != nil || len(these) == 0 || cores != nil && !slices.Equal(cores, these) {
			return nil, nil
		}
		cores = these
		implied = append(implied, w)
	}
	// The field sets both isolcpus and nohz_full: one alone does not match it.
	if len(implied) < 2 {
		return nil, nil
	}
	for _, w := range words {
		value, ok := strings.CutPrefix(w, "irqaffinity=")
		if these, err := cpulist.Parse(value); ok && err == nil && im.isComplement(cores, these) {
			implied = append(implied, w)
		}
	}
	return cores, implied
}

// isComplement reports whether rest are the board's cores without these.
func (im *importer) isComplement(cores, rest []int) bool {
	if len(cores)+len(rest) != im.board.Cores {
		return false
	}
	return !slices.ContainsFunc(rest, func(c int) bool { return slices.Contains(cores, c) })
}
