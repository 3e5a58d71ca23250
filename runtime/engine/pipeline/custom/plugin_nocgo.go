//go:build !cgo

package custom

import "fmt"

// Plugin cannot be used in a program built without cgo.
type Plugin struct{}

// LoadPlugin always fails: loading a library needs cgo.
func LoadPlugin(path string, _, _ Port, _ string, _ Metric) (*Plugin, error) {
	return nil, fmt.Errorf("%w: %s: this program was built without cgo", ErrPlugin, path)
}

// Run always fails: see LoadPlugin.
func (*Plugin) Run(Item, []byte) (int, error) { return 0, ErrPlugin }

// Close does nothing without cgo.
func (*Plugin) Close() {}

func diePlainly() {}
