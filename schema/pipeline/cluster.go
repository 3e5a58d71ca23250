package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Defaults and bounds of deliveries to a cluster.
const (
	BatchRecords  = 100                   // of a batch, where the plan sets none
	BatchDelay    = 10 * time.Millisecond // until a batch that is not full is sent
	MaxBatchDelay = time.Minute
	MaxBatchBytes = 768 << 10 // bytes of a batch: servers take messages of 1 MiB

	ClusterSize    = 1 << 30   // bytes of all streams on the device, where the plan sets none
	EmbeddedStream = 256 << 20 // bytes of a stream on the device
	RemoteStream   = 1 << 30   // bytes of a stream elsewhere
	OutboxSize     = 64 << 20  // bytes that wait on the device
	MinStream      = 4 << 20   // bytes: a few of the largest batches
)

// Codecs of batches, and the highest level of each.
var codecs = map[string]int{"s2": 3, "zstd": 4}

// StreamSize is the most that the stream of a delivery may take on the device, in bytes.
func StreamSize(c *plan.Cluster, d *plan.Delivery) int64 {
	if c.Embedded {
		return cmp.Or(d.Size, EmbeddedStream)
	}
	return cmp.Or(d.Outbox, OutboxSize)
}

// checkDelivery checks the sink of a pipeline that delivers to a cluster.
func checkDelivery(s *plan.PipelineSink) []Fault {
	fault := func(field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: Deliveries, Path: append([]string{"sink"}, strings.Split(field, ".")...), Value: value, Advice: advice, Reason: fmt.Sprintf(format, args...)}}
	}
	d := s.NATS
	top, known := 0, true
	if d != nil && d.Codec != "" {
		top, known = codecs[d.Codec]
	}
	switch {
	case s.TLS != nil && !strings.HasPrefix(s.URL, "https://"):
		return fault("tls", "", "write https:// in front of the address, or remove tls", "tls has certificates for a connection that is not encrypted")
	case s.TLS != nil && (s.TLS.Certificate == "") != (s.TLS.Key == ""):
		return fault("tls", "", "set both certificate and key", "a certificate needs its key")
	case (d != nil) != (s.Kind == NATSSink.Kind):
		return fault("kind", s.Kind, "choose kind: \"nats\"", "only a sink of kind nats has settings of a stream")
	case d == nil:
		return nil
	case !isStreamName(d.Stream):
		return fault("stream", d.Stream, "use letters, digits, - and _, at most 64", "%q is not the name of a stream", d.Stream)
	case !isSubject(d.Subject):
		return fault("subject", d.Subject, "use words of letters, digits, - and _, with dots between them, at most 128 characters", "%q is not a subject that results may have", d.Subject)
	case d.Records < 0 || d.Records > 10000:
		return fault("batch.records", fmt.Sprint(d.Records), "", "a batch has 1 to 10000 results")
	case d.Delay < 0 || d.Delay > int64(MaxBatchDelay):
		return fault("batch.delay", time.Duration(d.Delay).String(), "", "a batch waits at most %v", MaxBatchDelay)
	case !known:
		return fault("compression.codec", d.Codec, "choose s2 or zstd", "unknown codec %q", d.Codec)
	case d.Level < 0 || d.Level > top:
		return fault("compression.level", fmt.Sprint(d.Level), "", "%s has the levels 1 to %d", cmp.Or(d.Codec, "no compression"), top)
	case d.Full != "" && d.Full != Block && d.Full != DropOldest && d.Full != DropNewest:
		return fault("full", d.Full, "", "unknown policy %q", d.Full)
	case d.Size < 0 || d.Size > 0 && d.Size < MinStream:
		return fault("retain.size", fmt.Sprint(d.Size), "", "a stream has at least %d MiB", MinStream>>20)
	case d.Outbox < 0 || d.Outbox > 0 && d.Outbox < MinStream:
		return fault("outbox.size", fmt.Sprint(d.Outbox), "", "results that wait need at least %d MiB", MinStream>>20)
	case d.Age < 0 || d.Age > 0 && d.Age < int64(time.Second):
		return fault("retain.age", time.Duration(d.Age).String(), "", "results stay for at least a second")
	case d.Rate < 0:
		return fault("outbox.rate", fmt.Sprint(d.Rate), "", "a rate is positive")
	}
	return nil
}

