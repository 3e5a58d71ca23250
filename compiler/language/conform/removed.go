package conform

import (
	"slices"
	"strings"
)

// removedFields are fields that earlier versions accepted without effect, by their path
// in a target, and why they have none. "*" stands for a name that the user chose.
var removedFields = []struct{ path, reason string }{
	{"pipelines.*.kernels.map", "no stage of a pipeline launches this kernel"},
	{"pipelines.*.kernels.convert", "no stage of a pipeline launches this kernel"},
	{"pipelines.*.kernels.copy", "a pipeline copies to and from the GPU with the copy engine, not with this kernel"},
}

// removed reports why the field at path was removed from the language; false when it
// was not.
func removed(path string) (reason string, ok bool) {
	parts := strings.Split(path, ".")
	for _, f := range removedFields {
		want := strings.Split(f.path, ".")
		// Before it may stand the target or the profile.
		tail := parts[max(len(parts)-len(want), 0):]
		if slices.EqualFunc(tail, want, func(a, b string) bool { return a == b || b == "*" }) {
			return f.reason, true
		}
	}
	return "", false
}
