// Package editor serves configurations to editors by the Language Server Protocol: it
// evaluates what the editor shows while it is typed, and answers questions about it.
//
// The rules, facts and messages are those of `yoctune vet`: every evaluation is one of package
// compiler, with the open files in place of those on disk.
package editor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/internal/version"
)

// ErrNoShutdown is returned when the session ended without the editor's request to shut down.
var ErrNoShutdown = errors.New("the editor ended the session without a shutdown request")

// Serve serves one editor until it ends the session. Options apply to every configuration.
func Serve(ctx context.Context, conn io.ReadWriteCloser, options compiler.Options) error {
	s := &server{
		options: options, units: utf16Units, documents: map[string]*document{},
		projects: map[string]*project{}, outside: map[string]bool{}, running: map[jsonrpc2.ID]context.CancelFunc{},
		evaluating: make(chan struct{}, 1), connected: make(chan struct{}),
	}
	silent := jsonrpc2.SetLogger(log.New(io.Discard, "", 0)) // protocol errors are answered, or end the session
	s.conn = jsonrpc2.NewConn(ctx, newStream(conn), s, silent)
	close(s.connected)
	<-s.conn.DisconnectNotify()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.abandoned:
		return errAbandoned
	case s.state != stopped:
		return ErrNoShutdown
	}
	return nil
}

// state is the part of the session that the server is in.
type state int

const (
	created state = iota
	initialized
	stopped // after the request to shut down
)

type server struct {
	conn       *jsonrpc2.Conn
	connected  chan struct{} // closed when conn is set: it calls Handle before
	options    compiler.Options
	evaluating chan struct{} // holds one token: evaluations run one after the other

	mu        sync.Mutex
	state     state
	units     encoding
	watches   bool // the editor reports changes of files on request
	roots     []string
	documents map[string]*document // open, by path
	projects  map[string]*project  // by folder
	outside   map[string]bool      // open files of no configuration, by path
	running   map[jsonrpc2.ID]context.CancelFunc
	abandoned bool // an evaluation goes on that nothing can stop
}

// Handle implements [jsonrpc2.Handler]. Notifications take effect in the order in which they
// arrive; a request runs beside what follows it, on the texts that were open when it arrived.
func (s *server) Handle(ctx context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	<-s.connected
	switch {
	case req.Method == "exit":
		s.conn.Close()
	case req.Notif:
		s.guard(req.Method, func() error { return s.notify(ctx, req) })
	case req.Method == "initialize", req.Method == "shutdown":
		s.reply(ctx, req, s.changeState)
	default:
		ctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.running[req.ID] = cancel
		s.mu.Unlock()
		go func() {
			s.reply(ctx, req, s.answer)
			s.mu.Lock()
			delete(s.running, req.ID)
			s.mu.Unlock()
			cancel()
		}()
	}
}

// reply answers a request with the result of a function.
func (s *server) reply(ctx context.Context, req *jsonrpc2.Request, answer func(context.Context, *jsonrpc2.Request) (any, error)) {
	var result any
	err := s.guard(req.Method, func() (err error) {
		result, err = answer(ctx, req)
		return err
	})
	send := context.WithoutCancel(ctx)
	if err == nil {
		err = s.conn.Reply(send, req.ID, result)
		if err == nil || errors.Is(err, jsonrpc2.ErrClosed) {
			return
		}
	}
	failure, ok := errors.AsType[*jsonrpc2.Error](err)
	switch {
	case ok:
	case ctx.Err() != nil:
		failure = &jsonrpc2.Error{Code: codeRequestCancelled, Message: "the request was cancelled"}
	default:
		failure = &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: err.Error()}
	}
	_ = s.conn.ReplyWithError(send, req.ID, failure) // a closed connection ends Serve
}

// guard calls f and turns a panic into an error, which is logged: the session goes on.
func (s *server) guard(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: internal error: %v", what, r)
			s.log(logWarning, "%v\n%s", err, debug.Stack())
		}
	}()
	return f()
}

// log shows a line in the editor's log.
func (s *server) log(kind int, format string, args ...any) {
	s.send("window/logMessage", messageParams{kind, fmt.Sprintf(format, args...)})
}

// send sends a notification. A closed connection ends Serve.
func (s *server) send(method string, params any) {
	_ = s.conn.Notify(context.Background(), method, params)
}

// params reads the parameters of a message.
func params[T any](req *jsonrpc2.Request) (T, error) {
	var v T
	if req.Params == nil {
		return v, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: req.Method + ": no parameters"}
	}
	if err := json.Unmarshal(*req.Params, &v); err != nil {
		return v, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: fmt.Sprintf("%s: %v", req.Method, err)}
	}
	return v, nil
}

