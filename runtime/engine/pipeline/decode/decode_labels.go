package decode

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// maxLabels limits the size of a labels file, in bytes.
const maxLabels = 4 << 20

// ReadLabels reads one label per line. Spaces inside a line belong to the label.
func ReadLabels(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if !st.Mode().IsRegular() || st.Size() > maxLabels {
		return nil, fmt.Errorf("%w: labels %s is not a file of at most %d bytes", registry.ErrPlan, path, maxLabels)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	text := strings.TrimSuffix(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
	if text == "" {
		return nil, fmt.Errorf("%w: labels %s is empty", registry.ErrPlan, path)
	}
	labels := strings.Split(text, "\n")
	for n, l := range labels {
		if !utf8.ValidString(l) {
			return nil, fmt.Errorf("%w: line %d of labels %s is not UTF-8: %.40q; convert the file with iconv", registry.ErrPlan, n+1, path, l)
		}
	}
	return labels, nil
}
