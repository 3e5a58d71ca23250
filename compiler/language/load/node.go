package load

import (
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Kind is the kind of a concrete value.
type Kind int

// The kinds of values a configuration can hold.
const (
	Null Kind = iota
	Bool
	Int
	Number // with a fraction
	String
	List
	Struct
)

// String is the kind in the words people use.
func (k Kind) String() string {
	return [...]string{"null", "bool", "integer", "number", "string", "list", "struct"}[k]
}

// Node is a concrete value with its position. Nodes are shared between targets and immutable
// after loading.
type Node struct {
	Kind   Kind
	Pos    plan.Position // of the value
	Text   string        // a string's value, or the digits of a number
	True   bool          // of a Bool
	Fields []Field       // of a Struct, in the order of the source
	Items  []*Node       // of a List
}

// Field is a member of a struct.
type Field struct {
	Name  string
	Pos   plan.Position // of the label
	Value *Node
}

// Field returns a member of a struct with its label, or nil.
func (n *Node) Field(name string) *Field {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return &n.Fields[i]
		}
	}
	return nil
}

// Get returns the value of a member of a struct, or nil.
func (n *Node) Get(name string) *Node {
	if f := n.Field(name); f != nil {
		return f.Value
	}
	return nil
}

// At walks down member by member; nil when something on the way is absent.
func (n *Node) At(names ...string) *Node {
	for _, name := range names {
		n = n.Get(name)
	}
	return n
}

// Int64 is the value of an Int and whether it fits.
func (n *Node) Int64() (int64, bool) {
	if n == nil || n.Kind != Int {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	return v, err == nil
}

// Show is the value as a message quotes it, shortened.
func (n *Node) Show() string {
	const limit = 60
	s := ""
	switch n.Kind {
	case Null:
		s = "null"
	case Bool:
		s = strconv.FormatBool(n.True)
	case Int, Number:
		s = n.Text
	case String:
		s = strconv.Quote(n.Text)
	case List:
		parts := make([]string, 0, len(n.Items))
		for _, it := range n.Items {
			parts = append(parts, it.Show())
		}
		s = "[" + strings.Join(parts, ", ") + "]"
	case Struct:
		parts := make([]string, 0, len(n.Fields))
		for _, f := range n.Fields {
			parts = append(parts, f.Name+": "+f.Value.Show())
		}
		s = "{" + strings.Join(parts, ", ") + "}"
	}
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return s
}

// Equal compares values, not places. Members may come in any order.
func (n *Node) Equal(o *Node) bool {
	if n == o {
		return true
	}
	if n == nil || o == nil || n.Kind != o.Kind || n.Text != o.Text || n.True != o.True ||
		len(n.Items) != len(o.Items) || len(n.Fields) != len(o.Fields) {
		return false
	}
	for i := range n.Items {
		if !n.Items[i].Equal(o.Items[i]) {
			return false
		}
	}
	for _, f := range n.Fields {
		if v := o.Get(f.Name); v == nil || !f.Value.Equal(v) {
			return false
		}
	}
	return true
}

// PathOf joins member names to a CUE path. Names that are not identifiers are quoted.
func PathOf(base, name string) string {
	if !identifier(name) {
		name = strconv.Quote(name)
	}
	if base == "" {
		return name
	}
	return base + "." + name
}

func identifier(s string) bool {
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_':
		case r >= '0' && r <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != ""
}

// Members lists the members of a struct; none for anything else.
func (n *Node) Members() []Field {
	if n == nil {
		return nil
	}
	return n.Fields
}

// Word is the text of a string, and "" for anything else.
func (n *Node) Word() string {
	if n == nil || n.Kind != String {
		return ""
	}
	return n.Text
}
