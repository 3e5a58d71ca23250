package linux

// Decodes reports whether data is a table whose blocks can all be read.
func Decodes(data []byte) bool {
	t, err := decode(data)
	if err != nil {
		return false
	}
	for i := range t.block {
		if _, err := t.inflate(i); err != nil {
			return false
		}
	}
	return true
}
