//go:build serve

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/serve/inference"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// drainTime is how long requests in work have after a stop.
const drainTime = 5 * time.Second

// runRequests runs a pipeline that answers requests until ctx ends: further requests are then refused, and those in
// work are answered. socket is the unix socket where the plan names none.
func runRequests(ctx context.Context, cmd *cobra.Command, p *pipeline.Pipeline, o pipeline.Options, socket string) (*pipeline.Summary, error) {
	q := o.Plan.Source.Request
	fronts, notes, err := inference.Listen(ctx, q, socket)
	for _, note := range notes {
		cli.Warn(cmd, "%v", note)
	}
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: %w", o.Name, err)
	}
	shared := inference.NewRegions(q.SharedMemory)
	defer shared.Close()
	server := inference.New(inference.Options{Version: version.Version, Shared: shared, Pictures: registry.PictureMemory(&o.Plan)}, &inference.Model{Name: q.Model, Port: o.Requests, Buckets: pipeline.Buckets(&o.Plan)})
	overHTTP, overGRPC := inference.NewHTTP(server), inference.NewGRPC(server)

	running := startAnswering(ctx, p, o.Requests)
	defer running.stop()
	failed := make(chan error, len(fronts))
	var shutdowns []func(context.Context) error
	for _, f := range fronts {
		shutdown, end := server.Serve(ctx, f, overHTTP, overGRPC)
		shutdowns = append(shutdowns, shutdown)
		go func() { failed <- <-end }()
		printable.Fprintf(cmd.ErrOrStderr(), "yoctuned: %s: model %s answers on %s\n", o.Name, q.Model, f.Address)
	}
	select {
	case <-ctx.Done():
	case <-running.ended:
	case err = <-failed:
	}
	ending, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if derr := server.Drain(ending); derr != nil {
		cli.Warn(cmd, "requests were not answered within %v: %v", drainTime, derr)
	}
	for _, shutdown := range shutdowns {
		err = errors.Join(err, shutdown(ending))
	}
	sum, runErr := running.end()
	return sum, errors.Join(err, runErr)
}
