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
)

func newVetCommand() *cobra.Command {
	var fix bool
	cmd := variables(&cobra.Command{
		Use:         "vet [DIR]",
		Annotations: map[string]string{moreFormats: "sarif github"},
		Short:       "Check a configuration without writing anything",
		Long: `Check the configuration in a folder, this one when none is named: the language,
the facts of boards and releases, what the kernel will keep of the options asked
for, the rules, and that every value can be written safely into the files it goes to.

With --fix the changes that messages propose are made in the .cue files, as far as
they leave no doubt: each is tried, kept only when nothing new is wrong with it,
and shown as a diff. What remains is reported.

--format is text, json, sarif (for code scanners) or github (for the log of a
GitHub workflow).`,
		Example: `  yoctune vet examples/video-analytics
  yoctune vet . --fix
  yoctune vet . --format sarif > yoctune.sarif`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return vet(cmd, dir, fix)
		},
	})
	cmd.Flags().BoolVar(&fix, "fix", false, "make the changes that leave no doubt, in .cue files")
	return cmd
}

func vet(cmd *cobra.Command, dir string, fix bool) error {
	started := time.Now()
	format, err := formatOf(cmd)
	if err != nil {
		return err
	}
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

// makeFixes writes what can be put right by itself and shows the difference.
func makeFixes(cmd *cobra.Command, format string, o compiler.Options, dir string, p *compiler.Project) (*compiler.Project, error) {
	fixed := o.Fix(dir, p)
	w := cmd.OutOrStdout()
	for _, name := range slices.Sorted(maps.Keys(fixed.Files)) {
		path := filepath.Join(dir, name)
		// What was checked is what is replaced: somebody may have saved the file
		// in the meantime.
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, fixed.Was[name]) {
			return nil, fmt.Errorf("--fix: %s changed while it was checked; nothing more is written", path)
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
			if colourful(w) {
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
