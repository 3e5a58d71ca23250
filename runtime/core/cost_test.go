package core_test

import (
	"testing"

	"github.com/yoctune/yoctune/runtime/core"
)

func TestSubmittingAListAllocatesNothing(t *testing.T) {
	d := openCPU(t)
	l := stream(t, d).List().Memset(alloc(t, d, 64, core.MemHost).At(0, 1), 1)
	if n := testing.AllocsPerRun(100, func() {
		if err := l.Submit(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("submitting allocates %g times", n)
	}
}

// The reference is the first: a call into C that does nothing. What a list costs
// more is what the core adds.
func BenchmarkList(b *testing.B) {
	d := openCPU(b)
	s := stream(b, d)
	buf := alloc(b, d, 64, core.MemHost)
	none, one, many := s.List(), s.List().Memset(buf.At(0, 1), 1), s.List()
	for range 16 {
		many.Memset(buf.At(0, 1), 1)
	}
	g, err := s.Record(one.Submit)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("reference=empty-call", func(b *testing.B) {
		for b.Loop() {
			core.EmptyCall()
		}
	})
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"commands=0", none.Submit},
		{"commands=1", one.Submit},
		{"commands=16", many.Submit},
		{"graph-of=1", func() error { return g.Launch(s) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
