package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/schema/plan"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the platform and the plan format",
		Long:  `Print the version of this program, the platform, and the format of the plans that it reads.`,
		Example: `  yoctuned version
  yoctuned version --format json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := cmd.OutOrStdout()
			if cli.Format(cmd) != "json" {
				_, err := fmt.Fprintf(w, "yoctuned %s %s/%s %s, plans: %s\n", version.Version, runtime.GOOS, runtime.GOARCH, runtime.Version(), plan.Schema)
				return err
			}
			enc := cli.Encoder(w)
			if err := enc.Encode(struct {
				Type    string `json:"type"`
				Version string `json:"version"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
				Go      string `json:"go"`
				Plan    string `json:"plan"`
			}{"version", version.Version, runtime.GOOS, runtime.GOARCH, runtime.Version(), plan.Schema}); err != nil {
				return err
			}
			return enc.Encode(cli.Summary{Type: "summary", Command: "version"})
		},
	}
}
