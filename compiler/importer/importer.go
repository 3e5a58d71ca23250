// Package importer converts existing configuration (power mode files, sysctl.d, kernel
// fragments, local.conf, units, udev rules, whole layers) to a yoctune configuration,
// and accounts for every line of it.
//
// Nothing is dropped silently: each line of each source ends as a [Line] that was
// understood, adjusted or left, with the reason. Nothing is guessed: lines that the language
// cannot express or the checks refuse are left.
package importer

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// Verdict is the outcome for a line.
type Verdict string

// The verdicts.
const (
	Understood Verdict = "understood" // the configuration has the same value
	Adjusted   Verdict = "adjusted"   // it is in the configuration with another value or form
	Left       Verdict = "left"       // it is not in the configuration
	Comment    Verdict = "comment"    // a comment or a blank line
)

// Line is a source line with its outcome.
type Line struct {
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Column  int     `json:"column"`
	Text    string  `json:"text"`
	Verdict Verdict `json:"verdict"`
	Path    string  `json:"path,omitempty"` // path in the configuration
	Why     string  `json:"why,omitempty"`
	Traps   []Trap  `json:"traps,omitempty"`
	// Remarks are warnings and notes of the checks about the field that it set.
	Remarks []string `json:"remarks,omitempty"`

	doc     []string // the comment directly above it
	paths   []string // fields that it set and that are still set
	partial bool     // part of it is left
	head    *Line    // the line that this one continues
}

// Options are the options of [Import].
type Options struct {
	Kind       Kind   // of every file; "" to look at name and content
	Board      string // "" to find out from the files
	Release    string // "" to find out from the files
	Machine    string // "" to find out from the files, or the board's default
	Layer      string // layer.name; "" to take it from the files
	Maintainer string // layer.maintainer
	// Check checks a configuration as `yoctune vet` does.
	Check func(files map[string][]byte) *diag.Report
}

// Result is a configuration with an account of the lines it came from.
type Result struct {
	Config  []byte // the text of config.cue
	Lines   []*Line
	Board   string
	Release string
	Machine string
}

// Count is the number of lines with a verdict.
func (r *Result) Count(v Verdict) int {
	n := 0
	for _, l := range r.Lines {
		if l.Verdict == v {
			n++
		}
	}
	return n
}

// Errors of [Import].
var (
	// ErrWhich is returned when neither files nor options determine the board or release.
	ErrWhich = errors.New("the files name no board or release")
	// errRefused is returned when the checks refuse the configuration for a reason
	// that cannot be traced to a source line.
	errRefused = errors.New("the configuration would not pass the checks")
	// ErrNothing is returned when no file is of a kind that can be imported.
	ErrNothing = errors.New("nothing to import: no file is of a kind that yoctune reads")
	// ErrUnknown is returned for a board or release without facts.
	ErrUnknown = errors.New("not known")
)

// readsSomething reports whether a source is of a kind that can be imported.
func (im *importer) readsSomething() bool {
	return slices.ContainsFunc(im.sources, func(s Source) bool { return s.Unread == "" && s.Kind != Other })
}

// Import reads sources and returns the configuration. With [ErrNothing] the result has the
// lines only, which give the reasons.
func Import(sources []Source, o Options) (*Result, error) {
	im := &importer{o: o, scope: everywhere}
	for _, s := range sources {
		if s.Kind == "" {
			s.Kind = o.Kind
		}
		if s.Kind == "" {
			s.Kind = KindOf(cmp.Or(s.resolved, s.Name), s.Text)
		}
		im.sources = append(im.sources, s)
	}
	if !im.readsSomething() {
		for _, s := range im.sources {
			im.importSource(s)
		}
		return &Result{Lines: im.lines}, ErrNothing
	}
	if err := im.identify(); err != nil {
		return nil, err
	}
	im.findUsages()
	for i := range im.sources {
		im.sources[i].Kind = im.kindByRecipe(im.sources[i])
	}
	im.findActive()
	im.importAll()
	if err := im.removeRefused(); err != nil {
		return nil, err
	}
	for _, l := range im.lines {
		l.finish()
	}
	return &Result{Config: im.formatConfig(), Lines: im.lines, Board: im.board.ID, Release: im.release.Name, Machine: im.machine}, nil
}

