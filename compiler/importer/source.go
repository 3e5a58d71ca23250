package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yoctune/yoctune/internal/infile"
)

// Kind is a format.
type Kind string

// The formats that can be imported.
const (
	NVPModel     Kind = "nvpmodel"
	NVFanControl Kind = "nvfancontrol"
	Sysctl       Kind = "sysctl"
	Kconfig      Kind = "kconfig"
	BitBake      Kind = "bitbake"
	Cmdline      Kind = "cmdline"
	Systemd      Kind = "systemd"
	Udev         Kind = "udev"
	ModulesLoad  Kind = "modules-load"
	Modprobe     Kind = "modprobe"
	Script       Kind = "script"
	Scc          Kind = "scc"
	Kas          Kind = "kas"
	Networkd     Kind = "networkd"
	Tuned        Kind = "tuned"
	Fstab        Kind = "fstab"
	Tmpfiles     Kind = "tmpfiles"
	Other        Kind = "other"
)

// Kinds lists the formats that [Options.Kind] may name.
func Kinds() []string {
	return []string{
		string(NVPModel), string(NVFanControl), string(Sysctl), string(Kconfig), string(BitBake), string(Cmdline),
		string(Systemd), string(Udev), string(ModulesLoad), string(Modprobe), string(Script), string(Scc), string(Kas), string(Networkd), string(Tuned),
		string(Fstab), string(Tmpfiles),
	}
}

// Source is a file to import.
type Source struct {
	Name string // as the user calls it, with slashes
	Text []byte
	Kind Kind // "" to look at name and content
	// Link is the target of the symbolic link that the file was read through.
	Link string
	// resolved is the file itself, which decides the kind: whoever made the link may be
	// a stranger, and only files that look like settings are shown.
	resolved string
	// Given is set for a file that the user named, unlike one found in a folder.
	Given bool
	// Unread is the reason why the file was not read, although it may hold settings.
	Unread string
}

// Skipped is a file or folder that holds no settings, and was not read.
type Skipped struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Bounds of the input.
const (
	MaxFile    = 2 << 20  // bytes of a file
	maxTotal   = 32 << 20 // bytes of all files
	maxFiles   = 5000
	maxLines   = 50000 // of a file
	maxUnit    = 1000  // lines of a unit, which is imported whole or not at all
	shownRunes = 200   // of a line in the report
	maxWhy     = 4096  // bytes of a reason in the report
	maxPaths   = 100   // of a line in the report
)

// errTooLarge is returned when the sources exceed the limits of [Import].
var errTooLarge = errors.New("too large to import")

// Read reads files and folders, and returns what it did not read beside the sources.
// Folders are read recursively, through links to files.
func Read(names []string) ([]Source, []Skipped, error) {
	r := &reader{}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, nil, fmt.Errorf("importing: %w", err)
		}
		switch {
		case info.IsDir():
			err = r.readFolder(name)
		case !info.Mode().IsRegular():
			err = fmt.Errorf("importing %s: not a regular file", name)
		default:
			had := len(r.sources)
			if err = r.readFile(name, "", info); err == nil && len(r.sources) > had {
				r.sources[had].Given = true
				err = r.readKasIncludes(had)
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return r.sources, r.skipped, nil
}

type reader struct {
	sources []Source
	skipped []Skipped
	read    []os.FileInfo // of sources, nil for those that were not read
	total   int64
}

func (r *reader) readFolder(name string) error {
	// A slash at the end makes a link to a folder the folder.
	err := filepath.WalkDir(name+string(filepath.Separator), func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && p == name+string(filepath.Separator):
			return err
		case err != nil:
			return r.leave(p, "", reasonOf(err))
		case e.IsDir():
			why := map[string]string{".git": "data of version control", ".repo": "data of version control", "cue.mod": "a CUE module"}[e.Name()]
			if why == "" || p == name+string(filepath.Separator) {
				return nil
			}
			r.skip(p, why)
			return filepath.SkipDir
		case e.Type()&fs.ModeSymlink != 0:
			return r.readLink(p)
		case !e.Type().IsRegular():
			return r.leave(p, "", "not a regular file")
		}
		return r.readEntry(p, "")
	})
	if err != nil {
		return fmt.Errorf("importing: %w", err)
	}
	return nil
}

// readLink reads the file that a link in a folder leads to. Links to folders may form
// loops and are not followed.
func (r *reader) readLink(name string) error {
	target, err := os.Readlink(name)
	if err != nil {
		return r.leave(name, "", reasonOf(err))
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.leave(name, target, "a link to "+target+", which does not exist")
	case err != nil:
		return r.leave(name, target, "a link to "+target+": "+reasonOf(err))
	case info.IsDir():
		return r.leave(name, target, "a link to the folder "+target+"; give that folder to import it")
	case !info.Mode().IsRegular():
		return r.leave(name, target, "a link to "+target+", which is not a regular file")
	}
	if err := r.readEntry(name, target); err != nil {
		return err
	}
	if len(r.sources) == 0 {
		return nil
	}
	if last := &r.sources[len(r.sources)-1]; last.Name == filepath.ToSlash(name) {
		resolved, err := filepath.EvalSymlinks(name)
		last.resolved = filepath.ToSlash(cmp.Or(resolved, name))
		return err
	}
	return nil
}

