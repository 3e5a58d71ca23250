package cluster

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/serve/access"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// positions is the bucket with what the cluster has of each stream. It is needed where the cluster has removed it
// again.
const (
	positions     = "yoctune-positions"
	positionsSize = 4 << 20
)

// cleanAfter is the number of batches after which those that were sent are removed here; they also are when
// nothing waits.
const cleanAfter = 32

// forwardTimeout bounds one attempt to send a batch.
const forwardTimeout = 5 * time.Second

// States of a connection.
const (
	Connected    = "connected"
	Disconnected = "disconnected"
)

// Status is the state of the cluster as the device sees it.
type Status struct {
	Type       string          `json:"type"` // "cluster"
	Name       string          `json:"name"`
	Device     string          `json:"device"`
	Embedded   bool            `json:"embedded"`
	Address    string          `json:"address,omitempty"` // of TCP on the device
	Version    string          `json:"nats"`              // of the server on the device
	Clients    int             `json:"clients"`
	Used       uint64          `json:"store_bytes"`
	Limit      int64           `json:"store_limit"`
	Remote     *RemoteStatus   `json:"remote,omitempty"` // of a cluster elsewhere
	Deliveries []ForwardStatus `json:"deliveries"`
}

// RemoteStatus is the connection to a cluster elsewhere.
type RemoteStatus struct {
	URL     string   `json:"url"`
	State   string   `json:"state"`
	Why     string   `json:"why,omitempty"`
	Since   int64    `json:"since"` // seconds since 1970
	Server  string   `json:"server,omitempty"`
	Cluster string   `json:"cluster,omitempty"`
	Peers   []string `json:"peers,omitempty"` // addresses of its servers
}

// ForwardStatus is the state of a stream of the device. Numbers are those of results.
type ForwardStatus struct {
	Pipeline string `json:"pipeline"`
	Stream   string `json:"stream"`
	Batches  uint64 `json:"batches"` // in the stream on the device
	Bytes    uint64 `json:"bytes"`
	Limit    int64  `json:"limit"`
	Stored   uint64 `json:"stored"`            // number of the last result on the device
	Sent     uint64 `json:"sent,omitempty"`    // number of the last result that the cluster elsewhere has
	Waiting  uint64 `json:"waiting,omitempty"` // results that it does not have yet
	Lost     uint64 `json:"lost,omitempty"`    // results that the device dropped before they were sent, since the start
	Why      string `json:"why,omitempty"`     // of results that are not sent
}

// Forwarder serves the state of the server on the device, and moves its streams to a cluster elsewhere.
type Forwarder struct {
	s      *Server
	plan   *plan.Plan
	local  jetstream.JetStream
	here   *nats.Conn
	remote *nats.Conn // nil: the streams stay here
	there  jetstream.JetStream
	kv     jetstream.KeyValue
	lanes  []*lane

	own *x509.Certificate // of this device; nil: none

	mu    sync.Mutex
	since time.Time // of the connection's state
	why   string
}

// lane moves one stream.
type lane struct {
	f        *Forwarder
	pipeline string
	d        plan.Delivery
	subject  string
	to       publisher
	limit    *rate.Limiter // nil: none

	mu     sync.Mutex
	status ForwardStatus
}

// NewForwarder connects to the server on the device, and begins to connect to the cluster elsewhere.
func NewForwarder(ctx context.Context, s *Server) (_ *Forwarder, err error) {
	f := &Forwarder{s: s, plan: s.o.Plan, since: time.Now()}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if f.here, err = s.Connect("yoctuned cluster"); err != nil {
		return nil, err
	}
	if f.local, err = jetstream.New(f.here); err != nil {
		return nil, err
	}
	c := f.plan.Cluster
	for _, name := range slices.Sorted(maps.Keys(f.plan.Pipelines)) {
		if d := f.plan.Pipelines[name].Sink.NATS; d != nil {
			l := &lane{f: f, pipeline: name, d: *d, subject: subjectOf(d.Subject, s.o.Device)}
			l.status = ForwardStatus{Pipeline: name, Stream: d.Stream, Limit: registry.StreamSize(c, d)}
			if d.Rate > 0 {
				l.limit = rate.NewLimiter(rate.Limit(d.Rate), registry.MaxBatchBytes+64<<10)
			}
			f.lanes = append(f.lanes, l)
			if _, err := f.local.CreateOrUpdateStream(ctx, localStream(c, d)); err != nil {
				return nil, fmt.Errorf("%w: stream %s: %w", ErrStore, d.Stream, err)
			}
		}
	}
	if _, err := f.here.Subscribe(statusSubject, func(m *nats.Msg) {
		if b, err := json.Marshal(f.Status()); err == nil {
			_ = m.Respond(b)
		}
	}); err != nil {
		return nil, err
	}
	if c.URL == "" {
		return f, nil
	}
	if f.kv, err = f.local.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: positions, MaxBytes: positionsSize}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	if err := f.connect(); err != nil {
		return nil, err
	}
	for _, l := range f.lanes {
		l.to = publisher{js: f.there, stream: l.d.Stream, subject: l.subject}
	}
	return f, nil
}

