package emitters

// Sinks lists the functions with which an action of a template may end, for the
// test that walks the templates.
func Sinks() map[string]bool {
	names := map[string]bool{"cause": true}
	for n := range sinks() {
		names[n] = true
	}
	return names
}
