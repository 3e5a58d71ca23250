package core

import "github.com/yoctune/yoctune/runtime/engine/core/c"

// EmptyCall measures the cost of a call into C.
func EmptyCall() { c.Nothing() }

// Staged makes the device copy Go memory through staging buffers, as a GPU backend does.
// shared selects whether CPU and device share memory.
func (d *Device) Staged(shared bool) { d.direct, d.integrated = false, shared }
