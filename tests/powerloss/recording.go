// Package powerloss records every system call with which yoctuned changes files, by strace(1),
// and builds what a device has after the power fails, or the process is killed, between any two
// of them.
package powerloss

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// call is a system call that succeeded.
type call struct {
	name string
	path string // the file, by the descriptor or the first name
	to   string // of a rename
	data string // of a write
	make bool   // the file is made, or its content dropped
}

// traced are the calls that change what a disk or the kernel has, or wait until the disk has it.
const traced = "openat,write,pwrite64,fsync,fdatasync,renameat,renameat2,rename,unlinkat,unlink,mkdirat,mkdir,ftruncate"

var (
	line       = regexp.MustCompile(`^(\d+) +(.*)$`)
	started    = regexp.MustCompile(`^(.*) <unfinished \.\.\.>$`)
	resumed    = regexp.MustCompile(`^<\.\.\. \w+ resumed>(.*)$`)
	completed  = regexp.MustCompile(`^(\w+)\((.*)\) += (-?\d+)`)
	descriptor = regexp.MustCompile(`^\d+<([^>]*)>`)
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// parseCalls reads the output of strace -f -y -x, in the order in which the calls ended.
func parseCalls(log string) ([]call, error) {
	var calls []call
	pending := map[string]string{}
	for text := range strings.Lines(log) {
		m := line.FindStringSubmatch(strings.TrimRight(text, "\n"))
		if m == nil {
			continue
		}
		rest := m[2]
		if s := started.FindStringSubmatch(rest); s != nil {
			pending[m[1]] = s[1]
			continue
		}
		if r := resumed.FindStringSubmatch(rest); r != nil {
			rest = pending[m[1]] + r[1]
		}
		c := completed.FindStringSubmatch(rest)
		if c == nil || strings.HasPrefix(c[3], "-") {
			continue // a signal, an exit, or a call that failed
		}
		parsed, err := parseCall(c[1], c[2])
		if err != nil {
			return nil, fmt.Errorf("%w in: %.200s", err, text)
		}
		calls = append(calls, parsed)
	}
	return calls, nil
}

func parseCall(name, arguments string) (call, error) {
	c := call{name: strings.TrimSuffix(strings.TrimSuffix(name, "2"), "at")}
	var words []string
	for _, q := range quoted.FindAllString(arguments, -1) {
		w, err := strconv.Unquote(octal.ReplaceAllStringFunc(q, hexadecimal))
		if err != nil {
			return c, fmt.Errorf("%w: %s", err, q)
		}
		words = append(words, w)
	}
	if d := descriptor.FindStringSubmatch(arguments); d != nil {
		c.path = strings.TrimSuffix(d[1], " (deleted)")
	}
	switch c.name {
	case "open", "unlink", "mkdir":
		c.path = words[0]
		c.make = strings.Contains(arguments, "O_TRUNC") || strings.Contains(arguments, "O_CREAT")
	case "rename":
		c.path, c.to = words[0], words[1]
	case "write", "pwrite64":
		c.name = "write"
		if len(words) > 0 {
			c.data = words[0]
		}
	case "fdatasync":
		c.name = "fsync"
	}
	return c, nil
}

// octal are the escapes of strace that strconv does not take: \0 to \377 with fewer than three digits.
var octal = regexp.MustCompile(`\\[0-7]{1,3}`)

func hexadecimal(s string) string {
	n, err := strconv.ParseUint(s[1:], 8, 8)
	if err != nil {
		return s
	}
	return fmt.Sprintf(`\x%02x`, n)
}

// disk is the files below a folder: what processes see, and what is on the disk.
type disk struct {
	root    string
	names   map[string]*file // as processes see them
	entries map[string]*file // as the synced folders have them
}

type file struct {
	content string
	synced  string // "" until it is synced: the name may be on the disk and the content not
}

func (d *disk) below(path string) (string, bool) { return strings.CutPrefix(path, d.root+"/") }

// isNode reports whether a file stands for one of the kernel.
func isNode(name string) bool {
	return strings.HasPrefix(name, "proc/") || strings.HasPrefix(name, "sys/")
}

// apply changes the disk as the call did.
func (d *disk) apply(c call) {
	name, ok := d.below(c.path)
	if !ok {
		return
	}
	switch c.name {
	case "open":
		switch f := d.names[name]; {
		case !c.make:
		case f == nil:
			d.names[name] = &file{}
		case isNode(name):
			f.content = "" // O_TRUNC; state files are made anew or appended to
		}
	case "write":
		if f := d.names[name]; f != nil {
			f.content += c.data
		}
	case "ftruncate":
		if f := d.names[name]; f != nil {
			f.content = ""
		}
	case "fsync":
		if f := d.names[name]; f != nil {
			f.synced = f.content
			return
		}
		d.syncFolder(name)
	case "rename":
		to, _ := d.below(c.to)
		d.names[to] = d.names[name]
		delete(d.names, name)
	case "unlink":
		delete(d.names, name)
	}
}

// syncFolder brings the names in a folder to the disk.
func (d *disk) syncFolder(folder string) {
	for name := range d.entries {
		if filepath.Dir(name) == folder && d.names[name] == nil {
			delete(d.entries, name)
		}
	}
	for name, f := range d.names {
		if filepath.Dir(name) == folder {
			d.entries[name] = f
		}
	}
}

// loss is what may be lost: nothing, as when the process is killed; what is not synced; and that
// except for names, which a journal of the file system may have written by itself.
type loss string

const (
	killed  loss = "killed"
	power   loss = "power lost"
	renamed loss = "power lost after names"
)

// image returns the files after a loss. Nodes of the kernel keep their values: the state of
// yoctuned must suffice to restore them.
func (d *disk) image(l loss) map[string]string {
	files := map[string]string{}
	for name, f := range d.names {
		switch {
		case isNode(name) || l == killed:
			files[name] = f.content
		case l == renamed:
			files[name] = f.synced
		}
	}
	if l == power {
		for name, f := range d.entries {
			if !isNode(name) {
				files[name] = f.synced
			}
		}
	}
	return files
}

// key identifies the content of an image.
func key(files map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s=%q\n", name, files[name])
	}
	return b.String()
}
