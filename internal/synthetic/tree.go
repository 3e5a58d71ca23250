// Package synthetic makes synthetic devices: folders that look like a Jetson's /proc and /sys
// to `yoctuned --root DIR`, derived from facts about the board.
//
// A synthetic tree consists of plain files. With it one tries the selection of nodes, the
// comparison of values, the journal and rollback. Plain files do not behave like a kernel:
// no value is refused, rounded or clamped, a choice loses its brackets and the other options
// with the first write, and a write changes no other node.
package synthetic

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// BootID is the boot id of every synthetic tree.
const BootID = "0d9d4fb2-3c40-4c0b-8a5e-6f1d2b7a9c11"

// ErrFacts is returned for a board whose facts do not suffice.
var ErrFacts = errors.New("no synthetic device")

// ErrNotEmpty is returned when the folder for a new tree is not empty.
var ErrNotEmpty = errors.New("the folder is not empty")

// Tree is a device's files by their paths.
type Tree struct {
	// L4T is the version that the device reports, such as 36.4.0.
	L4T string
	// Note is what a user of the tree has to know about its facts, or "".
	Note string

	nodes   map[string]node
	dirs    map[string]bool
	removed []string // since the tree was loaded
}

// node is a file, or a link if target is set.
type node struct {
	text, target string
	mode         fs.FileMode
	fresh        bool // not yet on disk
}

// New returns the tree of a freshly started board, with the newest L4T whose device folders
// are known.
func New(board string) (*Tree, error) { return NewOn(board, "") }

// NewOn returns the tree of a board that started an image of a release of meta-tegra.
func NewOn(board, release string) (*Tree, error) {
	m, err := newModel(board, release)
	if err != nil {
		return nil, err
	}
	t := newTree()
	t.L4T, t.Note = m.version(), m.Folders
	if err := t.files(m); err != nil {
		return nil, fmt.Errorf("synthetic device: %w", err)
	}
	if err := t.power(m); err != nil {
		return nil, fmt.Errorf("synthetic device: %w", err)
	}
	return t, nil
}

func newTree() *Tree { return &Tree{nodes: map[string]node{}, dirs: map[string]bool{}} }

// Load reads a tree that [Tree.Write] wrote, and what was changed in it since.
func Load(dir string) (*Tree, error) {
	t := newTree()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		n := node{}
		switch {
		case d.Type() == fs.ModeSymlink:
			n.target, err = os.Readlink(name)
		case d.Type().IsRegular():
			var text []byte
			text, err = os.ReadFile(name)
			n.text = string(text)
			if errors.Is(err, fs.ErrPermission) {
				return nil // the kernel's switches, which are written only
			}
		}
		t.add("/"+filepath.ToSlash(below), n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("synthetic device: %w", err)
	}
	return t, nil
}

func (t *Tree) add(name string, n node) {
	t.nodes[name] = n
	for dir := path.Dir(name); !t.dirs[dir]; dir = path.Dir(dir) {
		t.dirs[dir] = true
	}
}

// set writes a file through the links of its path.
func (t *Tree) set(name, text string) {
	if real, ok := t.Resolve(name); ok {
		name = real
	} else if dir, ok := t.Resolve(path.Dir(name)); ok {
		name = path.Join(dir, path.Base(name))
	}
	t.add(name, node{text: text, mode: max(t.nodes[name].mode, 0o644), fresh: true})
}

// link creates a symbolic link. A target below /sys becomes a relative one, as in sysfs.
func (t *Tree) link(name, target string) {
	if below, ok := strings.CutPrefix(target, "/sys/"); ok && strings.HasPrefix(name, "/sys/") {
		target = strings.Repeat("../", strings.Count(path.Dir(name), "/")-1) + below
	}
	t.add(name, node{target: target, fresh: true})
}

// Resolve returns the path of a file or directory without links, false if there is none.
func (t *Tree) Resolve(name string) (string, bool) {
	const most = 40 // links, as in Linux
	done, todo := "/", name
	for links := 0; todo != ""; {
		first, rest, _ := strings.Cut(todo, "/")
		next := path.Join(done, first)
		n := t.nodes[next]
		if n.target == "" {
			done, todo = next, rest
			continue
		}
		if links++; links > most {
			return "", false
		}
		if path.IsAbs(n.target) {
			done = "/"
		}
		todo = n.target + "/" + rest
	}
	_, ok := t.nodes[done]
	return done, ok || t.dirs[done]
}

