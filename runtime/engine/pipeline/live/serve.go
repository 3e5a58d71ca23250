package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/yoctune/yoctune/internal/socket"
)

// Dir is where pipelines have their sockets: DIR/NAME/socket, which systemd makes
// for the unit's user.
const Dir = "/run/yoctune-pipeline"

// Socket is the name of a socket in its folder.
const Socket = "socket"

// Bounds of the exchange.
const (
	patience    = 2 * time.Second
	maxAsking   = 8
	maxSnapshot = 4 << 20
)

// ErrNotRunning says that there is a socket and nobody behind it.
var ErrNotRunning = errors.New("the pipeline does not run")

// Server answers each connection with one snapshot, a line of JSON, and closes it.
type Server struct {
	l       *net.UnixListener
	serving sync.WaitGroup
}

// Path is the socket of a pipeline below a folder. A name comes from a plan; what
// cannot be in a file name is an underscore.
func Path(dir, name string) string { return filepath.Join(dir, FileName(name), Socket) }

// FileName makes a name of a plan one of a file.
func FileName(name string) string {
	out := []byte(name)
	for i, c := range out {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			out[i] = '_'
		}
	}
	return string(out)
}

// Serve answers with what take returns until it is closed. Everybody on this
// machine may ask. The folder is made where it may be.
func Serve(ctx context.Context, path string, take func() *Snapshot) (*Server, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	l, err := socket.Listen(ctx, path, 0o666)
	if err != nil {
		return nil, err
	}
	s := &Server{l: l}
	s.serving.Go(func() {
		room := make(chan bool, maxAsking)
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors: not for long
				time.Sleep(patience / 10)
				continue
			}
			select {
			case room <- true:
			default: // they do not come back, or somebody floods: the next may be luckier
				_ = conn.Close()
				continue
			}
			s.serving.Go(func() {
				defer func() { <-room }()
				answer(conn, take)
			})
		}
	})
	return s, nil
}

// answer gives one snapshot; a client that does not take it is dropped.
func answer(conn net.Conn, take func() *Snapshot) {
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(patience)) == nil {
		_ = json.NewEncoder(conn).Encode(take()) // whoever asked is gone
	}
}

// ErrAnswering says that somebody was still being answered when a server was closed: a
// sensor that is part of the answer does not return.
var ErrAnswering = errors.New("an answer is still being made")

// Close ends the service and removes the socket. It does not wait for ever.
func (s *Server) Close() error {
	err := s.l.Close()
	done := make(chan struct{})
	go func() { s.serving.Wait(); close(done) }()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-done:
		return err
	case <-late.C:
		return errors.Join(err, ErrAnswering)
	}
}

// Read asks the pipeline behind a socket.
func Read(path string) (*Snapshot, error) {
	fail := func(err error) (*Snapshot, error) { return nil, fmt.Errorf("ask %s: %w", path, err) }
	conn, err := net.DialTimeout("unix", path, patience)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrNotRunning, err))
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return fail(err)
	}
	b, err := io.ReadAll(io.LimitReader(conn, maxSnapshot))
	if err != nil {
		return fail(err)
	}
	s, err := Decode(b)
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// ErrSnapshot is wrapped by errors about an answer that is no snapshot.
var ErrSnapshot = errors.New("the answer is no snapshot")

// Decode reads a snapshot that another process wrote.
func Decode(b []byte) (*Snapshot, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	var s Snapshot
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if s.Type != "pipeline" || s.Up < 0 {
		return nil, fmt.Errorf("%w: its type is %.40q", ErrSnapshot, s.Type)
	}
	return &s, nil
}

// All asks every pipeline that has a socket below a folder, in the order of their
// names. Those that are gone are left out; errs has what else went wrong, and costs
// nobody else's.
func All(dir string) (list []*Snapshot, errs []error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, []error{err}
	}
	// At once: one that does not answer costs the others nothing.
	type answer struct {
		s   *Snapshot
		err error
	}
	answers := make([]answer, len(names))
	var asking sync.WaitGroup
	for i, n := range names {
		path := filepath.Join(dir, n.Name(), Socket)
		if _, err := os.Lstat(path); err == nil {
			asking.Go(func() { answers[i].s, answers[i].err = Read(path) })
		}
	}
	asking.Wait()
	for _, a := range answers {
		switch {
		case errors.Is(a.err, ErrNotRunning):
		case a.err != nil:
			errs = append(errs, a.err)
		case a.s != nil:
			list = append(list, a.s)
		}
	}
	return list, errs
}
