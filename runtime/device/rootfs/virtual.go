package rootfs

import (
	"io/fs"
	"path"
	"strings"
)

// Some settings are not files: a network driver's rings, properties of a systemd unit, the
// scheduling of a unit's tasks. Each has a name below the directory of its device or unit,
// so that the packages above handle it like a file. In a tree it is a file.

// virtual is such a node.
type virtual interface {
	read(r *Root) (string, error)
	write(r *Root, value string) error
}

// virtualNode splits the name of a virtual node into the directory of its device or unit and
// the rest.
func virtualNode(name string) (dir, rest string, node virtual, ok bool) {
	if name == BannedIRQs {
		return "/proc/irq", "/irqbalance/banned", irqbalanceNode{}, true
	}
	if n, dir, ok := parseKThread(name); ok && path.Clean(name) == name {
		return dir, strings.TrimPrefix(name, dir), n, true
	}
	if !strings.HasPrefix(name, "/sys/") || path.Clean(name) != name {
		return "", "", nil, false
	}
	if dir, knob, ok := strings.Cut(name, "/ethtool/"); ok && path.Base(path.Dir(dir)) == "net" {
		if feature, ok := strings.CutPrefix(knob, "features/"); ok {
			return dir, "/ethtool/" + knob, ethtoolFeature{path.Base(dir), feature}, feature != "" && !strings.Contains(feature, "/")
		}
		k, known := lookupEthtool(knob)
		return dir, "/ethtool/" + knob, ethtoolNode{path.Base(dir), k}, known
	}
	dir, file := path.Split(name)
	dir, folder := path.Split(path.Clean(dir))
	dir = path.Clean(dir)
	if !IsUnitDir(dir) {
		return "", "", nil, false
	}
	switch folder {
	case "systemd":
		p, known := lookupProperty(file)
		return dir, "/systemd/" + file, unitNode{path.Base(dir), dir, p}, known
	case "tasks":
		return dir, "/tasks/" + file, taskNode{dir, file}, file == "scheduling" || file == "nice"
	}
	return "", "", nil, false
}

// virtual returns the virtual node of that name, on the running system only.
func (r *Root) virtual(name string) (virtual, bool) {
	if !r.Running() {
		return nil, false
	}
	_, _, node, ok := virtualNode(name)
	return node, ok
}

// readVirtual implements Read for a virtual node.
func (r *Root) readVirtual(name string, node virtual) (Content, error) {
	if err := checkName(name, mayRead); err != nil {
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

// resolveVirtual resolves the directory of a virtual node.
func (r *Root) resolveVirtual(name string) (real string, ok bool, err error) {
	if !r.Running() {
		return "", false, nil
	}
	dir, rest, node, ok := virtualNode(name)
	if !ok {
		return "", false, nil
	}
	switch n := node.(type) {
	case unitNode:
		if !isSystemdRunning() {
			return "", true, &PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
	case irqbalanceNode:
		if _, err := irqbalancePID(r); err != nil {
			return "", true, &PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
	case kthreadNode:
		if !n.isAlive(r) {
			err = &PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
		return name, true, err
	case taskNode:
		if !n.hasProcess(r) {
			return "", true, &PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
	}
	if real, err = r.Resolve(dir); err != nil {
		return "", true, err // the device or unit is not there
	}
	return real + rest, true, nil
}

// IsVirtual reports whether a node is not a file, so that writes to it raise no events.
func IsVirtual(name string) bool {
	_, _, _, ok := virtualNode(name)
	return ok
}

// BackingFile returns the file that the kernel changes when a virtual node is written, "" if
// there is none.
func BackingFile(name string) string {
	if dir, _, node, ok := virtualNode(name); ok {
		if u, ok := node.(unitNode); ok && u.property.file != "" {
			return dir + "/" + u.property.file
		}
	}
	return ""
}
