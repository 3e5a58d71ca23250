//go:build bundled

package programs

import (
	"embed"
	"io/fs"
)

// The folder is made by internal/cmd/dist -runtime compiler/programs/embedded.
//
//go:embed embedded
var tree embed.FS

func embedded() fs.FS {
	sub, err := fs.Sub(tree, "embedded")
	if err != nil {
		return nil
	}
	return sub
}
