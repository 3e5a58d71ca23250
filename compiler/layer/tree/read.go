package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/internal/signature"
)

// Read returns the files of a layer that was written to a folder, its manifest and
// the signatures beside its files included, sorted by path. A file that was edited
// or that is gone is an error: what is read is what was built. The error wraps
// [errFolder], or [ErrEdited].
func Read(dir string) ([]emitters.File, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no layer at %s: %w; name a folder that yoctune build wrote", dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, folderError(dir, err)
	}
	defer root.Close()
	raw, _, err := readExisting(root, manifest.Name)
	if err != nil {
		return nil, folderError(dir, err)
	}
	m, err := readManifest(root)
	if err != nil {
		return nil, folderError(dir, err)
	}
	if m == nil {
		return nil, fmt.Errorf("no layer at %s: it has no %s; name a folder that yoctune build wrote", dir, manifest.Name)
	}
	files := []emitters.File{{Path: manifest.Name, Data: raw, Mode: 0o644}}
	for name, e := range m.Files {
		data, state, err := readExisting(root, name)
		switch {
		case err != nil:
			return nil, folderError(dir, err)
		case state != regular:
			return nil, fmt.Errorf("%s: %w", dir, Conflict{name, ErrEdited})
		case manifest.Digest(data) != e.SHA256:
			return nil, fmt.Errorf("%s: %w", dir, Conflict{name, changedError(name, data)})
		}
		files = append(files, emitters.File{Path: name, Data: data, Mode: e.FileMode()})
		switch sig, state, err := readExisting(root, name+signature.Extension); {
		case err != nil:
			return nil, folderError(dir, err)
		case state == other: // leaving it out would publish the layer unsigned
			return nil, fmt.Errorf("%s: %w", dir, Conflict{name + signature.Extension, errForeign})
		case state == regular:
			files = append(files, emitters.File{Path: name + signature.Extension, Data: sig, Mode: 0o644})
		}
	}
	slices.SortFunc(files, func(a, b emitters.File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// CheckListed checks files against the manifest among them: each must be listed with its
// digest, except the manifest and files named after a listed one with the suffix.
func CheckListed(files []emitters.File, suffix string) error {
	by := map[string]emitters.File{}
	for _, f := range files {
		by[f.Path] = f
	}
	list, ok := by[manifest.Name]
	if !ok {
		return fmt.Errorf("no manifest (%s)", manifest.Name)
	}
	m, err := manifest.Decode(list.Data)
	if err != nil {
		return err
	}
	for name, e := range m.Files {
		if f, ok := by[name]; !ok || manifest.Digest(f.Data) != e.SHA256 {
			return fmt.Errorf("%s differs from the manifest", name)
		}
	}
	for name := range by {
		beside, ok := strings.CutSuffix(name, suffix)
		if _, listed := m.Files[name]; listed || name == manifest.Name {
			continue
		}
		if _, listed := m.Files[beside]; !ok || !listed {
			return fmt.Errorf("%s is not in the manifest", name)
		}
	}
	return nil
}
