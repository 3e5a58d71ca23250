package main

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/internal/printable"
)

func newVetCommand() *cobra.Command {
	var fix bool
	cmd := addVariableFlag(&cobra.Command{
		Use:         "vet [DIR]",
		Annotations: cli.Formats("text", "json", "sarif", "github", "codequality"),
		Short:       "Check a configuration",
		Long: `Check the configuration in DIR (default: the current folder): its syntax and types, the
facts of boards and releases, which kernel options Kconfig will keep, the rules, and that
every value can be written safely to its file. Nothing is written.

With --fix the command makes the unambiguous changes that messages propose. It keeps a
change only when it causes no new findings, shows it as a diff, and reports the remaining
findings.

--format sarif is for code scanners, github for the log of a GitHub workflow, and codequality
for the report of a GitLab pipeline.`,
		Example: `  yoctune vet examples/video-analytics
  yoctune vet . --fix
  yoctune vet . --format sarif > yoctune.sarif`,
		RunE: runInFolder(func(cmd *cobra.Command, dir string) error { return vet(cmd, dir, fix) }),
	})
	cmd.Flags().BoolVar(&fix, "fix", false, "make the unambiguous changes that messages propose")
	return cmd
}

func vet(cmd *cobra.Command, dir string, fix bool) error {
	started := time.Now()
	o, err := projectOptions(cmd)
	if err != nil {
		return err
	}
	p, err := o.Open(dir)
	if err != nil {
		return err
	}
	if fix {
		p.Verify()
		if p, err = makeFixes(cmd, o, dir, p); err != nil {
			return err
		}
	}
	targets := 0
	if p.Project != nil {
		targets = len(p.Targets)
	}
	if !fix {
		p.LastVerify()
	}
	failed := showProject(cmd, dir, p)
	found := problemsOf(p.Report)
	switch cli.Format(cmd) {
	case "json":
		cli.NewPrinter(cmd).Summary("vet", struct {
			problems
			Targets int   `json:"targets"`
			Millis  int64 `json:"milliseconds"`
		}{found, targets, time.Since(started).Milliseconds()})
	case "text":
		if failed == nil {
			printable.Fprintf(cmd.OutOrStdout(), "%s: %s, %s\n", dir, count(targets, "target"), found)
		} else {
			printable.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", dir, found)
		}
	}
	return failed
}

// makeFixes makes the changes that are unambiguous and shows them as a diff.
func makeFixes(cmd *cobra.Command, o compiler.Options, dir string, p *compiler.Project) (*compiler.Project, error) {
	fixed := o.Fix(dir, p)
	if err := writeFixes(dir, fixed); err != nil {
		return nil, fmt.Errorf("--fix: %w", err)
	}
	w, text := cli.NewPrinter(cmd), cli.Format(cmd) == "text"
	for _, name := range slices.Sorted(maps.Keys(fixed.Files)) {
		path := filepath.Join(dir, name)
		diff := review.UnifiedDiff(fixed.Was[name], fixed.Files[name], path, path)
		if w.JSON {
			w.Line("fix", struct {
				File string `json:"file"`
				Diff string `json:"diff"`
			}{name, diff})
		} else if text {
			showDiff(w, diff)
		}
	}
	if text && fixed.Made > 0 {
		w.Printf("%s made\n", count(fixed.Made, "change"))
	}
	return fixed.Project, nil
}

// writeFixes writes the changed files: all of them, or none.
func writeFixes(dir string, fixed compiler.Fixed) error {
	files := map[string][]byte{}
	for name, text := range fixed.Files {
		path := filepath.Join(dir, name)
		// The file may have been saved since it was checked.
		if now, err := infile.Read(path, load.MaxSource); err != nil || !bytes.Equal(now, fixed.Was[name]) {
			return fmt.Errorf("%s changed while it was being checked; no change is made", path)
		}
		files[path] = text
	}
	return outfile.Replace(files)
}
