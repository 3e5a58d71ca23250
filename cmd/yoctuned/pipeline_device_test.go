package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestADeviceWantsLessWhenItIsHotOrDrawsTooMuchAndNeverForWhatIsUnknown(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	zone := func(temp, passive *int64) *monitor.Sample {
		return &monitor.Sample{Zones: []monitor.Zone{{Name: "tj-thermal", Temp: temp, Passive: passive}}}
	}
	rail := func(label string, mw *int64) *monitor.Sample {
		return &monitor.Sample{Rails: []monitor.Rail{{Label: label, Power: mw}}}
	}
	for name, c := range map[string]struct {
		s        *monitor.Sample
		headroom int64
		power    int64
		says     string
	}{
		"nothing known":      {&monitor.Sample{}, 5000, 15000, ""},
		"cool":               {zone(n(60000), n(99000)), 5000, 0, ""},
		"near the limit":     {zone(n(94500), n(99000)), 5000, 0, "tj-thermal has 94.5 °C"},
		"without headroom":   {zone(n(94500), n(99000)), 0, 0, ""},
		"at the limit":       {zone(n(99000), n(99000)), 0, 0, "tj-thermal"},
		"unknown limit":      {zone(n(120000), nil), 5000, 0, ""},
		"unknown heat":       {zone(nil, n(99000)), 5000, 0, ""},
		"too much power":     {rail("VDD_IN", n(16000)), 0, 15000, "VDD_IN draws 16.0 W, 15.0 W are allowed"},
		"a part's power":     {rail("VDD_CPU_GPU_CV", n(16000)), 0, 15000, ""},
		"no limit of power":  {rail("VDD_IN", n(16000)), 0, 0, ""},
		"unknown power":      {rail("VDD_IN", nil), 0, 15000, ""},
		"the kernel slows":   {&monitor.Sample{Cooling: []monitor.Cooling{{Name: "cpufreq-cpu0", State: n(2), Max: n(10)}}}, 0, 0, "held back by cpufreq-cpu0"},
		"the fan turns only": {&monitor.Sample{Cooling: []monitor.Cooling{{Name: "pwm-fan", State: n(2), Max: n(10)}}}, 0, 0, ""},
	} {
		if got := strain(c.s, c.headroom, c.power); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}

// A pipeline that asks for a lease holds it while it runs; the connection, on which it
// hangs, ends with the run. Without a yoctuned the pipeline runs and says so.
func TestAPipelineHoldsItsLeaseWhileItRuns(t *testing.T) {
	p := dumpPipeline()
	p.Lease = true
	path := pipelinePlan(t, map[string]plan.Pipeline{"dump": p})
	root := t.TempDir()
	socket := filepath.Join(root, api.Socket)
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	try := func() (int, string) {
		var o, e bytes.Buffer
		return run(context.Background(), []string{"pipeline", "run", path, "--root", root, "--frames", "3"}, &o, &e), e.String()
	}
	if code, stderr := try(); code != 0 || !strings.Contains(stderr, "no lease: connect to yoctuned") {
		t.Errorf("without yoctuned: exit %d, %s", code, stderr)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		line, err := in.ReadBytes('\n')
		if err != nil {
			ended <- err
			return
		}
		r, err := api.Decode(line)
		if err != nil {
			ended <- err
			return
		}
		asked <- r.Type + " " + r.Profile
		if _, err := c.Write(api.Answer{Type: api.Granted, Lease: 1, TTL: 600_000}.Encode()); err != nil {
			ended <- err
			return
		}
		_, err = in.ReadByte() // until the lease is given back
		ended <- err
	}()
	if code, stderr := try(); code != 0 || strings.Contains(stderr, "lease") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if got := <-asked; got != api.Acquire+" "+lease.Profile {
		t.Errorf("asked for %q", got)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the connection: %v", err)
	}
}
