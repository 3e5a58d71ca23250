//go:build !serve

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
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
		RunE: func(*cobra.Command, []string) error {
			const name = "yoctuned-serve"
			program, err := os.Executable()
			if err == nil {
				program = filepath.Join(filepath.Dir(program), name)
				_, err = os.Stat(program)
			}
			if err != nil {
				if program, err = exec.LookPath(name); err != nil {
					return fmt.Errorf("serve: %s is not installed beside this program or in $PATH", name)
				}
			}
			// The whole command line: flags before "serve" count too.
			if err := unix.Exec(program, append([]string{name}, os.Args[1:]...), os.Environ()); err != nil {
				return fmt.Errorf("serve: start %s: %w", program, err)
			}
			return nil
		},
	}
}
