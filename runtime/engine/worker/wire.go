package worker

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// The control memory: a head, a text from the parent (what to do at start), one from
// the worker (what it is, or why it cannot start), then the lanes. Parent and worker
// are the same program, so structs say where things are.
const (
	wireMagic   = 0x59544b57
	wireVersion = 1

	textBytes = 64 << 10
	roomBytes = core.MaxCommands * core.CommandBytes // of a lane, for what a message is about
	laneBytes = 4096 + roomBytes

	// MaxLanes bounds the lanes, each of which is a thread of the worker.
	MaxLanes = 256
)

// head begins the control memory.
type head struct {
	magic, version uint32
	lanes          uint32
	config         uint32 // bytes of the parent's text
	state          uint32 // a futex; the worker says ready or failed
	answer         uint32 // bytes of the worker's text
}

// Values of head.state.
const (
	stateStarting = 0
	stateReady    = 1
	stateFailed   = 2
	stateGone     = math.MaxUint32 // written by the parent, to wake who waits
)

// op is what a message asks for.
type op uint32

const (
	opRun    op = 1 + iota // a list of commands
	opInfer                // a run of a model
	opInject               // faults for tests
)

// request is written by the parent, then bell, a futex, rings.
type request struct {
	bell  uint32
	op    op
	seq   uint64
	limit int64  // ns that the parent waits
	bytes uint32 // in the lane's room
	crc   uint32 // of the rest and of the room
}

// answer is written by the worker, then bell rings. The parent believes none of it.
type answer struct {
	bell    uint32
	code    int32
	seq     uint64
	sticky  uint32
	native  int32
	service int64 // ns
	bytes   uint32
	crc     uint32
	msg     [240]byte
}

// lane is one caller's part of the control memory.
type lane struct {
	req  *request
	ans  *answer
	room []byte

	// This process's copies: what is checked is what is used. They are here because
	// checksums let their arguments escape, and a message must not allocate.
	ownReq request
	ownAns answer
}

func controlBytes(lanes int) int { return 4096 + 2*textBytes + lanes*laneBytes }

func headOf(control []byte) *head    { return (*head)(unsafe.Pointer(unsafe.SliceData(control))) }
func configOf(control []byte) []byte { return control[4096:][:textBytes:textBytes] }
func answerOf(control []byte) []byte { return control[4096+textBytes:][:textBytes:textBytes] }

func laneOf(control []byte, n int) *lane {
	b := control[4096+2*textBytes+n*laneBytes:][:laneBytes:laneBytes]
	return &lane{
		req: (*request)(unsafe.Pointer(&b[0])), ans: (*answer)(unsafe.Pointer(&b[1024])), // not in one cache line
		room: b[4096:],
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// sum is the checksum of a message: its header without bell and checksum, then its
// room.
func (r *request) sum(room []byte) uint32 {
	bell, crc := r.bell, r.crc
	r.bell, r.crc = 0, 0
	n := crc32.Update(crc32.Checksum(bytesOf(r), castagnoli), castagnoli, room)
	r.bell, r.crc = bell, crc
	return n
}

func (a *answer) sum(room []byte) uint32 {
	bell, crc := a.bell, a.crc
	a.bell, a.crc = 0, 0
	n := crc32.Update(crc32.Checksum(bytesOf(a), castagnoli), castagnoli, room)
	a.bell, a.crc = bell, crc
	return n
}

// text is the message of an answer as something that can be printed.
func (a *answer) text() string {
	b := a.msg[:]
	if n := strings.IndexByte(string(b), 0); n >= 0 {
		b = b[:n]
	}
	return plain(string(b))
}

// plain takes out of a worker's words what is not text.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

var errWire = errors.New("what the worker wrote is no answer")

// check tells whether an answer, which the caller has copied, can be believed as far
// as it goes.
func (a *answer) check(seq uint64, room []byte) error {
	switch {
	case a.seq != seq:
		return fmt.Errorf("%w: it is for message %d, not %d", errWire, a.seq, seq)
	case a.bytes > uint32(len(room)):
		return fmt.Errorf("%w: %d bytes, there is room for %d", errWire, a.bytes, len(room))
	case a.code < 0 || a.code > 64 || a.sticky > 1 || a.service < 0:
		return fmt.Errorf("%w: code %d, sticky %d, %d ns", errWire, a.code, a.sticky, a.service)
	case a.sticky == 1 && a.code == 0:
		return fmt.Errorf("%w: it is lost without an error", errWire)
	}
	return nil
}

// futexWait sleeps while *at is v, at most for d; d < 0: without end. It may return
// for no reason.
func futexWait(at *uint32, v uint32, d time.Duration) {
	var ts *unix.Timespec
	if d >= 0 {
		t := unix.NsecToTimespec(int64(d))
		ts = &t
	}
	const wait = 0 // FUTEX_WAIT, between processes
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(at)), wait, uintptr(v), uintptr(unsafe.Pointer(ts)), 0, 0)
	runtime.KeepAlive(ts)
}

func futexWake(at *uint32) {
	const wake, all = 1, math.MaxInt32
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(at)), wake, all, 0, 0, 0)
}

// ring gives a word a value and wakes who waits for it.
func ring(at *uint32, v uint32) {
	atomic.StoreUint32(at, v)
	futexWake(at)
}

// nextBell numbers messages; a bell is never 0, which it is at first, or what the
// parent rings when the worker is gone.
func nextBell(seq uint64) uint64 {
	for seq++; uint32(seq) == 0 || uint32(seq) == stateGone; seq++ {
	}
	return seq
}

// memory is shared memory whose size nobody can change: a file that one process cuts
// short kills the other when it looks.
type memory struct {
	fd   int
	data []byte
}

func newMemory(name string, bytes int) (*memory, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create shared memory: %w", err)
	}
	m := &memory{fd: fd}
	if err = unix.Ftruncate(fd, int64(bytes)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		m.data, err = mapShared(fd, bytes, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared memory of %d bytes: %w", bytes, err), unix.Close(fd))
	}
	return m, nil
}

func mapShared(fd, bytes, flags int) ([]byte, error) {
	return unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|flags)
}

func (m *memory) close() error {
	err := errors.Join(unix.Munmap(m.data), unix.Close(m.fd))
	m.data = nil
	return err
}
