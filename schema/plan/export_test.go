package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// CanonicalByHand is [Canonical] with a writer of its own: the form does not depend on
// how encoding/json indents and sorts.
func CanonicalByHand(v any) ([]byte, error) {
	t, err := toTree(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = writeCanonical(&out, t, 0)
	out.WriteByte('\n')
	return out.Bytes(), err
}

func writeCanonical(w *bytes.Buffer, v any, depth int) error {
	indent := func(n int) {
		w.WriteByte('\n')
		for range n {
			w.WriteString("  ")
		}
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.WriteString("{}")
			return nil
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		w.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				w.WriteByte(',')
			}
			indent(depth + 1)
			if err := writeString(w, k); err != nil {
				return err
			}
			w.WriteString(": ")
			if err := writeCanonical(w, v[k], depth+1); err != nil {
				return err
			}
		}
		indent(depth)
		w.WriteByte('}')
	case []any:
		if len(v) == 0 {
			w.WriteString("[]")
			return nil
		}
		w.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				w.WriteByte(',')
			}
			indent(depth + 1)
			if err := writeCanonical(w, e, depth+1); err != nil {
				return err
			}
		}
		indent(depth)
		w.WriteByte(']')
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return fmt.Errorf("plan: number %s is not an integer", v)
		}
		w.WriteString(v.String())
	case string:
		return writeString(w, v)
	case bool:
		fmt.Fprintf(w, "%t", v)
	case nil:
		w.WriteString("null")
	default:
		return fmt.Errorf("cannot encode %T", v)
	}
	return nil
}

func writeString(w *bytes.Buffer, s string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	w.Write(bytes.TrimRight(b.Bytes(), "\n"))
	return nil
}
