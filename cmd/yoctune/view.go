package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/internal/version"
)

// showReport writes diagnostics about the files in a folder: to standard error as text,
// and to standard output in formats for programs. Paths are relative to the current
// folder, so that an editor can open them; code hosts need them relative to the
// repository.
func showReport(cmd *cobra.Command, dir string, report *diag.Report, src *diag.Sources) error {
	switch cli.Format(cmd) {
	case "json":
		return diag.WriteJSON(cmd.OutOrStdout(), report.PrefixPaths(pathFromCurrentDir(dir)))
	case "sarif":
		return diag.WriteSARIF(cmd.OutOrStdout(), report.PrefixPaths(pathFromRepository(dir)), version.Version, compiler.Page)
	case "github":
		return diag.WriteGitHub(cmd.OutOrStdout(), report.PrefixPaths(pathFromRepository(dir)))
	case "codequality":
		top := pathFromRepository(dir)
		return diag.WriteCodeQuality(cmd.OutOrStdout(), report.PrefixPaths(top), path.Join(top, "README.md"))
	}
	w := cmd.ErrOrStderr()
	return diag.WriteText(w, report.PrefixPaths(pathFromCurrentDir(dir)), src.PrefixPaths(pathFromCurrentDir(dir)), cli.Colour(w))
}

// showProject is showReport for a configuration; it returns cli.AlreadyReported() when
// there are errors.
func showProject(cmd *cobra.Command, dir string, p *compiler.Project) error {
	if err := showReport(cmd, dir, p.Report, sources(p)); err != nil {
		return err
	}
	if p.Report.Failed() {
		return cli.AlreadyReported()
	}
	return nil
}

// pathFromCurrentDir returns the path of a folder from the current one, with slashes. A folder outside
// the current one that was given by an absolute path keeps it.
func pathFromCurrentDir(dir string) string {
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(dir) {
		if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
			dir = rel
		}
	}
	return filepath.ToSlash(dir)
}

// pathFromRepository returns the path of a folder from the top of its git repository, with
// slashes. A folder in no repository is taken from the current one.
func pathFromRepository(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return pathFromCurrentDir(dir)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	for top := abs; ; top = filepath.Dir(top) {
		if exists(filepath.Join(top, ".git")) { // a folder, or a file in a worktree
			rel, err := filepath.Rel(top, abs)
			if err != nil {
				return pathFromCurrentDir(dir)
			}
			return filepath.ToSlash(rel)
		}
		if top == filepath.Dir(top) {
			return pathFromCurrentDir(dir)
		}
	}
}

func sources(p *compiler.Project) *diag.Sources {
	if p.Config == nil {
		return diag.NewSources()
	}
	return p.Config.Sources
}

// count writes "1 file" and "2 files".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// problems is the part of a summary about diagnostics.
type problems struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
}

func problemsOf(r *diag.Report) problems {
	return problems{Errors: r.Count(diag.Error), Warnings: r.Count(diag.Warning)}
}

func (p problems) String() string {
	return count(p.Errors, "error") + ", " + count(p.Warnings, "warning")
}

// showDiff prints a unified diff, in colours on a terminal.
func showDiff(p cli.Printer, diff string) {
	styles := []struct {
		prefix string
		style  terminal.Style
	}{{"+++", terminal.Bold}, {"---", terminal.Bold}, {"+", terminal.Green}, {"-", terminal.Red}, {"@@", terminal.Cyan}}
	colour := cli.Colour(p)
	for line := range strings.Lines(printable.Text(diff)) {
		for _, s := range styles {
			if strings.HasPrefix(line, s.prefix) {
				line = s.style.Paint(colour, strings.TrimSuffix(line, "\n")) + "\n"
				break
			}
		}
		fmt.Fprint(p, line)
	}
}
