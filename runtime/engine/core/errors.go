package core

import "errors"

// Errors of the core, for errors.Is.
var (
	ErrInvalid      = errors.New("invalid argument")       // nothing ran
	ErrOOM          = errors.New("out of memory")          // use a smaller batch or release buffers
	ErrNotSupported = errors.New("not supported")          // by this backend; the message names an alternative
	ErrTimeout      = errors.New("deadline exceeded")      // the work may still be running
	ErrDeviceLost   = errors.New("device lost")            // reopen it in a new process
	ErrKernelFault  = errors.New("kernel fault")           // sticky: the process must exit
	ErrABI          = errors.New("incompatible library")   // install the library of this version
	ErrNoBackend    = errors.New("no backend")             // no library, driver or device
	ErrNotReady     = errors.New("not ready")              // try again
	ErrBusy         = errors.New("busy")                   // in use by submitted work
	ErrCancelled    = errors.New("cancelled")              // by the caller's context
	ErrInternal     = errors.New("internal backend error") // a defect; see Error.Native
	ErrClosed       = errors.New("already closed")         // device, stream or buffer
)

// Error is a failure reported by a backend.
type Error struct {
	Op     string // the operation that failed
	Code   Code
	Sticky bool   // every later call on the device fails until the process exits
	Native int    // cudaError_t or errno; 0: none
	Msg    string // message of the backend
}

// Code is a status of the C ABI. Values are stable.
type Code int32

// Error returns the operation, the kind of error and the backend's message.
func (e *Error) Error() string {
	s := e.Op + ": " + e.Code.sentinel().Error()
	if e.Msg != "" {
		s += ": " + e.Msg
	}
	if e.Sticky {
		s += " (the device is unusable until this process exits)"
	}
	return s
}

// Unwrap returns the sentinel of the code, so that errors.Is(err, ErrOOM) works.
func (e *Error) Unwrap() error { return e.Code.sentinel() }

func (c Code) sentinel() error {
	switch c {
	case 1:
		return ErrInvalid
	case 2:
		return ErrOOM
	case 3:
		return ErrNotSupported
	case 4:
		return ErrTimeout
	case 5:
		return ErrDeviceLost
	case 6:
		return ErrKernelFault
	case 7:
		return ErrABI
	case 8:
		return ErrNoBackend
	case 9:
		return ErrNotReady
	case 10:
		return ErrBusy
	case 12:
		return ErrCancelled
	}
	return ErrInternal
}
