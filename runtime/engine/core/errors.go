package core

import "errors"

// Outcomes of the core; test with errors.Is. The comment says what helps.
var (
	ErrInvalid      = errors.New("invalid argument")       // correct the call; nothing ran
	ErrOOM          = errors.New("out of memory")          // a smaller batch, or release buffers
	ErrNotSupported = errors.New("not supported")          // this backend cannot; the message names another way
	ErrTimeout      = errors.New("deadline exceeded")      // the work may still be running
	ErrDeviceLost   = errors.New("device lost")            // reopen in a new process
	ErrKernelFault  = errors.New("kernel fault")           // sticky: the process must end
	ErrABI          = errors.New("incompatible library")   // install the library that belongs to this program
	ErrNoBackend    = errors.New("no backend")             // no library, no driver or no device
	ErrNotReady     = errors.New("not ready")              // ask again
	ErrBusy         = errors.New("busy")                   // in use by submitted work
	ErrCancelled    = errors.New("cancelled")              // by the caller's context
	ErrInternal     = errors.New("internal backend error") // a defect; Native has the backend's own code
	ErrClosed       = errors.New("already closed")         // of a device, stream or buffer
)

// Error is a failure reported by a backend.
type Error struct {
	Op     string // what was being done
	Code   Code
	Sticky bool   // the device will fail from now on, until the process ends
	Native int    // the backend's own code (cudaError_t, errno), 0 if there is none
	Msg    string // what is wrong and what helps, from the backend
}

// Code is a status of the C ABI. Values are stable.
type Code int32

// Error renders the operation, the outcome and the backend's message.
func (e *Error) Error() string {
	s := e.Op + ": " + e.Code.sentinel().Error()
	if e.Msg != "" {
		s += ": " + e.Msg
	}
	if e.Sticky {
		s += " (the device is lost until this process ends)"
	}
	return s
}

// Unwrap gives the sentinel of the code, so that errors.Is(err, ErrOOM) works.
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
