package monitor

import "time"

// Fake sets the clock of a sampler.
func (s *Sampler) Fake(clock func() time.Duration, patience time.Duration) {
	s.clock, s.patience = clock, patience
}

// FakeShared sets the clock of a shared source.
func (s *Shared) FakeShared(clock func() time.Duration) { s.clock = clock }
