//go:build serve

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/serve/cluster"
	"github.com/yoctune/yoctune/runtime/serve/post"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

func newClusterCommand() *cobra.Command {
	return newGroupCommand("cluster", "Deliver results over NATS JetStream",
		`Run the NATS server of this device, which holds the results of pipelines and moves them
to a cluster elsewhere, and see what it does.`,
		`  yoctuned cluster status
  yoctuned cluster drain --timeout 1m`,
		newClusterRunCommand(), newClusterStatusCommand(), newClusterDrainCommand())
}

func newClusterRunCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run [PLAN]",
		Short: "Run the server until a signal",
		Long: `Run the NATS server that the plan declares under cluster. Pipelines use it through the
unix socket ` + cluster.Socket + `. Streams are below ` + cluster.Dir + `.

Exit status: 0 ended by a signal, 1 failed, 2 wrong usage. It also ends with 1 when a
stream met an error of its disk, after which only a new start can write it again.`,
		Example: `  yoctuned cluster run plan.json`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    onDevice(runCluster),
	}
}

func runCluster(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
	source := planfile.Source{}
	if len(args) > 0 {
		source.Path = args[0]
	}
	file, err := planfile.Load(dev, source)
	if err != nil {
		return err
	}
	device, err := cluster.DeviceID(dev)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := func(format string, args ...any) {
		printable.Fprintf(cmd.ErrOrStderr(), "yoctuned: cluster: %s\n", fmt.Sprintf(format, args...))
	}
	server, err := cluster.Start(ctx, cluster.Options{
		Plan: file.Plan, Device: device, Socket: filepath.Join(dev.Dir(), cluster.Socket), Dir: filepath.Join(dev.Dir(), cluster.Dir), Log: log,
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	forwarder, err := cluster.NewForwarder(ctx, server)
	if err != nil {
		return err
	}
	defer forwarder.Close()
	where := "a unix socket"
	if at := server.Address(); at != "" {
		where += " and " + at
	}
	log("%s on device %s serves on %s", file.Plan.Cluster.Name, device, where)
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		forwarder.Run(ctx)
	}()
	err = server.Watch(ctx)
	stop()
	<-moved
	return err
}

func newClusterStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show streams, and what waits for the cluster",
		Long: `Show the server of this device: its streams, the connection to a cluster elsewhere, and
how many results wait for it.

Exit status: 0 everything is stored where it belongs, 1 the server does not answer, 2
wrong usage, 3 results wait or were lost.`,
		Example: `  yoctuned cluster status --format json`,
		Args:    cobra.NoArgs,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			s, err := cluster.ReadStatus(filepath.Join(dev.Dir(), cluster.Socket))
			if err != nil {
				return err
			}
			return clusterAnswer(cmd, s)
		}),
	}
}

func newClusterDrainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Wait until the cluster has every result",
		Long: `Wait until nothing waits on this device for the cluster elsewhere, as before the device
is switched off. Pipelines that still run add results: stop them first.

Exit status: 0 the cluster has every result, 1 the server does not answer, 2 wrong usage,
3 results wait after the timeout.`,
		Example: `  yoctuned cluster drain --timeout 1m`,
		Args:    cobra.NoArgs,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			timeout, _ := cmd.Flags().GetDuration("timeout")
			for until := time.Now().Add(timeout); ; time.Sleep(200 * time.Millisecond) {
				s, err := cluster.ReadStatus(filepath.Join(dev.Dir(), cluster.Socket))
				if err != nil {
					return err
				}
				if waiting(s) == 0 || time.Now().After(until) {
					return clusterAnswer(cmd, s)
				}
			}
		}),
	}
	cmd.Flags().Duration("timeout", time.Minute, "`TIME` to wait")
	return cmd
}

// waiting is the number of results that the cluster does not have.
func waiting(s *cluster.Status) (n uint64) {
	for _, d := range s.Deliveries {
		n += d.Waiting
	}
	return n
}

// clusterAnswer writes the state and returns the command's answer.
func clusterAnswer(cmd *cobra.Command, s *cluster.Status) error {
	settled := waiting(s) == 0
	for _, d := range s.Deliveries {
		settled = settled && d.Lost == 0 && d.Why == ""
	}
	code := cli.ExitCode(settled)
	w := cli.NewPrinter(cmd)
	if w.JSON {
		w.Encode(struct {
			*cluster.Status
			Command string `json:"command"`
			Exit    int    `json:"exit"`
		}{s, "cluster", code})
		return cli.Exit(code)
	}
	w.Printf("cluster %s, device %s, NATS %s: %d connections, %s of %s\n", s.Name, s.Device, s.Version, s.Clients, units.RoundSize(int64(s.Used)), units.RoundSize(s.Limit))
	if s.Address != "" {
		w.Printf("serves on %s\n", s.Address)
	}
	if r := s.Remote; r != nil {
		w.Printf("%s: %s since %s", r.URL, r.State, time.Unix(r.Since, 0).UTC().Format(time.RFC3339))
		if r.State == cluster.Connected {
			w.Printf(", server %s", r.Server)
		} else if r.Why != "" {
			w.Printf(": %s", r.Why)
		}
		w.Printf("\n")
	}
	for _, d := range s.Deliveries {
		w.Printf("stream %s (pipeline %s): %d results stored", d.Stream, d.Pipeline, d.Stored)
		if s.Remote != nil {
			w.Printf(", %d sent, %d wait", d.Sent, d.Waiting)
		}
		w.Printf("; %s of %s on the device", units.RoundSize(int64(d.Bytes)), units.RoundSize(d.Limit))
		if d.Lost > 0 {
			w.Printf("; %d dropped before they were sent", d.Lost)
		}
		if d.Why != "" {
			w.Printf("; %s", d.Why)
		}
		w.Printf("\n")
	}
	return cli.Exit(code)
}

// openDelivery opens the sink of a pipeline that only this program has; nil for others. It ends with ctx.
func openDelivery(ctx context.Context, dev *rootfs.Root, whole *plan.Plan, o *pipeline.Options) error {
	if !o.Plan.Sink.NeedsServer() {
		return nil
	}
	if o.Plan.Sink.NATS == nil {
		s, err := post.Open(o.Plan.Sink)
		if err != nil {
			return fmt.Errorf("pipeline %s: %w", o.Name, err)
		}
		o.Delivery = s
		return nil
	}
	if whole.Cluster == nil {
		return errors.New("the plan has a sink of kind nats and no cluster")
	}
	device, err := cluster.DeviceID(dev)
	if err != nil {
		return err
	}
	s, err := cluster.Open(ctx, cluster.SinkOptions{
		Plan: whole, Pipeline: o.Name, Device: device, Host: rootfs.Hostname(dev), Socket: filepath.Join(dev.Dir(), cluster.Socket),
	})
	if err != nil {
		return fmt.Errorf("pipeline %s: %w", o.Name, err)
	}
	o.Delivery = s
	return nil
}
