package check

import (
	"fmt"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
)

// ground is a fact that a finding rests on.
type ground struct {
	what     string // for messages
	board    string // whose facts have it
	verified bool
}

// configured is the ground of what the configuration itself decides.
var configured = ground{verified: true}

// boardFact returns the fact of the board with a JSON name of [board.Board].
func (s *subject) boardFact(field, what string) ground {
	return ground{what + " of " + s.Board.ID, s.Board.ID, s.Board.IsVerified(field)}
}

// stockModes returns the stock power modes of the board as a fact. They were verified for
// some releases only.
func (s *subject) stockModes() ground {
	what := fmt.Sprintf("stock power modes of %s on L4T %s", s.Board.ID, s.Release.L4T)
	return ground{what, s.Board.ID, s.Exact}
}

func (s *subject) coreCount() ground { return s.boardFact("cores", "number of cores") }

func (s *subject) memorySize() ground { return s.boardFact("ram_bytes", "memory size") }

// refuse reports what contradicts a fact. A fact that is not verified refuses nothing: the
// finding is then a warning, and suppress switches it off even where the rule is firm.
// Every rule of severity error that compares with a fact reports through this function.
func (r *reporter) refuse(g ground, part config.Part, got, help, format string, args ...any) *finding {
	r.reportAt(part, got, help, format, args...)
	return r.found[len(r.found)-1].restOn(g)
}

// restOn makes a finding a warning unless the fact that it rests on is verified.
func (f *finding) restOn(g ground) *finding {
	if !g.verified {
		f.Severity = min(f.Severity, diag.Warning)
		f.Unverified = g.what + "; see `yoctune facts show " + g.board + "`"
	}
	return f
}
