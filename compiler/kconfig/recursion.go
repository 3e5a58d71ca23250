package kconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// findRecursions finds symbols whose visibility or value depends on itself, as the
// kernel's own reader refuses them. Each chain is one problem.
func findRecursions(t *kernel.Tree) []Problem {
	c := &cycles{t: t, state: make([]uint8, len(t.Symbols)), rev: make([][]revEdge, len(t.Symbols))}
	for i := range t.Symbols {
		for j := range t.Symbols[i].Defs {
			d := &t.Symbols[i].Defs[j]
			addReverse := func(how string, targets []kernel.Target) {
				for _, s := range targets {
					if s.Symbol.IsSymbol() {
						c.rev[s.Symbol] = append(c.rev[s.Symbol], revEdge{int32(i), how, []kernel.ExprID{d.Depends, s.If}})
					}
				}
			}
			addReverse("is selected by", d.Selects)
			addReverse("is implied by", d.Implies)
		}
	}
	for i := range t.Symbols {
		c.visit(int32(i))
		if len(c.found) >= maxErrors {
			break
		}
	}
	return c.found
}

type revEdge struct {
	from  int32
	how   string
	conds []kernel.ExprID
}

type step struct {
	sym int32
	how string // relation to the next step
}

type cycles struct {
	t     *kernel.Tree
	rev   [][]revEdge
	state []uint8 // 1 being visited, 2 done
	path  []step
	found []Problem
}

func (c *cycles) visit(i int32) {
	switch c.state[i] {
	case 2:
		return
	case 1:
		c.report(i)
		return
	}
	g := c.choiceOf(i)
	if g == nil {
		c.state[i] = 1
		c.followDependencies(i)
		c.state[i] = 2
		return
	}
	// A choice and its members stand or fall together: each depends on what
	// any of them depends on.
	for _, m := range g.Members {
		c.state[m] = 1
	}
	for _, m := range g.Members {
		c.followDependencies(m)
	}
	for _, m := range g.Members {
		c.state[m] = 2
	}
}

func (c *cycles) choiceOf(i int32) *kernel.Group {
	for j := range c.t.Symbols[i].Defs {
		if n := c.t.Symbols[i].Defs[j].Choice; n >= 0 {
			return &c.t.Choices[n]
		}
	}
	return nil
}

func (c *cycles) followDependencies(i int32) {
	c.path = append(c.path, step{sym: i})
	for _, e := range c.rev[i] {
		c.follow(e.how, e.from)
		for _, x := range e.conds {
			c.followExpr(x, e.how+" a line that depends on")
		}
	}
	for j := range c.t.Symbols[i].Defs {
		d := &c.t.Symbols[i].Defs[j]
		c.followExpr(d.Depends, "depends on")
		if d.Prompt {
			c.followExpr(d.Visible, "is visible depending on")
		}
		for _, x := range d.Defaults {
			c.followExpr(x.If, "default is conditional on")
			c.followExpr(x.Value, "default value contains")
		}
		for _, x := range d.Ranges {
			c.followExpr(x.If, "range is conditional on")
		}
		if d.Choice >= 0 {
			g := &c.t.Choices[d.Choice]
			c.followExpr(g.Depends, "is in a choice that depends on")
			c.followExpr(g.Visible, "is in a choice that is visible depending on")
		}
	}
	c.path = c.path[:len(c.path)-1]
}

func (c *cycles) follow(how string, to int32) {
	c.path[len(c.path)-1].how = how
	c.visit(to)
}

func (c *cycles) followExpr(id kernel.ExprID, how string) {
	e := c.t.Exprs[id]
	ref := func(x int32) {
		if r := kernel.Ref(x); r.IsSymbol() {
			c.follow(how, int32(r))
		}
	}
	switch e.Op {
	case kernel.True:
	case kernel.Symbol:
		ref(e.A)
	case kernel.Not:
		c.followExpr(kernel.ExprID(e.A), how)
	case kernel.And, kernel.Or:
		c.followExpr(kernel.ExprID(e.A), how)
		c.followExpr(kernel.ExprID(e.B), how)
	default:
		ref(e.A)
		ref(e.B)
	}
}

func (c *cycles) report(i int32) {
	together := []int32{i}
	if g := c.choiceOf(i); g != nil {
		together = g.Members
	}
	start := len(c.path) - 1
	for start > 0 && !slices.Contains(together, c.path[start].sym) {
		start--
	}
	var b strings.Builder
	b.WriteString("recursive dependency detected:")
	for n := start; n < len(c.path); n++ {
		next := i
		if n+1 < len(c.path) {
			next = c.path[n+1].sym
		}
		fmt.Fprintf(&b, "\n\tsymbol %s %s %s", c.t.Symbols[c.path[n].sym].Name, c.path[n].how, c.t.Symbols[next].Name)
		if p := c.position(c.path[n].sym); p.Line > 0 {
			fmt.Fprintf(&b, " (%s:%d)", p.File, p.Line)
		}
	}
	p := c.position(i)
	p.Message = b.String()
	if len(c.found) < maxErrors {
		c.found = append(c.found, p)
	}
}

func (c *cycles) position(i int32) Problem {
	for _, d := range c.t.Symbols[i].Defs {
		if d.File >= 0 {
			return Problem{File: c.t.Files[d.File], Line: int(d.Line), Column: 1}
		}
	}
	return Problem{File: c.t.Name, Column: 1}
}
