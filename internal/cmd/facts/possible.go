package main

import (
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// possible holds the options that some configuration of the kernel for arm64 can have.
type possible struct {
	tree     *kernel.Tree
	on       []bool
	tristate map[string]bool
}

// findPossible drops options until each of those left has a definition whose conditions can
// hold, and a prompt, a default or an option that implies it, or is selected by one that is left. Conditions with
// "not" count as met.
func findPossible(t *kernel.Tree) *possible {
	p := &possible{tree: t, on: make([]bool, len(t.Symbols)), tristate: map[string]bool{}}
	for i := range p.on {
		p.on[i] = true
		p.tristate[t.Symbols[i].Name] = t.Symbols[i].Type == kernel.Tristate
	}
	for changed := true; changed; {
		changed = false
		selected, implied := make([]bool, len(p.on)), make([]bool, len(p.on))
		for i, s := range t.Symbols {
			for _, d := range s.Defs {
				mark := func(targets []kernel.Target, marked []bool) {
					for _, target := range targets {
						if p.on[i] && target.Symbol.IsSymbol() && p.holds(target.If) && p.holds(d.Depends) {
							marked[target.Symbol] = true
						}
					}
				}
				mark(d.Selects, selected)
				mark(d.Implies, implied)
			}
		}
		for i, s := range t.Symbols {
			if !p.on[i] || selected[i] || s.Type == kernel.Int || s.Type == kernel.Hex || s.Type == kernel.String {
				continue
			}
			if !p.canBe(s, implied[i]) {
				p.on[i], changed = false, true
			}
		}
	}
	return p
}

// canBe reports whether a prompt, a default or another symbol that implies it can give a symbol a value.
func (p *possible) canBe(s kernel.Sym, implied bool) bool {
	for _, d := range s.Defs {
		if !p.holds(d.Depends) {
			continue
		}
		if d.Prompt || implied {
			return true
		}
		for _, v := range d.Defaults {
			if p.holds(v.If) && p.holds(v.Value) {
				return true
			}
		}
	}
	return false
}

func (p *possible) holds(id kernel.ExprID) bool {
	switch e := p.tree.Exprs[id]; e.Op {
	case kernel.Symbol:
		r := kernel.Ref(e.A)
		if r.IsSymbol() {
			return p.on[r]
		}
		l := p.tree.Literals[^r]
		return !l.Word && l.Text != "n"
	case kernel.And:
		return p.holds(kernel.ExprID(e.A)) && p.holds(kernel.ExprID(e.B))
	case kernel.Or:
		return p.holds(kernel.ExprID(e.A)) || p.holds(kernel.ExprID(e.B))
	}
	return true
}

func (p *possible) has(name string) bool {
	i, ok := p.tree.Lookup(name)
	return ok && p.on[i]
}

func (p *possible) all(names []string) bool {
	for _, n := range names {
		if !p.has(n) {
			return false
		}
	}
	return true
}

// arch names the architecture that an impossible option belongs to; "" where none is found.
func (p *possible) arch(name string, depth int) string {
	if arch := knownArchs[name]; arch != "" {
		return arch
	}
	i, ok := p.tree.Lookup(name)
	if !ok {
		for prefix, arch := range knownArchs {
			if strings.HasPrefix(name, prefix+"_") {
				return arch
			}
		}
		return ""
	}
	if p.on[i] || depth > 3 {
		return ""
	}
	for _, d := range p.tree.Symbols[i].Defs {
		if arch := p.archOf(d.Depends, depth); arch != "" {
			return arch
		}
	}
	return ""
}

func (p *possible) archOf(id kernel.ExprID, depth int) string {
	switch e := p.tree.Exprs[id]; e.Op {
	case kernel.Symbol:
		if r := kernel.Ref(e.A); r.IsSymbol() {
			return p.arch(p.tree.Symbols[r].Name, depth+1)
		} else if l := p.tree.Literals[^r]; l.Word {
			return p.arch(l.Text, depth+1)
		}
	case kernel.And, kernel.Or:
		if arch := p.archOf(kernel.ExprID(e.A), depth); arch != "" {
			return arch
		}
		return p.archOf(kernel.ExprID(e.B), depth)
	}
	return ""
}

var knownArchs = map[string]string{
	"X86": "x86", "X86_64": "x86", "X86_32": "x86", "PPC": "powerpc", "PPC64": "powerpc", "PPC32": "powerpc", "PPC_PSERIES": "powerpc", "S390": "s390",
	"ARM": "32-bit arm", "MIPS": "mips", "SPARC": "sparc", "SPARC64": "sparc", "SPARC32": "sparc", "M68K": "m68k", "IA64": "ia64", "PARISC": "parisc", "ALPHA": "alpha",
	"RISCV": "riscv", "LOONGARCH": "loongarch", "XTENSA": "xtensa", "SUPERH": "sh", "ARC": "arc", "UML": "um", "ISA": "ISA buses", "EISA": "ISA buses", "AMIGA": "m68k", "MAC": "m68k",
}
