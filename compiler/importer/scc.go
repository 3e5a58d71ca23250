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
	n := 0
	for line := range strings.Lines(string(s.Text)) {
		n++
		words := strings.Fields(line)
		for len(words) > 0 && (words[0] == "force" || words[0] == "if" || words[0] == "then") {
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

// readScc reads a kernel feature description. Its fragments are files of their own; the rest
// concerns the kernel's sources.
func (im *importer) readScc(lines []*Line, s Source) {
	used := len(im.used.kernels) == 0
	for _, name := range im.features {
		used = used || name == s.Name
	}
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		words := strings.Fields(strings.TrimPrefix(l.Text, "force "))
		switch {
		case !used:
			l.leave("no recipe of these files names the feature")
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
