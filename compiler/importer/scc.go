package importer

import (
	"path"
	"strings"
)

// feature is a line of a kernel feature description that names a file.
type feature struct {
	file    string
	line    int
	include bool // another description
}

// readFeature returns the files that a kernel feature names: its fragments, and other features.
func readFeature(s Source) []feature {
	var out []feature
	n, depth := 0, 0
	for line := range strings.Lines(string(s.Text)) {
		n++
		words := strings.Fields(line)
		if isSccConditional(words, &depth) {
			continue
		}
		if len(words) > 0 && words[0] == "force" {
			words = words[1:]
		}
		switch {
		case len(words) >= 3 && words[0] == "kconf":
			out = append(out, feature{words[2], n, false})
		case len(words) >= 2 && words[0] == "include":
			out = append(out, feature{words[1], n, true})
		}
	}
	return out
}

// isSccConditional reports whether a line is part of an if of the shell, and counts how deep it is.
func isSccConditional(words []string, depth *int) bool {
	was := *depth
	for _, w := range words {
		switch strings.TrimSuffix(w, ";") {
		case "if":
			*depth++
		case "fi":
			*depth = max(*depth-1, 0)
		}
	}
	return was > 0 || len(words) > 0 && words[0] == "if"
}

// readScc reads a kernel feature description. Its fragments are files of their own; the rest
// concerns the kernel's sources.
func (im *importer) readScc(lines []*Line, s Source) {
	used := len(im.used.kernels) == 0
	for _, name := range im.features {
		used = used || name == s.Name
	}
	depth := 0
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		words := strings.Fields(strings.TrimPrefix(l.Text, "force "))
		switch conditional := isSccConditional(words, &depth); {
		case !used:
			l.leave("no recipe of these files names the feature")
		case conditional:
			l.leave("it runs under a condition")
		case len(words) >= 3 && words[0] == "kconf":
			im.noteFeatureFile(l, words[2])
		case len(words) >= 2 && words[0] == "include":
			im.noteFeatureFile(l, words[1])
		case len(words) >= 2 && words[0] == "define" && strings.HasPrefix(words[1], "KFEATURE_"):
			l.markUnderstood("a description")
		default:
			l.leave("it concerns the kernel's sources: yoctune sets options only")
		}
	}
}

// noteFeatureFile accounts for a line that names another file.
func (im *importer) noteFeatureFile(l *Line, name string) {
	for _, s := range im.sources {
		if (s.Kind == Kconfig || s.Kind == Scc) && s.Unread == "" &&
			(s.Name == path.Join(path.Dir(l.File), name) || strings.HasSuffix(s.Name, "/"+path.Base(name))) {
			l.markUnderstood("%s is imported as well", s.Name)
			return
		}
	}
	l.leavef("%s is not among these files", clean(name))
}
