// Package tree puts a layer on disk: all of it or nothing, only inside its
// folder, and without touching what yoctune does not own.
//
// The layer's manifest lists the files that yoctune owns, with the digest of each.
// A file that is not listed belongs to someone else: it is neither deleted nor
// overwritten. A listed file with another digest was edited by hand, and only
// force overwrites it. The signature beside a listed file (.minisig) is not
// listed: it stays as long as that file does.
package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/internal/signature"
)

// Reasons why a tree cannot be written; test with errors.Is.
var (
	ErrForeign = errors.New("the file is not yoctune's")
	ErrEdited  = errors.New("the file was edited by hand")
	ErrFolder  = errors.New("the output folder cannot be used")
)

// Conflict is a file in the way. It wraps [ErrForeign] or [ErrEdited].
type Conflict struct {
	Path string
	Err  error
}

func (c Conflict) Error() string { return c.Path + ": " + c.Err.Error() }

// Unwrap returns the reason.
func (c Conflict) Unwrap() error { return c.Err }

// Kind says what happens to a file.
type Kind string

// What can happen to a file.
const (
	Add    Kind = "add"
	Change Kind = "change"
	Remove Kind = "remove"
)

// Action is what writing would do to one file.
type Action struct {
	Kind Kind
	Path string
	Was  []byte // content before
	Now  []byte // content after
	Mode fs.FileMode
}

// Comparison is a tree against the folder it would be written to.
type Comparison struct {
	Out       string
	Actions   []Action // by path
	Conflicts []Conflict
	Same      int  // files that are as they should be
	Strange   bool // the folder has files and no manifest: no layer was written to it

	files   []emitters.File
	listing []byte             // manifest to write
	was     *manifest.Manifest // manifest in the folder, nil if there is none
}

// Clean tells that the folder is exactly what would be written.
func (c *Comparison) Clean() bool { return len(c.Actions) == 0 && len(c.Conflicts) == 0 }

// maxExisting bounds what is read of a file that is in the way, in bytes.
const maxExisting = 64 << 20

// Compare finds what writing the files to a folder would do. The folder need
// not exist. A manifest among the files is written as it is; without one, that of
// the files is made. The error wraps [ErrFolder].
func Compare(out string, files []emitters.File) (*Comparison, error) {
	c := &Comparison{Out: out, files: files}
	if err := c.list(); err != nil {
		return nil, err
	}
	// Opening a pipe would wait for whoever writes to it.
	if info, err := os.Stat(out); err == nil && !info.IsDir() {
		return nil, folder(out, syscall.ENOTDIR)
	}
	root, err := os.OpenRoot(out)
	if errors.Is(err, fs.ErrNotExist) {
		for _, f := range c.files {
			c.Actions = append(c.Actions, Action{Kind: Add, Path: f.Path, Now: f.Data, Mode: f.Mode})
		}
		c.sort()
		return c, nil
	}
	if err != nil {
		return nil, folder(out, err)
	}
	defer root.Close()
	if c.was, err = readManifest(root); err != nil {
		return nil, folder(out, err)
	}
	var owned map[string]manifest.File
	if c.was != nil {
		owned = c.was.Files
	} else {
		entries, err := fs.ReadDir(root.FS(), ".")
		if err != nil {
			return nil, folder(out, err)
		}
		c.Strange = len(entries) > 0
	}
	wanted := map[string]bool{}
	for _, f := range c.files {
		wanted[f.Path] = true
		if err := c.compare(root, f, owned); err != nil {
			return nil, folder(out, err)
		}
	}
	for name, e := range owned {
		if wanted[name] {
			continue
		}
		was, state, err := existing(root, name)
		switch {
		case err != nil:
			return nil, folder(out, err)
		case state == absent:
		case state == other:
			c.Conflicts = append(c.Conflicts, Conflict{name, ErrForeign})
		case manifest.Digest(was) != e.SHA256:
			c.Conflicts = append(c.Conflicts, Conflict{name, ErrEdited})
			c.Actions = append(c.Actions, Action{Kind: Remove, Path: name, Was: was})
		default:
			c.Actions = append(c.Actions, Action{Kind: Remove, Path: name, Was: was})
		}
	}
	if err := c.dropSignatures(root); err != nil {
		return nil, folder(out, err)
	}
	if was, _, err := existing(root, manifest.Name); err != nil || !bytes.Equal(was, c.listing) {
		c.Actions = append(c.Actions, Action{Kind: Change, Path: manifest.Name, Was: was, Now: c.listing, Mode: 0o644})
	}
	c.sort()
	return c, nil
}

// dropSignatures removes the signatures of files that change or go: they are of
// another content. Who made them does not matter, since what they are of is ours;
// that of a file that stays the same stays.
func (c *Comparison) dropSignatures(root *os.Root) error {
	for _, a := range c.Actions {
		if bytes.Equal(a.Was, a.Now) {
			continue // of another mode
		}
		name := a.Path + signature.Extension
		was, state, err := existing(root, name)
		if err != nil {
			return err
		}
		if state == regular {
			c.Actions = append(c.Actions, Action{Kind: Remove, Path: name, Was: was})
		}
	}
	return nil
}

