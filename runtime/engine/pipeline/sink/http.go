package sink

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// httpSink posts each record as application/json on a connection of its own, one at a time.
// While the server is slow, frames wait in the queue before the sink, whose policy applies.
//
// It implements the part of HTTP/1.1 that one request needs: net/http would add TLS, HTTP/2 and
// a megabyte to a small program. The sink for https is in yoctuned-serve.
type httpSink struct {
	host    string // to dial
	head    string // of the request, up to the value of Content-Length
	timeout time.Duration
	body    []byte
	request []byte
	rest    Retry
}

func openHTTP(target string, timeout time.Duration) (*httpSink, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" {
		return nil, fmt.Errorf("%w: url is not http://HOST/…", registry.ErrPlan)
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "80")
	}
	head := "POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host +
		"\r\nUser-Agent: yoctuned\r\nConnection: close\r\nContent-Type: application/json\r\n"
	if u.User != nil {
		password, _ := u.User.Password()
		head += "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\r\n"
	}
	return &httpSink{host: host, head: head + "Content-Length: ", timeout: timeout}, nil
}

// Write returns [ErrSinkDegraded] if the server is unreachable, too slow, or answers with a
// status other than 2xx.
func (s *httpSink) Write(r *result.Record) error {
	if !s.rest.Due() {
		return s.rest.Err()
	}
	s.body = r.AppendJSON(s.body[:0])
	s.request = strconv.AppendInt(append(s.request[:0], s.head...), int64(len(s.body)), 10)
	s.request = append(append(s.request, "\r\n\r\n"...), s.body...)
	if err := s.post(); err != nil {
		return s.rest.Fail(fmt.Errorf("post results: %w", err))
	}
	s.rest.Reset()
	return nil
}

// post sends the request and reads the status line of the response.
func (s *httpSink) post() error {
	end := time.Now().Add(s.timeout)
	c, err := (&net.Dialer{Deadline: end}).Dial("tcp", s.host)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(end); err != nil {
		return err
	}
	if _, err := c.Write(s.request); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(c, 1024)).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	version, status, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch {
	case !strings.HasPrefix(version, "HTTP/1."):
		return fmt.Errorf("the response %.40q is not HTTP", line)
	case !strings.HasPrefix(status, "2"):
		return fmt.Errorf("the server returned %.60q", status)
	}
	return nil
}

func (s *httpSink) Close() error { return nil }
