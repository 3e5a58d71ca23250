// Package sign finds the plans of a layer and reports whether each is signed, by
// which key, and whether its device will accept it.
package sign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/schema/plan"
)

// Reasons to refuse; test with errors.Is.
var (
	errNoPlan   = errors.New("no plan.json")
	errUnsigned = errors.New("the plan is not signed")
	ErrNoKey    = errors.New("no public key to verify with")
	errStranger = errors.New("the devices of this layer do not accept the key")
)

// Plan is a plan on disk.
type Plan struct {
	File string
	Doc  *plan.Plan
	Keys []signature.Key // that the layer installs on the device

	data []byte
}

// maxKeys bounds the keys of one device.
const maxKeys = 64

// Find returns the plans of a layer, or the one plan that path is. Links are not
// followed. The error wraps [errNoPlan] where there is none.
func Find(path string) ([]Plan, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("looking for plans: %w", err)
	}
	if !info.IsDir() {
		p, err := readPlan(path)
		if err != nil {
			return nil, err
		}
		return []Plan{p}, nil
	}
	files, err := filepath.Glob(filepath.Join(escapeGlob(path), "recipes-yoctune", "yoctune-*-config", "files", "*", "plan", "plan.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for plans: %w", err)
	}
	var plans []Plan
	for _, f := range files {
		p, err := readPlan(f)
		if err != nil {
			return nil, err
		}
		if p.Keys, err = readKeys(filepath.Join(filepath.Dir(f), "..", "keys")); err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf("%w in %s; name the folder that `yoctune build` wrote, or a plan", errNoPlan, path)
	}
	return plans, nil
}

// escapeGlob keeps a folder's name from being read as a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func readPlan(file string) (Plan, error) {
	data, err := readRegular(file, plan.MaxSize)
	if err != nil {
		return Plan{}, fmt.Errorf("reading the plan: %w", err)
	}
	doc, err := plan.Decode(bytes.NewReader(data))
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %w", file, err)
	}
	return Plan{File: file, Doc: doc, data: data}, nil
}

// readRegular reads a file that is not a link, of at most limit bytes.
func readRegular(file string, limit int64) ([]byte, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", file, limit)
	}
	return b, err
}

func readKeys(dir string) ([]signature.Key, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading keys: %w", err)
	}
	var out []signature.Key
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".pub") {
			continue
		}
		k, err := ReadKey(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if out = append(out, k); len(out) > maxKeys {
			return nil, fmt.Errorf("reading keys: %s holds more than %d", dir, maxKeys)
		}
	}
	return out, nil
}

// ReadKey reads the file of a public key.
func ReadKey(file string) (signature.Key, error) {
	b, err := readRegular(file, signature.MaxSize)
	if err != nil {
		return signature.Key{}, fmt.Errorf("reading a key: %w", err)
	}
	k, err := signature.ParseKey(b)
	if err != nil {
		return k, fmt.Errorf("reading a key: %s: %w", file, err)
	}
	return k, nil
}

// Signature is where the plan's signature lies.
func (p Plan) Signature() string { return p.File + signature.Extension }

// Comment is the trusted comment of a signature of the plan.
func (p Plan) Comment() string {
	return fmt.Sprintf("plan of %s/%s serial %d %s", p.Doc.Layer, p.Doc.Target, p.Doc.Serial, p.Doc.Digest)
}

// Accepts fails with [errStranger] where the layer names keys and this is not one of them.
func (p Plan) Accepts(k signature.Key) error {
	same := func(other signature.Key) bool { return other.String() == k.String() }
	if len(p.Keys) == 0 || slices.ContainsFunc(p.Keys, same) {
		return nil
	}
	return fmt.Errorf("%w %s: runtime.keys has %s", errStranger, k.ID(), keyIDs(p.Keys))
}

func keyIDs(keys []signature.Key) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.ID())
	}
	return strings.Join(names, ", ")
}

// Sign writes the signature beside the plan, whole or not at all.
func (p Plan) Sign(s signature.Secret) error {
	if err := p.Accepts(s.Public()); err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	return tree.WriteFile(p.Signature(), s.Sign(p.data, p.Comment()))
}

// Verify checks the signature beside the plan, by the given keys or, without any, by those
// of the layer. The error wraps [errUnsigned], [ErrNoKey], or an error of package signature.
func (p Plan) Verify(by []signature.Key) (signature.Signer, error) {
	if len(by) == 0 {
		by = p.Keys
	}
	if len(by) == 0 {
		return signature.Signer{}, fmt.Errorf("%s: %w: the layer has none (runtime.keys), and none was given", p.File, ErrNoKey)
	}
	sig, err := readRegular(p.Signature(), signature.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return signature.Signer{}, fmt.Errorf("%s: %w", p.File, errUnsigned)
	} else if err != nil {
		return signature.Signer{}, fmt.Errorf("reading the signature: %w", err)
	}
	who, err := signature.Verify(by, p.data, sig)
	if err != nil {
		return who, fmt.Errorf("%s: %w", p.File, err)
	}
	return who, nil
}
