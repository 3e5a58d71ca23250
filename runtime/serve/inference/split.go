package inference

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/backoff"
)

// split tells connections with gRPC from those with HTTP/1.1, so that both are answered on one address:
// by the protocol that TLS negotiated, or by the first bytes.
type split struct {
	net.Listener
	tls  *tls.Config // nil: none
	done chan struct{}
	once sync.Once
	err  error // of accepting, set before done is closed

	http, grpc chan net.Conn
}

// Split returns listeners for HTTP/1.1 and for gRPC on a front. At most that many connections are open.
func (f Front) Split(ctx context.Context, most int) (http, grpc net.Listener) {
	s := &split{
		Listener: &bounded{Listener: f.Listener, most: int64(most)}, tls: f.TLS,
		done: make(chan struct{}), http: make(chan net.Conn), grpc: make(chan net.Conn),
	}
	go func() {
		for {
			c, err := s.Listener.Accept()
			switch {
			case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ECONNABORTED):
				backoff.WaitClosed(s.done, 50*time.Millisecond)
				continue
			case err != nil:
				s.close(err)
				return
			}
			go s.sort(ctx, c)
		}
	}()
	return &half{s, s.http}, &half{s, s.grpc}
}

// preface is how a connection with HTTP/2 begins.
const preface = "PRI"

// sort finds the protocol of a connection, and hands it over.
func (s *split) sort(ctx context.Context, c net.Conn) {
	caller := identify(c)
	if c.SetDeadline(time.Now().Add(slowHeader)) != nil {
		_ = c.Close()
		return
	}
	to := s.http
	if s.tls != nil {
		secure := tls.Server(c, s.tls)
		if secure.HandshakeContext(ctx) != nil {
			_ = c.Close()
			return
		}
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			to = s.grpc
		}
		c = secure
	} else {
		head := make([]byte, len(preface))
		n, err := io.ReadFull(c, head)
		if err != nil && n == 0 {
			_ = c.Close()
			return
		}
		if string(head[:n]) == preface {
			to = s.grpc
		}
		c = &prefixed{Conn: c, Reader: io.MultiReader(strings.NewReader(string(head[:n])), c)}
	}
	if c.SetDeadline(time.Time{}) != nil {
		_ = c.Close()
		return
	}
	select {
	case to <- &callerConn{c, caller}:
	case <-s.done:
		_ = c.Close()
	}
}

// prefixed is a connection of which the first bytes were read.
type prefixed struct {
	net.Conn
	io.Reader
}

func (p *prefixed) Read(b []byte) (int, error) { return p.Reader.Read(b) }

func (s *split) close(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.done)
	})
}

// half is one of the two listeners. Closing either stops both: a server closes its listener when it is
// shut down.
type half struct {
	*split
	conns chan net.Conn
}

// Accept returns the next connection of the protocol.
func (h *half) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, h.err
	}
}

// Close stops accepting.
func (h *half) Close() error {
	h.close(net.ErrClosed)
	return h.Listener.Close()
}
