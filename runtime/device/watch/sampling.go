package watch

import (
	"encoding/json"
	"sync"
	"time"

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
	take  func() *monitor.Sample
	wake  func() // called after a sample
	taken chan *monitor.Sample
	busy  bool
	last  *monitor.Sample

	reading sync.WaitGroup
}

func newSampling(dev rootfs.FS, wake func()) *sampling {
	return &sampling{take: monitor.New(dev).Take, wake: wake, taken: make(chan *monitor.Sample, 1)}
}

// recent returns the last sample, nil if it is older than age or there is none.
func (s *sampling) recent(now, age time.Duration) *monitor.Sample {
	if s.last == nil || now-time.Duration(s.last.Monotonic) > max(age, minSampleAge) {
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
	s.reading.Go(func() {
		s.taken <- s.take()
		s.wake()
	})
}

// finish reports whether the sample that begin has started is complete.
func (s *sampling) finish() bool {
	select {
	case s.last = <-s.taken:
		s.busy = false
		return true
	default:
		return false
	}
}

// sampleAnswer returns the answer that carries a sample.
func sampleAnswer(s *monitor.Sample) api.Answer {
	b, err := json.Marshal(s)
	if err != nil {
		return failure(api.CodeDevice, "%v", err)
	}
	return api.Answer{Type: api.Sampled, Sample: b}
}

// requestSample answers a request for a sample: at once if there is a recent one, else with
// the zero answer and later through deliverSample.
func (d *daemon) requestSample(now time.Duration, c *client, age time.Duration) api.Answer {
	if c.wantsSample {
		return failure(api.CodeQuota, "this connection already waits for a sample")
	}
	if s := d.sampling.recent(now, age); s != nil {
		return sampleAnswer(s)
	}
	c.wantsSample = true
	d.sampling.begin()
	return api.Answer{}
}

// handleWake sends a new sample to every client that waits for one. The end of the run also
// wakes the daemon.
func (d *daemon) handleWake(now time.Duration) {
	d.poll.clearWake()
	if !d.sampling.finish() || d.server == nil {
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
