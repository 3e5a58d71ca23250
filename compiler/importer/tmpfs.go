package importer

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// mounted is a mount as mount(8), fstab(5) and systemd.mount(5) describe it.
type mounted struct{ kind, folder, options string }

// ownMountOptions are the options of the layer's file systems in memory.
var ownMountOptions = []string{"nosuid", "nodev"}

// setTmpfs imports a file system in memory.
func (im *importer) setTmpfs(l *Line, m mounted) {
	if m.kind != "tmpfs" {
		l.leavePart(clean(m.folder), "mounts stay where they are; tmpfs has folders in memory")
		return
	}
	folder := path.Clean(m.folder)
	size, mode, inodes := "", "", ""
	missing := slices.Clone(ownMountOptions)
	for o := range strings.FieldsFuncSeq(m.options, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, _ := strings.Cut(o, "=")
		missing = slices.DeleteFunc(missing, func(own string) bool { return own == o })
		switch {
		case name == "size":
			size = strings.ToUpper(value)
		case name == "mode":
			mode = value
		case name == "nr_inodes":
			inodes = value
		case slices.Contains([]string{"defaults", "rw", "auto", "relatime"}, o), slices.Contains(ownMountOptions, o):
			// the kernel's defaults, and what the layer's unit has
		case o == "noatime" || o == "nodiratime":
			l.markAdjusted("without %s", o)
		case strings.HasPrefix(o, "x-") || o == "comment":
			l.leavePart(clean(o), "an option of other programs")
		default:
			l.leavePart(clean(folder), "tmpfs has no field for the option %s", clean(o))
			return
		}
	}
	bytes, ok := parseUnitSize(size)
	switch {
	case size == "":
		l.leavePart(clean(folder), "it may take half of the memory; tmpfs needs a size")
		return
	case !ok:
		l.leavePart(clean(folder), "tmpfs.size is a number of bytes, and %s is not", clean(size))
		return
	}
	im.setField(l, quoteCUE(bytes), "tmpfs", folder, "size")
	if mode != "" {
		im.setField(l, quoteCUE(mode), "tmpfs", folder, "mode")
	}
	if inodes != "" {
		im.setField(l, formatScalar(inodes), "tmpfs", folder, "inodes")
	}
	if len(missing) > 0 {
		l.markAdjusted("with %s", strings.Join(missing, " and "))
	}
}

// mount imports `mount -t tmpfs [-o OPTIONS] SOURCE FOLDER`.
func (sh *shell) mount(s *syntax.Stmt, args []string, note string) {
	m := mounted{}
	var words []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case (a == "-t" || a == "--types" || a == "-o" || a == "--options") && i+1 < len(args):
			i++
			if a == "-t" || a == "--types" {
				m.kind = args[i]
			} else {
				m.options += "," + args[i]
			}
		case strings.HasPrefix(a, "-"):
			sh.leave(s, "yoctune reads its type (-t) and options (-o)")
			return
		default:
			words = append(words, a)
		}
	}
	if m.kind != "tmpfs" || len(words) != 2 || !strings.HasPrefix(words[1], "/") {
		sh.leave(s, "mounts stay where they are; tmpfs has folders in memory")
		return
	}
	m.folder = words[1]
	sh.set(s, note, func(l *Line) { sh.im.setTmpfs(l, m) })
}

// readFstab reads fstab(5): the file systems in memory.
func (im *importer) readFstab(lines []*Line, _ Source) {
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		words := strings.Fields(l.Text)
		switch {
		case len(words) < 3:
			l.leave("not the source, folder and type of a mount")
		case words[2] != "tmpfs":
			l.leave("mounts stay where they are; tmpfs has folders in memory")
		case len(words) > 3 && slices.Contains(strings.Split(words[3], ","), "noauto"):
			l.leave("it is not mounted at boot")
		default:
			im.setTmpfs(l, mounted{words[2], words[1], strings.Join(words[3:min(4, len(words))], "")})
		}
	}
}

// importMount imports a mount unit of a file system in memory, and reports whether it was one
// that the layer's unit replaces.
func (im *importer) importMount(ds []directive) bool {
	m := mounted{}
	var where *directive
	for i := range ds {
		d := &ds[i]
		switch d.section + "." + d.name {
		case "Mount.Type":
			m.kind = d.value
		case "Mount.Where":
			m.folder, where = d.value, d
		case "Mount.Options":
			m.options += "," + d.value
		case "Mount.What", "Unit.Description", "Unit.Documentation":
		case "Unit.Before", "Install.WantedBy", "Install.RequiredBy":
			if d.value != "local-fs.target" {
				return false
			}
		default:
			return false
		}
	}
	if m.kind != "tmpfs" || where == nil {
		return false
	}
	for i := range ds {
		ds[i].line.markUnderstood("")
	}
	where.line.Verdict = ""
	im.setTmpfs(where.line, m)
	top := im.newEntry([]string{"tmpfs", path.Clean(m.folder)})
	for i := range ds {
		switch d := &ds[i]; {
		case d == where:
		case len(where.line.paths) == 0:
			d.line.leavef("the unit stays where it is (line %d)", where.line.Line)
		default:
			top.lines = append(top.lines, d.line)
		}
	}
	im.whole = append(im.whole, top)
	return true
}
