package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/report/tasks"
	"github.com/yoctune/yoctune/internal/outfile"
)

type tasksOptions struct {
	buildstats, html string
	threads, steps   int
}

func newTasksCommand() *cobra.Command {
	var o tasksOptions
	cmd := &cobra.Command{
		Use:   "tasks task-depends.dot",
		Short: "Say what decides how long a build takes",
		Long: `Read the task graph that "bitbake -g IMAGE" writes and say which tasks wait for
each other longest, how many could run at once, which recipes hold the build up,
and what more threads or a fuller shared-state cache would gain.

Without --buildstats every task counts as one. With it, times are those that
bitbake measured in a build (USER_CLASSES has "buildstats" by default); give
tmp/buildstats, of which the newest build is taken, or the folder of one build.

Simulated builds start the tasks in the order of bitbake's default scheduler.
They leave out that tasks which run together slow each other down.`,
		Example: `  bitbake -g core-image-minimal && yoctune tasks task-depends.dot
  yoctune tasks task-depends.dot --buildstats tmp/buildstats --threads 16 --html build.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runTasks(cmd, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.buildstats, "buildstats", "", "`DIR` with bitbake's measurements")
	f.StringVar(&o.html, "html", "", "write a page with pictures to `FILE`")
	f.IntVar(&o.threads, "threads", runtime.NumCPU(), "`N` of BB_NUMBER_THREADS in your build; the default is the cores of this machine")
	f.IntVar(&o.steps, "steps", 20, "`N` rows of the longest path to show, 0 for all")
	return cmd
}

func runTasks(cmd *cobra.Command, name string, o tasksOptions) error {
	format, err := formatOf(cmd)
	if err != nil {
		return err
	}
	if o.threads < 1 || o.threads > tasks.MaxThreads {
		return usageError{fmt.Errorf("--threads %d: give 1 to %d", o.threads, tasks.MaxThreads)}
	}
	if o.steps < 0 {
		return usageError{fmt.Errorf("--steps %d: give 0 for all, or a number of rows", o.steps)}
	}
	g, err := readGraph(name)
	if err != nil {
		return err
	}
	var stats *tasks.Stats
	if o.buildstats != "" {
		root, err := os.OpenRoot(o.buildstats)
		if err != nil {
			return fmt.Errorf("buildstats: %w", err)
		}
		defer root.Close()
		if stats, err = g.Measure(root.FS()); err != nil {
			return fmt.Errorf("%s: %w", o.buildstats, err)
		}
	}
	a := g.Analyse(stats, o.threads)
	if o.html != "" {
		var page bytes.Buffer
		if err := a.WriteHTML(&page, name); err != nil {
			return err
		}
		if err := outfile.Write(o.html, page.Bytes()); err != nil {
			return err
		}
	}
	if format == "json" {
		return a.WriteJSON(cmd.OutOrStdout())
	}
	return a.WriteText(cmd.OutOrStdout(), o.steps)
}

// readGraph reads a file, or the standard input for "-".
func readGraph(name string) (*tasks.Graph, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("task graph: %w", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, fmt.Errorf("%s is a folder; give the task-depends.dot that bitbake -g wrote", name)
		}
		in = f
	}
	g, err := tasks.Read(in)
	var at *tasks.SyntaxError
	if errors.As(err, &at) {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, nil
}
