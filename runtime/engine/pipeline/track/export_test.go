package track

// Len returns the number of tracks, including those without an id.
func (t *Tracker) Len() int { return len(t.tracks) }
