package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/internal/signature"
)

// Read returns the files of a layer that was written to a folder, its manifest and
// the signatures beside its files included, sorted by path. A file that was edited
// or that is gone is an error: what is read is what was built. The error wraps
// [ErrFolder], or [ErrEdited].
func Read(dir string) ([]emitters.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, folder(dir, err)
	}
	defer root.Close()
	raw, state, err := existing(root, ManifestName)
	if err != nil {
		return nil, folder(dir, err)
	}
	owned, err := readManifest(root)
	if err != nil {
		return nil, folder(dir, err)
	}
	if state != regular {
		return nil, fmt.Errorf("%w: %s holds no %s; name a folder that yoctune build wrote", ErrFolder, dir, ManifestName)
	}
	files := []emitters.File{{Path: ManifestName, Data: raw, Mode: 0o644}}
	for name, e := range owned {
		data, state, err := existing(root, name)
		switch {
		case err != nil:
			return nil, folder(dir, err)
		case state != regular || digest(data) != e.SHA256:
			return nil, fmt.Errorf("%s: %w", dir, Conflict{name, ErrEdited})
		}
		files = append(files, emitters.File{Path: name, Data: data, Mode: e.mode()})
		switch sig, state, err := existing(root, name+signature.Extension); {
		case err != nil:
			return nil, folder(dir, err)
		case state == other: // leaving it out would publish the layer unsigned
			return nil, fmt.Errorf("%s: %w", dir, Conflict{name + signature.Extension, ErrForeign})
		case state == regular:
			files = append(files, emitters.File{Path: name + signature.Extension, Data: sig, Mode: 0o644})
		}
	}
	slices.SortFunc(files, func(a, b emitters.File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

func (e entry) mode() fs.FileMode {
	if n, err := strconv.ParseUint(e.Mode, 8, 32); err == nil && n&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// Listed tells whether files are what their manifest says: each listed, with its
// digest, except the manifest and files that are another's name with a suffix.
func Listed(files []emitters.File, suffix string) error {
	by := map[string]emitters.File{}
	for _, f := range files {
		by[f.Path] = f
	}
	var m manifest
	if err := json.Unmarshal(by[ManifestName].Data, &m); err != nil || m.Schema != manifestSchema {
		return errors.New("it has no manifest of this version")
	}
	for name, e := range m.Files {
		if f, ok := by[name]; !ok || digest(f.Data) != e.SHA256 {
			return fmt.Errorf("%s is not what the manifest says", name)
		}
	}
	for name := range by {
		beside, ok := strings.CutSuffix(name, suffix)
		if _, listed := m.Files[name]; listed || name == ManifestName {
			continue
		}
		if _, listed := m.Files[beside]; !ok || !listed {
			return fmt.Errorf("%s is not in the manifest", name)
		}
	}
	return nil
}
