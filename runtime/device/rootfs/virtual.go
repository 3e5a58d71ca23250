package rootfs

import (
	"io/fs"
	"path"
	"strings"
)

// Some of what a plan sets is no file: a network driver's rings, a property of a
// unit that systemd keeps, the scheduling of a unit's tasks. Each is given a name
// below the folder of what it belongs to, so that everything above reads, writes,
// journals and compares it like a file. A tree has them as files.

// virtual is such a node of the running system.
type virtual interface {
	read(r *Root) (string, error)
	write(r *Root, value string) error
}

// virtualNode splits the name of a node that is no file, resolved or not: dir is
// the folder that it belongs to.
func virtualNode(name string) (dir, rest string, node virtual, ok bool) {
	if name == BannedIRQs {
		return "/proc/irq", "/irqbalance/banned", irqbalanceNode{}, true
	}
	if !strings.HasPrefix(name, "/sys/") || path.Clean(name) != name {
		return "", "", nil, false
	}
	if dir, knob, ok := strings.Cut(name, "/ethtool/"); ok && path.Base(path.Dir(dir)) == "net" {
		k, known := ethtoolKnobs(knob)
		return dir, "/ethtool/" + knob, ethtoolNode{path.Base(dir), k}, known
	}
	dir, file := path.Split(name)
	dir, folder := path.Split(path.Clean(dir))
	dir = path.Clean(dir)
	if !strings.HasPrefix(dir, CgroupDir+"/") || !isUnit(path.Base(dir)) {
		return "", "", nil, false
	}
	switch folder {
	case "systemd":
		p, known := unitProperties(file)
		return dir, "/systemd/" + file, unitNode{path.Base(dir), dir, p}, known
	case "tasks":
		return dir, "/tasks/" + file, taskNode{dir, file}, file == "scheduling" || file == "nice"
	}
	return "", "", nil, false
}

// virtual returns the node when name is one of the running system that is no file.
func (r *Root) virtual(name string) (virtual, bool) {
	if !r.Running() {
		return nil, false
	}
	_, _, node, ok := virtualNode(name)
	return node, ok
}

// readVirtual is Read of such a node.
func (r *Root) readVirtual(name string, node virtual) (Content, error) {
	if err := check(name, mayRead); err != nil {
		return Content{}, err
	}
	text, err := node.read(r)
	if err != nil {
		return Content{}, &PathError{Op: "read", Path: name, Err: err}
	}
	return Content{Text: text + "\n"}, nil
}

func (r *Root) writeVirtual(name, value string, node virtual) error {
	if err := node.write(r, strings.TrimSpace(value)); err != nil {
		return &PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// resolveVirtual finds the folder that the node belongs to.
func (r *Root) resolveVirtual(name string) (real string, ok bool, err error) {
	if !r.Running() {
		return "", false, nil
	}
	dir, rest, node, ok := virtualNode(name)
	if !ok {
		return "", false, nil
	}
	switch node.(type) {
	case unitNode:
		if !booted() {
			return "", true, &PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
	case irqbalanceNode:
		if _, err := irqbalancePID(r); err != nil {
			return "", true, &PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
	}
	real, err = r.Resolve(dir)
	return real + rest, true, err
}

// IsVirtual reports whether a node is no file, so that writing it raises no events.
func IsVirtual(name string) bool {
	_, _, _, ok := virtualNode(name)
	return ok
}

// WrittenFor returns the file that the kernel is given when the node is written,
// by whomever; "" where none is known.
func WrittenFor(name string) string {
	if dir, _, node, ok := virtualNode(name); ok {
		if u, ok := node.(unitNode); ok {
			return dir + "/" + u.property.file
		}
	}
	return ""
}
