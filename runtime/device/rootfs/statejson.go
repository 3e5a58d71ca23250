package rootfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// ReadJSON decodes a state file. It returns nil if there is no such file.
func ReadJSON[T any](st State, name string) (*T, error) {
	data, err := st.ReadState(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var v *T
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if v == nil {
		return nil, fmt.Errorf("%s: the file holds null", name)
	}
	return v, nil
}

// WriteJSON replaces a state file by the JSON of v.
func WriteJSON(st State, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return st.WriteState(name, append(data, '\n'))
}
