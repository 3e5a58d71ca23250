package sink

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/ring"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// ringSink writes records to a ring in shared memory.
type ringSink struct {
	ring        *ring.Writer
	path        string
	slots, size int
	buf         []byte
	rest        Retry
}

func openRing(path string, slots, size int) (*ringSink, error) {
	if slots == 0 {
		slots = registry.RingSlots
	}
	if size == 0 {
		size = registry.RingSlotSize
	}
	if path == "" {
		return nil, fmt.Errorf("%w: the ring has no path", registry.ErrPlan)
	}
	w, err := ring.Create(path, slots, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return &ringSink{ring: w, path: path, slots: slots, size: size}, nil
}

// Write puts the record in the ring. It returns [ErrSinkDegraded] and drops the record if the
// record does not fit, or while a truncated ring cannot be recreated.
func (s *ringSink) Write(r *result.Record) error {
	s.buf = r.AppendJSON(s.buf[:0])
	if len(s.buf) > s.size {
		return fmt.Errorf("%w: a record of %d bytes does not fit in a slot of %d", ErrDegraded, len(s.buf), s.size)
	}
	if !s.rest.Due() {
		return s.rest.Err()
	}
	err := error(nil)
	if s.rest.Err() != nil {
		err = s.recreate()
	}
	if err == nil {
		err = s.ring.Put(s.buf)
	}
	if err != nil {
		return s.rest.Fail(fmt.Errorf("%s: %w", s.path, err))
	}
	s.rest.Reset()
	return nil
}

// recreate replaces a ring that was truncated.
func (s *ringSink) recreate() error {
	next, err := ring.Create(s.path, s.slots, s.size)
	if err != nil {
		return err
	}
	old := s.ring
	s.ring = next
	return old.Close()
}

func (s *ringSink) Close() error { return s.ring.Close() }
