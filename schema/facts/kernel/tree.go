// Package kernel holds facts about the kernels of Jetson boards: the
// Kconfig symbols of each as plain facts, and the configuration each starts from.
//
// A [Tree] holds the content of Kconfig files without prompt texts and help:
// types, dependencies, selects, defaults, ranges and choices. It is evaluated by
// compiler/kconfig. Seven trees are embedded ([Open]); others are made from a
// kernel's source and kept in the same compact form ([Encode], [Decode]).
package kernel

// Type is a symbol's type.
type Type uint8

// The types of the Kconfig language. A symbol that is named but given no type
// is Unknown; it is never written to a configuration.
const (
	Unknown Type = iota
	Bool
	Tristate
	Int
	Hex
	String
)

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "unknown"
}

var typeNames = [...]string{"unknown", "bool", "tristate", "int", "hex", "string"}

// Logical reports whether symbols of the type have the values n, m and y.
func (t Type) Logical() bool { return t == Bool || t == Tristate }

// Ref is an operand: a symbol of the tree when zero or more, else the literal
// Tree.Literals[^ref].
type Ref int32

// IsSymbol reports whether r names a symbol that the tree defines.
func (r Ref) IsSymbol() bool { return r >= 0 }

// Literal is an operand that is not a symbol of the tree.
type Literal struct {
	Text string
	// Word: written without quotes where a symbol is allowed. It names a
	// symbol that this kernel does not define, which is therefore n.
	Word bool
}

// ExprID indexes Tree.Exprs. Always is the empty condition, which holds.
type ExprID int32

// Always is the condition that is not written.
const Always ExprID = 0

// Op is an operator of the expression language.
type Op uint8

// Operators. For Symbol, A is a [Ref]. For Not, A is an [ExprID]; for And and
// Or, A and B are. For comparisons A and B are Refs.
const (
	True Op = iota // only Exprs[Always]
	Symbol
	Not
	And
	Or
	Equal
	Unequal
	Less
	LessEqual
	Greater
	GreaterEqual
)

// Expr is one node of an expression; equal expressions share a node.
type Expr struct {
	Op   Op
	A, B int32
}

// Target is a select or imply.
type Target struct {
	Symbol Ref
	If     ExprID
}

// Default is one default line. For int, hex and string symbols Value is a
// [Symbol] node.
type Default struct {
	Value ExprID
	If    ExprID
}

// Range bounds an int or hex symbol, both ends included.
type Range struct {
	Low, High Ref
	If        ExprID
}

// Def is one config entry; a symbol may have several.
type Def struct {
	Depends  ExprID // own depends and those of the enclosing blocks
	Prompt   bool
	Visible  ExprID // the prompt's own condition and the menus' "visible if"
	Selects  []Target
	Implies  []Target
	Defaults []Default
	Ranges   []Range
	Choice   int32 // index into Tree.Choices, or -1
	File     int32 // index into Tree.Files, or -1 where positions were dropped
	Line     int32
}

// Sym is one symbol.
type Sym struct {
	Name string
	Type Type
	Defs []Def
}

// Group is a choice.
type Group struct {
	Type     Type // Unknown: that of the first member with a type
	Optional bool
	Prompt   bool
	Depends  ExprID
	Visible  ExprID
	Defaults []Target // a member and its condition
	Members  []int32  // symbols in the order of the file
}

// Tree is the Kconfig of one kernel for one architecture.
type Tree struct {
	Name    string // "6.12", or what the user calls it
	Release string // full version where known: "5.15.148"
	Arch    string // "arm64"
	// ChoiceByOrder: the choice rules of Linux 6.11 and later, where the last
	// visible =y wins. Before, only the very last =y counts.
	ChoiceByOrder bool
	// ZeroDefaults: an int without a default is 0 rather than empty (6.9 and later).
	ZeroDefaults bool

	Symbols  []Sym // in the order of the files
	Choices  []Group
	Exprs    []Expr // Exprs[0] is True; operands come before their users
	Literals []Literal
	Files    []string

	index map[string]int32
}

// Lookup finds a symbol by its name without the CONFIG_ prefix.
func (t *Tree) Lookup(name string) (int32, bool) {
	i, ok := t.index[name]
	return i, ok
}

// Value is one line of a base configuration.
type Value struct {
	Name  string // without CONFIG_
	Value string // as written: y, m, n, 12, 0x10, "text" with its quotes
}

func (t *Tree) buildIndex() {
	t.index = make(map[string]int32, len(t.Symbols))
	for i := range t.Symbols {
		t.index[t.Symbols[i].Name] = int32(i)
	}
}
