package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Times of a sink.
const (
	openTimeout  = 30 * time.Second // for the server on the device, which may start at the same time
	closeTimeout = 4 * time.Second  // for the results that are left at the end; the engine gives a pipeline five seconds
	storePause   = 200 * time.Millisecond
	storeTimeout = 2 * time.Second // of one attempt; a disk may be slow, and another attempt does no harm
)

// SinkOptions describe a sink.
type SinkOptions struct {
	Plan     *plan.Plan
	Pipeline string
	Device   string // identity, see [DeviceID]
	Host     string // name of the device
	Socket   string // of the server on the device
}

// Sink puts the results of a pipeline into a stream of the server on the device.
type Sink struct {
	o       SinkOptions
	d       plan.Delivery
	conn    *nats.Conn
	to      publisher
	codec   *codec
	header  nats.Header
	records int
	delay   time.Duration
	giveUp  context.Context // ends some time after the pipeline: what cannot be stored is lost then
	release context.CancelFunc
	ended   chan struct{} // of the sender

	mu      sync.Mutex
	changed *sync.Cond
	open    []byte // results of the batch that is being filled
	n       int    // their number
	since   time.Time
	sent    int    // results of the batch that is being stored
	next    uint64 // number of the next result
	epoch   string
	closing bool
	failed  error  // no further result can be stored
	skipped uint64 // results that were dropped since the last batch that was stored
	state   live.Delivery
}

// Open connects to the server on the device, and makes the stream of the pipeline where it does not exist. stop ends
// with the pipeline.
func Open(stop context.Context, o SinkOptions) (*Sink, error) {
	d := *o.Plan.Pipelines[o.Pipeline].Sink.NATS
	fail := func(err error) (*Sink, error) { return nil, fmt.Errorf("stream %s: %w", d.Stream, err) }
	if faults := registry.CheckCluster(o.Plan); len(faults) > 0 {
		return fail(fmt.Errorf("%w: %w", registry.ErrPlan, faults[0]))
	}
	s := &Sink{
		o: o, d: d, records: cmp.Or(d.Records, registry.BatchRecords), delay: cmp.Or(time.Duration(d.Delay), registry.BatchDelay),
		ended: make(chan struct{}),
	}
	s.giveUp, s.release = context.WithCancel(context.WithoutCancel(stop))
	s.changed = sync.NewCond(&s.mu)
	var err error
	if s.codec, err = newCodec(d.Codec, d.Level); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(stop, openTimeout)
	defer cancel()
	if s.conn, err = dialLocal(o.Socket, "pipeline "+o.Pipeline); err != nil {
		return fail(err)
	}
	subject := subjectOf(d.Subject, o.Device)
	js, err := jetstream.New(s.conn)
	if err != nil {
		s.conn.Close()
		return fail(err)
	}
	s.to = publisher{js: js, stream: d.Stream, subject: subject}
	var pause backoff.Delay
	for {
		if err = s.prepare(ctx); err == nil || errors.Is(err, errTaken) {
			break
		}
		if pause.Wait(ctx.Done()) {
			err = fmt.Errorf("the server on the device does not answer on %s: %w: is yoctuned-cluster.service running?", o.Socket, err)
			break
		}
	}
	if err != nil {
		s.conn.Close()
		return fail(err)
	}
	if s.epoch, s.next = s.to.last.epoch, s.to.last.last+1; s.epoch == "" {
		s.epoch = nuid.Next()
	}
	s.header = nats.Header{headerDevice: {o.Device}, headerHost: {o.Host}, contentType: {"application/x-ndjson"}}
	s.state = live.Delivery{Stream: d.Stream, Subject: subject, State: live.Stored, Stored: s.next - 1, Accepted: s.next - 1}
	context.AfterFunc(stop, func() { time.AfterFunc(closeTimeout, s.release) })
	go s.send()
	return s, nil
}

// prepare makes the stream where it does not exist, and finds its end.
func (s *Sink) prepare(ctx context.Context) error {
	want := localStream(s.o.Plan.Cluster, &s.d)
	if _, err := s.to.js.CreateOrUpdateStream(ctx, want); err != nil {
		return err
	}
	return s.to.reload(ctx)
}

// localStream is the stream of a delivery on the device. It holds the results, or those that wait.
func localStream(c *plan.Cluster, d *plan.Delivery) jetstream.StreamConfig {
	config := jetstream.StreamConfig{
		Name: d.Stream, Subjects: []string{d.Subject + ".>"}, Storage: jetstream.FileStorage, Replicas: 1,
		MaxBytes: registry.StreamSize(c, d), Discard: jetstream.DiscardOld, AllowDirect: true,
		Description: "results of yoctune",
	}
	if c.Embedded {
		config.MaxAge = time.Duration(d.Age)
	}
	if d.Full == registry.Block || d.Full == registry.DropNewest {
		config.Discard = jetstream.DiscardNew
	}
	return limitDuplicates(config)
}

// limitDuplicates keeps the window of duplicates within the age of messages, as servers demand.
func limitDuplicates(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Duplicates = 2 * time.Minute
	if c.MaxAge > 0 {
		c.Duplicates = min(c.Duplicates, c.MaxAge)
	}
	return c
}

