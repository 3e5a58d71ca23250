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

// leastAge is the least time between two readings of the sensors, however many ask:
// reading them costs milliseconds of processor time.
const leastAge = 100 * time.Millisecond

// sampling shares one reading of the device's sensors among all who ask. It reads
// when somebody does, on a goroutine of its own: a sensor may take long, and drift
// must not wait for it.
type sampling struct {
	fd    int // an eventfd, written when a sample is there
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

// recent is the last sample unless it is older; nil: it is, or there is none.
func (s *sampling) recent(now, age time.Duration) *monitor.Sample {
	if s == nil || s.last == nil || now-time.Duration(s.last.Monotonic) > max(age, leastAge) {
		return nil
	}
	return s.last
}

// begin takes a sample unless one is being taken.
func (s *sampling) begin() {
	if s.busy {
		return
	}
	s.busy = true
	go func() {
		sample := s.take()
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(s.fd, one[:]) // full means that it is awake already
		s.taken <- sample
	}()
}

// finish takes over the sample that begin began, which is there in a moment.
func (s *sampling) finish() {
	var buf [8]byte
	_, _ = unix.Read(s.fd, buf[:])
	if s.busy {
		s.last, s.busy = <-s.taken, false
	}
}

// close waits for a sample that is being taken: its goroutine has the descriptor.
func (s *sampling) close() {
	if s.busy {
		<-s.taken
	}
	_ = unix.Close(s.fd)
}

// sampled is the answer with a sample.
func sampled(s *monitor.Sample) api.Answer {
	b, err := json.Marshal(s)
	if err != nil {
		return api.Answer{Type: api.Failed, Code: api.CodeDevice, Message: err.Error()}
	}
	return api.Answer{Type: api.Sampled, Sample: b}
}

// ask answers a request for a sample: at once when there is one of that age, else
// with the zero answer, and again when it is taken.
func (d *daemon) ask(now time.Duration, c *client, age time.Duration) api.Answer {
	switch {
	case d.sampling == nil:
		return api.Answer{Type: api.Failed, Code: api.CodeDevice, Message: "this yoctuned cannot sample"}
	case c.asks:
		return api.Answer{Type: api.Failed, Code: api.CodeQuota, Message: "a sample is being taken for this connection already"}
	}
	if s := d.sampling.recent(now, age); s != nil {
		return sampled(s)
	}
	c.asks = true
	d.sampling.begin()
	return api.Answer{}
}

// share gives a new sample to all who wait for one.
func (d *daemon) share(now time.Duration) {
	d.sampling.finish()
	if d.server == nil || d.sampling.last == nil {
		return
	}
	a := sampled(d.sampling.last)
	for _, c := range d.server.clients {
		if !c.asks {
			continue
		}
		c.asks = false
		if d.server.send(c, a) != nil {
			d.hangUp(now, c)
		}
	}
}
