package core

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// ErrStale means that the side of a Mirror to be read is older than the other side, or was
// never written.
var ErrStale = errors.New("stale copy")

// Mirror is a pair of buffers with the same content: one in pinned host memory, one on the
// device. The program copies between them explicitly. The mirror tracks which side is
// newer, so that reading an outdated side fails with ErrStale.
//
//	w, err := m.Write()                    // the CPU's side, now the newer one
//	copy(w, frame)
//	err = list.Upload(m).Preprocess(...m.OnDevice()...).Download(out).Submit()
//	err = stream.Wait(ctx)                 // until then out's host side is stale
//	r, err := out.Read()
//
// Submitted work is visible to later lists of its stream at once, and to the CPU and other
// streams after Stream.Wait. A list that waits for an event may also use it, because the
// event may belong to that stream.
type Mirror struct {
	d    *Device
	host *Buffer
	dev  *Buffer

	// Guarded by d.mu.
	now     sides
	readers map[*Stream]struct{} // streams with unfinished reads of the host side
}

// sides records which sides of a mirror are up to date.
type sides struct {
	host, dev     bool
	hostBy, devBy *Stream // stream whose unfinished work updates the side
	fromHost      bool    // the list reads the host side
}

// NewMirror allocates n bytes on both sides. Neither can be read before it is written.
func (d *Device) NewMirror(n int) (*Mirror, error) {
	host, err := d.Alloc(n, MemPinned)
	if err != nil {
		return nil, err
	}
	dev, err := d.Alloc(n, MemDevice)
	if err != nil {
		return nil, errors.Join(err, host.Release())
	}
	m := &Mirror{d: d, host: host, dev: dev, readers: map[*Stream]struct{}{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mirrors == nil {
		d.mirrors = map[uint64]*Mirror{}
	}
	d.mirrors[host.id], d.mirrors[dev.id] = m, m
	d.mirrored.Store(true)
	return m, nil
}

// OnDevice returns the device side as a region.
func (m *Mirror) OnDevice() Region { return m.dev.All() }

// OnHost returns the host side as a region.
func (m *Mirror) OnHost() Region { return m.host.All() }

// Write returns the host side for writing; the device side becomes stale. It fails with
// ErrBusy while a stream copies the mirror.
func (m *Mirror) Write() ([]byte, error) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if len(m.readers) > 0 || m.now.hostBy != nil {
		return nil, fmt.Errorf("write mirror: a stream is copying it; wait for the stream first: %w", ErrBusy)
	}
	m.now = sides{host: true}
	return m.host.host, nil
}

// Read returns the host side. It fails with ErrStale if the device side is newer, or if the
// stream that updates the host side has not been waited for.
func (m *Mirror) Read() ([]byte, error) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	switch {
	case m.now.hostBy != nil:
		return nil, fmt.Errorf("read mirror: wait for the stream that updates it first: %w", ErrStale)
	case !m.now.host && (m.now.dev || m.now.devBy != nil):
		return nil, fmt.Errorf("read mirror: the device side is newer; download it first: %w", ErrStale)
	case !m.now.host:
		return nil, fmt.Errorf("read mirror: neither side holds valid data: %w", ErrStale)
	}
	return m.host.host, nil
}

// Release frees both sides; see Buffer.Release.
func (m *Mirror) Release() error {
	if err := m.dev.Release(); err != nil {
		return err
	}
	m.d.mu.Lock()
	delete(m.d.mirrors, m.host.id)
	delete(m.d.mirrors, m.dev.id)
	m.d.mirrored.Store(len(m.d.mirrors) > 0)
	m.d.mu.Unlock()
	return m.host.Release()
}

// Upload copies the host side to the device side.
func (l *List) Upload(m *Mirror) *List { return l.Copy(m.OnDevice(), m.OnHost()) }

// Download copies the device side to the host side.
func (l *List) Download(m *Mirror) *List { return l.Copy(m.OnHost(), m.OnDevice()) }

