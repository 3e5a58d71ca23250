//go:build cgo

package plugin

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -D_GNU_SOURCE
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "plugin.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
)

// Plugin is a plug-in loaded into this process. A crash in it ends the process.
type Plugin struct {
	c       *C.plugin
	in, out custom.Port
	reports custom.Reports
	name    string
}

// Load loads a library and opens its stage. The error wraps [custom.ErrPlugin], or
// [custom.ErrStart] if the stage returns an error.
func Load(path string, in, out custom.Port, options string, reports custom.Reports) (*Plugin, error) {
	c := (*C.plugin)(C.calloc(1, C.sizeof_plugin))
	if c == nil {
		return nil, errors.New("load plug-in: out of memory")
	}
	name, text := C.CString(path), C.CString(options)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(text))
	p := &Plugin{c: c, in: in, out: out, reports: reports, name: path}
	if C.plugin_load(c, name) != 0 {
		defer p.Close()
		return nil, fmt.Errorf("%w: %s: %s", custom.ErrPlugin, path, C.GoString(&c.error[0]))
	}
	ci, co := port(in), port(out)
	if C.plugin_open(c, &ci, &co, text) != 0 {
		defer p.Close()
		return nil, fmt.Errorf("%w: %s: %s", custom.ErrStart, path, C.GoString(&c.error[0]))
	}
	return p, nil
}

func port(p custom.Port) C.yoctune_port {
	c := C.yoctune_port{
		kind: C.uint32_t(p.Kind), format: C.uint32_t(p.Format), width: C.uint32_t(p.Width), height: C.uint32_t(p.Height),
		rank: C.uint32_t(len(p.Shape)), dtype: C.uint32_t(p.DType), bytes: C.uint64_t(p.Bytes),
	}
	for n, d := range p.Shape {
		c.shape[n] = C.int64_t(d)
	}
	return c
}

// Run processes a frame. The error wraps [custom.ErrFailed].
func (p *Plugin) Run(i custom.Item, out []byte) (int, error) {
	if err := p.in.CheckInput(i.In); err != nil {
		return 0, err
	}
	if len(out) < p.out.Bytes || len(i.In) == 0 || len(out) == 0 {
		return 0, fmt.Errorf("%w: room for %d of %d bytes", custom.ErrFailed, len(out), p.out.Bytes)
	}
	fd := -1
	if i.Buffer != nil {
		fd = i.Buffer.FD
	}
	var n C.uint64_t
	code := C.plugin_run(p.c, C.uint64_t(i.Frame), C.int64_t(i.Capture), unsafe.Pointer(&i.In[0]), C.uint64_t(len(i.In)), C.int(fd),
		unsafe.Pointer(&out[0]), &n)
	if p.reports.Metric != nil {
		for _, m := range p.c.metrics[:p.c.count] {
			p.reports.Metric(C.GoString(&m.name[0]), float64(m.value), m.counter != 0)
		}
	}
	if p.reports.Event != nil {
		for _, e := range p.c.events[:p.c.event_count] {
			p.reports.Event(custom.Event{Name: C.GoString(&e.name[0]), Span: e.span != 0, Start: int64(e.start), End: int64(e.end), Value: float64(e.value)})
		}
	}
	if code != 0 {
		return 0, fmt.Errorf("%w: %s", custom.ErrFailed, C.GoString(&p.c.error[0]))
	}
	if p.out.Kind == custom.Tensor {
		return p.out.Bytes, nil
	}
	if uint64(n) > uint64(p.out.Bytes) {
		return 0, fmt.Errorf("%w: the plug-in returned %d bytes, but at most %d are allowed", custom.ErrFailed, uint64(n), p.out.Bytes)
	}
	return int(n), nil
}

// Close closes the stage. The library stays loaded.
func (p *Plugin) Close() {
	if p.c != nil {
		C.plugin_close(p.c)
		C.free(unsafe.Pointer(p.c))
		p.c = nil
	}
}

// diePlainly restores the kernel's default action for crash signals.
func diePlainly() { C.plugin_die_plainly() }