func (c *Comparison) sort() {
	slices.SortFunc(c.Actions, func(a, b Action) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(c.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
}

// list makes the manifest and refuses paths that would leave the folder.
func (c *Comparison) list() error {
	for _, f := range c.files {
		if !fs.ValidPath(f.Path) || f.Path == "." || strings.ContainsRune(f.Path, '\\') {
			return fmt.Errorf("%w: %q is not a path inside it", ErrFolder, f.Path)
		}
	}
	isManifest := func(f emitters.File) bool { return f.Path == manifest.Name }
	if i := slices.IndexFunc(c.files, isManifest); i >= 0 {
		if err := Listed(c.files, signature.Extension); err != nil {
			return fmt.Errorf("%w: %w", ErrFolder, err)
		}
		c.listing = c.files[i].Data
	}
	c.files = slices.DeleteFunc(slices.Clone(c.files), isManifest)
	for i, f := range c.files {
		if f.Mode == 0 {
			c.files[i].Mode = 0o644
		}
	}
	if c.listing != nil {
		return nil
	}
	b, err := manifest.Of(c.files).Encode()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	c.listing = b
	return nil
}

// Before returns the layer as it lies in the folder, with what is known about its
// files: those that writing leaves alone, and the earlier content of the others.
func (c *Comparison) Before() []emitters.File {
	by := map[string]Action{}
	for _, a := range c.Actions {
		by[a.Path] = a
	}
	var out []emitters.File
	keep := func(name string, data []byte, mode fs.FileMode) {
		out = append(out, emitters.File{Path: name, Data: data, Mode: mode})
	}
	for _, f := range c.files {
		switch a, differs := by[f.Path]; {
		case !differs:
			keep(f.Path, f.Data, f.Mode)
		case a.Kind == Change:
			keep(f.Path, a.Was, f.Mode)
		}
	}
	for _, a := range c.Actions {
		if a.Kind == Remove && !strings.HasSuffix(a.Path, signature.Extension) {
			keep(a.Path, a.Was, 0o644)
		}
	}
	return manifest.Describe(out, c.was)
}

func folder(out string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && pe.Path != "" && pe.Path != out {
		return fmt.Errorf("%w: %s: %s: %w", ErrFolder, out, pe.Path, pe.Err)
	}
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%w: %s: %w", ErrFolder, out, err)
}

func readManifest(root *os.Root) (*manifest.Manifest, error) {
	raw, state, err := existing(root, manifest.Name)
	if err != nil || state == absent {
		return nil, err
	}
	if state != regular {
		return nil, fmt.Errorf("%s is not a file; move the folder away, or repair it", manifest.Name)
	}
	return manifest.Decode(raw)
}

func (c *Comparison) compare(root *os.Root, f emitters.File, owned map[string]manifest.File) error {
	was, state, err := existing(root, f.Path)
	if err != nil {
		return err
	}
	e, mine := owned[f.Path]
	action := Action{Kind: Change, Path: f.Path, Was: was, Now: f.Data, Mode: f.Mode}
	switch state {
	case absent:
		action.Kind = Add
	case other:
		c.Conflicts = append(c.Conflicts, Conflict{f.Path, ErrForeign})
		return nil
	default:
		info, err := root.Lstat(f.Path)
		if err != nil {
			return err
		}
		same := bytes.Equal(was, f.Data)
		switch {
		case !mine && !same:
			c.Conflicts = append(c.Conflicts, Conflict{f.Path, ErrForeign})
		case mine && !same && manifest.Digest(was) != e.SHA256:
			c.Conflicts = append(c.Conflicts, Conflict{f.Path, ErrEdited})
		}
		// Of a mode, a checkout keeps whether a file may be run; the rest is the
		// umask of whoever checked the layer out.
		if runnable := info.Mode().Perm()&0o111 != 0; same && runnable == (f.Mode.Perm()&0o111 != 0) {
			c.Same++
			return nil
		}
	}
	c.Actions = append(c.Actions, action)
	return nil
}

type state int

const (
	absent state = iota
	regular
	other // a folder, a link, a device: never ours
)

// existing reads what is at a path. A link on the way counts as something that
// is not ours: following it could write elsewhere.
func existing(root *os.Root, name string) ([]byte, state, error) {
	for i, r := range name {
		if r != '/' {
			continue
		}
		info, err := root.Lstat(name[:i])
		if errors.Is(err, fs.ErrNotExist) {
			return nil, absent, nil
		}
		if err != nil {
			return nil, absent, err
		}
		if !info.IsDir() {
			return nil, other, nil
		}
	}
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent, nil
	}
	if err != nil {
		return nil, absent, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxExisting {
		return nil, other, nil
	}
	b, err := root.ReadFile(name)
	return b, regular, err
}

// Write is [Comparison.WriteContext] without an end.
func (c *Comparison) Write(force bool) error { return c.WriteContext(context.Background(), force) }

// WriteContext brings the folder to what was compared. With force, files edited
// by hand are overwritten; files that are not yoctune's never are. Everything is
// first written to a folder beside the output; a folder that did not exist
// appears whole, an existing one file by file, each by a rename. When the
// context ends before the first file is in place nothing is, and nothing is left
// behind.
func (c *Comparison) WriteContext(ctx context.Context, force bool) error {
	var blocked []error
	for _, k := range c.Conflicts {
		if !force || !errors.Is(k, ErrEdited) {
			blocked = append(blocked, k)
		}
	}
	if len(blocked) > 0 {
		return errors.Join(blocked...)
	}
	parent := filepath.Dir(filepath.Clean(c.Out))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return folder(c.Out, err)
	}
	stage, err := os.MkdirTemp(parent, ".yoctune-*")
	if err != nil {
		return folder(c.Out, err)
	}
	defer os.RemoveAll(stage)
	if err := os.Chmod(stage, 0o755); err != nil {
		return folder(c.Out, err)
	}
	if _, err := os.Lstat(c.Out); errors.Is(err, fs.ErrNotExist) {
		return c.whole(ctx, stage)
	}
	return c.each(ctx, stage)
}

func (c *Comparison) whole(ctx context.Context, stage string) error {
	w := writer{dir: stage}
	for _, f := range c.files {
		if err := w.put(ctx, f.Path, f.Data, f.Mode); err != nil {
			return folder(c.Out, err)
		}
	}
	if err := w.put(ctx, manifest.Name, c.listing, 0o644); err != nil {
		return folder(c.Out, err)
	}
	if err := context.Cause(ctx); err != nil {
		return folder(c.Out, err)
	}
	if err := os.Rename(stage, c.Out); err != nil {
		return folder(c.Out, err)
	}
	return nil
}

// writer fills a new folder. It asks the system for nothing twice: a layer is
// many small files in many folders.
type writer struct {
	dir  string
	made map[string]bool      // folders that exist
	mode map[fs.FileMode]bool // whether the umask leaves the mode as it is
}

func (w *writer) put(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := w.mkdir(path.Dir(name)); err != nil {
		return err
	}
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.WriteFile(file, data, mode.Perm()); err != nil {
		return err
	}
	kept, known := w.mode[mode.Perm()]
	if !known {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		kept = info.Mode().Perm() == mode.Perm()
		if w.mode == nil {
			w.mode = map[fs.FileMode]bool{}
		}
		w.mode[mode.Perm()] = kept
	}
	if kept {
		return nil
	}
	return os.Chmod(file, mode.Perm()) // past the umask: the layer is the same for everybody
}

func (w *writer) mkdir(dir string) error {
	if dir == "." || w.made[dir] {
		return nil
	}
	if err := w.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	if w.made == nil {
		w.made = map[string]bool{}
	}
	w.made[dir] = true
	return os.Mkdir(filepath.Join(w.dir, filepath.FromSlash(dir)), 0o755)
}

func (c *Comparison) each(ctx context.Context, stage string) error {
	root, err := os.OpenRoot(c.Out)
	if err != nil {
		return folder(c.Out, err)
	}
	defer root.Close()
	w := writer{dir: stage}
	for _, a := range c.Actions {
		if a.Kind == Remove || a.Path == manifest.Name {
			continue
		}
		if err := w.put(ctx, a.Path, a.Now, a.Mode); err != nil {
			return folder(c.Out, err)
		}
	}
	for _, a := range c.Actions {
		if a.Kind == Remove || a.Path == manifest.Name {
			continue
		}
		if err := root.MkdirAll(path.Dir(a.Path), 0o755); err != nil {
			return folder(c.Out, err)
		}
		// Compare saw no link on the way; the window until here is the user's own.
		if err := os.Rename(filepath.Join(stage, filepath.FromSlash(a.Path)), filepath.Join(c.Out, filepath.FromSlash(a.Path))); err != nil {
			return folder(c.Out, err)
		}
	}
	for _, a := range c.Actions {
		if a.Kind != Remove {
			continue
		}
		if err := root.Remove(a.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return folder(c.Out, err)
		}
		prune(root, path.Dir(a.Path))
	}
	if err := w.put(ctx, manifest.Name, c.listing, 0o644); err != nil {
		return folder(c.Out, err)
	}
	if err := os.Rename(filepath.Join(stage, manifest.Name), filepath.Join(c.Out, manifest.Name)); err != nil {
		return folder(c.Out, err)
	}
	return nil
}

// prune removes folders that have become empty.
func prune(root *os.Root, dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if root.Remove(dir) != nil {
			return // not empty
		}
	}
}
