package tree

import (
	"fmt"
	"os"

	"github.com/google/renameio/v2"
)

// WriteFile replaces a file atomically. A link is replaced, not followed.
func WriteFile(name string, data []byte) error {
	if info, err := os.Lstat(name); err == nil && info.IsDir() {
		return fmt.Errorf("writing %s: it is a directory", name)
	}
	if err := renameio.WriteFile(name, data, 0o644, renameio.WithStaticPermissions(0o644)); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
