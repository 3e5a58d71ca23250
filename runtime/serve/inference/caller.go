package inference

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Caller is who sent a request.
type Caller struct {
	Local bool   // on a unix socket; the kernel vouches for UID
	UID   uint32 // of a local caller
}

type callerKey struct{}

func withCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerIn returns the caller of a request, the zero value for one that is not known.
func callerIn(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// callerConn is a connection whose caller is known.
type callerConn struct {
	net.Conn
	caller Caller
}

// identify finds out who connected.
func identify(c net.Conn) Caller {
	if b, ok := c.(*boundedConn); ok {
		c = b.Conn
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return Caller{}
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Caller{}
	}
	var cred *unix.Ucred
	err = raw.Control(func(fd uintptr) {
		cred, _ = unix.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || cred == nil {
		return Caller{}
	}
	return Caller{Local: true, UID: cred.Uid}
}
