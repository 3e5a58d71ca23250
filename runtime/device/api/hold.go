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
	done := make(chan struct{})
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		t := time.NewTicker(max(time.Duration(granted.TTL)*time.Millisecond/3, time.Second))
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			if _, err := c.Renew(); err != nil {
				note(fmt.Errorf("the lease is lost, the pipeline goes on: %w", err))
				return
			}
		}
	}()
	return func() {
		close(done)
		<-renewed
		_ = c.Close() // the lease ends with it
	}
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
