package units_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/units"
	"github.com/yoctune/yoctune/schema/plan"
)

// A target with a cluster has the server's unit, whose files come from systemd, and its pipelines follow the server.
func TestClusterHasAUnitBeforeThePipelinesThatDeliver(t *testing.T) {
	l := emittest.Vision(t)
	l.Targets[0].Plan.Cluster = &plan.Cluster{Name: "plant", URL: "tls://nats.example.com", Credentials: `/etc/station/a "b%.creds`,
		TLS: &plan.ClientTLS{CA: "/etc/station/ca.crt", Certificate: "/etc/station/device.crt", Key: "/etc/station/device.key"}}
	p := l.Targets[0].Plan.Pipelines["door"]
	p.Sink = plan.PipelineSink{Kind: "nats", NATS: &plan.Delivery{Stream: "door", Subject: "results.door"}}
	l.Targets[0].Plan.Pipelines = map[string]plan.Pipeline{"door": p}
	files, err := units.Emit(l)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range files {
		for _, name := range []string{"/yoctuned-cluster.service", "yoctuned-pipeline@door.service.d"} {
			if strings.Contains(f.Path, name) {
				found[name] = string(f.Data)
			}
			if name == "/yoctuned-cluster.service" && strings.Contains(f.Path, name) && f.Install.Unit != "yoctuned-cluster.service" {
				t.Errorf("the unit is not enabled: %q", f.Install.Unit)
			}
		}
	}
	for name, parts := range map[string][]string{
		"/yoctuned-cluster.service": {
			"ExecStart=/usr/bin/yoctuned-serve cluster run /usr/lib/yoctune/plan.json\n", "StateDirectory=yoctune-cluster\n", "CapabilityBoundingSet=\n",
			"LoadCredential=ca:/etc/station/ca.crt\n", "LoadCredential=certificate:/etc/station/device.crt\n", "LoadCredential=key:/etc/station/device.key\n",
			`LoadCredential=user:"/etc/station/a \"b%%.creds"` + "\n",
		},
		"yoctuned-pipeline@door.service.d": {
			"Wants=yoctuned-cluster.service\nAfter=yoctuned-cluster.service\n", "ExecStart=\nExecStart=/usr/bin/yoctuned-serve pipeline run ", "SupplementaryGroups=yoctune\n",
		},
	} {
		for _, part := range parts {
			if !strings.Contains(found[name], part) {
				t.Errorf("%s lacks %q:\n%s", name, part, found[name])
			}
		}
	}
}

// A pipeline that posts over TLS runs in the larger program, which gets the files from systemd.
func TestPipelineThatPostsOverTLSRunsInTheLargerProgram(t *testing.T) {
	l := emittest.Vision(t)
	p := l.Targets[0].Plan.Pipelines["door"]
	p.Sink = plan.PipelineSink{Kind: "http", URL: "https://results.example.com/", TLS: &plan.ClientTLS{Certificate: "/etc/station/device.crt", Key: "/etc/station/device.key"}}
	l.Targets[0].Plan.Pipelines = map[string]plan.Pipeline{"door": p}
	files, err := units.Emit(l)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range files {
		if strings.Contains(f.Path, "yoctuned-pipeline@door.service.d") {
			text = string(f.Data)
		}
	}
	want := "ExecStart=\nExecStart=/usr/bin/yoctuned-serve pipeline run /usr/lib/yoctune/plan.json %i --flight .\n" +
		"LoadCredential=certificate:/etc/station/device.crt\nLoadCredential=key:/etc/station/device.key\n"
	if !strings.Contains(text, want) || strings.Contains(text, "yoctuned-cluster") {
		t.Errorf("drop-in:\n%s", text)
	}
}
