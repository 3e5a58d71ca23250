// Package kernelsource reads what a Linux source tree says about its kernel arguments and
// modules: the macros that register arguments, and the Makefiles that turn options into
// modules. Nothing in the tree is executed, and the tree need not be configured.
package kernelsource

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tree holds the files of a source tree that matter here, by their path. Overlays, as
// NVIDIA's kernels have them, are folders of the same layout.
type Tree struct {
	files map[string][]byte
	// declares holds the sources that may register arguments. Headers that do not are not kept.
	declares map[string]bool
	roots    []string // "" or the folder of the kernel, then those of overlays
}

// maxFile bounds a file that is read. Register tables of graphics drivers are larger, and
// declare nothing.
const maxFile = 4 << 20

// isWanted selects Makefiles, sources that may declare arguments, and the documentation.
func isWanted(name string) bool {
	base := path.Base(name)
	switch {
	case strings.HasPrefix(name, "tools/"), strings.HasPrefix(name, "samples/"), strings.Contains(name, "/selftests/"):
		return false
	case base == "Kbuild", strings.HasPrefix(base, "Makefile"), strings.HasPrefix(base, "Kbuild."), strings.HasSuffix(base, ".mk"):
		return true
	case strings.HasSuffix(name, ".c"), strings.HasSuffix(name, ".h"), strings.HasSuffix(name, ".inc"):
		return true
	}
	return strings.HasSuffix(name, "kernel-parameters.txt")
}

// ReadFolder reads an unpacked tree.
func ReadFolder(dir string, roots ...string) (*Tree, error) {
	t := newTree(roots)
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || !isWanted(t.inner(filepath.ToSlash(rel))) {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > maxFile {
			return err
		}
		data, err := os.ReadFile(name)
		t.add(filepath.ToSlash(rel), data)
		return err
	})
	return t, err
}

// ReadCommit reads a commit of a git repository, which may be bare. Files that a partial
// copy lacks are left out.
func ReadCommit(repo, commit string, roots ...string) (*Tree, error) {
	t := newTree(roots)
	folders := slices.DeleteFunc(slices.Clone(t.roots), func(r string) bool { return r == "" })
	list, err := git(repo, nil, append([]string{"ls-tree", "-r", "-z", commit, "--"}, folders...)...)
	if err != nil {
		return nil, err
	}
	var names []string
	var want bytes.Buffer
	for line := range strings.SplitSeq(string(list), "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		if fields := strings.Fields(head); ok && len(fields) == 3 && fields[1] == "blob" && fields[0] != "120000" && isWanted(t.inner(name)) {
			names = append(names, name)
			fmt.Fprintln(&want, fields[2])
		}
	}
	out, err := git(repo, &want, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	r := bufio.NewReader(bytes.NewReader(out))
	for _, name := range names {
		head, err := r.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("git cat-file %s: %w", name, err)
		}
		fields := strings.Fields(head)
		if len(fields) != 3 {
			continue // "OBJECT missing"
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("git cat-file %s: %w", name, err)
		}
		data := make([]byte, size+1) // a line end follows
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, fmt.Errorf("git cat-file %s: %w", name, err)
		}
		if size <= maxFile {
			t.add(name, data[:size])
		}
	}
	return t, nil
}

func git(repo string, in io.Reader, args ...string) ([]byte, error) {
	c := exec.Command("git", append([]string{"-C", repo}, args...)...)
	c.Stdin = in
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(problems.Bytes()))
	}
	return out, nil
}

func newTree(roots []string) *Tree {
	if len(roots) == 0 {
		roots = []string{""}
	}
	return &Tree{files: map[string][]byte{}, declares: map[string]bool{}, roots: roots}
}

func (t *Tree) add(name string, data []byte) {
	for _, mark := range []string{"module_param", "__setup", "early_param", "core_param", "_param_cb", "torture_param"} {
		if bytes.Contains(data, []byte(mark)) && !strings.Contains(path.Base(name), "Makefile") {
			t.declares[name] = true
		}
	}
	if strings.HasSuffix(name, ".h") && !t.declares[name] && path.Base(path.Dir(name)) != "rcu" && !slices.Contains(queueHeaders, t.inner(name)) && !strings.HasSuffix(name, "asm/setup.h") {
		data = nil
	}
	if data != nil {
		t.files[name] = data
	}
}

// inner is the path of a file below its root.
func (t *Tree) inner(name string) string {
	for _, r := range t.roots {
		if rest, ok := strings.CutPrefix(name, r+"/"); ok && r != "" {
			return rest
		}
	}
	return name
}

// Contains reports whether a file of the kernel has a text.
func (t *Tree) Contains(name, text string) bool {
	return bytes.Contains(t.files[path.Join(t.roots[0], name)], []byte(text))
}

// sorted lists the files in a fixed order.
func (t *Tree) sorted() []string {
	names := make([]string, 0, len(t.files))
	for n := range t.files {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

var versionLine = regexp.MustCompile(`(?m)^(VERSION|PATCHLEVEL|SUBLEVEL)\s*=\s*(\d+)`)

// Version is the version that the kernel's Makefile has.
func (t *Tree) Version() string {
	var parts []string
	for _, m := range versionLine.FindAllSubmatch(t.files[path.Join(t.roots[0], "Makefile")], 3) {
		parts = append(parts, string(m[2]))
	}
	return strings.Join(parts, ".")
}
