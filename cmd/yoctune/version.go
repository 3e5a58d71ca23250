package main

import (
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the plan format, and the supported boards and releases",
		Long: `Print the version of this program, the format of the plans that it writes, and the
boards and releases that it supports.`,
		Example: `  yoctune version
  yoctune version --format json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := cli.NewPrinter(cmd)
			if p.JSON {
				p.Line("version", struct {
					Version  string   `json:"version"`
					Go       string   `json:"go"`
					Plan     string   `json:"plan"`
					Boards   []string `json:"boards"`
					Releases []string `json:"releases"`
				}{version.Version, runtime.Version(), plan.Schema, board.IDs(), release.Names()})
				p.Summary("version")
				return nil
			}
			p.Printf("yoctune %s (%s, %s/%s)\nplan format  %s\nboards       %s\nreleases     %s\n",
				version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, plan.Schema,
				strings.Join(board.IDs(), ", "), strings.Join(release.Names(), ", "))
			return nil
		},
	}
}