// connect begins to connect to the cluster elsewhere, and never gives up.
func (f *Forwarder) connect() error {
	c := f.plan.Cluster
	options := []nats.Option{
		nats.Name("yoctune " + f.s.o.Device), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(), // rights may be given later
		nats.CustomReconnectDelay(func(attempts int) time.Duration {
			return min(time.Duration(attempts+1)*250*time.Millisecond, 10*time.Second)
		}),
		nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(5 * time.Second),
		nats.ConnectHandler(func(*nats.Conn) { f.note("") }),
		nats.ReconnectHandler(func(*nats.Conn) { f.note("") }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { f.note(err.Error()) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				f.note(err.Error())
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { f.note(err.Error()) }),
	}
	if strings.HasPrefix(c.URL, "tls://") {
		config, err := access.ClientTLS(c.TLS)
		if err != nil {
			return err
		}
		if len(config.Certificates) > 0 {
			f.own = config.Certificates[0].Leaf
		}
		options = append(options, nats.Secure(config))
	}
	if c.Credentials != "" {
		o, err := userOption(access.Credential(credentialUser, c.Credentials))
		if err != nil {
			return fmt.Errorf("credentials %s: %w", c.Credentials, err)
		}
		options = append(options, o)
	}
	var err error
	if f.remote, err = nats.Connect(c.URL, options...); err != nil {
		return err
	}
	if !f.remote.IsConnected() && f.remote.LastError() != nil {
		f.note(f.remote.LastError().Error())
	}
	if c.Domain != "" {
		f.there, err = jetstream.NewWithDomain(f.remote, c.Domain)
	} else {
		f.there, err = jetstream.New(f.remote)
	}
	return err
}

// userOption reads the credentials of a user: a file of the tool nsc, or the seed of an nkey.
func userOption(path string) (nats.Option, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(text), "BEGIN NATS USER JWT") {
		return nats.UserCredentials(path), nil
	}
	return nats.NkeyOptionFromSeed(path)
}

