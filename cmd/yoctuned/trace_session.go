package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

func newTraceStartCommand() *cobra.Command {
	var limit time.Duration
	var events int
	cmd := &cobra.Command{
		Use:   "start NAME PIPELINE",
		Short: "Start a profiling session of a running pipeline",
		Long: `Start a profiling session in the running pipeline PIPELINE. It records the runs of every
stage, the waits before them, the life of each frame, queue lengths, events, and what
plug-ins and programs of custom stages report. "yoctuned trace stop NAME" fetches the
trace.

A session ends by itself after --time, or when it has --events events; its first events
are kept. The pipeline keeps the trace for ten minutes after that. A pipeline has at most
four sessions, which root and the pipeline's own user may start.

Exit status: 0 started, 1 failed: the pipeline is not running, or has a session of that
name, 2 wrong usage.`,
		Example: `  yoctuned trace start slow door
  yoctuned trace start night door --time 1h --events 262144`,
		ValidArgsFunction: completeFrom(0, 2, pipelinesOf),
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
			switch {
			case limit < time.Millisecond || limit > live.MaxSessionTime:
				return cli.UsageError(fmt.Errorf("--time must be %v to %v", time.Millisecond, live.MaxSessionTime))
			case events < 1 || events > live.MaxSessionEvents:
				return cli.UsageError(fmt.Errorf("--events must be 1 to %d", live.MaxSessionEvents))
			}
			if err := live.CheckSessionName(args[0]); err != nil {
				return err
			}
			var s *live.Session
			err := atPipeline(dev, args[1], func(socket string) (err error) {
				s, err = live.StartSession(socket, args[0], limit, events)
				return err
			})
			if err != nil {
				return err
			}
			if p := cli.NewPrinter(cmd); p.JSON {
				p.Encode(s)
			} else {
				p.Printf("session %s of pipeline %s records for %v, at most %d events; fetch the trace: yoctuned trace stop %s\n",
					s.Session, s.Pipeline, time.Duration(s.Limit), s.MaxEvents, s.Session)
			}
			return nil
		}),
	}
	cmd.Flags().DurationVar(&limit, "time", live.SessionTime, "`TIME` after which the session ends, at most 1h")
	cmd.Flags().IntVar(&events, "events", live.SessionEvents, "`N` events at which the session ends")
	return cmd
}

func newTraceStopCommand() *cobra.Command {
	var output, name string
	cmd := &cobra.Command{
		Use:   "stop NAME",
		Short: "Stop a profiling session and write its trace",
		Long: `Stop the profiling session NAME, unless it has ended, and write its trace to --output: Chrome
trace JSON, which "yoctuned trace view", Perfetto and chrome://tracing read, or the
encoding of Perfetto if the name ends in .pftrace or .perfetto-trace.

The file appears when it is complete. An older trace is replaced; another file is not. If
the file cannot be written, stop can be repeated: the pipeline keeps the trace for ten
minutes, or until a session of the same name starts.

Exit status: 0 written, 1 failed, or no pipeline has such a session, 2 wrong usage.`,
		Example: `  yoctuned trace stop slow
  yoctuned trace stop slow --output slow.pftrace
  yoctuned trace stop slow --pipeline door --output - | jq .otherData`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
			if err := live.CheckSessionName(args[0]); err != nil {
				return err
			}
			socket, err := findSession(dev, args[0], name)
			if err != nil {
				return err
			}
			if output == "-" {
				return live.StopSession(socket, args[0], trace.Chrome, cmd.OutOrStdout())
			}
			if output == "" {
				output = args[0] + ".trace.json"
			}
			n, err := fetchTrace(socket, args[0], output)
			if err != nil {
				return err
			}
			if p := cli.NewPrinter(cmd); p.JSON {
				p.Encode(struct {
					Type    string `json:"type"`
					Session string `json:"session"`
					File    string `json:"file"`
					Bytes   int64  `json:"bytes"`
				}{"trace", args[0], output, n})
			} else {
				p.Printf("wrote %s: %d bytes\n", output, n)
			}
			return nil
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write; - is standard output (default NAME.trace.json)")
	cmd.Flags().StringVar(&name, "pipeline", "", "`NAME` of the pipeline, where several have a session of that name")
	_ = cmd.RegisterFlagCompletionFunc("pipeline", completeFrom(0, 0, pipelinesOf))
	_ = cmd.MarkFlagFilename("output", "json", "pftrace")
	return cmd
}

// fetchTrace stops a session and writes its trace to a file, whose size it returns.
func fetchTrace(socket, session, path string) (int64, error) {
	// An unusable file fails before the session ends.
	f, err := pipeline.CreateTrace(path)
	if err != nil {
		return 0, err
	}
	err = live.StopSession(socket, session, trace.EncodingFor(path), f)
	var size int64
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	return size, errors.Join(err, f.Cleanup())
}

func newTraceListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the profiling sessions of running pipelines",
		Long: `List the profiling sessions of the pipelines that run on this machine: for how long they
record, how many events they have, and why they ended. Only root sees the sessions of
pipelines of other users.

Exit status: 0 listed, 1 failed, 2 wrong usage.`,
		Example: `  yoctuned trace list
  yoctuned trace list --format json | jq .events`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			p := cli.NewPrinter(cmd)
			var list []*live.Session
			for _, socket := range sessionSockets(dev) {
				found, err := live.Sessions(socket)
				switch {
				case errors.Is(err, pipelines.ErrNotRunning):
				case err != nil:
					cli.Warn(cmd, "%v", err)
				}
				list = append(list, found...)
			}
			if p.JSON {
				for _, s := range list {
					p.Encode(s)
				}
				return p.End("trace list", cli.ExitDone, nil)
			}
			if len(list) == 0 {
				p.Printf("no sessions\n")
				return nil
			}
			t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
			printable.Fprintf(t, "SESSION\tPIPELINE\tTIME\tEVENTS\tSTATE\n")
			for _, s := range list {
				printable.Fprintf(t, "%s\t%s\t%v of %v\t%d of %d\t%s\n", s.Session, s.Pipeline,
					time.Duration(s.Lasted).Round(time.Millisecond), time.Duration(s.Limit), s.Events, s.MaxEvents, sessionState(s))
			}
			return t.Flush()
		}),
	}
	return cmd
}

