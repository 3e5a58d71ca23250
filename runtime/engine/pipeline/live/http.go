package live

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// The part of HTTP/1.1 that sessions need, for one request per connection: net/http would add TLS,
// HTTP/2 and a megabyte to a small program.

// tracePath is the only path.
const tracePath = "/v1/trace"

// maxRequest limits a request with its head, in bytes.
const maxRequest = 16 << 10

// Actions of a POST.
const (
	actionStart = "start"
	actionStop  = "stop"
)

// order is the body of a POST.
type order struct {
	Action   string         `json:"action"`
	Session  string         `json:"session"`
	Limit    int64          `json:"limit_ns,omitempty"`
	Events   int            `json:"max_events,omitempty"`
	Encoding trace.Encoding `json:"encoding,omitempty"`
}

// failure is the body of an answer to a request that failed.
type failure struct {
	Error string `json:"error"`
}

// statusError is an error with its HTTP status.
type statusError struct {
	status int
	error
}

func (e *statusError) Unwrap() error { return e.error }

// status returns the HTTP status of an error.
func status(err error) int {
	var s *statusError
	switch {
	case errors.As(err, &s):
		return s.status
	case errors.Is(err, ErrNoSession):
		return 404
	case errors.Is(err, ErrSessionBusy):
		return 409
	case errors.Is(err, ErrSessions):
		return 429
	}
	return 400
}

var statusTexts = map[int]string{
	200: "OK", 201: "Created", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
	409: "Conflict", 413: "Content Too Large", 429: "Too Many Requests",
}

// answerHTTP answers one request.
func answerHTTP(conn net.Conn, b *bufio.Reader, s *sessions) {
	method, body, err := readRequest(b)
	if err == nil {
		err = mayTrace(conn)
	}
	var answer any
	code := 200
	switch {
	case err != nil:
	case method == "GET" || method == "HEAD":
		answer = struct {
			Sessions []*Session `json:"sessions"`
		}{s.list()}
	default:
		var write func(io.Writer) error
		if answer, write, err = s.obey(body); write != nil {
			stream(conn, write)
			return
		}
		code = 201
	}
	if err != nil {
		code, answer = status(err), failure{err.Error()}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", code, statusTexts[code], len(text)+1)
	if method == "HEAD" {
		text = nil
	}
	_, _ = conn.Write(append(append([]byte(head), text...), '\n')) // the client has gone
	drain(conn, b)
}

// drain reads what the client still sends, because closing a connection with unread bytes resets it
// and the client may lose the answer.
func drain(conn net.Conn, b io.Reader) {
	if c, ok := conn.(*net.UnixConn); ok && c.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, b, 1<<20)
	}
}

// obey carries out a POST. write writes a trace.
func (s *sessions) obey(body []byte) (answer any, write func(io.Writer) error, err error) {
	var o order
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return nil, nil, fmt.Errorf("%w: the body must be {\"action\": \"start\" or \"stop\", \"session\": NAME, …}: %w", ErrSession, err)
	}
	switch o.Action {
	case actionStart:
		answer, err = s.start(o.Session, time.Duration(o.Limit), o.Events)
	case actionStop:
		if o.Encoding == "" {
			o.Encoding = trace.Chrome
		}
		write, err = s.stop(o.Session, o.Encoding)
	default:
		err = fmt.Errorf("%w: action %.40q: must be %s or %s", ErrSession, o.Action, actionStart, actionStop)
	}
	return answer, write, err
}

// mayTrace allows what uses the pipeline's memory to root and to the pipeline's own user.
func mayTrace(conn net.Conn) error {
	refused := &statusError{403, errors.New("only root and the user of the pipeline may use sessions")}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return refused
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return refused
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || credErr != nil || cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return refused
	}
	return nil
}

// readRequest reads a request for [tracePath].
func readRequest(b *bufio.Reader) (method string, body []byte, err error) {
	invalid := func(format string, a ...any) (string, []byte, error) {
		return method, nil, &statusError{400, fmt.Errorf(format, a...)}
	}
	in := textproto.NewReader(b)
	line, err := in.ReadLine()
	if err != nil {
		return invalid("read the request: %v", err)
	}
	method, rest, _ := strings.Cut(line, " ")
	target, version, _ := strings.Cut(rest, " ")
	if !strings.HasPrefix(version, "HTTP/1.") {
		return invalid("%.60q is not a request of HTTP/1.1", line)
	}
	header, err := in.ReadMIMEHeader()
	if err != nil {
		return invalid("read the request: %v", err)
	}
	switch path, _, _ := strings.Cut(target, "?"); {
	case path != tracePath:
		return method, nil, &statusError{404, fmt.Errorf("the socket of a pipeline has %s only", tracePath)}
	case method != "GET" && method != "HEAD" && method != "POST":
		return method, nil, &statusError{405, fmt.Errorf("method %.20q: must be GET or POST", method)}
	case header.Get("Transfer-Encoding") != "":
		return invalid("a request needs Content-Length, not Transfer-Encoding")
	case method != "POST":
		return method, nil, nil
	}
	n, err := strconv.ParseUint(header.Get("Content-Length"), 10, 31)
	switch {
	case err != nil:
		return invalid("Content-Length %.20q: must be a number", header.Get("Content-Length"))
	case n > maxRequest/2:
		return method, nil, &statusError{413, fmt.Errorf("a body of %d bytes: at most %d are allowed", n, maxRequest/2)}
	}
	body = make([]byte, n)
	if _, err := io.ReadFull(b, body); err != nil {
		return invalid("the body ends before Content-Length: %v", err)
	}
	return method, body, nil
}

// stream sends a trace in chunks. The last chunk is missing if it is incomplete.
func stream(conn net.Conn, write func(io.Writer) error) {
	c := &chunkWriter{conn: conn}
	_, err := c.send([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"))
	if err == nil {
		err = write(c)
	}
	if err == nil {
		_, _ = c.send([]byte("0\r\n\r\n"))
	}
}

// chunkWriter sends each write as a chunk. Each must make progress in time.
type chunkWriter struct {
	conn net.Conn
	buf  []byte
}

func (c *chunkWriter) send(b []byte) (int, error) {
	if err := c.conn.SetDeadline(time.Now().Add(pipelines.Timeout)); err != nil {
		return 0, err
	}
	return c.conn.Write(b)
}

func (c *chunkWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.buf = append(strconv.AppendInt(c.buf[:0], int64(len(p)), 16), "\r\n"...)
	c.buf = append(append(c.buf, p...), "\r\n"...)
	if _, err := c.send(c.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}
