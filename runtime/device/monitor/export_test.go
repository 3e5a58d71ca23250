package monitor

import "time"

// Fake gives a sampler a clock of a test.
func (s *Sampler) Fake(clock func() time.Duration, patience time.Duration) {
	s.clock, s.patience = clock, patience
}

// FakeShared gives a shared source a clock of a test.
func (s *Shared) FakeShared(clock func() time.Duration) { s.clock = clock }