// everywhere is the scope shared by all machines.
const everywhere = ""

type importer struct {
	o       Options
	sources []Source
	lines   []*Line
	config  config

	board   *board.Board
	release release.Release
	machine string // bitbake MACHINE of the target
	custom  bool   // the machine is the user's own, not meta-tegra's
	// overrides are the names besides its own that the machine answers to.
	overrides []string
	scope     string
	layer     string
	priority  string
	distro    string
	active    map[string]bool // configuration files that take part in the build
	// collections are the names of the layers among the sources.
	collections []string
	used        *usages
	features    []string // kernel features that a kernel recipe reaches
	kas         []*kasFile
	tuned       []*tunedProfile
	assigned    map[string]assigned // by variable
	images      int                 // recipes of images; 0 before they are counted
	whole       []*entry            // units of which all fields stay or none
	nearest     map[string]string   // directives that were probably meant, by kind and name
	spent       int                 // bytes that the words of scripts expanded to
}

// importAll reads the sources in the order in which the build does, so that the line that
// wins there wins here.
func (im *importer) importAll() {
	parts := make([][]*Line, len(im.sources))
	readable := make([]bool, len(im.sources))
	for i, s := range im.sources {
		lines, problem := split(s)
		im.lines = append(im.lines, lines...)
		parts[i], readable[i] = lines, problem == ""
	}
	order := make([]int, len(im.sources))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := im.sources[a], im.sources[b]
		return cmp.Or(parseRank(x)-parseRank(y), strings.Compare(dropInKey(x), dropInKey(y)))
	})
	kasRead := false
	for _, i := range order {
		if !kasRead && parseRank(im.sources[i]) > localRank {
			im.readKasFiles() // their text is local.conf's
			kasRead = true
		}
		if readable[i] {
			im.importLines(parts[i], im.sources[i])
		}
	}
	if !kasRead {
		im.readKasFiles()
	}
	im.readTunedProfiles()
	im.dropOverridden()
}

// dropOverridden drops what is for every machine where a line for the machine sets another value.
func (im *importer) dropOverridden() {
	for _, e := range slices.Clone(im.config.entries) {
		if e.scope == everywhere {
			continue
		}
		o := im.config.find(&entry{scope: everywhere, names: e.names})
		if o == nil || o.value == e.value {
			continue
		}
		for _, l := range o.lines {
			l.addTrap(setTwice)
			l.dropField(showPath(o.names), positionOf(e.lines[0])+" sets it for the machine, and wins")
		}
		im.config.remove(o)
	}
}

// dropInKey orders the files of drop-in folders, which the device reads by their names wherever
// they lie.
func dropInKey(s Source) string {
	if base := path.Base(s.Name); s.Kind == Sysctl || s.Kind == Udev || s.Kind == Modprobe {
		if base == "sysctl.conf" {
			return "~" + base // read last
		}
		return base
	}
	return ""
}

// Ranks of files in bitbake's order of parsing.
const (
	layerRank = iota
	localRank
	machineIncludeRank
	machineRank
	distroIncludeRank
	distroRank
	lastRank
	timerRank // after the services
)

// parseRank is the place of a file in bitbake's order of parsing.
func parseRank(s Source) int {
	parts := strings.Split(path.Dir(s.Name), "/")
	in := func(folder string) bool {
		i := slices.Index(parts, "conf")
		return i >= 0 && slices.Contains(parts[i:], folder)
	}
	isInclude := path.Ext(s.Name) == ".inc" || slices.Contains(parts, "include")
	switch {
	case s.Kind == Kas:
		return localRank
	case isTimer(s):
		return timerRank
	case s.Kind != BitBake:
		return lastRank
	case path.Base(s.Name) == "layer.conf" || strings.Contains(path.Base(s.Name), "bblayers.conf"):
		return layerRank
	case in("machine") && isInclude:
		return machineIncludeRank
	case in("machine"):
		return machineRank
	case in("distro") && isInclude:
		return distroIncludeRank
	case in("distro"):
		return distroRank
	case path.Ext(s.Name) == ".conf" || path.Ext(s.Name) == ".sample" || path.Ext(s.Name) == ".append":
		return localRank
	}
	return lastRank
}

