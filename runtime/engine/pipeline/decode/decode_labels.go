package decode

import (
	"fmt"
	"os"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// ReadLabels reads a labels file, see [registry.ParseLabels].
func ReadLabels(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if !st.Mode().IsRegular() || st.Size() > registry.MaxLabels {
		return nil, fmt.Errorf("%w: labels %s is not a file of at most %d bytes", registry.ErrPlan, path, registry.MaxLabels)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	return registry.ParseLabels(path, b)
}