// track returns the state of the mirrors after the list, or an error if the list would read
// a stale side.
func (l *List) track() (map[*Mirror]sides, error) {
	l.s.d.mu.Lock()
	defer l.s.d.mu.Unlock()
	var after map[*Mirror]sides
	ordered := false // an earlier command waits for an event
	for n := range l.cmds {
		cmd := &l.cmds[n]
		ordered = ordered || cmd.Op == c.OpWait
		read := cmd.Src[:]
		if cmd.Op == c.OpROI {
			read = append(append([]c.Range{}, read...), (*c.ROI)(unsafe.Pointer(&cmd.Args)).Boxes)
		}
		for _, r := range read {
			m := l.s.d.mirrors[r.Buf]
			if m == nil || r.Len == 0 {
				continue
			}
			now := findSides(after, m)
			if err := now.checkRead(l.s, r.Buf == m.dev.id, ordered); err != nil {
				return nil, fmt.Errorf("command %d: %w", n, err)
			}
			after = setSides(after, m, now)
		}
		if m := l.s.d.mirrors[cmd.Dst.Buf]; m != nil && cmd.Dst.Len > 0 {
			now := findSides(after, m)
			whole := cmd.Dst.Len == uint64(m.dev.size) && writesAll(cmd.Op)
			between := cmd.Op == c.OpCopy && l.s.d.mirrors[cmd.Src[0].Buf] == m && cmd.Src[0].Buf != cmd.Dst.Buf && cmd.Src[0].Off == cmd.Dst.Off
			if err := now.checkWrite(l.s, cmd.Dst.Buf == m.dev.id, whole, between); err != nil {
				return nil, fmt.Errorf("command %d: %w", n, err)
			}
			after = setSides(after, m, now)
		}
	}
	return after, nil
}

func findSides(after map[*Mirror]sides, m *Mirror) sides {
	if now, ok := after[m]; ok {
		return now
	}
	return m.now
}

func setSides(after map[*Mirror]sides, m *Mirror, now sides) map[*Mirror]sides {
	if after == nil {
		after = map[*Mirror]sides{}
	}
	after[m] = now
	return after
}

// checkRead checks and records that a command of s reads a side.
func (v *sides) checkRead(s *Stream, device, ordered bool) error {
	valid, by, name, other, how := v.host, v.hostBy, "host", "device", "download it first"
	if device {
		valid, by, name, other, how = v.dev, v.devBy, "device", "host", "upload it first"
	}
	switch {
	case by != nil && by != s && !ordered:
		return fmt.Errorf("the %s side of a mirror is updated by another stream; wait for that stream or its event: %w", name, ErrStale)
	case by == nil && !valid && (v.host || v.dev || v.hostBy != nil || v.devBy != nil):
		return fmt.Errorf("the list reads the %s side of a mirror, but the %s side is newer; %s: %w", name, other, how, ErrStale)
	case by == nil && !valid:
		return fmt.Errorf("the list reads a mirror that holds no valid data: %w", ErrStale)
	}
	v.fromHost = v.fromHost || !device
	return nil
}

// checkWrite checks and records that a command of s writes a side. whole is set if it
// writes all of it, between if it copies from the other side.
func (v *sides) checkWrite(s *Stream, device, whole, between bool) error {
	valid := v.host || v.hostBy != nil
	if device {
		valid = v.dev || v.devBy != nil
	}
	if !whole && !valid && (v.host || v.dev || v.hostBy != nil || v.devBy != nil) {
		return fmt.Errorf("the list writes part of a stale side of a mirror; copy the other side first: %w", ErrStale)
	}
	switch {
	case device && between:
		v.dev, v.devBy = false, s
	case device:
		v.dev, v.devBy, v.host, v.hostBy = false, s, false, nil
	case between:
		v.host, v.hostBy = false, s
	default:
		v.host, v.hostBy, v.dev, v.devBy = false, s, false, nil
	}
	return nil
}

// updateMirrors updates the mirrors after all work of s has ended. well reports its success.
func (s *Stream) updateMirrors(well bool) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	for m := range s.mirrors {
		v := &m.now
		delete(m.readers, s)
		if v.hostBy == s {
			v.host, v.hostBy = well, nil
		}
		if v.devBy == s {
			v.dev, v.devBy = well, nil
		}
	}
	clear(s.mirrors)
}

// submitted records the state of mirrors after a submitted list.
func (s *Stream) submitted(after map[*Mirror]sides) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.mirrors == nil {
		s.mirrors = map[*Mirror]struct{}{}
	}
	for m, now := range after {
		if now.fromHost {
			m.readers[s] = struct{}{}
			now.fromHost = false
		}
		m.now = now
		s.mirrors[m] = struct{}{}
	}
}
