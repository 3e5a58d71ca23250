package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/report/tasks"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/outfile"
)

type tasksOptions struct {
	buildstats, html string
	threads, steps   int
}

func newTasksCommand() *cobra.Command {
	var o tasksOptions
	cmd := &cobra.Command{
		Use:   "tasks FILE",
		Short: "Analyse what a bitbake build spends its time on",
		Long: `Analyse the task graph in FILE, the task-depends.dot that "bitbake -g IMAGE" writes:
the critical path, how many tasks could run at once, the recipes that delay the build,
and what more threads or a fuller shared-state cache would gain. - reads standard input.

Without --buildstats every task counts the same. With it, tasks take the time that
bitbake measured (USER_CLASSES has "buildstats" by default). Give tmp/buildstats, whose
newest build is used, or the folder of one build.

Simulated builds start tasks in the order of bitbake's default scheduler. They ignore
that parallel tasks slow each other down.`,
		Example: `  bitbake -g core-image-minimal && yoctune tasks task-depends.dot
  yoctune tasks task-depends.dot --buildstats tmp/buildstats --threads 16 --html build.html`,
		RunE: func(cmd *cobra.Command, args []string) error { return runTasks(cmd, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.buildstats, "buildstats", "", "`DIR` with bitbake's measurements")
	f.StringVar(&o.html, "html", "", "`FILE` to write a page with charts to")
	f.IntVar(&o.threads, "threads", runtime.NumCPU(), "`N` tasks at once: BB_NUMBER_THREADS of the build")
	f.IntVar(&o.steps, "steps", 20, "`N` rows of the critical path to show; 0 shows all")
	return cmd
}

func runTasks(cmd *cobra.Command, name string, o tasksOptions) error {
	if o.threads < 1 || o.threads > tasks.MaxThreads {
		return cli.UsageError(fmt.Errorf("--threads %d: give 1 to %d", o.threads, tasks.MaxThreads))
	}
	if o.steps < 0 {
		return cli.UsageError(fmt.Errorf("--steps %d: give 0 for all, or a number of rows", o.steps))
	}
	g, err := readGraph(cmd, name)
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
	if cli.Format(cmd) == "json" {
		return a.WriteJSON(cmd.OutOrStdout())
	}
	return a.WriteText(cmd.OutOrStdout(), o.steps)
}

// readGraph reads a file, or the standard input for "-".
func readGraph(cmd *cobra.Command, name string) (*tasks.Graph, error) {
	in, err := cli.Open(cmd, name)
	if err != nil {
		return nil, fmt.Errorf("task graph: %w", err)
	}
	defer in.Close()
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; give the task-depends.dot that 'bitbake -g' wrote", name)
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
