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

// The HTTP server, Prometheus and SQLite more than double what the enforcer holds
// in memory by being linked: initialising them touches their pages. They are in a
// second build of this program, yoctuned-serve (build tag serve), which "serve"
// becomes.
const serving = false

func newServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve a live page, the history, metrics and health",
		Long: `serve becomes yoctuned-serve, which is installed beside this program or in PATH;
'yoctuned serve --help' shows its flags.

Exit codes: 0 ended by a signal · 1 failed, or it is not installed · 2 usage.`,
		Example:            `  yoctuned serve`,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			const name = "yoctuned-serve"
			program, err := os.Executable()
			if err == nil {
				program = filepath.Join(filepath.Dir(program), name)
				_, err = os.Stat(program)
			}
			if err != nil {
				if program, err = exec.LookPath(name); err != nil {
					return fmt.Errorf("serve: %s is not installed", name)
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
