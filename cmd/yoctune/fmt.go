package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cuelang.org/go/cue/format"
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/load"
	"github.com/yoctune/yoctune/compiler/review"
	"github.com/yoctune/yoctune/compiler/tree"
)

func newFmtCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "fmt DIR",
		Short: "Bring the CUE files of a configuration into the usual form",
		Long: `Format the .cue files in a folder, in place and each whole or not at all. Folders
below it, such as cue.mod, are left alone.

With --check nothing is written: the differences are shown.

Exit status: 0 done, or nothing to do, 1 a file cannot be read as CUE, 3 with
--check: something would change.`,
		Example: `  yoctune fmt .
  yoctune fmt . --check`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runFmt(cmd, args[0], check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit with 3 when something would change")
	return cmd
}

func runFmt(cmd *cobra.Command, dir string, check bool) error {
	asked, err := formatOf(cmd)
	if err != nil {
		return err
	}
	names, err := cueFiles(dir)
	if err != nil {
		return err
	}
	changed := 0
	for _, name := range names {
		was, now, err := formatted(name)
		if err != nil {
			return err
		}
		if string(was) == string(now) {
			continue
		}
		changed++
		if asked == "json" {
			writeJSONLine(cmd.OutOrStdout(), struct {
				Type string `json:"type"`
				Path string `json:"path"`
			}{"formatted", name})
		}
		if check {
			if asked == "text" {
				fmt.Fprint(cmd.OutOrStdout(), review.Unified(was, now, name, name))
			}
			continue
		}
		if err := tree.WriteFile(name, now); err != nil {
			return err
		}
		if asked == "text" {
			fmt.Fprintln(cmd.OutOrStdout(), name)
		}
	}
	if asked == "json" {
		writeJSONLine(cmd.OutOrStdout(), struct {
			Type    string `json:"type"`
			Command string `json:"command"`
			Files   int    `json:"files"`
			Changed int    `json:"changed"`
			Written bool   `json:"written"`
		}{"summary", "fmt", len(names), changed, !check})
	}
	if check && changed > 0 {
		return errDifferent
	}
	return nil
}

// cueFiles lists the CUE files directly in a folder.
func cueFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("formatting: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type() != fs.ModeDir && e.Type().IsRegular() && filepath.Ext(e.Name()) == ".cue" && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("formatting %s: it holds no .cue file", dir)
	}
	return names, nil
}

func formatted(name string) (was, now []byte, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, fmt.Errorf("formatting: %w", err)
	}
	if info.Size() > load.MaxSource {
		return nil, nil, fmt.Errorf("formatting %s: larger than %d MiB", name, load.MaxSource>>20)
	}
	if was, err = os.ReadFile(name); err != nil {
		return nil, nil, fmt.Errorf("formatting: %w", err)
	}
	// The loader bounds nesting before the parser sees the text.
	if _, report := load.Files(map[string][]byte{filepath.Base(name): was}); report.Failed() {
		for _, d := range report.All() {
			if d.ID == "YT0001" || d.ID == "YT0006" {
				return nil, nil, fmt.Errorf("formatting %s:%d:%d: %s", name, d.Pos.Line, d.Pos.Column, d.Message)
			}
		}
	}
	if now, err = format.Source(was); err != nil {
		return nil, nil, fmt.Errorf("formatting %s: %w", name, err)
	}
	if len(now) > 0 && now[len(now)-1] != '\n' {
		now = append(now, '\n')
	}
	return was, now, nil
}