// reasonOf returns the cause of a failed access without the name of the file.
func reasonOf(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// readEntry reads a file of a folder, unless files of its kind hold no settings.
func (r *reader) readEntry(name, link string) error {
	if !canHoldSettings(filepath.ToSlash(name)) && !r.isKasFile(name) {
		r.skip(name, "files of this kind hold no settings")
		return nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return r.leave(name, link, reasonOf(err))
	}
	return r.readFile(name, link, info)
}

// isKasFile looks into a YAML or JSON file.
func (r *reader) isKasFile(name string) bool {
	ext := filepath.Ext(name)
	if ext != ".yml" && ext != ".yaml" && ext != ".json" {
		return false
	}
	text, err := infile.Read(name, MaxFile)
	return err == nil && isKas(text)
}

// maxParents is how far above a file of kas those that it includes are searched: kas starts at
// the top of the repository.
const maxParents = 8

// readKasIncludes reads the files that a file of kas includes, and what those include.
func (r *reader) readKasIncludes(from int) error {
	for i := from; i < len(r.sources); i++ {
		s := r.sources[i]
		if KindOf(s.Name, s.Text) != Kas {
			continue
		}
		f, _ := parseKas(s, 0) // a file that cannot be read is left with the reason
		for _, name := range f.includes {
			if err := r.readKasInclude(path.Dir(s.Name), name); err != nil {
				return err
			}
		}
	}
	return nil
}

// readKasInclude reads a file that another includes, from its folder or one above; the report names
// the line whose file is not found.
func (r *reader) readKasInclude(folder, name string) error {
	if !filepath.IsLocal(name) {
		return nil
	}
	for range maxParents {
		file := path.Join(folder, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return r.readFile(file, "", info)
		}
		if _, err := os.Stat(path.Join(folder, ".git")); err == nil {
			return nil
		}
		folder = path.Join(folder, "..")
	}
	return nil
}

func (r *reader) skip(name, why string) {
	r.skipped = append(r.skipped, Skipped{filepath.ToSlash(name), why})
}

// leave adds a file that cannot be read.
func (r *reader) leave(name, link, why string) error {
	return r.add(Source{Name: filepath.ToSlash(name), Link: link, Unread: why}, nil)
}

func (r *reader) add(s Source, info os.FileInfo) error {
	if len(r.sources) == maxFiles {
		return fmt.Errorf("more than %d files: %w", maxFiles, errTooLarge)
	}
	r.sources, r.read = append(r.sources, s), append(r.read, info)
	return nil
}

// canHoldSettings reports whether a file of a layer can hold settings.
func canHoldSettings(name string) bool {
	switch path.Ext(name) {
	case ".patch", ".diff", ".dts", ".dtsi", ".dtso", ".md", ".rst", ".txt", ".png", ".jpg", ".svg", ".c", ".h", ".cc", ".cpp", ".py", ".go", ".rs", ".cue", ".json", ".yml", ".yaml", ".xml", ".html", ".pem", ".crt", ".gz", ".xz", ".bin", ".wks", ".in", ".pyc":
		return path.Base(name) == "cmdline.txt"
	}
	base := path.Base(name)
	return !strings.HasPrefix(base, ".") && !strings.HasPrefix(base, "COPYING") && !strings.HasPrefix(base, "LICENSE") &&
		!strings.HasPrefix(base, "README") && base != "MAINTAINERS" && base != "CODEOWNERS" && base != "Makefile" && base != "Dockerfile"
}

// readFile reads a file, through a link when there is one.
func (r *reader) readFile(name, link string, info os.FileInfo) error {
	for i, other := range r.read {
		if other != nil && os.SameFile(other, info) {
			r.skip(name, "the same file as "+r.sources[i].Name)
			return nil
		}
	}
	if info.Size() > MaxFile {
		return r.leave(name, link, fmt.Sprintf("the file has %d bytes; at most %d MiB are read", info.Size(), MaxFile>>20))
	}
	if r.total += info.Size(); r.total > maxTotal {
		return fmt.Errorf("more than %d MiB: %w", maxTotal>>20, errTooLarge)
	}
	text, err := infile.Read(name, MaxFile)
	if err != nil {
		return r.leave(name, link, reasonOf(err))
	}
	return r.add(Source{Name: filepath.ToSlash(name), Text: text, Link: link}, info)
}

// KindOf guesses the format of a file by its name, then by its content.
func KindOf(name string, text []byte) Kind {
	base, dir := path.Base(name), path.Base(path.Dir(name))
	ext := path.Ext(base)
	has := func(s string) bool { return bytes.Contains(text, []byte(s)) }
	switch {
	case bytes.IndexByte(text, 0) >= 0:
		return Other
	case has("POWER_MODEL ") && has("PARAM") || strings.HasPrefix(base, "nvpmodel") && ext == ".conf" && !strings.Contains(base, "service"):
		return NVPModel
	case strings.HasPrefix(base, "nvfancontrol") && ext == ".conf" || has("FAN_DEFAULT_PROFILE"):
		return NVFanControl
	case ext == ".bb" || ext == ".bbappend" || ext == ".inc" || ext == ".bbclass":
		return BitBake
	case ext == ".rules":
		return Udev
	case slices.Contains([]string{".service", ".slice", ".socket", ".target", ".timer", ".mount", ".path"}, ext) || strings.HasSuffix(dir, ".service.d"), strings.HasSuffix(dir, ".timer.d"):
		return Systemd
	case dir == "sysctl.d" || strings.Contains(base, "sysctl") && ext == ".conf":
		return Sysctl
	case dir == "modules-load.d":
		return ModulesLoad
	case base == "fstab":
		return Fstab
	case dir == "tmpfiles.d" || strings.HasPrefix(base, "tmpfiles") && ext == ".conf":
		return Tmpfiles
	case dir == "modprobe.d" || strings.Contains(base, "modprobe") && ext == ".conf" || strings.Contains(base, "blacklist") && ext == ".conf":
		return Modprobe
	case ext == ".scc":
		return Scc
	case ext == ".link" || ext == ".network" || ext == ".netdev":
		return Networkd
	case isTuned(name):
		return Tuned
	case ext == ".yml" || ext == ".yaml" || ext == ".json":
		if isKas(text) {
			return Kas
		}
		return Other
	case (ext == ".cfg" || ext == ".fragment") && (has("CONFIG_") || len(bytes.TrimSpace(text)) == 0) || base == ".config" || ext == ".config" || strings.HasSuffix(base, "defconfig"):
		return Kconfig
	case ext == ".sh" || bytes.HasPrefix(text, []byte("#!")):
		return Script
	case base == "cmdline" || base == "cmdline.txt" || base == "extlinux.conf":
		return Cmdline
	case ext == ".conf" || ext == ".sample" || ext == ".append":
		return confKind(name, text)
	}
	return Other
}

// sysctlRoots are the folders of /proc/sys.
var sysctlRoots = []string{"abi", "crypto", "debug", "dev", "fs", "fscache", "kernel", "net", "sunrpc", "user", "vm"}

// firstPart is what stands before the first separator of a kernel parameter.
func firstPart(key string) string {
	if i := strings.IndexAny(key, "./"); i >= 0 {
		return strings.TrimPrefix(key[:i], "-")
	}
	return ""
}

// confKind determines the kind of a .conf file from its content.
func confKind(name string, text []byte) Kind {
	if slices.Contains(strings.Split(path.Dir(name), "/"), "conf") || strings.Contains(path.Base(name), "local.conf") || strings.Contains(path.Base(name), "bblayers.conf") {
		return BitBake
	}
	dotted, modules, assigned, sections, other := 0, 0, 0, 0, 0
	for line := range bytes.Lines(text) {
		s := strings.TrimSpace(string(line))
		if s == "" || s[0] == '#' || s[0] == ';' {
			continue
		}
		key, value, ok := strings.Cut(s, "=")
		key = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(key), "?:+.-"))
		first, _, _ := strings.Cut(s, " ")
		switch {
		case ok && strings.HasPrefix(strings.TrimSpace(value), `"`) && strings.ToUpper(key) == key:
			assigned++
		case s[0] == '[':
			sections++
		case ok && slices.Contains(sysctlRoots, firstPart(key)):
			dotted++
		case ok && strings.ContainsAny(key, "./"):
			other++
		case slices.Contains([]string{"blacklist", "options", "alias", "softdep", "install"}, first):
			modules++
		}
	}
	switch {
	case sections > 0 || other > dotted+assigned+modules: // sysctl.d, modprobe.d and bitbake's files have none
		return Other
	case dotted > 0 && dotted >= assigned && dotted >= modules:
		return Sysctl
	case assigned > 0 && assigned >= modules:
		return BitBake
	case modules > 0:
		return Modprobe
	}
	return Other
}

