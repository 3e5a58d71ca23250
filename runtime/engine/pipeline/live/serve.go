package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/yoctune/yoctune/internal/socket"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
)

const maxAsking = 8 // connections that are answered at a time

// Server answers each connection with one snapshot, a line of JSON, and closes it.
type Server struct {
	l       *net.UnixListener
	serving sync.WaitGroup
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
				time.Sleep(pipelines.Timeout / 10)
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
	if conn.SetDeadline(time.Now().Add(pipelines.Timeout)) == nil {
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
	late := time.NewTimer(pipelines.Timeout)
	defer late.Stop()
	select {
	case <-done:
		return err
	case <-late.C:
		return errors.Join(err, ErrAnswering)
	}
}

// Read asks the pipeline behind a socket.
func Read(path string) (*Snapshot, error) { return pipelines.Read(path, Decode) }

// All asks every pipeline below a folder, see [pipelines.ReadAll].
func All(dir string) ([]*Snapshot, []error) { return pipelines.ReadAll(dir, Decode) }

// Decode reads a snapshot that another process wrote.
func Decode(b []byte) (*Snapshot, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	var s Snapshot
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("%w: %w", pipelines.ErrAnswer, err)
	}
	if s.Type != "pipeline" || s.Up < 0 {
		return nil, fmt.Errorf("%w: its type is %.40q", pipelines.ErrAnswer, s.Type)
	}
	return &s, nil
}
