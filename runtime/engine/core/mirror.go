package core

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// ErrStale tells that the side of a Mirror that would be read does not have what was
// written last, or nothing was.
var ErrStale = errors.New("stale copy")

// Mirror is explicit memory: the same bytes once for the CPU, pinned, and once for the
// device, with copies between them that the program asks for. It knows which side is
// newer, so that using a side before it was brought up to date is ErrStale and not
// yesterday's data. Nothing is copied by itself.
//
//	w, err := m.Write()                    // the CPU's side, now the newer one
//	copy(w, frame)
//	err = list.Upload(m).Preprocess(...m.OnDevice()...).Download(out).Submit()
//	err = stream.Wait(ctx)                 // until then out's host side is stale
//	r, err := out.Read()
//
// What a stream was told counts for that stream at once, for the CPU and for other
// streams after Stream.Wait; a list that waits for an event may use it too, since the
// event may be of that stream.
type Mirror struct {
	d    *Device
	host *Buffer
	dev  *Buffer

	// Guarded by d.mu.
	now     sides
	readers map[*Stream]struct{} // that copy from the CPU's side and were not waited for
}

// sides says what is newest.
type sides struct {
	host, dev     bool
	hostBy, devBy *Stream // whose work makes it so, until that is waited for
	fromHost      bool    // of a list: it reads the CPU's side
}

// NewMirror allocates n bytes on both sides. Neither has anything to be read yet.
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

// OnDevice names the device's side, in a list.
func (m *Mirror) OnDevice() Region { return m.dev.All() }

// OnHost names the CPU's side, in a list.
func (m *Mirror) OnHost() Region { return m.host.All() }

// Write returns the CPU's side to be written, all or in part of what it has. The
// device's side is stale from then on. It is ErrBusy while a stream copies.
func (m *Mirror) Write() ([]byte, error) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if len(m.readers) > 0 || m.now.hostBy != nil {
		return nil, fmt.Errorf("write mirror: a stream copies it: wait for the stream first: %w", ErrBusy)
	}
	m.now = sides{host: true}
	return m.host.host, nil
}

// Read returns the CPU's side. It is ErrStale when the device's is newer, or while the
// stream that brings it was not waited for.
func (m *Mirror) Read() ([]byte, error) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	switch {
	case m.now.hostBy != nil:
		return nil, fmt.Errorf("read mirror: its stream was not waited for: %w", ErrStale)
	case !m.now.host && (m.now.dev || m.now.devBy != nil):
		return nil, fmt.Errorf("read mirror: the device's side is newer: download it first: %w", ErrStale)
	case !m.now.host:
		return nil, fmt.Errorf("read mirror: nothing was written to it: %w", ErrStale)
	}
	return m.host.host, nil
}

// Release frees both sides, as Buffer.Release.
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

// Upload copies the CPU's side to the device's.
func (l *List) Upload(m *Mirror) *List { return l.Copy(m.OnDevice(), m.OnHost()) }

// Download copies the device's side to the CPU's.
func (l *List) Download(m *Mirror) *List { return l.Copy(m.OnHost(), m.OnDevice()) }

// track follows what the list does to mirrors. It returns what they will be when it
// was submitted, or why it must not be.
func (l *List) track() (map[*Mirror]sides, error) {
	l.s.d.mu.Lock()
	defer l.s.d.mu.Unlock()
	var after map[*Mirror]sides
	ordered := false // by an event
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
			now := look(after, m)
			if err := now.read(l.s, r.Buf == m.dev.id, ordered); err != nil {
				return nil, fmt.Errorf("command %d: %w", n, err)
			}
			after = keep(after, m, now)
		}
		if m := l.s.d.mirrors[cmd.Dst.Buf]; m != nil && cmd.Dst.Len > 0 {
			now := look(after, m)
			whole := cmd.Dst.Len == uint64(m.dev.size) && writesAll(cmd.Op)
			between := cmd.Op == c.OpCopy && l.s.d.mirrors[cmd.Src[0].Buf] == m && cmd.Src[0].Buf != cmd.Dst.Buf && cmd.Src[0].Off == cmd.Dst.Off
			if err := now.write(l.s, cmd.Dst.Buf == m.dev.id, whole, between); err != nil {
				return nil, fmt.Errorf("command %d: %w", n, err)
			}
			after = keep(after, m, now)
		}
	}
	return after, nil
}

func look(after map[*Mirror]sides, m *Mirror) sides {
	if now, ok := after[m]; ok {
		return now
	}
	return m.now
}

func keep(after map[*Mirror]sides, m *Mirror, now sides) map[*Mirror]sides {
	if after == nil {
		after = map[*Mirror]sides{}
	}
	after[m] = now
	return after
}

// read is a command of s that reads a side.
func (v *sides) read(s *Stream, device, ordered bool) error {
	valid, by, name, other, how := v.host, v.hostBy, "CPU's", "device's", "download it first"
	if device {
		valid, by, name, other, how = v.dev, v.devBy, "device's", "CPU's", "upload it first"
	}
	switch {
	case by != nil && by != s && !ordered:
		return fmt.Errorf("the %s side of a mirror comes by another stream: wait for that, or for an event of it: %w", name, ErrStale)
	case by == nil && !valid && (v.host || v.dev || v.hostBy != nil || v.devBy != nil):
		return fmt.Errorf("the %s side of a mirror is read and the %s is newer: %s: %w", name, other, how, ErrStale)
	case by == nil && !valid:
		return fmt.Errorf("a mirror is read and nothing was written to it: %w", ErrStale)
	}
	v.fromHost = v.fromHost || !device
	return nil
}

// write is a command of s that writes a side, all of it or not; between sides it
// brings one up to date with the other.
func (v *sides) write(s *Stream, device, whole, between bool) error {
	valid := v.host || v.hostBy != nil
	if device {
		valid = v.dev || v.devBy != nil
	}
	if !whole && !valid && (v.host || v.dev || v.hostBy != nil || v.devBy != nil) {
		return fmt.Errorf("a part of a stale side of a mirror is written: the rest would be of another time: copy the whole first: %w", ErrStale)
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

// settle is called when all work of s has ended, well or not.
func (s *Stream) settle(well bool) {
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

// submitted makes what a list does to mirrors true.
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
