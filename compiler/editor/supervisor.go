package editor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/yoctune/yoctune/internal/tailbuf"
)

// Supervise serves one editor through a worker, a process that runs [Serve], and ends when the editor
// ends the session. CUE cannot be interrupted, and Go cannot survive a stack that overflows: where a
// text makes the worker end, another one takes over at the next change of a text.
func Supervise(ctx context.Context, conn io.ReadWriteCloser, command func(context.Context) *exec.Cmd) error {
	s := &supervisor{
		command: func() *exec.Cmd { return command(ctx) }, editor: newStream(conn),
		texts: map[string]textDocument{}, waiting: map[string]bool{},
	}
	defer s.end()
	if err := s.start(); err != nil {
		return err
	}
	for {
		frame, err := s.editor.readFrame()
		if err != nil {
			return ErrNoShutdown
		}
		var m envelope
		if json.Unmarshal(frame, &m) != nil {
			m = envelope{} // the worker refuses it
		}
		if m.Method == "exit" {
			break
		}
		if err := s.pass(m, frame); err != nil {
			return err
		}
	}
	if !s.stopped {
		return ErrNoShutdown
	}
	return nil
}

// envelope is what the supervisor reads of a message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type supervisor struct {
	command func() *exec.Cmd
	editor  *stream
	stopped bool // the editor has asked to shut down

	// The session so far, for the next worker.
	hello []byte // the request to initialize
	ready []byte // the notification that it is done
	texts map[string]textDocument

	mu      sync.Mutex
	worker  *worker         // nil while none runs
	waiting map[string]bool // requests without a reply, by id
}

// worker is a process that serves the session.
type worker struct {
	in     *stream
	cmd    *exec.Cmd
	stderr tailbuf.Buffer
	done   chan struct{}
	again  string // id of the request to initialize that the editor does not wait for
}

// start starts a worker.
func (s *supervisor) start() error {
	cmd := s.command()
	w := &worker{cmd: cmd, done: make(chan struct{})}
	cmd.Stderr = &w.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the worker of the session: %w", err)
	}
	w.in = newStream(pipe{out, in})
	s.mu.Lock()
	s.worker = w
	s.mu.Unlock()
	go s.relay(w)
	return nil
}

// pipe is the connection to a worker.
type pipe struct {
	io.Reader
	io.WriteCloser
}

// pass passes a message of the editor to the worker. The next change of a text starts one where
// there is none.
func (s *supervisor) pass(m envelope, frame []byte) error {
	changed := s.remember(m, frame)
	s.mu.Lock()
	w := s.worker
	if w != nil && m.ID != nil && m.Method != "" {
		s.waiting[string(m.ID)] = true
	}
	s.mu.Unlock()
	switch {
	case w != nil:
		_ = w.in.WriteObject(json.RawMessage(frame)) // a worker that has ended is noticed where it is read
	case m.Method == "shutdown":
		return s.editor.WriteObject(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  any             `json:"result"`
		}{"2.0", m.ID, nil})
	case changed:
		return s.resume()
	case m.ID != nil && m.Method != "":
		return s.editor.WriteObject(failure{"2.0", m.ID, &jsonrpc2.Error{Code: codeRequestFailed, Message: "the last evaluation failed; the next change starts another one"}})
	}
	return nil
}

// remember keeps what the next worker has to learn, and reports whether a text has changed.
func (s *supervisor) remember(m envelope, frame []byte) bool {
	switch m.Method {
	case "initialize":
		s.hello = frame
	case "initialized":
		s.ready = frame
	case "shutdown":
		s.stopped = true
	case "textDocument/didOpen":
		var p didOpenParams
		if json.Unmarshal(m.Params, &p) == nil {
			s.texts[p.TextDocument.URI] = p.TextDocument
			return true
		}
	case "textDocument/didChange":
		var p didChangeParams
		if json.Unmarshal(m.Params, &p) == nil && len(p.ContentChanges) > 0 {
			if _, open := s.texts[p.TextDocument.URI]; !open {
				return false
			}
			p.TextDocument.Text = p.ContentChanges[len(p.ContentChanges)-1].Text
			s.texts[p.TextDocument.URI] = p.TextDocument
			return true
		}
	case "textDocument/didClose":
		var p documentParams
		if json.Unmarshal(m.Params, &p) == nil {
			delete(s.texts, p.TextDocument.URI)
		}
	}
	return false
}

// resume starts a worker and brings it to where the session is.
func (s *supervisor) resume() error {
	if err := s.start(); err != nil {
		return err
	}
	var m envelope
	if json.Unmarshal(s.hello, &m) != nil {
		return nil // the session has not begun
	}
	s.mu.Lock()
	w := s.worker
	if w != nil {
		w.again = string(m.ID)
	}
	s.mu.Unlock()
	if w == nil {
		return nil // it has ended already
	}
	_ = w.in.WriteObject(json.RawMessage(s.hello))
	if s.ready != nil {
		_ = w.in.WriteObject(json.RawMessage(s.ready))
	}
	for _, uri := range slices.Sorted(maps.Keys(s.texts)) {
		_ = w.in.WriteObject(struct {
			Version string        `json:"jsonrpc"`
			Method  string        `json:"method"`
			Params  didOpenParams `json:"params"`
		}{"2.0", "textDocument/didOpen", didOpenParams{s.texts[uri]}})
	}
	return nil
}

// relay passes a worker's messages to the editor until it ends.
func (s *supervisor) relay(w *worker) {
	defer close(w.done)
	for {
		frame, err := w.in.readFrame()
		if err != nil {
			break
		}
		var m envelope
		if json.Unmarshal(frame, &m) == nil && m.Method == "" {
			s.mu.Lock()
			repeated := string(m.ID) == w.again
			if repeated {
				w.again = ""
			}
			delete(s.waiting, string(m.ID))
			s.mu.Unlock()
			if repeated {
				continue
			}
		}
		if s.editor.WriteObject(frame) != nil {
			break
		}
	}
	_ = w.cmd.Process.Kill() // it may have closed its output only
	ended := w.cmd.Wait()
	s.mu.Lock()
	s.worker = nil
	waiting := slices.Sorted(maps.Keys(s.waiting))
	clear(s.waiting)
	s.mu.Unlock()
	for _, id := range waiting {
		_ = s.editor.WriteObject(failure{"2.0", json.RawMessage(id), &jsonrpc2.Error{Code: codeRequestFailed, Message: "the evaluation failed"}})
	}
	why, _, _ := strings.Cut(w.stderr.String(), "\n")
	if why == "" && ended != nil {
		why = ended.Error()
	}
	if why != "" {
		_ = s.editor.WriteObject(struct {
			Version string        `json:"jsonrpc"`
			Method  string        `json:"method"`
			Params  messageParams `json:"params"`
		}{"2.0", "window/logMessage", messageParams{logWarning, "the next change starts another evaluation: " + why}})
	}
}

// end ends the worker: it reads that the session is over, and exits.
func (s *supervisor) end() {
	s.mu.Lock()
	w := s.worker
	s.mu.Unlock()
	if w == nil {
		return
	}
	_ = w.in.Close()
	select {
	case <-w.done:
	case <-time.After(patience): // the editor does not read what the worker writes
		_ = w.cmd.Process.Kill()
	}
}

// patience bounds how long a session waits for its worker to end.
const patience = 5 * time.Second

// errAbandoned ends a worker in which an evaluation of CUE goes on that nothing can stop.
var errAbandoned = errors.New("an evaluation took too much time or memory")
