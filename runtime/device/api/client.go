package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// answerWithin bounds the wait for yoctuned, which answers in milliseconds
// unless a node of the device hangs. A sample can be had without it.
const (
	answerWithin = 30 * time.Second
	sampleWithin = 2 * time.Second
)

// Client is a connection to yoctuned. Its lease ends when it is closed, and when
// its process ends, however that happens.
//
//	c, err := api.Dial(api.Socket)
//	if err != nil { … }
//	defer c.Close()
//	granted, err := c.Acquire("high-performance", time.Minute)
type Client struct {
	conn   net.Conn
	answer *bufio.Reader
}

// RefusedError is yoctuned's answer to a request that it does not fulfil.
type RefusedError struct {
	Code    string // one of the Code constants
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// Dial connects to the socket of a running yoctuned.
func Dial(socket string) (*Client, error) {
	conn, err := net.DialTimeout("unix", socket, answerWithin)
	if err != nil {
		return nil, fmt.Errorf("connect to yoctuned: %w", err)
	}
	return &Client{conn: conn, answer: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Acquire asks for a lease. A ttl of 0 leaves it to yoctuned; the answer says
// when to renew.
func (c *Client) Acquire(profile string, ttl time.Duration) (Answer, error) {
	return c.call(Request{Type: Acquire, Profile: profile, TTL: ttl.Milliseconds()})
}

// Renew starts the lease's time to live anew.
func (c *Client) Renew() (Answer, error) { return c.call(Request{Type: Renew}) }

// Release ends the lease; closing does it too.
func (c *Client) Release() (Answer, error) { return c.call(Request{Type: Release}) }

// Leases lists the leases in force.
func (c *Client) Leases() ([]Holder, error) {
	a, err := c.call(Request{Type: Leases})
	return a.Leases, err
}

// Revoke ends somebody else's lease. Only root may.
func (c *Client) Revoke(id uint64) error {
	_, err := c.call(Request{Type: Revoke, Lease: id})
	return err
}

// Sample returns a sample of the device that is not older than that, as JSON. What
// others were given shortly before is not measured again.
func (c *Client) Sample(age time.Duration) ([]byte, error) {
	a, err := c.within(sampleWithin, Request{Type: Sample, MaxAge: age.Milliseconds()})
	return a.Sample, err
}

// Watch calls f with each event from now on, until f fails, yoctuned ends or the
// client is closed. yoctuned keeps no event for a watcher who does not take it:
// the next one says how many are lost. Watch on a client of its own.
func (c *Client) Watch(f func(Event) error) error {
	if _, err := c.call(Request{Type: Watch}); err != nil {
		return err
	}
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	for {
		a, err := c.next()
		if err != nil {
			return err
		}
		if a.Type != Happened || a.Event == nil {
			continue // of a newer yoctuned
		}
		if err := f(*a.Event); err != nil {
			return err
		}
	}
}

// Close ends the connection and the lease that hangs on it.
func (c *Client) Close() error { return c.conn.Close() }

func (c *Client) call(r Request) (Answer, error) { return c.within(answerWithin, r) }

func (c *Client) within(d time.Duration, r Request) (Answer, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return Answer{}, fmt.Errorf("ask yoctuned: %w", err)
	}
	if err := c.conn.SetDeadline(time.Now().Add(d)); err != nil {
		return Answer{}, fmt.Errorf("ask yoctuned: %w", err)
	}
	if _, err := c.conn.Write(append(b, '\n')); err != nil {
		return Answer{}, fmt.Errorf("ask yoctuned: %w", err)
	}
	return c.next()
}

func (c *Client) next() (Answer, error) {
	line, err := c.answer.ReadSlice('\n')
	if err != nil {
		return Answer{}, fmt.Errorf("yoctuned does not answer: %w", err)
	}
	var a Answer
	if err := json.Unmarshal(line, &a); err != nil {
		return Answer{}, fmt.Errorf("yoctuned's answer: %w", err)
	}
	if a.Type == Failed {
		return a, &RefusedError{Code: a.Code, Message: a.Message}
	}
	return a, nil
}

// Refused reports whether err is yoctuned's refusal with the given code.
func Refused(err error, code string) bool {
	var r *RefusedError
	return errors.As(err, &r) && r.Code == code
}
