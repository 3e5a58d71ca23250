package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// askAgain is how long a sampler of its own is used before the enforcer is looked for
// again.
const askAgain = 10 * time.Second

// Shared samples through the process that keeps the plan true, which reads the
// sensors once for all who ask, and by itself where there is none. It is for one
// goroutine.
type Shared struct {
	socket string
	age    time.Duration
	clock  func() time.Duration
	own    *Sampler
	client *api.Client
	next   time.Duration // when to look for the enforcer again
}

// NewShared returns a source of samples that are taken every interval, of a device
// whose enforcer listens on socket.
func NewShared(dev rootfs.FS, socket string, interval time.Duration) *Shared {
	// A sample of the last interval is young enough; a tenth is for who is early.
	return &Shared{socket: socket, age: interval - interval/10, clock: uptime, own: New(dev)}
}

// Take returns a sample.
func (s *Shared) Take() *Sample {
	if now := s.clock(); now >= s.next {
		sample, err := s.ask()
		if err == nil {
			return sample
		}
		s.next = now + askAgain
		_ = s.Close()
	}
	return s.own.Take()
}

var errNoSample = errors.New("the answer is no sample")

func (s *Shared) ask() (_ *Sample, err error) {
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

// Close hangs up.
func (s *Shared) Close() error {
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client = nil
	return err
}
