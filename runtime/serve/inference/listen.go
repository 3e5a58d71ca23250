package inference

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/internal/socket"
	"github.com/yoctune/yoctune/runtime/serve/access"
	"github.com/yoctune/yoctune/schema/plan"
)

// Front is a listener, and how its callers prove who they are.
type Front struct {
	net.Listener
	Address string  // unix:/path, http://host:port or https://host:port
	Tokens  *Tokens // nil: none is asked for
	TLS     *tls.Config
}

// Listen opens the listeners of a pipeline. path is the socket where the plan names none.
func Listen(ctx context.Context, r *plan.Request, path string) (fronts []Front, notes []error, err error) {
	defer func() {
		if err != nil {
			for _, f := range fronts {
				_ = f.Close()
			}
		}
	}()
	if r.Socket != "" {
		path = r.Socket
	}
	local, note, err := listenUnix(ctx, path, r.Everyone)
	if err != nil {
		return nil, nil, err
	}
	if note != nil {
		notes = append(notes, note)
	}
	fronts = append(fronts, Front{Listener: local, Address: "unix:" + path})
	if r.Address == "" {
		return fronts, notes, nil
	}
	var f Front
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
		if f.TLS, err = loadTLS(r.TLS); err != nil {
			return fronts, notes, err
		}
	}
	if r.Tokens != "" {
		if f.Tokens, err = ReadTokens(access.Credential("tokens", r.Tokens)); err != nil {
			return fronts, notes, err
		}
	}
	var config net.ListenConfig
	if f.Listener, err = config.Listen(ctx, "tcp", r.Address); err != nil {
		return fronts, notes, fmt.Errorf("listen on %s: %w", r.Address, err)
	}
	f.Address = scheme + f.Addr().String() // port 0 is any that is free
	return append(fronts, f), notes, nil
}

// listenUnix listens on a socket for the members of the group, or for every user.
func listenUnix(ctx context.Context, path string, everyone bool) (l *net.UnixListener, note, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, nil, err
	}
	if everyone {
		l, err = socket.Listen(ctx, path, 0o666)
		return l, nil, err
	}
	return access.Listen(ctx, path)
}

// loadTLS reads the certificates of a server.
func loadTLS(t *plan.TLS) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(access.Credential("certificate", t.Certificate), access.Credential("key", t.Key))
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	// A client that offers both, such as curl, asks over HTTP. Clients of gRPC offer h2 alone.
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1", "h2"}}
	if t.ClientCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(access.Credential("client-ca", t.ClientCA))
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls: %s has no certificate in PEM", t.ClientCA)
	}
	return c, nil
}

// Tokens are the secrets of callers.
type Tokens struct{ sums [][sha256.Size]byte }

// shortestToken is the shortest token that is taken, in bytes: a shorter one can be guessed.
const shortestToken = 16

// ReadTokens reads a file with one token a line. Empty lines, and those that begin with #, are left out.
func ReadTokens(path string) (*Tokens, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	var t Tokens
	for scan, n := bufio.NewScanner(bytes.NewReader(text)), 1; scan.Scan(); n++ {
		line := strings.TrimSpace(scan.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if len(line) < shortestToken {
			return nil, fmt.Errorf("tokens: %s:%d: the token has %d characters, and at least %d are needed", path, n, len(line), shortestToken)
		}
		t.sums = append(t.sums, sha256.Sum256([]byte(line)))
	}
	if len(t.sums) == 0 {
		return nil, fmt.Errorf("tokens: %s has no token", path)
	}
	return &t, nil
}

// Check compares the value of an Authorization header with the tokens. Nil tokens accept every caller.
func (t *Tokens) Check(authorization string) error {
	if t == nil {
		return nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	sum, found := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
	for i := range t.sums {
		found |= subtle.ConstantTimeCompare(sum[:], t.sums[i][:])
	}
	if found == 0 || !strings.EqualFold(scheme, "bearer") {
		return Errorf(Denied, "the request needs a token: Authorization: Bearer TOKEN")
	}
	return nil
}

// Limits of connections.
const (
	slowHeader = 5 * time.Second
	idleFor    = 2 * time.Minute
)

// connections is the most connections of a front.
func (s *Server) connections() int {
	n := 256
	for _, m := range s.Models() {
		n = max(n, 4*m.Port.Limit())
	}
	return n
}

// Serve answers requests by HTTP and gRPC on a front until it is shut down.
func (s *Server) Serve(ctx context.Context, f Front, h *HTTP, g *GRPC) (shutdown func(context.Context) error, failed <-chan error) {
	first, second := f.Split(ctx, s.connections())
	endHTTP, httpFailed := h.serve(ctx, first, f.Tokens)
	endGRPC, grpcFailed := g.serve(second, f.Tokens)
	ended := make(chan error, 2)
	go func() { ended <- <-httpFailed }()
	go func() { ended <- <-grpcFailed }()
	return func(ctx context.Context) error {
		var all sync.WaitGroup
		errs := make([]error, 2)
		all.Go(func() { errs[0] = endHTTP(ctx) })
		all.Go(func() { errs[1] = endGRPC(ctx) })
		all.Wait()
		return errors.Join(errs...)
	}, ended
}

// serve answers requests of a listener until the server is shut down.
func (h *HTTP) serve(ctx context.Context, l net.Listener, tokens *Tokens) (shutdown func(context.Context) error, failed <-chan error) {
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := tokens.Check(r.Header.Get("Authorization")); err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				h.fail(w, err)
				return
			}
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: slowHeader, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if own, ok := c.(*callerConn); ok {
				return withCaller(ctx, own.caller)
			}
			return ctx
		},
		ErrorLog: nil,
	}
	ended := make(chan error, 1)
	go func() {
		err := server.Serve(l)
		if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
			err = nil
		}
		ended <- err
	}()
	return func(ctx context.Context) error {
		if err := server.Shutdown(ctx); err != nil {
			return server.Close()
		}
		return nil
	}, ended
}

// bounded closes connections beyond a number at once, so that a flood of them costs no memory.
type bounded struct {
	net.Listener
	most int64
	open atomic.Int64
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) > b.most {
			b.open.Add(-1)
			_ = c.Close()
			continue
		}
		return &boundedConn{Conn: c, b: b}, nil
	}
}

type boundedConn struct {
	net.Conn
	b      *bounded
	closed atomic.Bool
}

func (c *boundedConn) Close() error {
	if !c.closed.Swap(true) {
		c.b.open.Add(-1)
	}
	return c.Conn.Close()
}
