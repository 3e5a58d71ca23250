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
	"github.com/yoctune/yoctune/schema/plan"
)

// A pipeline with a lease holds it while it runs: the connection ends with the run. Without
// a yoctuned the pipeline runs all the same, with a warning.
func TestPipelineHoldsLeaseWhileItRuns(t *testing.T) {
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
		t.Errorf("requested %q", got)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the connection: %v", err)
	}
}
