package kernel

// Builder makes a [Tree] while its files are read: symbols may be used before
// they are defined, and equal expressions become one node.
type Builder struct {
	tree  Tree
	exprs map[Expr]ExprID
	words map[string]int32 // every name seen, to its entry in names
	names []name
	lits  map[string]int32
	files map[string]int32
}

// While building, an operand is an index into names (zero or more) or a quoted
// literal (below zero): which names are symbols is known at the end.
type name struct {
	text string
	sym  int32 // index into tree.Symbols, or -1
}

// NewBuilder starts a tree with the given identity.
func NewBuilder(id Tree) *Builder {
	b := &Builder{
		tree:  Tree{Name: id.Name, Release: id.Release, Arch: id.Arch, ChoiceByOrder: id.ChoiceByOrder, ZeroDefaults: id.ZeroDefaults},
		exprs: make(map[Expr]ExprID),
		words: make(map[string]int32),
		lits:  make(map[string]int32),
		files: make(map[string]int32),
	}
	b.tree.Exprs = append(b.tree.Exprs, Expr{Op: True})
	return b
}

// Word is the operand for a bare word: a symbol, now or later, or nothing.
func (b *Builder) Word(s string) Ref {
	if s == "y" || s == "m" || s == "n" {
		return b.ConstantOperand(s)
	}
	i, ok := b.words[s]
	if !ok {
		i = int32(len(b.names))
		b.words[s] = i
		b.names = append(b.names, name{s, -1})
	}
	return Ref(i)
}

// ConstantOperand returns the operand for a constant.
func (b *Builder) ConstantOperand(s string) Ref {
	i, ok := b.lits[s]
	if !ok {
		i = int32(len(b.tree.Literals))
		b.lits[s] = i
		b.tree.Literals = append(b.tree.Literals, Literal{Text: s})
	}
	return Ref(^i)
}

// Expr returns the node for an operator and its operands.
func (b *Builder) Expr(op Op, a, c int32) ExprID {
	e := Expr{op, a, c}
	if id, ok := b.exprs[e]; ok {
		return id
	}
	id := ExprID(len(b.tree.Exprs))
	b.exprs[e] = id
	b.tree.Exprs = append(b.tree.Exprs, e)
	return id
}

// Operand is the expression that consists of r alone.
func (b *Builder) Operand(r Ref) ExprID { return b.Expr(Symbol, int32(r), 0) }

// And joins two conditions; the empty one vanishes.
func (b *Builder) And(x, y ExprID) ExprID {
	switch {
	case x == Always || x == y:
		return y
	case y == Always:
		return x
	}
	return b.Expr(And, int32(x), int32(y))
}

// File returns the index of a source file for [Def.File].
func (b *Builder) File(path string) int32 {
	i, ok := b.files[path]
	if !ok {
		i = int32(len(b.tree.Files))
		b.files[path] = i
		b.tree.Files = append(b.tree.Files, path)
	}
	return i
}

// Define returns the symbol of that name, new or already defined.
func (b *Builder) Define(s string) int32 {
	r := b.Word(s)
	if !r.IsSymbol() {
		return -1
	}
	n := &b.names[r]
	if n.sym < 0 {
		n.sym = int32(len(b.tree.Symbols))
		b.tree.Symbols = append(b.tree.Symbols, Sym{Name: s})
	}
	return n.sym
}

// Symbol gives access to a defined symbol until the next call of Define.
func (b *Builder) Symbol(i int32) *Sym { return &b.tree.Symbols[i] }

// AddChoice starts a choice and returns its index.
func (b *Builder) AddChoice() int32 {
	b.tree.Choices = append(b.tree.Choices, Group{})
	return int32(len(b.tree.Choices) - 1)
}

// Choice gives access to a choice until the next call of AddChoice.
func (b *Builder) Choice(i int32) *Group { return &b.tree.Choices[i] }

// Tree resolves the names and returns the finished tree. The builder is spent.
func (b *Builder) Tree() *Tree {
	t := &b.tree
	to := make([]Ref, len(b.names))
	for i, n := range b.names {
		if n.sym >= 0 {
			to[i] = Ref(n.sym)
			continue
		}
		to[i] = Ref(^int32(len(t.Literals)))
		t.Literals = append(t.Literals, Literal{Text: n.text, Word: true})
	}
	t.resolve(func(r Ref) Ref {
		if r >= 0 {
			return to[r]
		}
		return r
	})
	return t
}

// resolve replaces the operands that stood in while the tree was built, and
// completes it.
func (t *Tree) resolve(fix func(Ref) Ref) {
	for i := range t.Exprs {
		e := &t.Exprs[i]
		switch {
		case e.Op == Symbol:
			e.A = int32(fix(Ref(e.A)))
		case e.Op >= Equal:
			e.A, e.B = int32(fix(Ref(e.A))), int32(fix(Ref(e.B)))
		}
	}
	targets := func(ts []Target) {
		for i := range ts {
			ts[i].Symbol = fix(ts[i].Symbol)
		}
	}
	for i := range t.Symbols {
		for j := range t.Symbols[i].Defs {
			d := &t.Symbols[i].Defs[j]
			targets(d.Selects)
			targets(d.Implies)
			for k := range d.Ranges {
				d.Ranges[k].Low, d.Ranges[k].High = fix(d.Ranges[k].Low), fix(d.Ranges[k].High)
			}
		}
	}
	for i := range t.Choices {
		c := &t.Choices[i]
		targets(c.Defaults)
		t.inheritType(c)
	}
	t.buildIndex()
}

// inheritType gives a choice the type of its first typed member, and members
// without a type that of the choice.
func (t *Tree) inheritType(c *Group) {
	for _, m := range c.Members {
		if c.Type == Unknown {
			c.Type = t.Symbols[m].Type
		}
	}
	if c.Type == Unknown {
		c.Type = Bool
	}
	for _, m := range c.Members {
		if t.Symbols[m].Type == Unknown {
			t.Symbols[m].Type = c.Type
		}
	}
}

// SoleOperand returns the operand that an expression consists of, if it is only one.
func (b *Builder) SoleOperand(id ExprID) (Ref, bool) {
	e := b.tree.Exprs[id]
	return Ref(e.A), e.Op == Symbol
}
