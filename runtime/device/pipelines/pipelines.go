// Package pipelines reads the statistics of running pipelines. Each pipeline listens on
// a unix socket of its own and answers every connection without a request with one line of JSON.
//
// The engine defines the whole document. The enforcer, which links no engine, reads the
// few fields of [Progress].
package pipelines

import (
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

	"github.com/yoctune/yoctune/runtime/device/histogram"
)

// Dir holds the sockets of pipelines: DIR/NAME/socket. systemd creates DIR/NAME for
// the unit's user.
const Dir = "/run/yoctune-pipeline"

// Socket is the name of a socket in its directory.
const Socket = "socket"

// Requests is the name of the socket of a pipeline that answers requests, beside [Socket].
const Requests = "requests"

// Timeout bounds one exchange, on both sides.
const Timeout = 2 * time.Second

const maxAnswer = 4 << 20 // bytes

// Errors of reading.
var (
	// ErrNotRunning reports a socket on which no process listens.
	ErrNotRunning = errors.New("the pipeline does not run")
	// ErrAnswer is wrapped by errors about an answer in another format.
	ErrAnswer = errors.New("not a pipeline's statistics")
)

// Path returns the socket of a pipeline below a directory.
func Path(dir, pipeline string) string { return filepath.Join(dir, FileName(pipeline), Socket) }

// FileName converts the name of a pipeline, which a plan may choose freely, to a file
// name: every character other than letters, digits, `-` and `_` becomes `_`.
func FileName(pipeline string) string {
	out := []byte(pipeline)
	for i, c := range out {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			out[i] = '_'
		}
	}
	return string(out)
}

// Read connects to a socket and decodes the answer.
func Read[T any](path string, decode func([]byte) (*T, error)) (*T, error) {
	fail := func(err error) (*T, error) { return nil, fmt.Errorf("read statistics from %s: %w", path, err) }
	conn, err := net.DialTimeout("unix", path, Timeout)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrNotRunning, err))
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Timeout)); err != nil {
		return fail(err)
	}
	// Without a request the answer is the statistics.
	if c, ok := conn.(*net.UnixConn); ok {
		_ = c.CloseWrite() // the answer comes a moment later
	}
	b, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err != nil {
		return fail(err)
	}
	s, err := decode(b)
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// ReadAll reads every pipeline that has a socket below a directory, in the order of
// their names. Pipelines that have ended are left out; errs holds the other failures,
// which do not affect the rest.
func ReadAll[T any](dir string, decode func([]byte) (*T, error)) (list []*T, errs []error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, []error{err}
	}
	// Read in parallel, so that a pipeline that hangs does not delay the others.
	type answer struct {
		value *T
		err   error
	}
	answers := make([]answer, len(names))
	var reading sync.WaitGroup
	for i, n := range names {
		path := filepath.Join(dir, n.Name(), Socket)
		if _, err := os.Lstat(path); err == nil {
			reading.Go(func() { answers[i].value, answers[i].err = Read(path, decode) })
		}
	}
	reading.Wait()
	for _, a := range answers {
		switch {
		case errors.Is(a.err, ErrNotRunning):
		case a.err != nil:
			errs = append(errs, a.err)
		case a.value != nil:
			list = append(list, a.value)
		}
	}
	return list, errs
}

// Progress is the part of a pipeline's statistics that shows whether it meets its
// latency objective. Counts are since its start.
type Progress struct {
	Type     string `json:"type"` // "pipeline"
	Pipeline string `json:"pipeline"`
	PID      int    `json:"pid"`
	At       int64  `json:"at_ns"` // CLOCK_MONOTONIC
	Up       int64  `json:"up_ns"` // since the start
	Target   *int64 `json:"target_ns"`
	Frames   struct {
		Dropped uint64 `json:"dropped"`
	} `json:"frames"`
	Latency histogram.Histogram `json:"latency_ns"`
}

// DecodeProgress decodes an answer.
func DecodeProgress(b []byte) (*Progress, error) {
	var p Progress
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if p.Type != "pipeline" {
		return nil, fmt.Errorf("%w: its type is %.40q", ErrAnswer, p.Type)
	}
	return &p, nil
}

// MissedTarget reports whether the pipeline missed its latency objective since an
// earlier reading of the same run: its 95th percentile was above the target, or it
// finished no frame and dropped some. It is false without an objective and without an
// earlier reading.
func (p *Progress) MissedTarget(before *Progress) bool {
	if p.Target == nil || before == nil {
		return false
	}
	if before.PID != p.PID || before.At-before.Up != p.At-p.Up {
		before = &Progress{} // the pipeline was restarted
	}
	if p95 := p.Latency.Since(before.Latency).Quantile(95); p95 != nil {
		return *p95 > *p.Target
	}
	return p.Frames.Dropped > before.Frames.Dropped
}
