package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/schema/plan"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version, the platform and the plan format",
		Example: `  yoctuned version --format json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := cmd.OutOrStdout()
			if globalFlags(cmd).Format != "json" {
				_, err := fmt.Fprintf(w, "yoctuned %s %s/%s %s, plans: %s\n", version.Version, runtime.GOOS, runtime.GOARCH, runtime.Version(), plan.Schema)
				return err
			}
			enc := lines(w)
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
			return enc.Encode(summaryLine{Type: "summary", Command: "version"})
		},
	}
}
