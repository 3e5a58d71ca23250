package backoff_test

import (
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
)

func TestPauseDoublesToTenSecondsAndResets(t *testing.T) {
	var p backoff.Delay
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		if got := p.Next(); got != want*time.Millisecond {
			t.Errorf("%v, not %v", got, want*time.Millisecond)
		}
	}
	p = 0
	if got := p.Next(); got != backoff.First {
		t.Errorf("%v after a success", got)
	}
}