// List implements [nvpmodel.Device].
func (t *Tree) List(dir string) []string {
	real, _ := t.Resolve(dir)
	found := map[string]bool{}
	for name := range maps.Keys(t.nodes) {
		if below, ok := strings.CutPrefix(name, real+"/"); ok {
			first, _, _ := strings.Cut(below, "/")
			found[first] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Text implements [nvpmodel.Device].
func (t *Tree) Text(name string) string {
	real, _ := t.Resolve(name)
	return t.nodes[real].text
}

// Write writes the tree into dir, which must be empty or absent.
func (t *Tree) Write(dir string) error {
	if err := outfile.CheckFolder(dir); err != nil {
		return err
	}
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("synthetic device: %w", err)
	}
	if len(names) > 0 {
		return fmt.Errorf("%s: %w: it holds %s", dir, ErrNotEmpty, names[0].Name())
	}
	return t.Save(dir)
}

// Save writes what has changed since [Load] into dir.
func (t *Tree) Save(dir string) error {
	for _, name := range t.removed {
		if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("synthetic device: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		if n := t.nodes[name]; n.fresh {
			if err := n.write(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return fmt.Errorf("synthetic device: %w", err)
			}
		}
	}
	return nil
}

func (n node) write(host string) error {
	if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
		return err
	}
	if n.target != "" {
		return os.Symlink(n.target, host)
	}
	if err := os.WriteFile(host, []byte(n.text), 0o644); err != nil {
		return err
	}
	return os.Chmod(host, n.mode)
}

// Files returns the number of files and links.
func (t *Tree) Files() int { return len(t.nodes) }

//go:embed tree.txt.tmpl
var files string

// files adds the files and links of the template, and those whose text the template
// cannot hold: text with NULs, empty files, and files with other permissions.
func (t *Tree) files(m model) error {
	var list strings.Builder
	parsed, err := template.New("tree").Parse(files)
	if err != nil {
		return err
	}
	if err := parsed.Execute(&list, m); err != nil {
		return err
	}
	name, text := "", ""
	flush := func() {
		if from, target, ok := strings.Cut(name+" "+text, " -> "); ok {
			t.link(from, strings.TrimSpace(target))
		} else if name != "" {
			t.set(name, text)
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
	t.set(tree+"/compatible", m.compatible())
	t.set(tree+"/model", m.name()+"\x00")
	t.set(tree+"/bus@0/"+m.GPUNode()+"@"+m.GPUAddress()+"/name", m.GPUNode()+"\x00")
	t.set("/proc/modules", "")
	for _, name := range []string{"/proc/sys/vm/drop_caches", "/proc/sys/vm/compact_memory"} {
		t.add(name, node{mode: 0o200, fresh: true})
	}
	interrupts := t.nodes["/proc/interrupts"]
	interrupts.mode = 0o444
	t.nodes["/proc/interrupts"] = interrupts
	return nil
}

// Install changes the tree to the state after the boot of an image that was built from the
// plan's layer: with the plan's kernel arguments, kernel options and the choices that they
// bring, modules, compressed swap, fan control and power modes.
func (t *Tree) Install(p *plan.Plan) error {
	var b booted
	for _, s := range p.Settings {
		if err := t.installSetting(s, &b); err != nil {
			return err
		}
	}
	if b.mounts != "" {
		t.set("/proc/self/mountinfo", b.mounts)
	}
	if b.args != "" {
		t.set("/proc/cmdline", strings.TrimSpace(t.Text("/proc/cmdline"))+b.args+"\n")
		t.obeyArguments(b.args)
	}
	if b.options != "" {
		t.set("/proc/config.gz", compress("# Automatically generated file; DO NOT EDIT.\n"+b.options))
	}
	for name, pipeline := range p.Pipelines {
		if pipeline.Start {
			t.set("/etc/systemd/system/multi-user.target.wants/yoctuned-pipeline@"+path.Base(name)+".service", "")
		}
	}
	if p.Fan != nil {
		m, err := newModel(p.Board, p.Release)
		if err != nil {
			return fmt.Errorf("synthetic device: %w", err)
		}
		t.installFan(m, p.Fan)
	}
	if p.Power != nil {
		return t.installPower(p.Power)
	}
	return nil
}

// booted is what the settings of a plan add to single files.
type booted struct{ args, options, mounts string }

func (t *Tree) installSetting(s plan.Setting, b *booted) error {
	switch s.Select.Class {
	case "config":
		b.options += kernelOption(s)
		t.obeyOption(s)
	case "cmdline":
		b.args += kernelArgument(s)
		if s.Type == plan.TypePresent && s.Want == "0" {
			t.removeArgument(s.Select.Name)
		}
	case "block":
		if s.Select.Name == "zram0" && s.Select.Attr == "disksize" {
			t.zram(s.Want)
		}
	case "mount":
		if size, err := strconv.ParseInt(s.Want, 10, 64); err == nil {
			b.mounts += fmt.Sprintf("50 1 0:50 / %s rw - tmpfs tmpfs rw,size=%dk\n", s.Select.Name, size>>10)
		}
	case "":
		return t.installNode(s)
	}
	return nil
}

// obeyArguments sets the nodes in which the kernel shows the effect of its arguments.
func (t *Tree) obeyArguments(args string) {
	for arg := range strings.FieldsSeq(args) {
		name, value, _ := strings.Cut(arg, "=")
		if name == "transparent_hugepage" && t.Text(hugePages) != "" {
			t.set(hugePages, choose(t.Text(hugePages), value))
		}
		var list []string // without flags such as managed_irq
		for _, part := range strings.Split(value, ",") {
			if part != "" && part[0] >= '0' && part[0] <= '9' {
				list = append(list, part)
			}
		}
		cores, err := cpulist.Parse(strings.Join(list, ","))
		if err != nil || len(cores) == 0 {
			continue
		}
		switch name {
		case "isolcpus":
			t.set("/sys/devices/system/cpu/isolated", cpulist.Format(cores)+"\n")
		case "nohz_full":
			t.set("/sys/devices/system/cpu/nohz_full", cpulist.Format(cores)+"\n")
		case "irqaffinity":
			mask := uint64(0)
			for _, c := range cores {
				mask |= 1 << c
			}
			t.set("/proc/irq/default_smp_affinity", fmt.Sprintf("%x\n", mask))
		}
	}
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

// removeArgument removes an argument of the BSP's machine, whatever its value.
func (t *Tree) removeArgument(name string) {
	words := slices.DeleteFunc(strings.Fields(t.Text("/proc/cmdline")), func(word string) bool {
		n, _, _ := strings.Cut(word, "=")
		return n == name
	})
	t.set("/proc/cmdline", strings.Join(words, " ")+"\n")
}

// installNode creates a node that the kernel or a module of the image provides. Other
// settings are applied at run time.
func (t *Tree) installNode(s plan.Setting) error {
	name := s.Select.Path
	switch value, isBus := busDefaults[name]; {
	case isBus:
		t.set(name, value)
	case name == "" || s.Domain != plan.DomainKernel && s.Domain != plan.DomainModule:
	case path.Clean(name) != name || !strings.HasPrefix(name, "/sys/"):
		return fmt.Errorf("synthetic device: %s: %q is not below /sys", s.ID, name)
	case s.Type != plan.TypePresent:
		t.set(name, s.Want+"\n")
	case s.Want == "1":
		t.set(name+"/uevent", "")
	}
	return nil
}

// busDefaults are the parameters of PCI Express and USB that yoctune sets, as the kernel has them.
var busDefaults = map[string]string{
	"/sys/module/pcie_aspm/parameters/policy":        "[default] performance powersave powersupersave \n",
	"/sys/module/usbcore/parameters/autosuspend":     "2\n",
	"/sys/module/usbcore/parameters/usbfs_memory_mb": "16\n",
}

func (t *Tree) zram(size string) {
	const disk = "/sys/devices/virtual/block/zram0"
	t.set(disk+"/disksize", size+"\n")
	t.set(disk+"/queue/scheduler", "none\n")
	for name, value := range map[string]int{"read_ahead_kb": 128, "nr_requests": 128, "rq_affinity": 1} {
		t.set(disk+"/queue/"+name, strconv.Itoa(value)+"\n")
	}
	if _, exists := t.nodes["/sys/block/zram0"]; !exists {
		t.add("/sys/block/zram0", node{target: "../devices/virtual/block/zram0", fresh: true})
	}
}

// compress returns text in the format of /proc/config.gz.
func compress(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // writes to memory do not fail
	_ = z.Close()
	return b.String()
}
