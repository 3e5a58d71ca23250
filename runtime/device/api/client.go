package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// yoctuned answers in milliseconds unless a node of the device hangs. The timeout for
// samples is short because a client can also read the sensors itself.
const (
	answerTimeout = 30 * time.Second
	sampleTimeout = 2 * time.Second
)

// Client is a connection to yoctuned. Its lease ends when the client is closed or its
// process ends for any reason.
//
//	c, err := api.Dial(api.Socket)
//	if err != nil { … }
//	defer c.Close()
//	granted, err := c.Acquire("high-performance", time.Minute)
type Client struct {
	conn   net.Conn
	answer *bufio.Reader
}

// RefusedError is yoctuned's answer to a request that it refuses.
type RefusedError struct {
	Code    string // one of the Code constants
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// Dial connects to the socket of a running yoctuned.
func Dial(socket string) (*Client, error) {
	conn, err := net.DialTimeout("unix", socket, answerTimeout)
	if err != nil {
		return nil, fmt.Errorf("connect to yoctuned: %w", err)
	}
	return &Client{conn: conn, answer: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Acquire requests a lease. With a ttl of 0 yoctuned chooses; the answer holds the time to
// live, within which the lease must be renewed.
func (c *Client) Acquire(profile string, ttl time.Duration) (Answer, error) {
	return c.Do(Request{Type: Acquire, Profile: profile, TTL: ttl.Milliseconds()})
}

// Renew restarts the lease's time to live.
func (c *Client) Renew() (Answer, error) { return c.Do(Request{Type: Renew}) }

// Sample returns a sample of the device as JSON. A sample that another client has caused
// is returned again if it is not older than age.
func (c *Client) Sample(age time.Duration) ([]byte, error) {
	a, err := c.send(sampleTimeout, Request{Type: Sample, MaxAge: age.Milliseconds()})
	return a.Sample, err
}

// Watch calls f with each event from now on, until f fails, yoctuned ends or the client is
// closed. yoctuned queues no events: [Event.Lost] counts those that a slow watcher missed.
// A client that watches cannot be used for other requests.
func (c *Client) Watch(f func(Event) error) error {
	if _, err := c.Do(Request{Type: Watch}); err != nil {
		return err
	}
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	for {
		a, err := c.receive()
		if err != nil {
			return err
		}
		if a.Type != Happened || a.Event == nil {
			continue // from a newer yoctuned
		}
		if err := f(*a.Event); err != nil {
			return err
		}
	}
}

// Close ends the connection and its lease.
func (c *Client) Close() error { return c.conn.Close() }

// Do sends a request and returns the answer. A request that yoctuned refuses has a
// [RefusedError].
func (c *Client) Do(r Request) (Answer, error) { return c.send(answerTimeout, r) }

func (c *Client) send(d time.Duration, r Request) (Answer, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return Answer{}, fmt.Errorf("send request to yoctuned: %w", err)
	}
	if err := c.conn.SetDeadline(time.Now().Add(d)); err != nil {
		return Answer{}, fmt.Errorf("send request to yoctuned: %w", err)
	}
	if _, err := c.conn.Write(append(b, '\n')); err != nil {
		return Answer{}, fmt.Errorf("send request to yoctuned: %w", err)
	}
	return c.receive()
}

func (c *Client) receive() (Answer, error) {
	line, err := c.answer.ReadSlice('\n')
	if err != nil {
		return Answer{}, fmt.Errorf("no answer from yoctuned: %w", err)
	}
	var a Answer
	if err := json.Unmarshal(line, &a); err != nil {
		return Answer{}, fmt.Errorf("decode answer of yoctuned: %w", err)
	}
	if a.Type == Failed {
		return a, &RefusedError{Code: a.Code, Message: a.Message}
	}
	return a, nil
}