// CheckCluster lists the reasons why results cannot be delivered as a plan declares. Paths start at the target.
func CheckCluster(p *plan.Plan) []Fault {
	var all []Fault
	c := p.Cluster
	add := func(path []string, value, advice, format string, args ...any) {
		all = append(all, Fault{Topic: Deliveries, Path: path, Value: value, Advice: advice, Reason: fmt.Sprintf(format, args...)})
	}
	streams, subjects := map[string]string{}, map[string]string{}
	total, delivering := int64(0), 0
	for _, name := range slices.Sorted(maps.Keys(p.Pipelines)) {
		d := p.Pipelines[name].Sink.NATS
		if d == nil {
			continue
		}
		delivering++
		sink := func(field ...string) []string { return append([]string{"pipelines", name, "sink"}, field...) }
		if c == nil {
			add(sink("kind"), NATSSink.Kind, "declare cluster with embedded or url", "pipeline %s: results go to a stream, and the target has no cluster", name)
			continue
		}
		if other := streams[d.Stream]; other != "" {
			add(sink("stream"), d.Stream, "give each pipeline a stream of its own", "pipeline %s: stream %s is that of pipeline %s", name, d.Stream, other)
		}
		for subject, other := range subjects {
			if covers(subject, d.Subject) || covers(d.Subject, subject) {
				add(sink("subject"), d.Subject, "choose subjects of which none begins with the other", "pipeline %s: subject %s would also hold results of %s, which pipeline %s sends", name, d.Subject, subject, other)
			}
		}
		if c.Embedded && (d.Outbox > 0 || d.Rate > 0) {
			add(sink("outbox"), "", "remove outbox; retain.size is the limit of the stream", "pipeline %s: the stream is on the device, and nothing waits for another server", name)
		}
		streams[d.Stream], subjects[d.Subject] = name, name
		total += StreamSize(c, d)
	}
	if c == nil {
		return all
	}
	cluster := func(field ...string) []string { return append([]string{"cluster"}, field...) }
	at, err := netip.ParseAddrPort(c.Listen)
	tls := c.TLS
	if tls == nil {
		tls = &plan.ClientTLS{}
	}
	switch {
	case !isStreamName(c.Name):
		add(cluster("name"), c.Name, "", "%q is not the name of a cluster", c.Name)
	case c.Embedded == (c.URL != ""):
		add(cluster(), "", "set either embedded or url", "a cluster is a server on the device or one that exists elsewhere, and exactly one of the two")
	case delivering == 0 && !c.Embedded:
		add(cluster("url"), c.URL, "add a sink of kind nats, or remove cluster", "no pipeline has a sink of kind nats")
	case c.Replicas == 2:
		add(cluster("replicas"), "2", "choose 1 or 3", "two copies need both servers to agree: the stream stops when either of them does, so that it fails more often than with one")
	case c.Replicas < 0 || c.Replicas > 5:
		add(cluster("replicas"), fmt.Sprint(c.Replicas), "choose 1, 3 or 5", "a stream has 1, 3 or 5 copies")
	case c.Embedded && c.Replicas > 1:
		add(cluster("replicas"), fmt.Sprint(c.Replicas), "remove replicas, or name a cluster of that many servers with url", "the server on the device is one, and %d copies need %d", c.Replicas, c.Replicas)
	case (tls.Certificate == "") != (tls.Key == ""):
		add(cluster("tls"), "", "set both certificate and key", "a certificate needs its key")
	case c.URL != "" && c.TLS != nil && !strings.HasPrefix(c.URL, "tls://"):
		add(cluster("url"), c.URL, "write tls:// in front of the address", "tls has certificates for a connection that is not encrypted")
	case c.URL != "" && c.Credentials != "" && !strings.HasPrefix(c.URL, "tls://") && !isLoopback(c.URL):
		add(cluster("url"), c.URL, "write tls:// in front of the address", "without TLS everyone on the network can read the results, and act in the name of the device while it is connected")
	case c.Listen == "" && c.Embedded && (c.TLS != nil || c.Plain):
		add(cluster("embedded"), "", "set listen, or remove tls and plain", "certificates are for TCP, and the server has a unix socket only")
	case c.Embedded && c.Credentials != "":
		add(cluster("credentials"), c.Credentials, "remove credentials", "credentials are for a server elsewhere; clients of the server on the device prove themselves with certificates")
	case c.Listen != "" && err != nil:
		add(cluster("embedded", "listen"), c.Listen, "write it with its port, such as 192.0.2.7:4222", "%q is not an address to listen on", c.Listen)
	case c.Listen != "" && c.Plain && c.TLS != nil:
		add(cluster("embedded", "plain"), "true", "remove plain or tls", "the address is either with or without TLS")
	case c.Listen != "" && c.Plain && !at.Addr().IsLoopback():
		add(cluster("embedded", "plain"), "true", "set tls, or listen on 127.0.0.1", "without TLS everyone on the network can read and change streams, and %s is not the loopback address", at.Addr())
	case c.Listen != "" && !c.Plain && (tls.CA == "" || tls.Certificate == ""):
		add(cluster("embedded", "listen"), c.Listen, "set tls with ca, certificate and key", "the network can reach this address, and clients could neither be told apart nor trust the server")
	case c.Store.Size < total:
		add(cluster("store", "size"), fmt.Sprint(c.Store.Size), "raise store.size, or lower the sizes of the sinks", "the streams of %d pipelines may take %d MiB on the device, and the store has %d", delivering, total>>20, c.Store.Size>>20)
	case c.Store.Sync < 0:
		add(cluster("store", "sync"), time.Duration(c.Store.Sync).String(), "", "a time is positive")
	}
	return all
}

// covers reports whether subject b is a or begins with its words.
func covers(a, b string) bool { return a == b || strings.HasPrefix(b, a+".") }

func isLoopback(url string) bool {
	_, host, _ := strings.Cut(url, "://")
	host, _, _ = strings.Cut(host, ":")
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}

func isStreamName(name string) bool { return len(name) <= 64 && isWord(name) }

func isSubject(s string) bool {
	if len(s) > 128 {
		return false
	}
	for word := range strings.SplitSeq(s, ".") {
		if !isWord(word) {
			return false
		}
	}
	return true
}

func isWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}
