package plan

import "reflect"

// CanonicalByJSON is Canonical by way of encoding/json alone, its referee.
func CanonicalByJSON(v any) ([]byte, error) {
	t, err := treeFromJSON(reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	return Canonical(t)
}
