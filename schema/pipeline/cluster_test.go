package pipeline_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Each fault of a cluster is at its field, and says what to do.
func TestFaultsOfAClusterAreAtTheirFields(t *testing.T) {
	sink := func(stream, subject string) plan.Pipeline {
		return plan.Pipeline{Sink: plan.PipelineSink{Kind: "nats", NATS: &plan.Delivery{Stream: stream, Subject: subject}}}
	}
	all := &plan.ClientTLS{CA: "/ca", Certificate: "/c", Key: "/k"}
	for _, c := range []struct {
		name   string
		change func(*plan.Plan)
		path   string // "": none
	}{
		{"a cluster elsewhere", func(*plan.Plan) {}, ""},
		{"no cluster", func(p *plan.Plan) { p.Cluster = nil }, "pipelines.a.sink.kind"},
		{"both", func(p *plan.Plan) { p.Cluster.Embedded = true }, "cluster"},
		{"neither", func(p *plan.Plan) { p.Cluster.URL = "" }, "cluster"},
		{"two copies", func(p *plan.Plan) { p.Cluster.Replicas = 2 }, "cluster.replicas"},
		{"six copies", func(p *plan.Plan) { p.Cluster.Replicas = 6 }, "cluster.replicas"},
		{"copies on one device", func(p *plan.Plan) { p.Cluster.URL, p.Cluster.Embedded, p.Cluster.Replicas = "", true, 3 }, "cluster.replicas"},
		{"a name with a dot", func(p *plan.Plan) { p.Cluster.Name = "a.b" }, "cluster.name"},
		{"nothing delivers", func(p *plan.Plan) { p.Pipelines = nil }, "cluster.url"},
		{"a key without a certificate", func(p *plan.Plan) { p.Cluster.TLS = &plan.ClientTLS{Key: "/k"} }, "cluster.tls"},
		{"certificates without TLS", func(p *plan.Plan) { p.Cluster.URL, p.Cluster.TLS = "nats://h", all }, "cluster.url"},
		{"credentials without TLS", func(p *plan.Plan) { p.Cluster.URL, p.Cluster.Credentials = "nats://h", "/c" }, "cluster.url"},
		{"credentials on the loopback address", func(p *plan.Plan) { p.Cluster.URL, p.Cluster.Credentials = "nats://127.0.0.1:4222", "/c" }, ""},
		{"a port that the network reaches", func(p *plan.Plan) { p.Cluster.URL, p.Cluster.Embedded, p.Cluster.Listen = "", true, "0.0.0.0:4222" }, "cluster.embedded.listen"},
		{"no port", func(p *plan.Plan) { p.Cluster.URL, p.Cluster.Embedded, p.Cluster.Listen = "", true, "0.0.0.0" }, "cluster.embedded.listen"},
		{"plain for the network", func(p *plan.Plan) {
			p.Cluster.URL, p.Cluster.Embedded, p.Cluster.Listen, p.Cluster.Plain = "", true, "0.0.0.0:4222", true
		}, "cluster.embedded.plain"},
		{"plain on the loopback address", func(p *plan.Plan) {
			p.Cluster.URL, p.Cluster.Embedded, p.Cluster.Listen, p.Cluster.Plain = "", true, "127.0.0.1:4222", true
		}, ""},
		{"TLS for the network", func(p *plan.Plan) {
			p.Cluster.URL, p.Cluster.Embedded, p.Cluster.Listen, p.Cluster.TLS = "", true, "0.0.0.0:4222", all
		}, ""},
		{"certificates without a port", func(p *plan.Plan) { p.Cluster.URL, p.Cluster.Embedded, p.Cluster.TLS = "", true, all }, "cluster.embedded"},
		{"credentials on the device", func(p *plan.Plan) { p.Cluster.URL, p.Cluster.Embedded, p.Cluster.Credentials = "", true, "/c" }, "cluster.credentials"},
		{"a store that is too small", func(p *plan.Plan) { p.Cluster.Store.Size = 100 << 20 }, "cluster.store.size"},
		{"one stream for two", func(p *plan.Plan) { p.Pipelines["b"] = sink("a", "results.b") }, "pipelines.b.sink.stream"},
		{"a subject below another", func(p *plan.Plan) { p.Pipelines["b"] = sink("b", "results.a.more") }, "pipelines.b.sink.subject"},
		{"an outbox for nothing", func(p *plan.Plan) {
			p.Cluster.URL, p.Cluster.Embedded = "", true
			p.Pipelines["a"].Sink.NATS.Outbox = 8 << 20
		}, "pipelines.a.sink.outbox"},
	} {
		p := &plan.Plan{Cluster: &plan.Cluster{Name: "plant", URL: "tls://h", Store: plan.ClusterStore{Size: 1 << 30}},
			Pipelines: map[string]plan.Pipeline{"a": sink("a", "results.a"), "b": sink("b", "results.b")}}
		c.change(p)
		faults := pipeline.CheckCluster(p)
		switch {
		case c.path == "" && len(faults) > 0:
			t.Errorf("%s: %v", c.name, faults[0])
		case c.path != "" && (len(faults) == 0 || strings.Join(faults[0].Path, ".") != c.path || faults[0].Advice == "" && faults[0].Reason == ""):
			t.Errorf("%s: %+v, want a fault at %s", c.name, faults, c.path)
		}
	}
}
