package tree

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile writes a file whole or not at all: to a temporary one beside it,
// then by a rename.
func WriteFile(name string, data []byte) error {
	if info, err := os.Lstat(name); err == nil && info.IsDir() {
		return fmt.Errorf("writing %s: it is a directory", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".yoctune-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