// otherReason explains why a file of a kind that is not read is left.
func otherReason(name string) string {
	base, dir := path.Base(name), path.Base(path.Dir(name))
	switch {
	case path.Ext(base) == ".nmconnection" || dir == "system-connections":
		return "a connection of NetworkManager; network.NAME sets the MTU and the hardware of an interface by its name"
	case base == "crontab" || dir == "crontabs" || strings.HasPrefix(dir, "cron."):
		return "cron runs it again and again; yoctuned keeps what the configuration sets"
	}
	return "yoctune has no setting for files of this kind"
}

// split splits a source into lines. Comments and blanks get their verdict here; a comment
// directly above a line belongs to it. For binary data, problem is the reason and the lines
// have their verdicts.
func split(s Source) (lines []*Line, problem string) {
	text := bytes.TrimPrefix(s.Text, []byte("\ufeff"))
	if s.Unread != "" {
		l := &Line{File: s.Name, Line: 1, Column: 1}
		l.leave(s.Unread)
		return []*Line{l}, l.Why
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 || s.Kind == Other {
		l := &Line{File: s.Name, Line: 1, Column: 1}
		l.leave(otherReason(s.Name))
		if s.Kind != Other {
			l.leave("not a text file")
		}
		return []*Line{l}, l.Why
	}
	if n := bytes.Count(text, []byte("\n")); n > maxUnit && (s.Kind == Systemd || s.Kind == Networkd) {
		l := &Line{File: s.Name, Line: 1, Column: 1}
		l.leavef("the file has %d lines; of a unit at most %d are read", n, maxUnit)
		return []*Line{l}, l.Why
	}
	var doc []string
	for raw := range bytes.Lines(text) {
		if len(lines) == maxLines {
			l := &Line{File: s.Name, Line: len(lines) + 1, Column: 1}
			l.leavef("the file has more than %d lines; this line and the following ones were not read", maxLines)
			return append(lines, l), ""
		}
		full := strings.TrimRight(string(raw), "\r\n")
		trimmed := strings.TrimSpace(full)
		l := &Line{File: s.Name, Line: len(lines) + 1, Column: 1 + len(full) - len(strings.TrimLeft(full, " \t")), Text: trimmed}
		lines = append(lines, l)
		comment, ok := commentOf(s.Kind, trimmed)
		switch {
		case trimmed == "":
			l.Verdict, doc = Comment, nil
		case ok:
			l.Verdict = Comment
			// The comments of NVIDIA's files describe the format, not the setting.
			if comment != "" && s.Kind != NVPModel && s.Kind != NVFanControl {
				doc = append(doc, comment)
			}
		default:
			l.doc, doc = trimDoc(doc), nil
		}
	}
	return lines, ""
}

// maxDoc is how many lines of comment are kept with a setting: longer ones are
// headers and licences.
const maxDoc = 4

func trimDoc(doc []string) []string {
	if len(doc) > maxDoc {
		return nil
	}
	for _, d := range doc {
		if strings.Contains(strings.ToLower(d), "copyright") || strings.Contains(d, "SPDX-") {
			return nil
		}
	}
	return doc
}

// commentOf returns the text of a line that is nothing but a comment.
func commentOf(k Kind, line string) (string, bool) {
	switch {
	case line == "":
		return "", false
	case strings.HasPrefix(line, "#!"):
		return "", true
	case line[0] == '#':
		if k == Kconfig && strings.HasPrefix(line, "# CONFIG_") {
			return "", false // "is not set" is an assignment
		}
		text := strings.TrimSpace(strings.Trim(line, "#=*- \t"))
		return clean(text), true
	case line[0] == ';' && slices.Contains([]Kind{Sysctl, Systemd, ModulesLoad, Networkd, Tuned}, k):
		return clean(strings.TrimSpace(strings.Trim(line, ";"))), true
	}
	return "", false
}

// clean converts a comment to one for CUE.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r == 0xfeff || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > shownRunes {
		s = string(r[:shownRunes])
	}
	return strings.TrimSpace(s)
}

// groupContinuedLines joins lines that a backslash at the end continues. Each group is one
// statement; its first line stands for it.
func groupContinuedLines(lines []*Line) [][]*Line {
	var groups [][]*Line
	open := false
	for _, l := range lines {
		if l.Verdict != "" {
			if l.Text == "" {
				open = false
			}
			continue
		}
		if open {
			last := len(groups) - 1
			groups[last] = append(groups[last], l)
		} else {
			groups = append(groups, []*Line{l})
		}
		open = strings.HasSuffix(l.Text, `\`)
	}
	return groups
}

// joinLines is the text of a group.
func joinLines(group []*Line) string {
	parts := make([]string, 0, len(group))
	for _, l := range group {
		parts = append(parts, strings.TrimSpace(strings.TrimSuffix(l.Text, `\`)))
	}
	return strings.Join(parts, " ")
}

// copyVerdict gives the other lines of a group the verdict of its first.
func copyVerdict(group []*Line) {
	for _, l := range group[1:] {
		if l.Verdict == "" {
			l.head = group[0]
		}
	}
}
