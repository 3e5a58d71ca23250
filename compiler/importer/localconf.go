package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/variable"
)

// isLocal reports whether a file is the build's own configuration, beside which bitbake reads the
// layer's settings.
func (r *recipe) isLocal() bool {
	base := path.Base(r.source.Name)
	return parseRank(r.source) == localRank && path.Base(path.Dir(r.source.Name)) != "multiconfig" &&
		(strings.Contains(base, "local.conf") || slices.Contains([]string{"site.conf", "auto.conf"}, base))
}

// readVariable reads a variable without a field: its text means the same in the layer's settings.
func (r *recipe) readVariable(l *Line, a assignment) {
	fact, known := variable.Lookup(r.im.release.Name, a.base)
	at := []string{"build", "variables", a.base}
	switch {
	case !known:
		l.leavef("yoctune has no field for %s", clean(a.Name))
	case len(a.overrides) > 0:
		l.leave("build.variables has no overrides")
	case a.op == ":=" && strings.Contains(a.Value, "${"):
		l.addTrap(environmentOnly)
		l.leave("bitbake computes the value where the line stands")
	case strings.TrimSpace(a.Value) == "":
		l.leave("build.variables has no empty values")
	case fact.List && fact.Separator == " " && (a.op == "append" || a.op == "remove"):
		r.changeWords(l, a, strings.Fields(a.Value), at...)
	case a.edits():
		l.leave("the operator joins it with a value that is set elsewhere")
	case r.im.config.hasField(at...) && !r.im.config.hasField(append(at, "value")...) && fact.List:
		l.leave("another line adds words to the list or removes some")
	case fact.List:
		r.im.setField(l, quoteCUE(a.Value), append(at, "value")...)
	default:
		r.im.setField(l, quoteCUE(a.Value), at...)
	}
}

// changeWords imports the words that a list gains or loses.
func (r *recipe) changeWords(l *Line, a assignment, words []string, names ...string) {
	switch {
	case (a.op == "append" || a.op == "remove") && (a.Op != "=" && a.Op != ":=" || countOf(strings.Split(a.Name, ":"), a.op) > 1):
		l.leave("two operations on one line")
	case a.op != "append" && a.op != "remove":
		l.leavef("%s depends on what other files have set before; write :append or :remove", a.op)
	case len(a.overrides) > 0 && a.base != "PACKAGECONFIG":
		l.leavef("the field has no overrides")
	case a.op == "append" && !strings.HasPrefix(a.Value, " "):
		l.leave("without a space its first word joins what is there")
	case !leaveExpansion(l, strings.Join(words, " ")):
		r.im.extendList(l, words, append(slices.Clone(names), a.op)...)
	}
}

// readDiskMonitor imports ACTION,FOLDER,SPACE,INODES of BB_DISKMON_DIRS.
func (r *recipe) readDiskMonitor(l *Line, a assignment) {
	if a.edits() || len(a.overrides) > 0 {
		l.leave("the operator joins it with a value that is set elsewhere")
		return
	}
	actions := map[string]string{"WARN": "warn", "STOPTASKS": "stop", "HALT": "halt", "ABORT": "halt"}
	for w := range strings.FieldsSeq(a.Value) {
		parts := append(strings.Split(w, ","), "", "")
		action := actions[parts[0]]
		if action == "" || len(parts) < 4 || len(parts) > 6 {
			l.leavePart(clean(w), "not ACTION,FOLDER,SPACE,INODES")
			continue
		}
		if parts[0] == "ABORT" {
			l.markAdjusted("ABORT is called HALT since kirkstone")
		}
		at := []string{"build", "diskMonitor", strings.TrimSuffix(parts[1], "/"), action}
		if size, ok := parseUnitSize(strings.ToUpper(parts[2])); ok {
			r.im.setField(l, quoteCUE(size), append(at, "space")...)
		} else if parts[2] != "" {
			l.leavePart(clean(parts[2]), "not a size")
		}
		if n, ok := inodes(strings.ToUpper(parts[3])); ok {
			r.im.setField(l, n, append(at, "inodes")...)
		} else if parts[3] != "" {
			l.leavePart(clean(parts[3]), "not a number of inodes")
		}
	}
}

// inodes reads a number that bitbake takes with K, M or G of 1024.
func inodes(s string) (string, bool) {
	n, ok := binarySize(s)
	if !ok {
		return "", false
	}
	return strconv.FormatInt(n, 10), n > 0
}
