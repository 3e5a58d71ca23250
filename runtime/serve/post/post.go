// Package post sends results to servers over HTTPS.
package post

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/serve/access"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Times of the connection, which is kept between results.
const (
	dialTimeout = 5 * time.Second
	idleTimeout = 60 * time.Second
	maxLife     = 300 * time.Second // a name may lead to another server by then
	maxAnswer   = 64 << 10          // bytes that are read of an answer, so that the connection can be kept
)

// Sink posts each record as application/json, one at a time and in order, on one connection.
type Sink struct {
	url     string
	timeout time.Duration
	client  *http.Client
	kept    *http.Transport
	since   time.Time // of the connection
	body    []byte
	rest    sink.Retry
}

// Open prepares a sink of kind http whose address is https. It connects with the first result.
func Open(s plan.PipelineSink) (*Sink, error) {
	config, err := access.ClientTLS(s.TLS)
	if err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	t := &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout, MaxConnsPerHost: 1, MaxIdleConns: 1,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
	}
	return &Sink{url: s.URL, timeout: registry.SinkTimeout(&s), kept: t, client: &http.Client{
		Transport: t,
		// Results are for the server that the plan names.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Write returns [sink.ErrDegraded] if the server is unreachable, too slow, or answers with a status other than 2xx.
func (s *Sink) Write(r *result.Record) error {
	if !s.rest.Due() {
		return s.rest.Err()
	}
	s.body = r.AppendJSON(s.body[:0])
	if err := s.post(); err != nil {
		return s.rest.Fail(fmt.Errorf("post results: %w", err))
	}
	s.rest.Reset()
	return nil
}

func (s *Sink) post() error {
	if now := time.Now(); now.Sub(s.since) > maxLife {
		s.kept.CloseIdleConnections()
		s.since = now
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "yoctuned")
	a, err := s.client.Do(q)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(a.Body, maxAnswer))
	_ = a.Body.Close()
	if a.StatusCode/100 != 2 {
		return fmt.Errorf("the server returned %q", a.Status)
	}
	return nil
}

// Close ends the connection.
func (s *Sink) Close() error {
	s.kept.CloseIdleConnections()
	return nil
}
