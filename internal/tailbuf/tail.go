// Package tailbuf keeps the end of a program's output, for use in error messages.
package tailbuf

import (
	"strings"
	"sync"
)

// Size is how many bytes are kept.
const Size = 512

// Buffer is a writer that keeps the last [Size] bytes; its zero value is empty. It may
// be used from several goroutines.
type Buffer struct {
	mu sync.Mutex
	b  []byte
}

// Write never fails.
func (t *Buffer) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - Size; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

// String returns the text, without incomplete characters at its ends.
func (t *Buffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.b), ""))
}