// changeState handles the requests that begin and end a session.
func (s *server) changeState(_ context.Context, req *jsonrpc2.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case req.Method == "shutdown" && s.state == created:
		return nil, &jsonrpc2.Error{Code: codeNotInitialized, Message: "the session is not initialized"}
	case req.Method == "shutdown":
		s.state = stopped
		for _, p := range s.projects {
			p.close()
		}
		return nil, nil
	case s.state != created:
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: "the session is initialized already"}
	}
	p, err := params[initializeParams](req)
	if err != nil {
		return nil, err
	}
	s.state = initialized
	if slices.Contains(p.Capabilities.General.PositionEncodings, string(utf8Units)) {
		s.units = utf8Units
	}
	s.watches = p.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	for _, f := range append(p.WorkspaceFolders, workspaceFolder{p.RootURI}) {
		if root, err := pathOf(f.URI); err == nil {
			s.roots = append(s.roots, root)
		}
	}
	r := initializeResult{Capabilities: capabilities()}
	r.Capabilities.PositionEncoding = string(s.units)
	r.ServerInfo.Name, r.ServerInfo.Version = "yoctune", version.Version
	return r, nil
}

func capabilities() serverCapabilities {
	c := serverCapabilities{}
	c.TextDocumentSync.OpenClose, c.TextDocumentSync.Save = true, true
	c.TextDocumentSync.Change = 1
	c.CompletionProvider.TriggerCharacters = []string{`"`, "'", "."}
	c.HoverProvider, c.DefinitionProvider, c.DocumentSymbolProvider = true, true, true
	c.CodeActionProvider.Kinds = []string{quickFix, fixAll}
	return c
}

// notify handles a notification. Unknown ones are ignored, as the protocol asks.
func (s *server) notify(ctx context.Context, req *jsonrpc2.Request) error {
	if req.Method == "$/cancelRequest" {
		return s.cancel(req)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != initialized {
		return nil
	}
	switch req.Method {
	case "initialized":
		if s.watches {
			go s.watchFiles(ctx)
		}
	case "textDocument/didOpen":
		p, err := params[didOpenParams](req)
		if err != nil {
			return err
		}
		s.open(p.TextDocument)
	case "textDocument/didChange":
		p, err := params[didChangeParams](req)
		if err != nil {
			return err
		}
		for _, c := range p.ContentChanges {
			if c.Range != nil {
				return fmt.Errorf("%s: the change of a range was not agreed on", p.TextDocument.URI)
			}
			p.TextDocument.Text = c.Text
		}
		s.change(p.TextDocument)
	case "textDocument/didSave":
		p, err := params[documentParams](req)
		if err != nil {
			return err
		}
		s.reload(p.TextDocument.URI)
	case "textDocument/didClose":
		p, err := params[documentParams](req)
		if err != nil {
			return err
		}
		s.closeDocument(p.TextDocument.URI)
	case "workspace/didChangeWatchedFiles":
		p, err := params[watchedFilesParams](req)
		if err != nil {
			return err
		}
		for _, c := range p.Changes {
			s.reload(c.URI)
		}
	}
	return nil
}

// cancel cancels a running request.
func (s *server) cancel(req *jsonrpc2.Request) error {
	p, err := params[cancelParams](req)
	if err != nil {
		return err
	}
	var id jsonrpc2.ID
	if err := json.Unmarshal(p.ID, &id); err != nil {
		return fmt.Errorf("%s: %w", req.Method, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[id]; cancel != nil {
		cancel()
	}
	return nil
}

// watchFiles asks the editor to report files that change on disk.
func (s *server) watchFiles(ctx context.Context) {
	r := registration{ID: "files", Method: "workspace/didChangeWatchedFiles", Options: watchOptions{[]watcher{{"**/*.{cue,hcl,jsonnet,libsonnet}"}}}}
	if err := s.conn.Call(ctx, "client/registerCapability", registrationParams{[]registration{r}}, nil); err != nil && ctx.Err() == nil {
		s.log(logInfo, "files that change on disk are noticed when an open file is saved: %v", err)
	}
}

// answer answers a request.
func (s *server) answer(ctx context.Context, req *jsonrpc2.Request) (any, error) {
	s.mu.Lock()
	now := s.state
	s.mu.Unlock()
	switch now {
	case created:
		return nil, &jsonrpc2.Error{Code: codeNotInitialized, Message: "the session is not initialized"}
	case stopped:
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: "the session is shut down"}
	}
	switch req.Method {
	case "textDocument/completion":
		return answerWith(ctx, req, s.complete)
	case "textDocument/hover":
		return answerWith(ctx, req, s.hover)
	case "textDocument/definition":
		return answerWith(ctx, req, s.define)
	case "textDocument/codeAction":
		return answerWith(ctx, req, s.act)
	case "textDocument/documentSymbol":
		return answerWith(ctx, req, s.outline)
	}
	return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: fmt.Sprintf("%.100q is not supported", req.Method)}
}

// answerWith reads the parameters of a request and answers it.
func answerWith[T any](ctx context.Context, req *jsonrpc2.Request, answer func(context.Context, T) (any, error)) (any, error) {
	p, err := params[T](req)
	if err != nil {
		return nil, err
	}
	return answer(ctx, p)
}
