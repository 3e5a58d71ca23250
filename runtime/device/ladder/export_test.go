package ladder

// Step returns the current step.
func (l *Ladder) Step() int { return l.step }
