package kconfig

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// Options control how a kernel's Kconfig files are read.
type Options struct {
	Name     string   // what to call the tree; empty for the version
	Arch     string   // ARCH; empty for arm64
	Overlays []string // further trees that are read after it, as L4T's 4.9 and 5.10 do
	// Toolchain answers the probes of compiler, assembler and linker.
	Toolchain Toolchain
	// Shell, if set, answers every $(shell,…) instead of the declared facts. The
	// caller is then responsible for running commands that the tree names.
	Shell func(dir string, env map[string]string) Shell
}

// Toolchain holds the declared facts of the compiler the kernel is built with.
type Toolchain struct {
	GCC      string // version; empty for 12.2.0
	Binutils string // version; empty for 2.40
}

// Indexed is the result of reading a tree.
type Indexed struct {
	Tree     *kernel.Tree
	Files    int
	Warnings []Problem
	// Assumed lists the commands of the tree's probes that were answered by a
	// declared fact that is only a guess.
	Assumed []string
	// Sources identifies the tree's content; nil where its commands were run,
	// because their answers are not recorded.
	Sources *Sources
}

// Index reads the Kconfig files of the kernel source in dir. It runs programs of the tree
// only through o.Shell. Errors are [errKconfig] with a position for each.
func Index(dir string, o Options) (*Indexed, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := dirFS(abs)
	if err != nil {
		return nil, fmt.Errorf("kernel source: %w", err)
	}
	roots := []fs.FS{root}
	for _, ov := range o.Overlays {
		f, err := dirFS(ov)
		if err != nil {
			return nil, fmt.Errorf("kernel overlay: %w", err)
		}
		roots = append(roots, f)
	}
	recorded := make([]*recorder, len(roots))
	for i := range roots {
		recorded[i] = newRecorder(roots[i])
		roots[i] = recorded[i]
	}
	x, err := index(roots, abs, o)
	if err == nil && o.Shell == nil {
		x.Sources = &Sources{}
		for _, r := range recorded {
			x.Sources.Roots = append(x.Sources.Roots, r.answers)
		}
	}
	return x, err
}

func index(roots []fs.FS, dir string, o Options) (*Indexed, error) {
	o.Arch = cmp.Or(o.Arch, "arm64")
	v := readVersion(roots[0])
	id := kernel.Tree{Name: cmp.Or(o.Name, v.full), Release: v.full, Arch: o.Arch, ChoiceByOrder: !v.isBefore(6, 11), ZeroDefaults: !v.isBefore(6, 9)}
	// The rules are those of the tree's own scripts/kconfig: vendors backport.
	if src, err := fs.ReadFile(roots[0], "scripts/kconfig/symbol.c"); err == nil {
		id.ChoiceByOrder = bytes.Contains(src, []byte("sym_calc_choice(struct menu *"))
		id.ZeroDefaults = bytes.Contains(src, []byte(`newval.val = "0x0"`))
	}
	p := &parser{roots: roots, b: kernel.NewBuilder(id), oldSyntax: v.isBefore(4, 18)}
	for _, dir := range o.Overlays {
		p.overlays = append(p.overlays, filepath.Base(dir))
	}
	probes := &declared{tc: o.Toolchain, seen: map[string]bool{}}
	p.macros = &macros{
		env:    environment(dir, o.Arch, v.full, probes.gccText()),
		vars:   map[string]*variable{},
		legacy: p.oldSyntax,
		where:  func() (string, int) { return p.file, p.line },
		warn:   func(s string) { p.warnAt(p.line, 1, "%s", s) },
	}
	if o.Shell != nil {
		p.macros.shell = o.Shell(dir, p.macros.env)
		text, _, _ := strings.Cut(p.macros.shell(p.macros.env["CC"]+" --version"), "\n")
		p.macros.env["CC_VERSION_TEXT"] = text
	} else {
		p.macros.shell = probes.answerShell
		p.macros.probes = probes.toolchainMacros()
	}
	if _, err := fs.Stat(roots[0], "Kconfig"); err != nil {
		return nil, fmt.Errorf("no kernel source: %w", err)
	}
	err := p.readSource("Kconfig", 1, 1, false)
	if err != nil && !errors.Is(err, errStop) {
		p.record(err)
	}
	if err := joinErrors(p.problems); err != nil {
		return nil, err
	}
	t := p.b.Tree()
	if ps := findRecursions(t); len(ps) > 0 {
		return nil, joinErrors(ps)
	}
	return &Indexed{Tree: t, Files: p.files, Warnings: p.warnings, Assumed: probes.assumed}, nil
}

type version struct {
	major, minor int
	full         string
}

func (v version) isBefore(major, minor int) bool {
	return v.major < major || v.major == major && v.minor < minor
}

var makefileVersion = lazyregexp.New(`(?m)^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)`)

// readVersion reads the top Makefile. A tree without one follows the rules of
// current kernels.
func readVersion(root fs.FS) version {
	data, err := fs.ReadFile(root, "Makefile")
	if err != nil {
		return version{99, 0, ""}
	}
	m := map[string]string{}
	for _, f := range makefileVersion.FindAllSubmatch(data, -1) {
		if _, ok := m[string(f[1])]; !ok {
			m[string(f[1])] = string(f[2])
		}
	}
	v := version{major: 99}
	if n, err := strconv.Atoi(m["VERSION"]); err == nil {
		v.major = n
		v.minor, _ = strconv.Atoi(m["PATCHLEVEL"])
		v.full = fmt.Sprintf("%d.%d", v.major, v.minor)
		if m["SUBLEVEL"] != "" {
			v.full += "." + m["SUBLEVEL"]
		}
		v.full += m["EXTRAVERSION"]
	}
	return v
}

// environment is what the kernel's top Makefile exports to Kconfig.
func environment(dir, arch, release, ccText string) map[string]string {
	src, prefix := arch, ""
	switch arch {
	case "x86_64", "i386":
		src = "x86"
	case "arm64":
		prefix = "aarch64-linux-gnu-"
	case "arm":
		prefix = "arm-linux-gnueabihf-"
	}
	return map[string]string{
		"ARCH": arch, "SRCARCH": src, "UTS_MACHINE": arch, "srctree": dir, "objtree": dir,
		"KERNELVERSION": release, "CC_VERSION_TEXT": ccText, "RUSTC_VERSION_TEXT": "", "PAHOLE_VERSION": "0",
		"CC": prefix + "gcc", "LD": prefix + "ld", "AR": prefix + "ar", "NM": prefix + "nm",
		"OBJCOPY": prefix + "objcopy", "CROSS_COMPILE": prefix, "HOSTCC": "gcc", "HOSTCXX": "g++",
		"RUSTC": "rustc", "BINDGEN": "bindgen", "PAHOLE": "pahole", "PYTHON3": "python3",
	}
}