// Write adds a record to the batch. It waits while the batch before is not stored and this one is full.
func (s *Sink) Write(r *result.Record) error {
	line := append(r.AppendJSON(nil), '\n')
	if len(line) > registry.MaxBatchBytes {
		return fmt.Errorf("%w: a result of %d bytes is larger than a message of %d", sink.ErrDegraded, len(line), registry.MaxBatchBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.n >= s.records || len(s.open)+len(line) > registry.MaxBatchBytes {
		if s.failed != nil {
			return s.failed
		}
		if s.giveUp.Err() != nil {
			s.state.Dropped++
			return fmt.Errorf("%w: the pipeline has ended, and stream %s does not take its results: %s", sink.ErrDegraded, s.d.Stream, s.state.Why)
		}
		s.changed.Wait()
	}
	if s.failed != nil {
		return s.failed
	}
	if s.n == 0 {
		s.since = time.Now()
	}
	s.open = append(s.open, line...)
	s.n++
	s.state.Accepted++
	if s.n == 1 || s.n >= s.records {
		s.changed.Broadcast()
	}
	return nil
}

// take waits for a batch that is full or old, and takes it; false at the end.
func (s *Sink) take(into []byte) (data []byte, n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		wait := s.delay - time.Since(s.since)
		switch {
		case s.n > 0 && (s.closing || s.n >= s.records || wait <= 0 || len(s.open) > registry.MaxBatchBytes/2):
			data, n = append(into[:0], s.open...), s.n
			s.open, s.n, s.sent = s.open[:0], 0, n
			s.changed.Broadcast()
			return data, n, true
		case s.closing:
			return nil, 0, false
		case s.n > 0:
			alarm := time.AfterFunc(wait, s.changed.Broadcast)
			s.changed.Wait()
			alarm.Stop()
		default:
			s.changed.Wait()
		}
	}
}

// send stores batches in order until the sink is closed.
func (s *Sink) send() {
	defer close(s.ended)
	defer context.AfterFunc(s.giveUp, s.changed.Broadcast)()
	var data []byte
	for {
		var n int
		var ok bool
		if data, n, ok = s.take(data); !ok {
			return
		}
		b := batch{s.next, s.next + uint64(n) - 1, s.epoch}
		s.next += uint64(n)
		packed, encoded := s.codec.apply(data)
		m := &nats.Msg{Subject: s.to.subject, Data: packed, Header: nats.Header{}}
		for k, v := range s.header {
			m.Header[k] = v
		}
		if encoded != "" {
			m.Header.Set(encoding, encoded)
		}
		m.Header.Set(headerEpoch, b.epoch)
		m.Header.Set(headerFirst, strconv.FormatUint(b.first, 10))
		m.Header.Set(headerLast, strconv.FormatUint(b.last, 10))
		m.Header.Set(nats.MsgIdHdr, messageID(s.o.Device, s.o.Pipeline, b))
		if s.skipped > 0 {
			m.Header.Set(headerDropped, strconv.FormatUint(s.skipped, 10))
		}
		err := s.store(m)
		s.mu.Lock()
		s.sent = 0
		switch {
		case err == nil:
			s.skipped = 0
			s.state.State, s.state.Why = live.Stored, ""
			s.state.Stored = b.last
			s.state.Batches++
			s.state.Bytes += uint64(len(data))
			s.state.Sent += uint64(len(packed))
			s.state.Codec = encoded
		case errors.Is(err, errTaken):
			s.failed = fmt.Errorf("%w: %w", sink.ErrFailed, err)
			s.state.State, s.state.Why = live.Refused, err.Error()
			s.state.Dropped += uint64(n)
		default:
			s.skipped += uint64(n)
			s.state.Dropped += uint64(n)
		}
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// store stores a batch, however long that takes. It gives up when the stream is full and the plan drops the newest
// results, and at the end.
func (s *Sink) store(m *nats.Msg) error {
	for {
		err := s.to.publish(context.Background(), m, storeTimeout)
		if err == nil || errors.Is(err, errTaken) || errors.Is(err, errFull) && s.d.Full == registry.DropNewest {
			s.note(err)
			return err
		}
		s.note(err)
		if backoff.WaitClosed(s.giveUp.Done(), storePause) {
			return err
		}
	}
}

// note keeps why results wait.
func (s *Sink) note(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.State, s.state.Why = live.Waiting, err.Error()
	if errors.Is(err, errFull) {
		s.state.State = live.Full
	}
}

// Delivery returns what became of the results.
func (s *Sink) Delivery() *live.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.state
	return &d
}

// Close stores what is left.
func (s *Sink) Close() error {
	s.mu.Lock()
	s.closing = true
	s.changed.Broadcast()
	s.mu.Unlock()
	stored := backoff.WaitClosed(s.ended, closeTimeout)
	s.release()
	s.conn.Close()
	s.codec.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.n + s.sent; !stored && left > 0 {
		return fmt.Errorf("%w: %d results were not stored in stream %s: %s", sink.ErrFailed, left, s.d.Stream, s.state.Why)
	}
	return s.failed
}

// unixDialer connects to the server on the device.
type unixDialer struct{ path string }

func (d unixDialer) Dial(string, string) (net.Conn, error) {
	return net.DialTimeout("unix", d.path, 2*time.Second)
}

// dialLocal connects to the server on the device. The connection is made again whenever it breaks.
func dialLocal(socket, name string) (*nats.Conn, error) {
	return nats.Connect("nats://device", nats.Name(name), nats.SetCustomDialer(unixDialer{socket}), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(200*time.Millisecond), nats.ReconnectBufSize(-1), nats.IgnoreDiscoveredServers())
}
