package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/editor"
)

// editorWorker is set in the environment of the process that evaluates.
const editorWorker = "YOCTUNE_LSP_WORKER"

// Memory of a program that runs all day: the collector runs as often as Go does by default, and
// more often near the limit.
const (
	editorGC     = 100
	editorMemory = 1 << 30
)

func newLSPCommand() *cobra.Command {
	return addVariableFlag(&cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor: diagnostics, completion, explanations and quick fixes",
		Long: `Serve an editor by the Language Server Protocol on standard input and output. An editor
starts the command; docs/editor.md of the repository shows how.

The server checks the configurations of open .cue, .hcl and .jsonnet files while they are
edited, as "yoctune vet" does. It reads unsaved text from the editor and the other files of the
configuration from disk. It opens no network connection and writes only to the cache of
predicted kernel options.

Exit status: 0 the editor shut the session down, 1 the session ended otherwise.`,
		Example: `  yoctune lsp
  yoctune lsp --var site=lab`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := projectOptions(cmd)
			if err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(editorGC)
			}
			if os.Getenv("GOMEMLIMIT") == "" {
				debug.SetMemoryLimit(editorMemory)
			}
			session := stdio{os.Stdin, cmd.OutOrStdout()}
			if os.Getenv(editorWorker) != "" {
				return editor.Serve(cmd.Context(), session, o)
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			return editor.Supervise(cmd.Context(), session, func(ctx context.Context) *exec.Cmd {
				worker := exec.CommandContext(ctx, program, os.Args[1:]...)
				worker.Args[0] = os.Args[0]
				worker.Env = append(os.Environ(), editorWorker+"=1", "GOTRACEBACK=none")
				return worker
			})
		},
	})
}

// stdio is the connection to the program that started this one.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return os.Stdin.Close() }
