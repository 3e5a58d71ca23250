//go:build !cgo

package plugin

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
)

// Plugin cannot be used in a program built without cgo.
type Plugin struct{}

// Load always fails: loading a library needs cgo.
func Load(path string, _, _ custom.Port, _ string, _ custom.Reports) (*Plugin, error) {
	return nil, fmt.Errorf("%w: %s: this program was built without cgo", custom.ErrPlugin, path)
}

// Run always fails: see Load.
func (*Plugin) Run(custom.Item, []byte) (int, error) { return 0, custom.ErrPlugin }

// Close does nothing without cgo.
func (*Plugin) Close() {}

func diePlainly() {}
