package check

import (
	"time"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/pipeline"
)

const exampleNATS = `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12", width: 1280, height: 720}, sink: kind: "nats", stages: {f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel

func clusterRules() []Rule {
	return []Rule{
		{
			ID: "cluster-delivery", Severity: diag.Error, Firm: true,
			Title: "results cannot be delivered as configured",
			Cause: "Results go to streams of one cluster: on the device, or on servers elsewhere that the device knows by their certificates. Every stream has a bound, all streams together fit the store, and no two pipelines share a stream or a subject.",
			Fix:   "correct the field that is named",
			Wrong: `{cluster: {name: "plant", url: "tls://nats.example.com", replicas: 2}, ` + exampleNATS + `}`,
			Right: `{cluster: {name: "plant", url: "tls://nats.example.com", replicas: 3}, ` + exampleNATS + `}`,
			See:   "yoctune schema Cluster",
			run:   checkCluster,
		},
		{
			ID: "cluster-copies", Severity: diag.Warning,
			Title: "an even number of copies protects no better than one fewer",
			Cause: "A stream is written while more than half of its servers agree. With four copies that is three, so that it survives the failure of one server, as with three copies; each result is stored once more.",
			Fix:   "choose 3 or 5 copies",
			Wrong: `{cluster: {name: "plant", url: "tls://nats.example.com", replicas: 4}, ` + exampleNATS + `}`,
			Right: `{cluster: {name: "plant", url: "tls://nats.example.com", replicas: 5}, ` + exampleNATS + `}`,
			See:   "NATS documentation, JetStream clustering: the quorum",
			run: func(s *subject) {
				if c := s.Plan.Cluster; c != nil && c.Replicas == 4 {
					s.reportAt(s.Config.Cluster.Replicas, "4", "", "4 copies of a stream survive the failure of one server, as 3 do")
				}
			},
		},
		{
			ID: "cluster-sync", Severity: diag.Warning,
			Title: "a loss of power may cost results that were acknowledged",
			Cause: "One copy of a stream is on one disk. By default each batch is on it before the server acknowledges the batch. With sync the kernel holds what was written for that time, and a loss of power costs it. The end of a process costs nothing.",
			Fix:   "remove sync, or suppress the rule if the loss is acceptable",
			Wrong: `{cluster: {name: "plant", embedded: {}, store: sync: "2s"}, ` + exampleNATS + `}`,
			Right: `{cluster: {name: "plant", embedded: {}}, ` + exampleNATS + `}`,
			See:   "NATS documentation: sync_interval",
			run: func(s *subject) {
				if c := s.Plan.Cluster; c != nil && c.Store.Sync > 0 {
					s.reportAt(s.Config.Cluster.Store.Sync, s.Config.Cluster.Store.Sync.Show(), "", "a loss of power may cost the results of the last %v, although they were acknowledged", time.Duration(c.Store.Sync))
				}
			},
		},
	}
}

func checkCluster(s *subject) {
	s.reportFaults(pipeline.Deliveries)
	for _, f := range pipeline.CheckCluster(s.Plan) {
		s.reportAt(s.Config.Below(f.Path...), f.Value, f.Advice, "%s", f.Reason)
	}
}
