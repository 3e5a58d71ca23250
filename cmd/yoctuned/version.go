package main

import (
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
			p := cli.NewPrinter(cmd)
			if !p.JSON {
				p.Printf("yoctuned %s %s/%s %s, plans: %s\n", version.Version, runtime.GOOS, runtime.GOARCH, runtime.Version(), plan.Schema)
				return nil
			}
			p.Line("version", struct {
				Version string `json:"version"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
				Go      string `json:"go"`
				Plan    string `json:"plan"`
			}{version.Version, runtime.GOOS, runtime.GOARCH, runtime.Version(), plan.Schema})
			return p.End("version", cli.ExitDone, nil)
		},
	}
}
