//go:build !linux

package sandbox

import (
	"errors"
	"fmt"
	"runtime"
)

// limit refuses: without bounds a configuration could take all of a machine.
func limit() error {
	return fmt.Errorf("HCL and Jsonnet on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
