package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// reconnectAfter is how long samples are taken locally before the next attempt to reach the
// enforcer.
const reconnectAfter = 10 * time.Second

// Shared takes samples through the enforcer, which shares each reading among all clients, or
// locally if no enforcer is running. It must be used by one goroutine.
type Shared struct {
	socket string
	age    time.Duration
	clock  func() time.Duration
	own    *Sampler
	client *api.Client
	next   time.Duration // time of the next attempt to reach the enforcer
}

// NewShared returns a source of samples for a device whose enforcer listens on socket. Take is
// to be called every interval.
func NewShared(dev rootfs.FS, socket string, interval time.Duration) *Shared {
	// Accept samples of the last interval, less a tenth for early calls.
	return &Shared{socket: socket, age: interval - interval/10, clock: rootfs.BootTime, own: New(dev)}
}

// Take returns a sample.
func (s *Shared) Take() *Sample {
	if now := s.clock(); now >= s.next {
		sample, err := s.request()
		if err == nil {
			return sample
		}
		s.next = now + reconnectAfter
		_ = s.Close()
	}
	return s.own.Take()
}

var errNoSample = errors.New("the answer is not a sample")

func (s *Shared) request() (_ *Sample, err error) {
	if s.client == nil {
		if s.client, err = api.Dial(s.socket); err != nil {
			return nil, err
		}
	}
	b, err := s.client.Sample(s.age)
	if err != nil {
		return nil, err
	}
	var sample Sample
	if err := json.Unmarshal(b, &sample); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSample, err)
	}
	if sample.Type != "sample" {
		return nil, errNoSample
	}
	return &sample, nil
}

// Close closes the connection.
func (s *Shared) Close() error {
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client = nil
	return err
}
