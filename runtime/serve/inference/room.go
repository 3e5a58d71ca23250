package inference

import "sync"

// room bounds an amount of memory.
type room struct {
	limit int64

	mu   sync.Mutex
	used int64
}

// take takes n bytes, unless they are more than are left. Nothing waits.
func (r *room) take(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.limit-r.used {
		return false
	}
	r.used += n
	return true
}

func (r *room) give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
}
