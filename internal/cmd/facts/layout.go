package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// A member of an object, in the order of the file.
type member struct {
	key   string
	value json.RawMessage
}

// members splits an object and keeps its order, which encoding/json's maps lose:
// the order of the settings in a power mode is a fact.
func members(raw json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, fmt.Errorf("want an object, got %.40s", raw)
	}
	var all []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		all = append(all, member{key.(string), value})
	}
	return all, nil
}

func elements(raw json.RawMessage) ([]json.RawMessage, error) {
	var all []json.RawMessage
	err := json.Unmarshal(raw, &all)
	return all, err
}

// lineWidth is how long an object or a list may be to stay on one line.
const lineWidth = 110

// layOut formats JSON so that changing one fact changes one line. Values that fit on a line,
// and all lists of scalars, stay on one line.
func layOut(raw []byte) ([]byte, error) {
	var compact, out bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, err
	}
	if err := write(&out, compact.Bytes(), ""); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func write(w io.Writer, raw json.RawMessage, indent string) error {
	deeper := indent + " "
	switch {
	case len(raw)+len(indent) <= lineWidth || raw[0] != '{' && raw[0] != '[' || isFlatList(raw):
		_, err := w.Write(raw)
		return err
	case raw[0] == '{':
		all, err := members(raw)
		if err != nil {
			return err
		}
		fmt.Fprint(w, "{")
		for i, m := range all {
			key, err := json.Marshal(m.key)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s\n%s%s: ", comma(i), deeper, key)
			if err := write(w, m.value, deeper); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "\n%s}", indent)
	default:
		all, err := elements(raw)
		if err != nil {
			return err
		}
		fmt.Fprint(w, "[")
		for i, e := range all {
			fmt.Fprintf(w, "%s\n%s", comma(i), deeper)
			if err := write(w, e, deeper); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "\n%s]", indent)
	}
	return nil
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func isFlatList(raw json.RawMessage) bool {
	return raw[0] == '[' && !bytes.ContainsAny(raw[1:], "{[\"")
}
