//go:build !bundled

package programs

import "io/fs"

// embedded returns nil: this build contains no programs.
func embedded() fs.FS { return nil }
