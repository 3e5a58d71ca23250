package core

import (
	"bytes"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// EmptyCall measures the cost of a call into C.
func EmptyCall() { c.Nothing() }

// Staged makes the device copy Go memory through staging buffers, as a GPU backend does.
// shared selects whether CPU and device share memory.
func (d *Device) Staged(shared bool) { d.direct, d.integrated = false, shared }

// Fill copies bytes of one value to dst, from pinned memory of at most a MiB that the device frees.
func (l *List) Fill(dst Region, value byte) *List {
	from := Region{Len: dst.Len}
	if b, err := l.s.d.Alloc(min(max(dst.Len, 1), 1<<20), MemPinned); err == nil {
		copy(b.host, bytes.Repeat([]byte{value}, len(b.host)))
		from.Buf = b
	}
	return l.Copy(dst, from)
}
