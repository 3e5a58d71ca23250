package inference

import (
	"context"
	"errors"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
)

// Kind is why a request was not answered. Each transport has a status for each kind.
type Kind int

// Kinds of errors.
const (
	Internal      Kind = iota
	Invalid            // the request is malformed, or is not what the model takes
	NotFound           // the model, the version or a name does not exist
	TooLarge           // the request has more bytes than one for this model can have
	Full               // too many requests wait or are in work
	Expired            // the time of the request is over
	Canceled           // the caller has gone
	Unavailable        // the server stops, or the model cannot run at the moment
	Unimplemented      // a part of the protocol that this server or device does not have
	Denied             // the caller did not prove who it is
)

// Error is an error of a kind.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error of a kind.
func Errorf(k Kind, format string, args ...any) error { return &Error{k, fmt.Errorf(format, args...)} }

// Errors of every transport.
var (
	errStops      = Errorf(Unavailable, "the server stops")
	errRepository = Errorf(Unimplemented, "models are part of the device's plan, and are not loaded or unloaded by requests")
	// Handles of CUDA shared memory are those of CUDA IPC, which integrated GPUs lack.
	errCUDA = Errorf(Unimplemented, "the server has no CUDA shared memory: use system shared memory")
)

// KindOf returns the kind of an error.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, request.ErrFull):
		return Full
	case errors.Is(err, request.ErrExpired), errors.Is(err, context.DeadlineExceeded):
		return Expired
	case errors.Is(err, request.ErrCanceled), errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, request.ErrClosed), errors.Is(err, request.ErrDropped):
		return Unavailable
	}
	return Internal
}
