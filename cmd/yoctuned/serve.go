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

// serving tells which of the two builds this is; see serve_exec.go.
const serving = true

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a live page, the history, metrics and health",
		Long: `serve is a process of its own beside the enforcer. It serves a page with live
charts that needs nothing from the network, /healthz, /api/sample, /api/history, and
/metrics for Prometheus where the plan asks for them (monitor: metrics: true) or
--metrics is given. The device is sampled only while a page watches, a scrape asks,
or the history is kept.

It listens on the loopback address, or on a unix socket (unix:/run/yoctune/serve.socket).
There is no login: another address is refused unless --remote says that the network
may read this device's measurements. From elsewhere: ssh -L 8817:127.0.0.1:8817 DEVICE.

The history is an SQLite file of bounded size; a damaged one is set aside.

Exit codes: 0 ended by a signal · 1 failed · 2 usage.`,
		Example: `  yoctuned serve
  yoctuned serve --listen unix:/run/yoctune/serve.socket --metrics --no-history
  curl --unix-socket /run/yoctune/serve.socket http://localhost/metrics`,
		Args: cobra.NoArgs,
		RunE: runServe,
	}
	cmd.Flags().StringSlice("listen", []string{defaultListen}, "`ADDRESS`: host:port, or unix:/path; may be repeated")
	cmd.Flags().Bool("remote", false, "allow addresses that others can reach; there is no login")
	cmd.Flags().Bool("metrics", false, "serve /metrics also when the plan does not ask for it")
	cmd.Flags().Bool("no-history", false, "keep no history")
	cmd.Flags().String("history", "", "history `FILE`; default "+history.File+" below the root")
	cmd.Flags().Int64("history-size", history.DefaultSize>>20, "bound of the history's file in `MiB`")
	return cmd
}

func runServe(cmd *cobra.Command, _ []string) error {
	dev, err := rootfs.Open(globalFlags(cmd).Root)
	if err != nil {
		return err
	}
	log := func(format string, args ...any) {
		_, _ = fmt.Fprintln(cmd.OutOrStdout(), printable(fmt.Sprintf(format, args...))) // a log that cannot be written has nowhere to say so
	}
	if size, _ := cmd.Flags().GetInt64("history-size"); size < 1 || size > 1<<16 {
		return usage(fmt.Errorf("--history-size is 1 to %d MiB, not %d", 1<<16, size))
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
		log("the installed plan is not obeyed: %v", err)
	}
	interval := planInterval(dev)
	sampler := monitor.NewShared(dev, filepath.Join(dev.Dir(), api.Socket), interval) // until the process ends
	hub := monitor.NewHub(sampler.Take, interval)
	site := &web.Site{Device: id, Hub: hub, Planned: planned, Remote: remote, Watch: func() *watch.State {
		st, err := watch.ReadState(dev, id.BootID)
		if err != nil {
			return nil
		}
		return st
	}, Pipelines: func() []*live.Snapshot {
		// One that cannot be asked is one that is not seen.
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
			// Who may read the measurements is who may open it.
			l, err = socket.Listen(ctx, path, 0o660)
		} else if !remote && !reachesOnlyHere(a) {
			return listeners, usage(fmt.Errorf("--listen %s can be reached from the network, and there is no login: use 127.0.0.1, or --remote", a))
		} else if l, err = config.Listen(ctx, "tcp", a); err != nil {
			err = fmt.Errorf("listen on %s: %w", a, err)
		}
		if err != nil {
			return listeners, err
		}
		listeners = append(listeners, l)
	}
	if len(listeners) == 0 {
		return nil, usage(errors.New("--listen needs an address"))
	}
	return listeners, nil
}

// reachesOnlyHere is about where to listen: no name is every address.
func reachesOnlyHere(address string) bool {
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

// recordHistory keeps a sample every now and then until the context ends. It is
// a watcher only for the moment of a sample.
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
			log("the history is written again")
		}
		failing = err != nil
	}
}
