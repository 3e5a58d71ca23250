package api

import (
	"fmt"
	"time"
)

// Hold acquires a lease from the yoctuned at a socket and renews it until release is
// called or the process ends. A program that runs without the lease as well, only slower,
// needs no more than this: a lease that is refused or lost is passed to note.
func Hold(socket, profile string, note func(error)) (release func()) {
	c, granted, err := dialAndAcquire(socket, profile)
	if err != nil {
		note(fmt.Errorf("no lease: %w", err))
		return func() {}
	}
	stop := c.KeepRenewed(granted, func(err error) { note(fmt.Errorf("the lease is lost, the pipeline continues: %w", err)) })
	return func() {
		stop()
		_ = c.Close() // the lease ends with it
	}
}

// KeepRenewed renews the lease that was granted until stop is called. It calls lost once
// if the lease is lost.
func (c *Client) KeepRenewed(granted Answer, lost func(error)) (stop func()) {
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(max(time.Duration(granted.TTL)*time.Millisecond/3, time.Second))
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			if _, err := c.Renew(); err != nil {
				select {
				case <-done: // the client may be closed already
				default:
					lost(err)
				}
				return
			}
		}
	}()
	return func() { close(done) }
}

func dialAndAcquire(socket, profile string) (*Client, Answer, error) {
	c, err := Dial(socket)
	if err != nil {
		return nil, Answer{}, err
	}
	granted, err := c.Acquire(profile, 0)
	if err != nil {
		_ = c.Close()
		return nil, Answer{}, err
	}
	return c, granted, nil
}
