package diag

import "github.com/yoctune/yoctune/schema/plan"

// EditKind is what an [Edit] does.
type EditKind string

// The edits.
const (
	AddField    EditKind = "add"     // a field beside the one at the place
	ReplaceText EditKind = "replace" // the value at the place
	RenameField EditKind = "rename"  // the label at the place
)

// Edit is a change to a configuration that a machine can make. Its text is CUE; package fix writes
// it in the language of the file.
type Edit struct {
	Kind EditKind      `json:"kind"`
	Pos  plan.Position `json:"position"`     // of a value; for rename, of a label
	Up   int           `json:"up,omitempty"` // add: beside the field this many levels further out
	Text string        `json:"text"`         // a field, a value, or a label, as CUE
}
