package monitor

import "time"

// Fake gives a sampler a clock of a test.
func (s *Sampler) Fake(clock func() time.Duration, patience time.Duration) {
	s.clock, s.patience = clock, patience
}
