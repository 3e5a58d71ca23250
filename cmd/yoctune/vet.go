package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func newVetCommand() *cobra.Command {
	return variables(&cobra.Command{
		Use:   "vet DIR",
		Short: "Check a configuration without writing anything",
		Long: `Check the configuration in a folder: the language, the facts of boards and
releases, the rules, and that every value can be written safely into the files
it goes to.

--format is text, json, sarif (for code scanners) or github (for the log of a
GitHub workflow).`,
		Example: `  yoctune vet examples/video-analytics
  yoctune vet . --format sarif > yoctune.sarif`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return vet(cmd, args[0])
		},
	})
}

func vet(cmd *cobra.Command, dir string) error {
	started := time.Now()
	format, err := formatOf(cmd, "sarif", "github")
	if err != nil {
		return err
	}
	p, err := openProject(cmd, dir)
	if err != nil {
		return err
	}
	p.Verify()
	failed := showProject(cmd, format, p)
	targets := 0
	if p.Project != nil {
		targets = len(p.Targets)
	}
	found := problemsOf(p.Report)
	switch format {
	case "json":
		writeJSONLine(cmd.OutOrStdout(), struct {
			Type    string `json:"type"`
			Command string `json:"command"`
			problems
			Targets int   `json:"targets"`
			Millis  int64 `json:"milliseconds"`
		}{"summary", "vet", found, targets, time.Since(started).Milliseconds()})
	case "text":
		if failed == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %s\n", dir, count(targets, "target"), found)
		} else {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", dir, found)
		}
	}
	return failed
}
