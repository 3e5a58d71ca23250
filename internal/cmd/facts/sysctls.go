package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/yoctune/yoctune/schema/facts/sysctl"
)

// updateSysctls sorts the rows of file and makes every exclusion mutual.
func updateSysctls(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := layOutSysctls(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return writeFile(file, text)
}

func layOutSysctls(raw []byte) ([]byte, error) {
	var data sysctl.Data
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&data); err != nil {
		return nil, err
	}
	slices.SortFunc(data.Facts, func(a, b sysctl.Fact) int { return cmp.Compare(a.Key, b.Key) })
	place := map[string]int{}
	for i, f := range data.Facts {
		if _, twice := place[f.Key]; twice {
			return nil, fmt.Errorf("%s has two rows", f.Key)
		}
		place[f.Key] = i
	}
	for _, f := range data.Facts {
		for _, other := range f.Excludes {
			i, ok := place[other]
			if !ok {
				return nil, fmt.Errorf("%s excludes %s, which has no row", f.Key, other)
			}
			if o := &data.Facts[i]; !slices.Contains(o.Excludes, f.Key) {
				o.Excludes = append(o.Excludes, f.Key)
			}
		}
	}

	// One fact per line: the diff of a change is one line, and sysctl.Lookup decodes only the line
	// it needs.
	var text bytes.Buffer
	kernels, err := json.Marshal(data.Kernels)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&text, "{\"kernels\": %s,\n \"facts\": [", kernels)
	for i, f := range data.Facts {
		line, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%s\n  %s", comma(i), line)
	}
	text.WriteString("\n ]}\n")
	return text.Bytes(), nil
}
