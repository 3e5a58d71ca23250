package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version, the plan format, and the boards and releases known",
		Example: `  yoctune version --format json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, err := formatOf(cmd)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if format == "json" {
				writeJSONLine(w, struct {
					Type     string   `json:"type"`
					Version  string   `json:"version"`
					Go       string   `json:"go"`
					Plan     string   `json:"plan"`
					Boards   []string `json:"boards"`
					Releases []string `json:"releases"`
				}{"version", version.Version, runtime.Version(), plan.Schema, board.IDs(), release.Names()})
				endJSON(cmd)
				return nil
			}
			_, err = fmt.Fprintf(w, "yoctune %s (%s, %s/%s)\nplan format %s\nboards %v\nreleases %v\n",
				version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, plan.Schema, board.IDs(), release.Names())
			return err
		},
	}
}
