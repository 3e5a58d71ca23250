package watch

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// minSampleAge is the least time between two readings of the sensors, which cost
// milliseconds of processor time.
const minSampleAge = 100 * time.Millisecond

// sampling shares each reading of the device's sensors among all clients. It reads on
// demand and in a goroutine of its own, so that a slow sensor does not delay repairs.
type sampling struct {
	fd    int // an eventfd, written after a sample
	take  func() *monitor.Sample
	taken chan *monitor.Sample
	busy  bool
	last  *monitor.Sample
}

func openSampling(dev rootfs.FS) (*sampling, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	return &sampling{fd: fd, take: monitor.New(dev).Take, taken: make(chan *monitor.Sample, 1)}, nil
}

// recent returns the last sample, nil if it is older than age or there is none.
func (s *sampling) recent(now, age time.Duration) *monitor.Sample {
	if s == nil || s.last == nil || now-time.Duration(s.last.Monotonic) > max(age, minSampleAge) {
		return nil
	}
	return s.last
}

// begin starts to take a sample unless one is being taken.
func (s *sampling) begin() {
	if s.busy {
		return
	}
	s.busy = true
	go func() {
		sample := s.take()
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(s.fd, one[:]) // the counter is full only if a wake-up is pending
		s.taken <- sample
	}()
}

// finish takes over the sample that begin has started.
func (s *sampling) finish() {
	var buf [8]byte
	_, _ = unix.Read(s.fd, buf[:])
	if s.busy {
		s.last, s.busy = <-s.taken, false
	}
}

// close waits for a sample that is being taken, because its goroutine uses the descriptor.
func (s *sampling) close() {
	if s.busy {
		<-s.taken
	}
	_ = unix.Close(s.fd)
}

// sampleAnswer returns the answer that carries a sample.
func sampleAnswer(s *monitor.Sample) api.Answer {
	b, err := json.Marshal(s)
	if err != nil {
		return api.Answer{Type: api.Failed, Code: api.CodeDevice, Message: err.Error()}
	}
	return api.Answer{Type: api.Sampled, Sample: b}
}

// requestSample answers a request for a sample: at once if there is a recent one, else with
// the zero answer and later through deliverSample.
func (d *daemon) requestSample(now time.Duration, c *client, age time.Duration) api.Answer {
	switch {
	case d.sampling == nil:
		return api.Answer{Type: api.Failed, Code: api.CodeDevice, Message: "the sensors could not be opened"}
	case c.wantsSample:
		return api.Answer{Type: api.Failed, Code: api.CodeQuota, Message: "this connection already waits for a sample"}
	}
	if s := d.sampling.recent(now, age); s != nil {
		return sampleAnswer(s)
	}
	c.wantsSample = true
	d.sampling.begin()
	return api.Answer{}
}

// deliverSample sends a new sample to every client that waits for one.
func (d *daemon) deliverSample(now time.Duration) {
	d.sampling.finish()
	if d.server == nil || d.sampling.last == nil {
		return
	}
	a := sampleAnswer(d.sampling.last)
	for _, c := range d.server.clients {
		if !c.wantsSample {
			continue
		}
		c.wantsSample = false
		if d.server.send(c, a) != nil {
			d.hangUp(now, c)
		}
	}
}
