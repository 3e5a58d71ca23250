package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// updateKernels writes the embedded kernels to out again. A kernel that indexes
// names ("NAME=FILE", as `yoctune kernel index` writes it) replaces the embedded one,
// or is added when kernel.Sets lists it.
func updateKernels(out string, indexes []string) error {
	files := map[string]string{}
	for _, s := range indexes {
		name, file, ok := strings.Cut(s, "=")
		if _, known := kernel.Find(name); !ok || !known {
			return fmt.Errorf("-index %s: want NAME=FILE, with NAME one of kernel.Sets", s)
		}
		files[name] = file
	}
	var entries []kernel.Entry
	for _, s := range kernel.Sets() {
		if file, ok := files[s.Name]; ok {
			e, err := readIndex(file, s.Name)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			entries = append(entries, e)
			continue
		}
		t, base, err := kernel.Open(s.Name)
		if errors.Is(err, kernel.ErrUnknown) {
			return fmt.Errorf("%s is not embedded yet: give its index with -index %s=FILE", s.Name, s.Name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		entries = append(entries, kernel.Entry{Tree: t, Base: base})
	}
	var b bytes.Buffer
	if err := kernel.Encode(&b, entries...); err != nil {
		return err
	}
	return writeFile(out, b.Bytes())
}

// readIndex reads an index and drops the positions: users do not have these sources.
func readIndex(file, name string) (kernel.Entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return kernel.Entry{}, err
	}
	t, base, err := kernel.Decode(data, "")
	if err != nil {
		return kernel.Entry{}, err
	}
	t.Name = name
	for i := range t.Symbols {
		for j := range t.Symbols[i].Defs {
			t.Symbols[i].Defs[j].File = -1
		}
	}
	return kernel.Entry{Tree: t, Base: base}, nil
}
