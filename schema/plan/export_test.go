package plan

import "reflect"

// CanonicalByJSON is Canonical by way of encoding/json alone, its referee.
func CanonicalByJSON(v any) ([]byte, error) {
	t, err := treeByJSON(reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	return encode(t)
}
