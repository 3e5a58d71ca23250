package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/internal/socket"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

const maxAsking = 8 // concurrent connections

// silence is how long a client that sends nothing is waited for. One that closes its side gets the
// snapshot at once.
const silence = 250 * time.Millisecond

// Server answers each connection once and closes it: with a snapshot, a line of JSON, if the client
// sends nothing, and to a request with HTTP, see docs/pipelines.md.
type Server struct {
	l        *net.UnixListener
	made     string // directory that Serve created, "" for none
	sessions *sessions
	serving  sync.WaitGroup
}

// Serve answers each connection with the result of take until it is closed. Every user on this
// machine may connect. The directory is created if possible, and removed at the end. Profiling
// sessions record the events of r under the name of the pipeline.
func Serve(ctx context.Context, path, pipeline string, r *trace.Recorder, take func() *Snapshot) (*Server, error) {
	made := filepath.Dir(path)
	if _, err := os.Lstat(made); err == nil {
		made = "" // systemd or the user has made it
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	l, err := socket.Listen(ctx, path, 0o666)
	if err != nil {
		return nil, err
	}
	s := &Server{l: l, made: made, sessions: newSessions(pipeline, r)}
	s.serving.Go(func() {
		room := make(chan bool, maxAsking)
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors, for a moment
				time.Sleep(pipelines.Timeout / 10)
				continue
			}
			select {
			case room <- true:
			default: // readers hang or flood the socket: a later attempt may succeed
				_ = conn.Close()
				continue
			}
			s.serving.Go(func() {
				defer func() { <-room }()
				s.answer(conn, take)
			})
		}
	})
	return s, nil
}

// answer answers a client; one that does not read is dropped.
func (s *Server) answer(conn net.Conn, take func() *Snapshot) {
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(silence)) != nil {
		return
	}
	b := bufio.NewReader(io.LimitReader(conn, maxRequest))
	_, err := b.Peek(1)
	if conn.SetDeadline(time.Now().Add(pipelines.Timeout)) != nil {
		return
	}
	if err == nil {
		answerHTTP(conn, b, s.sessions)
		return
	}
	_ = json.NewEncoder(conn).Encode(take()) // the client has gone
}

// ErrAnswering means that a request was still in progress when the server was closed: reading a
// sensor hangs.
var ErrAnswering = errors.New("a request is still in progress")

// Close ends the service and removes the socket. It waits for a limited time.
func (s *Server) Close() error {
	err := s.l.Close()
	s.sessions.close()
	if s.made != "" {
		_ = os.Remove(s.made) // unless another pipeline has its socket there
	}
	done := make(chan struct{})
	go func() { s.serving.Wait(); close(done) }()
	if !backoff.WaitClosed(done, pipelines.Timeout) {
		return errors.Join(err, ErrAnswering)
	}
	return err
}

// All requests a snapshot from every pipeline below a directory, see [pipelines.ReadAll].
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
