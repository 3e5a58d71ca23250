//go:build serve

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/socket"
	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/serve/history"
	"github.com/yoctune/yoctune/runtime/serve/metrics"
	"github.com/yoctune/yoctune/runtime/serve/web"
)

// Defaults of serve.
const (
	defaultListen = "127.0.0.1:8817"
	historyEvery  = 10 * time.Second // between samples that are kept
	historyFlush  = 6                // samples in one write: flash wears
)

// serving distinguishes the two builds of this program; see serve_exec.go.
const serving = true

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a web page, history, metrics and health checks",
		Long: `Serve a web page with live charts, /healthz, /api/sample, /api/history, and /metrics for
Prometheus if the plan has monitor: metrics: true or --metrics is given. The page loads
nothing from the network. serve is a separate process beside the enforcer. It samples the
device only while a page is open, on a scrape, or to record the history.

It listens on the loopback address, or on a Unix socket (unix:/run/yoctune/serve.socket).
There is no login: other addresses are refused unless --remote is given, which lets the
network read this device's measurements. From elsewhere, use
ssh -L 8817:127.0.0.1:8817 DEVICE.

The history is an SQLite file of bounded size; a damaged one is set aside.

Exit status: 0 ended by a signal, 1 failed, 2 wrong usage.`,
		Example: `  yoctuned serve
  yoctuned serve --listen unix:/run/yoctune/serve.socket --metrics --no-history
  curl --unix-socket /run/yoctune/serve.socket http://localhost/metrics`,
		RunE: onDevice(runServe),
	}
	cmd.Flags().StringSlice("listen", []string{defaultListen}, "`ADDRESS` to listen on: host:port, or unix:/path; may be repeated")
	cmd.Flags().Bool("remote", false, "allow addresses that the network can reach; there is no login")
	cmd.Flags().Bool("metrics", false, "serve /metrics even if the plan does not enable it")
	cmd.Flags().Bool("no-history", false, "record no history")
	cmd.Flags().String("history", "", "`FILE` of the history (default: "+history.File+" below the root)")
	cmd.Flags().Int64("history-size", history.DefaultSize>>20, "`MIB` size limit of the history file")
	return cmd
}

func runServe(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
	log := func(format string, args ...any) {
		cli.NewPrinter(cmd).Printf("%s\n", fmt.Sprintf(format, args...)) // text also with --format json
	}
	if size, _ := cmd.Flags().GetInt64("history-size"); size < 1 || size > 1<<16 {
		return cli.UsageError(fmt.Errorf("--history-size %d: choose 1 to %d MiB", size, 1<<16))
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	addresses, _ := cmd.Flags().GetStringSlice("listen")
	remote, _ := cmd.Flags().GetBool("remote")
	listeners, err := listenOn(ctx, addresses, remote)
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	id := rootfs.Identify(dev)
	wantMetrics, _ := cmd.Flags().GetBool("metrics")
	planned := false
	if file, err := planfile.Load(dev, planfile.Source{}); err == nil {
		planned = true
		wantMetrics = wantMetrics || file.Plan.Monitor != nil && file.Plan.Monitor.Metrics
	} else if !errors.Is(err, planfile.ErrMissing) {
		log("the installed plan is refused: %v", err)
	}
	interval := planInterval(dev)
	sampler := monitor.NewShared(dev, filepath.Join(dev.Dir(), api.Socket), interval) // until the process ends
	hub := monitor.NewHub(sampler.Take, interval)
	site := &web.Site{Device: id, Hostname: rootfs.Hostname(dev), Hub: hub, Planned: planned, Remote: remote, Watch: func() (*watch.State, error) {
		return watch.ReadState(dev, id.BootID)
	}, Pipelines: func() []*live.Snapshot {
		// Pipelines that do not respond are left out.
		list, _ := live.All(filepath.Join(dev.Dir(), pipelines.Dir))
		return list
	}}
	if wantMetrics {
		if site.Metrics, err = metrics.Handler(metrics.Source{Sample: hub.Now, Watch: site.Watch, Pipelines: site.Pipelines}); err != nil {
			return err
		}
	}
	recorded := make(chan error, 1)
	if no, _ := cmd.Flags().GetBool("no-history"); no {
		recorded <- nil
	} else {
		store, err := openHistory(cmd, dev, log)
		if err != nil {
			// The page and the metrics are worth having without it.
			log("no history is recorded: %v", err)
			recorded <- nil
		} else {
			site.History = store
			go func() { recorded <- recordHistory(ctx, store, hub, log) }()
		}
	}
	handler, err := site.Handler()
	if err != nil {
		return err
	}
	return serveUntil(ctx, stop, handler, listeners, recorded, log)
}

// execServer is for the other build of this program: this one is the server.
func execServer(string) error { return nil }

// serveUntil serves until the context ends or a listener fails.
func serveUntil(ctx context.Context, stop context.CancelFunc, handler http.Handler, listeners []net.Listener, recorded <-chan error, log func(string, ...any)) error {
	server := web.NewServer(handler)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		log("serving on %s", addressOf(l))
		go func() { failed <- server.Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop()
	ending, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if serr := server.Shutdown(ending); serr != nil {
		_ = server.Close()
	}
	if rerr := <-recorded; err == nil {
		err = rerr
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

func addressOf(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return "http://" + l.Addr().String() + "/"
}

// listenOn opens the addresses, all or none.
func listenOn(ctx context.Context, addresses []string, remote bool) (listeners []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
		}
	}()
	var config net.ListenConfig
	for _, a := range addresses {
		var l net.Listener
		if path, ok := strings.CutPrefix(a, "unix:"); ok {
			// Its permissions decide who may read the measurements.
			l, err = socket.Listen(ctx, path, 0o660)
		} else if !remote && !isLocal(a) {
			return listeners, cli.UsageError(fmt.Errorf("--listen %s: the network can reach this address, and there is no login; use 127.0.0.1, or allow it with --remote", a))
		} else if l, err = config.Listen(ctx, "tcp", a); err != nil {
			err = fmt.Errorf("listen on %s: %w", a, err)
		}
		if err != nil {
			return listeners, err
		}
		listeners = append(listeners, l)
	}
	if len(listeners) == 0 {
		return nil, cli.UsageError(errors.New("--listen needs an address"))
	}
	return listeners, nil
}

// isLocal reports whether only this machine can reach an address to listen on. An empty
// host means every address.
func isLocal(address string) bool {
	name, _, err := net.SplitHostPort(address)
	return err == nil && name != "" && web.IsLoopback(name)
}

func openHistory(cmd *cobra.Command, dev *rootfs.Root, log func(string, ...any)) (*history.Store, error) {
	file, _ := cmd.Flags().GetString("history")
	size, _ := cmd.Flags().GetInt64("history-size")
	if file == "" {
		var err error
		if file, err = dev.StatePath(history.File); err != nil {
			return nil, err
		}
	}
	store, note, err := history.Open(cmd.Context(), file, size<<20)
	if note != "" {
		log("%s", note)
	}
	return store, err
}

// recordHistory records samples until the context ends. It subscribes to the hub only
// for the moment of a sample.
func recordHistory(ctx context.Context, store *history.Store, hub *monitor.Hub, log func(string, ...any)) error {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			ending, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			return store.Close(ending)
		case <-tick.C:
		}
		store.Add(hub.Now())
		if store.Pending() < historyFlush {
			continue
		}
		err := store.Flush(ctx)
		if err != nil && !failing && ctx.Err() == nil { // one line, not one a minute
			log("problem: %v", err)
		} else if err == nil && failing {
			log("the history can be written again")
		}
		failing = err != nil
	}
}
