package v4l2_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/v4l2"
)

// A recording contains the calls of a driver, one per line: the request number, the error,
// the structure before and after, and the planes before and after if there are any. Numbers
// are hexadecimal, without trailing zeros. The contents of the frames are not recorded.

// recorder records the calls from a program to a real driver.
type recorder struct {
	v4l2.System
	w  io.Writer
	mu sync.Mutex
}

// Ioctl implements v4l2.System.
func (r *recorder) Ioctl(fd int, request uint, arg unsafe.Pointer) error {
	s, planes := parts(request, arg)
	before, planesBefore := formatRequest(request, s), formatRequest(0, planes)
	err := r.System.Ioctl(fd, request, arg)
	var errno unix.Errno
	errors.As(err, &errno)
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "%08x %d %s %s %s %s\n", request, int(errno), before, formatRequest(request, s), planesBefore, formatRequest(0, planes))
	return err
}

// parts are the structure of a request, and the planes it points to.
func parts(request uint, arg unsafe.Pointer) (s view, planes view) {
	s = unsafe.Slice((*byte)(arg), request>>16&0x3fff)
	// Buffers of the multi-planar kind: QUERYBUF, QBUF, DQBUF.
	if n := request & 0xff; (n == 9 || n == 15 || n == 17) && s.u32(4) == 9 {
		p := *(*unsafe.Pointer)(unsafe.Pointer(&s[64]))
		planes = unsafe.Slice((*byte)(p), 64*int(s.u32(72)))
	}
	return s, planes
}

// formatRequest is a structure in hexadecimal; the address of planes is left out.
func formatRequest(request uint, s view) string {
	b := slices.Clone([]byte(s))
	if n := request & 0xff; (n == 9 || n == 15 || n == 17) && s.u32(4) == 9 {
		clear(b[64:72])
	}
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

type exchange struct {
	request                   uint
	errno                     unix.Errno
	before, after             string
	planesBefore, planesAfter string
}

// replayer is a driver that repeats a recording, as long as the program makes the same
// calls.
type replayer struct {
	mu    sync.Mutex
	lines []exchange
	next  int
	wrong error
}

// newReplayer reads a recording.
func newReplayer(r io.Reader) (*replayer, error) {
	p := &replayer{}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) != 6 {
			return nil, fmt.Errorf("line %d of the recording has %d fields", len(p.lines)+1, len(f))
		}
		request, err := strconv.ParseUint(f[0], 16, 32)
		if err != nil {
			return nil, err
		}
		errno, err := strconv.Atoi(f[1])
		if err != nil {
			return nil, err
		}
		p.lines = append(p.lines, exchange{uint(request), unix.Errno(errno), f[2], f[3], f[4], f[5]})
	}
	return p, in.Err()
}

// err returns the calls that differ from the recording.
func (p *replayer) err() error { p.mu.Lock(); defer p.mu.Unlock(); return p.wrong }

// left returns the number of recorded calls that were not made.
func (p *replayer) left() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.lines) - p.next }

// Open implements v4l2.System.
func (p *replayer) Open(string) (int, error) { return 1000, nil }

// Close implements v4l2.System.
func (p *replayer) Close(int) error { return nil }

// Stable implements v4l2.System.
func (p *replayer) Stable(path string) string { return path }

// Map implements v4l2.System.
func (p *replayer) Map(_ int, _ int64, length int) ([]byte, error) { return make([]byte, length), nil }

// Unmap implements v4l2.System.
func (p *replayer) Unmap([]byte) error { return nil }

// Poll implements v4l2.System. It never blocks.
func (p *replayer) Poll(int, int, time.Duration) (events, woken int16, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == len(p.lines) {
		return 0, 0, nil
	}
	switch p.lines[p.next].request & 0xff {
	case 17: // DQBUF: its result decides, below
	case 89: // DQEVENT
		return unix.POLLPRI, 0, nil
	default:
		return 0, 0, nil
	}
	switch p.lines[p.next].errno {
	case 0, unix.EAGAIN:
		return unix.POLLIN, 0, nil
	}
	return unix.POLLERR, 0, nil
}

// Ioctl implements v4l2.System.
func (p *replayer) Ioctl(_ int, request uint, arg unsafe.Pointer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, planes := parts(request, arg)
	if p.next == len(p.lines) {
		p.wrong = errors.Join(p.wrong, fmt.Errorf("request %08x after the end of the recording", request))
		return unix.EPROTO
	}
	x := p.lines[p.next]
	if x.request != request || x.before != formatRequest(request, s) || x.planesBefore != formatRequest(0, planes) {
		p.wrong = errors.Join(p.wrong, fmt.Errorf("line %d: called %08x %s %s, recorded %08x %s %s",
			p.next+1, request, formatRequest(request, s), formatRequest(0, planes), x.request, x.before, x.planesBefore))
		return unix.EPROTO
	}
	p.next++
	pointer := slices.Clone(s[min(64, len(s)):min(72, len(s))])
	if err := fillView(s, x.after); err != nil {
		return err
	}
	if planes != nil {
		copy(s[64:], pointer)
		if err := fillView(planes, x.planesAfter); err != nil {
			return err
		}
	}
	if x.errno != 0 {
		return x.errno
	}
	return nil
}

func fillView(s view, text string) error {
	clear(s)
	if text == "-" {
		return nil
	}
	b, err := hex.DecodeString(text)
	copy(s, b)
	return err
}

// view is a structure of the kernel as bytes.
type view []byte

func (v view) u32(at int) uint32 { return binary.NativeEndian.Uint32(v[at:]) }