func (im *importer) importSource(s Source) {
	lines, problem := split(s)
	im.lines = append(im.lines, lines...)
	if problem == "" {
		im.importLines(lines, s)
	}
}

func (im *importer) importLines(lines []*Line, s Source) {
	scope, why, note := everywhere, "", ""
	if im.used != nil && s.Kind != BitBake {
		scope, why, note = im.fileScope(s)
	}
	if s.Kind == BitBake {
		why = im.inactive(s)
	}
	if why != "" {
		leaveRest(lines, why)
		return
	}
	im.scope = scope
	read := map[Kind]func([]*Line, Source){
		NVPModel: im.readNVPModel, NVFanControl: im.readNVFanControl, Sysctl: im.readSysctl, Kconfig: im.readKconfig,
		BitBake: im.readBitBake, Cmdline: im.readCmdlineFile, Systemd: im.readSystemd, Udev: im.readUdev,
		ModulesLoad: im.readModulesLoad, Modprobe: im.readModprobe, Script: im.readScript, Scc: im.readScc, Kas: im.readKas,
		Networkd: im.readNetworkd, Tuned: im.readTuned, Fstab: im.readFstab, Tmpfiles: im.readTmpfiles,
	}[s.Kind]
	if read == nil {
		leaveRest(lines, "yoctune has no setting for files of this kind")
		return
	}
	read(lines, s)
	im.scope = everywhere
	if s.Kind == Kas || s.Kind == Tuned {
		return // such files are read together
	}
	for _, l := range lines {
		if note != "" && len(l.paths) > 0 {
			l.markAdjusted("%s", note)
		}
		if l.Verdict == "" && !l.partial && l.head == nil { // a reader accounts for every line; this is the net below it
			l.leave("not understood")
		}
	}
}

// leaveRest leaves the lines that have no verdict yet.
func leaveRest(lines []*Line, why string) {
	for _, l := range lines {
		if l.Verdict == "" {
			l.leave(why)
		}
	}
}

// newEntry returns an entry in the scope of the line that is read. Fields of build are for
// all machines.
func (im *importer) newEntry(names []string) *entry {
	e := &entry{scope: im.scope, names: names}
	if names[0] == "build" {
		e.scope = everywhere
	}
	return e
}

// setField adds a value to the configuration. A later line for the same field wins, as it does in
// every format that is read here.
func (im *importer) setField(l *Line, value string, names ...string) {
	if m := templated.FindString(value + " " + names[len(names)-1]); m != "" && names[0] != "services" {
		l.leavePart(clean(showPath(names)), "a template fills in %s", clean(m))
		return
	}
	e := im.newEntry(names)
	e.value, e.lines, e.doc = value, []*Line{l}, l.doc
	l.doc = nil // only the first of several settings gets the comment
	if l.Verdict == "" {
		l.Verdict = Understood
	}
	where := showPath(names)
	if old := im.config.find(e); old != nil {
		if old.value == value {
			if !slices.Contains(old.lines, l) {
				old.lines = append(old.lines, l)
			}
			if !slices.Contains(l.paths, where) {
				l.paths = append(l.paths, where)
			}
			return
		}
		for _, earlier := range old.lines {
			if earlier == l {
				l.paths = slices.DeleteFunc(l.paths, func(p string) bool { return p == where })
				l.addNote("%s is set more than once, and the last value wins", where)
				continue
			}
			earlier.addTrap(setTwice)
			earlier.dropField(where, positionOf(l)+" sets it again, and the last one wins")
		}
		im.config.remove(old)
	}
	l.paths = append(l.paths, where)
	im.config.entries = append(im.config.entries, e)
}

