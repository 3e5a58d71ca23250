package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/internal/cli"
)

func newVetCommand() *cobra.Command {
	var fix bool
	cmd := variables(&cobra.Command{
		Use:         "vet [DIR]",
		Annotations: cli.Formats("text", "json", "sarif", "github"),
		Short:       "Check a configuration",
		Long: `Check the configuration in DIR (default: the current folder): its syntax and types, the
facts of boards and releases, which kernel options Kconfig will keep, the rules, and that
every value can be written safely to its file. Nothing is written.

With --fix the command makes the unambiguous changes that messages propose, in .cue files
only. It keeps a change only when it causes no new findings, shows it as a diff, and
reports the remaining findings.

--format sarif is for code scanners, and github for the log of a GitHub workflow.`,
		Example: `  yoctune vet examples/video-analytics
  yoctune vet . --fix
  yoctune vet . --format sarif > yoctune.sarif`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := configurationFolder(args)
			if err != nil {
				return err
			}
			return vet(cmd, dir, fix)
		},
	})
	cmd.Flags().BoolVar(&fix, "fix", false, "make the unambiguous changes that messages propose, in .cue files")
	return cmd
}

func vet(cmd *cobra.Command, dir string, fix bool) error {
	started := time.Now()
	format := cli.Format(cmd)
	o, err := optionsOf(cmd)
	if err != nil {
		return err
	}
	p, err := o.Open(dir)
	if err != nil {
		return err
	}
	p.Verify()
	if fix {
		if p, err = makeFixes(cmd, format, o, dir, p); err != nil {
			return err
		}
	}
	failed := showProject(cmd, format, dir, p)
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

// makeFixes makes the changes that are unambiguous and shows them as a diff.
func makeFixes(cmd *cobra.Command, format string, o compiler.Options, dir string, p *compiler.Project) (*compiler.Project, error) {
	fixed := o.Fix(dir, p)
	w := cmd.OutOrStdout()
	for _, name := range slices.Sorted(maps.Keys(fixed.Files)) {
		path := filepath.Join(dir, name)
		// The file may have been saved since it was checked.
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, fixed.Was[name]) {
			return nil, fmt.Errorf("--fix: %s changed while it was being checked; the remaining changes are not made", path)
		}
		if err := tree.WriteFile(path, fixed.Files[name]); err != nil {
			return nil, fmt.Errorf("--fix: %w", err)
		}
		diff := review.Unified(fixed.Was[name], fixed.Files[name], path, path)
		switch format {
		case "json":
			writeJSONLine(w, struct {
				Type string `json:"type"`
				File string `json:"file"`
				Diff string `json:"diff"`
			}{"fix", name, diff})
		case "text":
			if cli.Colour(w) {
				diff = paintDiff(diff)
			}
			if _, err := io.WriteString(w, diff); err != nil {
				return nil, err
			}
		}
	}
	if format == "text" && fixed.Made > 0 {
		fmt.Fprintf(w, "%s made\n", count(fixed.Made, "change"))
	}
	return fixed.Project, nil
}
