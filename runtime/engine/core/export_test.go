package core

import "github.com/yoctune/yoctune/runtime/engine/core/c"

// EmptyCall is what any call into C costs.
func EmptyCall() { c.Nothing() }

// Staged makes the device treat Go memory as out of its reach, as a GPU's
// backend does, with memory shared or not.
func (d *Device) Staged(shared bool) { d.direct, d.integrated = false, shared }
