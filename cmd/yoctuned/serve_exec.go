//go:build !serve

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Linking the HTTP server, Prometheus and SQLite more than doubles the memory of the
// enforcer: their initialisation touches their pages. They are in a second build of this
// program, yoctuned-serve (build tag serve), which "serve" executes.
const serving = false

func newServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve a web page, history, metrics and health checks",
		Long: `Execute yoctuned-serve, which must be installed beside this program or in $PATH. Its
flags are shown by "yoctuned-serve serve --help".

Exit status: 0 ended by a signal, 1 failed, or yoctuned-serve is not installed, 2 wrong
usage.`,
		Example:            `  yoctuned serve`,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE:               func(*cobra.Command, []string) error { return execServer("serve") },
	}
}

// execServer becomes yoctuned-serve, with the same command line.
func execServer(what string) error {
	const name = "yoctuned-serve"
	program, err := os.Executable()
	if err == nil {
		program = filepath.Join(filepath.Dir(program), name)
		_, err = os.Stat(program)
	}
	if err != nil {
		if program, err = exec.LookPath(name); err != nil {
			return fmt.Errorf("%s: %s is not installed beside this program or in $PATH", what, name)
		}
	}
	// The whole command line: flags before the command count too.
	if err := unix.Exec(program, append([]string{name}, os.Args[1:]...), os.Environ()); err != nil {
		return fmt.Errorf("%s: start %s: %w", what, program, err)
	}
	return nil
}

// runRequests runs a pipeline that answers requests, which only yoctuned-serve receives.
func runRequests(context.Context, *cobra.Command, *pipeline.Pipeline, pipeline.Options, string) (*pipeline.Summary, error) {
	return nil, execServer("requests")
}

func newClusterCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cluster",
		Short: "Deliver results over NATS JetStream",
		Long: `Execute yoctuned-serve, which must be installed beside this program or in $PATH. Its
commands are shown by "yoctuned-serve cluster --help".

Exit status: that of yoctuned-serve, 1 if it is not installed, 2 wrong usage.`,
		Example:            `  yoctuned cluster status`,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE:               func(*cobra.Command, []string) error { return execServer("cluster") },
	}
}

// openDelivery opens no sink: those that need a server are in yoctuned-serve.
func openDelivery(context.Context, *rootfs.Root, *plan.Plan, *pipeline.Options) error { return nil }