func sessionState(s *live.Session) string {
	state := "records"
	if s.Ended != "" {
		state = "ended: " + s.Ended
	}
	if s.Fetched {
		state += ", fetched"
	}
	return state
}

// atPipeline calls do with the sockets of a pipeline until one is served.
func atPipeline(dev *rootfs.Root, name string, do func(socket string) error) error {
	var paths []string
	for _, dir := range liveDirs(dev) {
		paths = append(paths, pipelines.Path(dir, name))
	}
	if own := liveSocket(dev, name); !slices.Contains(paths, own) {
		paths = append(paths, own)
	}
	for _, path := range paths {
		if err := do(path); !errors.Is(err, pipelines.ErrNotRunning) {
			return err
		}
	}
	return notRunning(name, strings.Join(paths, " or "))
}

// sessionSockets are the sockets of pipelines.
func sessionSockets(dev *rootfs.Root) []string {
	var out []string
	for _, dir := range liveDirs(dev) {
		found, err := os.ReadDir(dir)
		if err != nil {
			continue // no pipeline of this kind of user runs
		}
		for _, f := range found {
			out = append(out, filepath.Join(dir, f.Name(), pipelines.Socket))
		}
	}
	if own := liveSocket(dev, ""); !slices.Contains(out, own) {
		out = append(out, own)
	}
	return out
}

// findSession returns the socket of the pipeline that has a session.
func findSession(dev *rootfs.Root, session, name string) (string, error) {
	if name != "" {
		socket := ""
		err := atPipeline(dev, name, func(path string) error {
			_, err := live.Sessions(path)
			socket = path
			return err
		})
		return socket, err
	}
	var sockets, names []string
	var errs []error
	for _, socket := range sessionSockets(dev) {
		list, err := live.Sessions(socket)
		if err != nil && !errors.Is(err, pipelines.ErrNotRunning) {
			errs = append(errs, err)
		}
		for _, s := range list {
			if s.Session == session {
				sockets, names = append(sockets, socket), append(names, s.Pipeline)
			}
		}
	}
	switch len(sockets) {
	case 1:
		return sockets[0], nil
	case 0:
		return "", errors.Join(append([]error{fmt.Errorf("no running pipeline has a session %q; see yoctuned trace list", session)}, errs...)...)
	}
	return "", fmt.Errorf("several pipelines have a session %q; choose one with --pipeline: %s", session, strings.Join(names, ", "))
}
