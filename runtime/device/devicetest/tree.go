// Package devicetest makes synthetic devices for tests: directories that look like a
// Jetson's /proc and /sys when read through rootfs.Root.
//
// A synthetic tree consists of plain files. With it tests cover the selection of nodes, the
// comparison of values, the journal and rollback. Plain files do not behave like a kernel:
// no value is refused, rounded or clamped, a choice loses its brackets and the other options
// with the first write, and a write changes no other node. [Kernel] imitates the most common
// of these effects. The others need a real kernel.
package devicetest

import (
	"cmp"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// BootID is the boot id of every synthetic tree.
const BootID = "0d9d4fb2-3c40-4c0b-8a5e-6f1d2b7a9c11"

// tree writes files below a directory and keeps the first error.
type tree struct {
	dir  string
	made map[string]bool // folders
	err  error
}

func newTree(dir string) *tree { return &tree{dir: dir, made: map[string]bool{}} }

func (t *tree) file(name, text string) {
	if host := t.parent(name); t.err == nil {
		t.err = os.WriteFile(host, []byte(text), 0o644)
	}
}

// link creates a symbolic link. A target below /sys becomes a relative one, as in sysfs.
func (t *tree) link(name, target string) {
	if below, ok := strings.CutPrefix(target, "/sys/"); ok && strings.HasPrefix(name, "/sys/") {
		target = relativeToSys(path.Dir(name)) + below
	}
	if host := t.parent(name); t.err == nil {
		t.err = os.Symlink(target, host)
	}
}

// parent creates the directory of a file and returns the file's path on this host.
func (t *tree) parent(name string) string {
	host := filepath.Join(t.dir, name)
	if dir := filepath.Dir(host); t.err == nil && !t.made[dir] {
		t.err = os.MkdirAll(dir, 0o755)
		t.made[dir] = true
	}
	return host
}

// Build writes the tree of a freshly started board into dir, which must be empty
// or absent.
func Build(dir, board string) error {
	m, ok := lookupModel(board)
	if !ok {
		return fmt.Errorf("build device tree: unknown board %q: choose one of %s", board, strings.Join(Boards(), ", "))
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return fmt.Errorf("build device tree: %s is not empty", dir)
	}
	t := newTree(dir)
	t.files(m)
	t.power(m, board)
	if t.err != nil {
		return fmt.Errorf("build device tree: %w", t.err)
	}
	return nil
}

//go:embed tree.txt.tmpl
var files string

// files writes the files and links of the template. It adds those whose text the template
// cannot hold: text with NULs, empty files, and files with other permissions.
func (t *tree) files(m model) {
	var list strings.Builder
	parsed, err := template.New("tree").Parse(files)
	if err == nil {
		err = parsed.Execute(&list, m)
	}
	if err != nil {
		t.err = err
		return
	}
	name, text := "", ""
	flush := func() {
		if from, target, ok := strings.Cut(name+" "+text, " -> "); ok {
			t.link(from, strings.TrimSpace(target))
		} else if name != "" {
			t.file(name, text)
		}
	}
	for line := range strings.Lines(list.String()) {
		if rest, ok := strings.CutPrefix(line, "\t"); ok {
			text += rest
		} else if strings.TrimSpace(line) != "" {
			flush()
			name, text, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			text += "\n"
		}
	}
	flush()

	const tree = "/sys/firmware/devicetree/base"
	t.file(tree+"/compatible", m.compatible)
	t.file(tree+"/model", m.name+"\x00")
	t.file(tree+"/bus@0/"+m.GPUNode+"@17000000/name", m.GPUNode+"\x00")
	t.file("/proc/modules", "")
	for name, mode := range map[string]fs.FileMode{"/proc/sys/vm/drop_caches": 0o200, "/proc/sys/vm/compact_memory": 0o200, "/proc/interrupts": 0o444} {
		if mode == 0o200 {
			t.file(name, "")
		}
		if t.err == nil {
			t.err = os.Chmod(filepath.Join(t.dir, name), mode)
		}
	}
}

// relativeToSys returns the relative path from a directory below /sys to /sys.
func relativeToSys(dir string) string { return strings.Repeat("../", strings.Count(dir, "/")-1) }

// InstallPlan changes a tree to the state after the boot of an image that was built from the
// plan's layer: with the plan's kernel arguments, kernel options, modules, compressed swap and
// power modes.
func InstallPlan(dir string, p *plan.Plan) error {
	t := newTree(dir)
	args, options := "", ""
	for _, s := range p.Settings {
		switch s.Select.Class {
		case rootfs.ClassConfig:
			options += kernelOption(s)
		case rootfs.ClassCmdline:
			args += kernelArgument(s)
		case rootfs.ClassBlock:
			if s.Select.Name == "zram0" && s.Select.Attr == "disksize" {
				t.zram(s.Want)
			}
		case "":
			t.installNode(s)
		}
	}
	if args != "" {
		t.edit("/proc/cmdline", func(old string) string { return strings.TrimSpace(old) + args + "\n" })
	}
	if options != "" {
		t.file("/proc/config.gz", compress("# Automatically generated file; DO NOT EDIT.\n"+options))
	}
	if p.Power != nil {
		t.installPower(p.Power)
	}
	if t.err != nil {
		return fmt.Errorf("install plan in device tree: %w", t.err)
	}
	return nil
}

// kernelOption returns a line of .config.
func kernelOption(s plan.Setting) string {
	if s.Want == "n" {
		return fmt.Sprintf("# CONFIG_%s is not set\n", s.Select.Name)
	}
	return fmt.Sprintf("CONFIG_%s=%s\n", s.Select.Name, s.Want)
}

// kernelArgument returns an argument with a blank before it, "" if it is not given.
func kernelArgument(s plan.Setting) string {
	switch {
	case s.Type != plan.TypePresent:
		return " " + s.Select.Name + "=" + s.Want
	case s.Want == "1":
		return " " + s.Select.Name
	}
	return ""
}

// installNode creates a node that the kernel or a module of the image provides. Other
// settings are applied at run time.
func (t *tree) installNode(s plan.Setting) {
	name := s.Select.Path
	switch {
	case name == "" || s.Domain != plan.DomainKernel && s.Domain != plan.DomainModule:
	case path.Clean(name) != name || !strings.HasPrefix(name, "/sys/"):
		t.err = cmp.Or(t.err, fmt.Errorf("%s: %q is not below /sys", s.ID, name))
	case s.Type != plan.TypePresent:
		t.file(name, s.Want+"\n")
	case s.Want == "1":
		t.file(name+"/uevent", "")
	}
}

func (t *tree) zram(bytes string) {
	const disk = "/sys/devices/virtual/block/zram0"
	t.file(disk+"/disksize", bytes+"\n")
	t.file(disk+"/queue/scheduler", "none\n")
	for name, value := range map[string]int{"read_ahead_kb": 128, "nr_requests": 128, "rq_affinity": 1} {
		t.file(disk+"/queue/"+name, strconv.Itoa(value)+"\n")
	}
	t.link("/sys/block/zram0", "../devices/virtual/block/zram0")
}

// edit changes the text of a file.
func (t *tree) edit(name string, change func(string) string) {
	old, err := os.ReadFile(filepath.Join(t.dir, name))
	if t.err = cmp.Or(t.err, err); t.err == nil {
		t.file(name, change(string(old)))
	}
}

// compress returns text in the format of /proc/config.gz.
func compress(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // writes to memory do not fail
	_ = z.Close()
	return b.String()
}

// SimulateLoad writes CPU times on which the given number of cores are busy, each with a load
// that grows from one sample to the next. look numbers the samples from 0.
func SimulateLoad(dir string, cores, look int64) error {
	stat := "cpu 0 0 0 0\n"
	for c := range cores {
		stat += fmt.Sprintf("cpu%d %d 0 0 %d\n", c, look*look*(c+1), 100*look)
	}
	return os.WriteFile(filepath.Join(dir, "proc/stat"), []byte(stat), 0o644)
}