// extendList adds words to a list of the configuration.
func (im *importer) extendList(l *Line, words []string, names ...string) {
	if len(words) == 0 {
		return
	}
	probe := im.newEntry(names)
	old := im.config.find(probe)
	if old == nil {
		im.setField(l, quotedList(words), names...)
		im.config.find(probe).words = words
		return
	}
	for _, w := range words {
		if !slices.Contains(old.words, w) {
			old.words = append(old.words, w)
		}
	}
	old.value = quotedList(old.words)
	if l.Verdict == "" {
		l.Verdict = Understood
	}
	if !slices.Contains(l.paths, showPath(names)) {
		old.lines = append(old.lines, l)
		l.paths = append(l.paths, showPath(names))
	}
}

func (l *Line) leave(why string) {
	l.Verdict, l.Why, l.paths = Left, why, nil
}

// leavePart notes that one of the several things on a line is left.
func (l *Line) leavePart(what, format string, args ...any) {
	l.partial = true
	l.addNote("%s is left: %s", what, fmt.Sprintf(format, args...))
}

// dropField removes a field from a line that set it.
func (l *Line) dropField(where, why string) {
	if l.partial && !slices.Contains(l.paths, where) {
		return // the first reason was enough
	}
	l.paths = slices.DeleteFunc(l.paths, func(p string) bool { return p == where })
	if len(l.paths) == 0 && !l.partial {
		l.leave(why)
		return
	}
	l.leavePart(where, "%s", why)
}

// finish decides the verdict of a line with several parts.
func (l *Line) finish() {
	switch {
	case l.head != nil:
		l.Verdict = l.head.Verdict // the head comes first
		l.addNote("continues line %d", l.head.Line)
	case l.partial && len(l.paths) > 0:
		l.Verdict = Adjusted
	case l.partial:
		l.Verdict = Left
	}
	l.Path = strings.Join(l.paths[:min(len(l.paths), maxPaths)], ", ")
	if more := len(l.paths) - maxPaths; more > 0 {
		l.Path += fmt.Sprintf(", and %d more", more)
	}
	if len(l.Why) > maxWhy {
		l.Why = strings.ToValidUTF8(l.Why[:maxWhy], "") + "…"
	}
	if r := []rune(l.Text); len(r) > shownRunes {
		l.Text = string(r[:shownRunes]) + "…"
	}
}

// addTrap records a known trap on a line.
func (l *Line) addTrap(t Trap) {
	if t != "" && !slices.Contains(l.Traps, t) {
		l.Traps = append(l.Traps, t)
	}
}

func (l *Line) leavef(format string, args ...any) { l.leave(fmt.Sprintf(format, args...)) }

// markAdjusted notes that a line is in the configuration in another form.
func (l *Line) markAdjusted(format string, args ...any) {
	l.Verdict = Adjusted
	l.addNote(format, args...)
}

// markUnderstood notes that the configuration does not need the line.
func (l *Line) markUnderstood(format string, args ...any) {
	l.Verdict = Understood
	l.addNote(format, args...)
}

func (l *Line) addNote(format string, args ...any) {
	if len(l.Why) > maxWhy {
		return // the report cuts it
	}
	why := fmt.Sprintf(format, args...)
	if slices.Contains(strings.Split(l.Why, "; "), why) {
		return // a loop repeats it
	}
	if l.Why != "" && why != "" {
		why = l.Why + "; " + why
	}
	if why != "" {
		l.Why = why
	}
}

