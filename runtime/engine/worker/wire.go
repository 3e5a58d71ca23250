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

// The control memory contains a head, the parent's configuration (JSON), the worker's start
// report (JSON), then the lanes. Parent and worker are the same program, so Go structs
// define the layout.
const (
	wireMagic   = 0x59544b57
	wireVersion = 3

	textBytes = 64 << 10
	roomBytes = core.MaxCommands * core.CommandBytes // payload of a lane
	laneBytes = 4096 + roomBytes

	// MaxLanes is the largest number of lanes; each is a thread of the worker.
	MaxLanes = 256
)

// head is the start of the control memory.
type head struct {
	magic, version uint32
	lanes          uint32
	config         uint32 // bytes of the configuration
	state          uint32 // a futex, set by the worker
	answer         uint32 // bytes of the start report
}

// Values of head.state.
const (
	stateStarting = 0
	stateReady    = 1
	stateFailed   = 2
	stateGone     = math.MaxUint32 // written by the parent to wake waiters
)

// op is the kind of a message.
type op uint32

const (
	opRun    op = 1 + iota // run a list of commands
	opInfer                // run a model
	opInject               // inject faults, for tests
)

// request is written by the parent before it rings bell, a futex.
type request struct {
	bell  uint32
	op    op
	seq   uint64
	limit int64  // ns that the parent waits
	bytes uint32 // of the payload
	crc   uint32 // of the other fields and the payload
}

// copied counts the bytes that a worker has copied since its start.
type copied struct{ toDevice, toHost, onDevice uint64 }

// answer is written by the worker before it rings bell. The parent checks all of it.
type answer struct {
	bell    uint32
	code    int32
	seq     uint64
	sticky  uint32
	native  int32
	service int64 // processing time in ns
	copied  copied
	bytes   uint32
	crc     uint32
	msg     [240]byte
}

// lane is one caller's part of the control memory.
type lane struct {
	req  *request
	ans  *answer
	room []byte

	// Private copies of the messages, so that the checked values are the used ones. They
	// are fields because arguments of checksums escape, and a message must not allocate.
	ownReq request
	ownAns answer
}

func controlBytes(lanes int) int { return 4096 + 2*textBytes + lanes*laneBytes }

func headerAt(control []byte) *head  { return (*head)(unsafe.Pointer(unsafe.SliceData(control))) }
func configOf(control []byte) []byte { return control[4096:][:textBytes:textBytes] }
func answerOf(control []byte) []byte { return control[4096+textBytes:][:textBytes:textBytes] }

func laneOf(control []byte, n int) *lane {
	b := control[4096+2*textBytes+n*laneBytes:][:laneBytes:laneBytes]
	return &lane{
		req: (*request)(unsafe.Pointer(&b[0])), ans: (*answer)(unsafe.Pointer(&b[1024])), // in different cache lines
		room: b[4096:],
	}
}

// castagnoli returns the table of the checksums. The first call makes it, which a program that
// starts no worker need not wait for.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// sum returns the checksum of the header, without bell and checksum, and the payload.
func (r *request) sum(room []byte) uint32 {
	bell, crc := r.bell, r.crc
	r.bell, r.crc = 0, 0
	n := crc32.Update(crc32.Checksum(bytesOf(r), castagnoli()), castagnoli(), room)
	r.bell, r.crc = bell, crc
	return n
}

// sum returns the checksum of the header, without bell and checksum, and the payload.
func (a *answer) sum(room []byte) uint32 {
	bell, crc := a.bell, a.crc
	a.bell, a.crc = 0, 0
	n := crc32.Update(crc32.Checksum(bytesOf(a), castagnoli()), castagnoli(), room)
	a.bell, a.crc = bell, crc
	return n
}

// text returns the message of an answer as printable text.
func (a *answer) text() string {
	b := a.msg[:]
	if n := strings.IndexByte(string(b), 0); n >= 0 {
		b = b[:n]
	}
	return sanitize(string(b))
}

// sanitize replaces control characters and invalid UTF-8 in text from a worker.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

var errAnswer = errors.New("malformed answer")

// check validates an answer that the caller has copied.
func (a *answer) check(seq uint64, room []byte) error {
	switch {
	case a.seq != seq:
		return fmt.Errorf("%w: it belongs to message %d, not %d", errAnswer, a.seq, seq)
	case a.bytes > uint32(len(room)):
		return fmt.Errorf("%w: payload of %d bytes exceeds %d", errAnswer, a.bytes, len(room))
	case a.code < 0 || a.code > 64 || a.sticky > 1 || a.service < 0:
		return fmt.Errorf("%w: code %d, sticky %d, %d ns", errAnswer, a.code, a.sticky, a.service)
	case a.sticky == 1 && a.code == 0:
		return fmt.Errorf("%w: sticky without an error code", errAnswer)
	}
	return nil
}

// futexWait sleeps while *at is v, for at most d, or without a limit if d < 0. It may return
// spuriously.
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

// ringBell stores v in a futex word and wakes its waiters.
func ringBell(at *uint32, v uint32) {
	atomic.StoreUint32(at, v)
	futexWake(at)
}

// nextBell returns the number of the next message. A bell, its low 32 bits, is never 0 (the
// initial value) or stateGone.
func nextBell(seq uint64) uint64 {
	for seq++; uint32(seq) == 0 || uint32(seq) == stateGone; seq++ {
	}
	return seq
}

// memory is shared memory with a sealed size. If one process could shrink the file, accesses
// of the other would fail with SIGBUS.
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
