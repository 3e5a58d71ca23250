package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
)

// ModelStore is the directory in which layers install models, named by SHA-256.
const ModelStore = "/usr/share/yoctune/models"

// modelFiles finds models and labels.
type modelFiles struct {
	dir    string              // base of the plan's relative paths
	models string              // directory to search first, "" for none
	labels map[string][]string // label files already read, by path
}

// find looks for a model in --models, the plan's directory and the layers' model store, in this
// order.
func (m *modelFiles) find(path, sum string) (string, error) {
	if path == "" && sum == "" {
		return "", fmt.Errorf("%w: the model has neither path nor sha256", ErrPlan)
	}
	if sum != "" && !isSHA256(sum) {
		return "", fmt.Errorf("%w: model sha256 %.80q is not 64 lower-case hexadecimal digits", ErrPlan, sum)
	}
	var tries []string
	if path != "" {
		tries = m.inModels(path)
	}
	if m.models != "" && sum != "" {
		tries = append(tries, filepath.Join(m.models, sum))
	}
	if path != "" {
		tries = append(tries, resolvePath(m.dir, path))
	}
	if sum != "" {
		tries = append(tries, filepath.Join(ModelStore, sum))
	}
	return firstFile(tries)
}

// inModels returns the paths at which a file may be in --models.
func (m *modelFiles) inModels(path string) []string {
	switch {
	case m.models == "":
		return nil
	case filepath.IsAbs(path):
		return []string{filepath.Join(m.models, filepath.Base(path))}
	}
	return []string{filepath.Join(m.models, path), filepath.Join(m.models, filepath.Base(path))}
}

// firstFile returns the first path that exists.
func firstFile(tries []string) (string, error) {
	for _, t := range tries {
		_, err := os.Stat(t)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w: %w", ErrModelFile, err)
		}
	}
	return "", fmt.Errorf("%w: not found in %s: install it, or set its directory with --models",
		ErrModelFile, strings.Join(tries, ", "))
}

func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

// newDigestCheck returns a function that compares a model with the digest in the plan, or nil
// if the plan has none.
func newDigestCheck(want string) func([]byte) error {
	if want == "" {
		return nil
	}
	return func(model []byte) error {
		sum := sha256.Sum256(model)
		if got := hex.EncodeToString(sum[:]); got != want {
			return fmt.Errorf("%w: sha256 is %s, but the plan has %s: the file is damaged or a different model", ErrModelFile, got, want)
		}
		return nil
	}
}

// findNamed looks for a file that is not a model. The model store has it under its name.
func (m *modelFiles) findNamed(name string) (string, error) {
	return firstFile(append(m.inModels(name), resolvePath(m.dir, name), filepath.Join(ModelStore, filepath.Base(name))))
}

// readLabels reads a labels file, which is searched for like a model; nil if the plan names
// none.
func (m *modelFiles) readLabels(name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	path, err := m.findNamed(name)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if m.labels[path] == nil {
		if m.labels[path], err = decode.ReadLabels(path); err != nil {
			return nil, err
		}
	}
	return m.labels[path], nil
}