// removeRefused removes fields that the checks refuse, until none are refused. Their lines are
// left, with the check's message as the reason.
func (im *importer) removeRefused() error {
	if im.o.Check == nil {
		return nil
	}
	// Each round removes at least one entry.
	for range len(im.config.entries) + 1 {
		text := im.formatConfig()
		report := im.o.Check(map[string][]byte{configName: text})
		if !report.Failed() {
			im.addRemarks(report)
			return nil
		}
		where := im.config.locateEntries(text)
		removed := false
		for _, d := range report.All() {
			if d.Severity != diag.Error {
				continue
			}
			why := "the checks refuse it: " + d.Message
			if d.Help != "" {
				why += " (" + d.Help + ")"
			}
			for _, e := range im.withWholeUnits(d, where.entriesFor(d)) {
				for _, l := range e.lines {
					l.dropField(showPath(e.names), why+" ["+d.ID+"]")
				}
				im.config.remove(e)
				removed = true
				if !isIgnored(d, e) {
					im.leaveInstall(e, why+" ["+d.ID+"]")
				}
			}
		}
		if !removed {
			for _, d := range report.All() {
				if d.Severity == diag.Error {
					return fmt.Errorf("%w: %s [%s]", errRefused, d.Message, d.ID)
				}
			}
		}
	}
	return errRefused
}

// leaveInstall leaves the lines that start a unit at boot, which need no entry, if the unit stays.
func (im *importer) leaveInstall(refused *entry, why string) {
	for _, u := range im.whole {
		if refused.scope != u.scope || !isWithin(refused.names, u.names) {
			continue
		}
		for _, l := range u.lines {
			l.leave(why)
		}
		u.lines = nil
	}
}

// withWholeUnits adds to entries the others of their units: a unit without one of its directives
// would behave in another way.
func (im *importer) withWholeUnits(d diag.Diagnostic, refused []*entry) []*entry {
	all := slices.Clone(refused)
	for _, e := range refused {
		if isIgnored(d, e) {
			continue
		}
		for _, u := range im.whole {
			if e.scope != u.scope || !isWithin(e.names, u.names) {
				continue
			}
			for _, o := range im.config.entries {
				if o.scope == u.scope && isWithin(o.names, u.names) && !slices.Contains(all, o) {
					all = append(all, o)
				}
			}
		}
	}
	return all
}

// isIgnored reports whether a directive is refused for a value that systemd ignores: the unit behaves
// the same without it, unless yoctune's services have a default of their own.
func isIgnored(d diag.Diagnostic, e *entry) bool {
	name := last(e.names)
	return d.ID == "unit-directive-value" && !strings.HasPrefix(name, "Exec") && !slices.Contains([]string{"Type", "Restart", "RestartSec", "WantedBy"}, name) &&
		!slices.Contains(fatalDirectives, name)
}

// fatalDirectives are those for whose wrong values systemd refuses the unit: their parsers in
// load-fragment.c return ENOEXEC, as do those of commands.
var fatalDirectives = []string{
	"AppArmorProfile", "Group", "RootDirectory", "RootImage", "RootVerity", "SELinuxContext", "SmackProcessLabel",
	"SupplementaryGroups", "User", "WorkingDirectory",
}

func isWithin(names, top []string) bool {
	return len(names) >= len(top) && slices.Equal(names[:len(top)], top)
}

func (im *importer) addRemarks(report *diag.Report) {
	where := im.config.locateEntries(im.formatConfig())
	for _, d := range report.All() {
		entries := where.entriesFor(d)
		for _, e := range entries[:min(1, len(entries))] { // what is about several fields stands once
			if len(e.lines) == 1 && d.Pos.Line != 0 {
				e.lines[0].Remarks = append(e.lines[0].Remarks, fmt.Sprintf("%s: %s [%s]", d.Severity, d.Message, d.ID))
			}
		}
	}
}

// isWord reports whether s could be a name: letters, digits and marks without a meaning in any
// of the formats.
func isWord(s string) bool {
	return s != "" && len(s) < 200 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("\"'`$\\;<>(){}[]|&*?!#", r)
	})
}

// positionOf describes a line's position, for messages about another line.
func positionOf(l *Line) string { return fmt.Sprintf("%s:%d", path.Base(l.File), l.Line) }
