package live

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// ErrRefused wraps the reason why a pipeline refused a request.
var ErrRefused = errors.New("the pipeline refused")

// StartSession starts a profiling session of the pipeline at a socket. A limit or number of events of 0
// means the default.
func StartSession(socket, name string, limit time.Duration, events int) (*Session, error) {
	var text strings.Builder
	if err := request(socket, "POST", &order{Action: actionStart, Session: name, Limit: int64(limit), Events: events}, &text); err != nil {
		return nil, err
	}
	var s Session
	if err := json.Unmarshal([]byte(text.String()), &s); err != nil || s.Type != sessionType {
		return nil, fmt.Errorf("%w: %.60q", pipelines.ErrAnswer, text.String())
	}
	return &s, nil
}

// Sessions lists the sessions of the pipeline at a socket.
func Sessions(socket string) ([]*Session, error) {
	var text strings.Builder
	if err := request(socket, "GET", nil, &text); err != nil {
		return nil, err
	}
	var list struct {
		Sessions []*Session `json:"sessions"`
	}
	if err := json.Unmarshal([]byte(text.String()), &list); err != nil {
		return nil, fmt.Errorf("%w: %.60q", pipelines.ErrAnswer, text.String())
	}
	return list.Sessions, nil
}

// StopSession stops a session, unless it has ended, and writes its trace to w. After an error the trace
// is incomplete; the pipeline keeps it for a while.
func StopSession(socket, name string, e trace.Encoding, w io.Writer) error {
	return request(socket, "POST", &order{Action: actionStop, Session: name, Encoding: e}, w)
}

// request sends one request and copies the body of the answer.
func request(socket, method string, o *order, w io.Writer) error {
	fail := func(err error) error { return fmt.Errorf("request to %s: %w", socket, err) }
	dialled, err := net.DialTimeout("unix", socket, pipelines.Timeout)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", pipelines.ErrNotRunning, err))
	}
	defer dialled.Close()
	conn := impatient{dialled}
	var body []byte
	if o != nil {
		if body, err = json.Marshal(o); err != nil {
			return fail(err)
		}
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: pipeline\r\nContent-Length: %d\r\n\r\n", method, tracePath, len(body))
	if _, err := conn.Write(append([]byte(head), body...)); err != nil {
		return fail(err)
	}
	b := bufio.NewReader(conn)
	in := textproto.NewReader(b)
	line, err := in.ReadLine()
	if err != nil {
		return fail(fmt.Errorf("read the answer: %w", err))
	}
	version, status, _ := strings.Cut(line, " ")
	if !strings.HasPrefix(version, "HTTP/1.") {
		return fail(fmt.Errorf("%w: it does not speak HTTP; yoctuned 0.1 has no sessions", ErrRefused))
	}
	header, err := in.ReadMIMEHeader()
	if err != nil {
		return fail(fmt.Errorf("read the answer: %w", err))
	}
	if !strings.HasPrefix(status, "2") {
		var why failure
		if err := json.NewDecoder(io.LimitReader(b, maxRequest)).Decode(&why); err != nil || why.Error == "" {
			why.Error = status
		}
		return fmt.Errorf("%w: %s", ErrRefused, why.Error)
	}
	if header.Get("Transfer-Encoding") == "chunked" {
		return copyChunks(w, b)
	}
	n, err := strconv.ParseInt(header.Get("Content-Length"), 10, 63)
	if err != nil || n < 0 || n > maxAnswer {
		return fail(fmt.Errorf("%w: an answer of %.20q bytes", pipelines.ErrAnswer, header.Get("Content-Length")))
	}
	if _, err = io.CopyN(w, b, n); err != nil {
		return fail(err)
	}
	return nil
}

// maxAnswer limits an answer that is not a trace, in bytes.
const maxAnswer = 1 << 20

// copyChunks copies a body in chunks.
func copyChunks(w io.Writer, b *bufio.Reader) error {
	in := textproto.NewReader(b)
	for {
		line, err := in.ReadLine()
		if err != nil {
			return fmt.Errorf("the trace is incomplete: %w", err)
		}
		n, err := strconv.ParseUint(line, 16, 31)
		if err != nil {
			return fmt.Errorf("%w: a chunk of %.20q bytes", pipelines.ErrAnswer, line)
		}
		if n > 0 {
			if _, err := io.CopyN(w, b, int64(n)); err != nil {
				return fmt.Errorf("the trace is incomplete: %w", err)
			}
		}
		if end, err := in.ReadLine(); err != nil || end != "" {
			return fmt.Errorf("%w: a chunk does not end", pipelines.ErrAnswer)
		}
		if n == 0 {
			return nil
		}
	}
}

// impatient limits the time of each read and write.
type impatient struct{ net.Conn }

// patience is longer than [pipelines.Timeout], because a pipeline sorts the events of a session before it answers.
const patience = 5 * pipelines.Timeout

func (c impatient) Read(b []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}