// note keeps the state of the connection, "" for a good one.
func (f *Forwarder) note(why string) {
	// A server that refuses a certificate may close the connection without a word.
	if now := time.Now(); why != "" && f.own != nil {
		switch {
		case now.After(f.own.NotAfter):
			why = fmt.Sprintf("the device's certificate expired at %s: %s", f.own.NotAfter.UTC().Format(time.RFC3339), why)
		case now.Before(f.own.NotBefore):
			why = fmt.Sprintf("the device's certificate is valid from %s, and its clock shows %s: %s", f.own.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), why)
		case strings.Contains(why, "after TLS handshake"), strings.Contains(why, "broken pipe"), strings.Contains(why, "connection reset"):
			why = fmt.Sprintf("the server ended the connection; it may not accept the device's certificate, which %s issued: %s", f.own.Issuer, why)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if (why == "") != (f.why == "") {
		f.since = time.Now()
	}
	if why != f.why {
		switch {
		case why != "" && f.why == "":
			f.s.o.Log("%s: %s", f.plan.Cluster.URL, why)
		case why == "":
			f.s.o.Log("%s: connected", f.plan.Cluster.URL)
		}
	}
	f.why = why
}

// Run moves results until ctx ends.
func (f *Forwarder) Run(ctx context.Context) {
	if f.remote == nil {
		<-ctx.Done()
		return
	}
	var all sync.WaitGroup
	for _, l := range f.lanes {
		all.Go(func() { l.run(ctx) })
	}
	all.Wait()
}

// Close ends the connections.
func (f *Forwarder) Close() {
	for _, c := range []*nats.Conn{f.here, f.remote} {
		if c != nil {
			c.Close()
		}
	}
}

// run moves one stream, and begins again after each error.
func (l *lane) run(ctx context.Context) {
	var pause backoff.Delay
	for ctx.Err() == nil {
		err := l.forward(ctx, func() { pause = 0 })
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		if l.status.Why == "" || l.status.Why != err.Error() {
			l.f.s.o.Log("stream %s: results wait: %v", l.d.Stream, err)
		}
		l.status.Why = err.Error()
		l.mu.Unlock()
		pause.Wait(ctx.Done())
	}
}

// forward finds what the cluster has, and sends what follows until an error.
func (l *lane) forward(ctx context.Context, progress func()) error {
	if !l.f.remote.IsConnected() {
		return fmt.Errorf("not connected to %s", l.f.plan.Cluster.URL)
	}
	asking, cancel := context.WithTimeout(ctx, 2*forwardTimeout)
	defer cancel()
	if err := l.ensureStream(asking); err != nil {
		return err
	}
	if err := l.to.reload(asking); err != nil {
		return err
	}
	sent, err := l.position(asking)
	if err != nil {
		return err
	}
	if l.to.at > 0 && (l.to.last.epoch != sent.epoch || l.to.last.last > sent.last) {
		sent = l.to.last
	}
	here, err := l.f.local.Stream(asking, l.d.Stream)
	if err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	sub, err := l.f.here.Subscribe(l.subject, func(*nats.Msg) {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	next, cleaned, since := uint64(1), uint64(0), 0
	l.report(sent, "")
	for {
		m, err := here.GetMsg(ctx, next, jetstream.WithGetMsgSubject(l.subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			if next-1 > cleaned && since > 0 {
				if err := l.clean(ctx, here, sent, next-1); err != nil {
					return err
				}
				cleaned, since = next-1, 0
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-wake:
			case <-time.After(time.Second):
				if !l.f.remote.IsConnected() {
					return fmt.Errorf("not connected to %s", l.f.plan.Cluster.URL)
				}
			}
			continue
		} else if err != nil {
			return err
		}
		b, err := batchOf(m.Header)
		if err != nil {
			return err
		}
		if b.epoch != sent.epoch || b.last > sent.last {
			before := uint64(0) // numbers of an epoch begin at 1
			if b.epoch == sent.epoch {
				before = sent.last
			}
			if b.first > before+1 {
				l.lose(b.first - before - 1)
			}
			if l.limit != nil {
				if err := l.limit.WaitN(ctx, min(len(m.Data), l.limit.Burst())); err != nil {
					return err
				}
			}
			if err := l.to.publish(ctx, &nats.Msg{Subject: l.subject, Header: m.Header, Data: m.Data}, forwardTimeout); err != nil {
				return err
			}
			sent = b
			since++
			progress()
			l.report(sent, "")
		}
		next = m.Sequence + 1
		if since >= cleanAfter {
			if err := l.clean(ctx, here, sent, m.Sequence); err != nil {
				return err
			}
			cleaned, since = m.Sequence, 0
		}
	}
}

// ensureStream makes the stream in the cluster where it does not exist. One that exists is left as it is.
func (l *lane) ensureStream(ctx context.Context) error {
	s, err := l.f.there.Stream(ctx, l.d.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		c := l.f.plan.Cluster
		_, err = l.f.there.CreateStream(ctx, limitDuplicates(jetstream.StreamConfig{
			Name: l.d.Stream, Subjects: []string{l.d.Subject + ".>"}, Storage: jetstream.FileStorage, Replicas: max(c.Replicas, 1),
			MaxBytes: cmp.Or(l.d.Size, registry.RemoteStream), MaxAge: time.Duration(l.d.Age), Discard: jetstream.DiscardOld, AllowDirect: true,
			Description: "results of yoctune",
		}))
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil // another device was first
		}
		return err
	} else if err != nil {
		return err
	}
	config := s.CachedInfo().Config
	if !slices.ContainsFunc(config.Subjects, func(of string) bool {
		return of == ">" || of == l.d.Subject+".>" || of == l.d.Subject+".*" || of == l.subject
	}) {
		return fmt.Errorf("the cluster has a stream %s with the subjects %v, which does not take %s", l.d.Stream, config.Subjects, l.subject)
	}
	return nil
}

// position is what was sent, as far as this device remembers.
func (l *lane) position(ctx context.Context) (batch, error) {
	e, err := l.f.kv.Get(ctx, l.d.Stream)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return batch{}, nil
	} else if err != nil {
		return batch{}, err
	}
	var p struct {
		Epoch string `json:"epoch"`
		Last  uint64 `json:"last"`
	}
	if err := json.Unmarshal(e.Value(), &p); err != nil {
		return batch{}, nil // what the cluster has decides
	}
	return batch{first: 1, last: p.Last, epoch: p.Epoch}, nil
}

// clean remembers what was sent, and removes it here but for the last batch, which holds the number of the next
// result.
func (l *lane) clean(ctx context.Context, here jetstream.Stream, sent batch, sequence uint64) error {
	b, err := json.Marshal(map[string]any{"epoch": sent.epoch, "last": sent.last})
	if err != nil {
		return err
	}
	if _, err := l.f.kv.Put(ctx, l.d.Stream, b); err != nil {
		return err
	}
	return here.Purge(ctx, jetstream.WithPurgeSequence(sequence))
}

func (l *lane) report(sent batch, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status.Why != "" && why == "" {
		l.f.s.o.Log("stream %s: results are sent again", l.d.Stream)
	}
	l.status.Sent, l.status.Why = sent.last, why
}

func (l *lane) lose(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Lost += n
	l.f.s.o.Log("stream %s: %d results were dropped before they were sent", l.d.Stream, n)
}

// Status returns the state of the cluster.
func (f *Forwarder) Status() *Status {
	c := f.plan.Cluster
	s := &Status{Type: "cluster", Name: c.Name, Device: f.s.o.Device, Embedded: c.Embedded, Address: f.s.Address(), Version: f.here.ConnectedServerVersion(), Clients: f.s.nats.NumClients(), Limit: c.Store.Size, Deliveries: []ForwardStatus{}}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if info, err := f.local.AccountInfo(ctx); err == nil {
		s.Used = info.Store
	}
	if f.remote != nil {
		f.mu.Lock()
		r := &RemoteStatus{URL: c.URL, State: Connected, Why: f.why, Since: f.since.Unix()}
		f.mu.Unlock()
		if !f.remote.IsConnected() {
			r.State = Disconnected
		}
		r.Server, r.Cluster, r.Peers = f.remote.ConnectedServerName(), f.remote.ConnectedClusterName(), f.remote.Servers()
		s.Remote = r
	}
	for _, l := range f.lanes {
		l.mu.Lock()
		st := l.status
		l.mu.Unlock()
		if here, err := f.local.Stream(ctx, l.d.Stream); err == nil {
			state := here.CachedInfo().State
			st.Batches, st.Bytes = state.Msgs, state.Bytes
			if m, err := here.GetLastMsgForSubject(ctx, l.subject); err == nil {
				if b, err := batchOf(m.Header); err == nil {
					st.Stored = b.last
				}
			}
		}
		if f.remote != nil && st.Stored > st.Sent {
			st.Waiting = st.Stored - st.Sent
		}
		s.Deliveries = append(s.Deliveries, st)
	}
	return s
}

// statusSubject is where the state is asked for, on the server of the device.
const statusSubject = "yoctune.cluster.status"

// ReadStatus asks the server on the device for its state.
func ReadStatus(socket string) (*Status, error) {
	fail := func(err error) (*Status, error) { return nil, fmt.Errorf("the server on %s: %w", socket, err) }
	c, err := nats.Connect("nats://device", nats.SetCustomDialer(unixDialer{socket}), nats.Name("yoctuned cluster status"), nats.NoReconnect(), nats.Timeout(2*time.Second))
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	m, err := c.Request(statusSubject, nil, 4*time.Second)
	if err != nil {
		return fail(err)
	}
	var s Status
	if err := json.Unmarshal(m.Data, &s); err != nil {
		return fail(err)
	}
	return &s, nil
}
