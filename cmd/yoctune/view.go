package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fatih/color"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/internal/version"
)

// colourful tells whether a writer is a terminal that wants colours.
func colourful(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd())
}

// showReport writes diagnostics: to the error stream as text, otherwise to the
// output, where programs look.
func showReport(cmd *cobra.Command, format, dir string, report *diag.Report, src *diag.Sources) error {
	switch format {
	case "json":
		return diag.WriteJSON(cmd.OutOrStdout(), report)
	case "sarif":
		return diag.WriteSARIF(cmd.OutOrStdout(), report, fromHere(dir), version.Version, compiler.Page)
	case "github":
		return diag.WriteGitHub(cmd.OutOrStdout(), report, fromHere(dir))
	}
	w := cmd.ErrOrStderr()
	return diag.WriteText(w, report, src, colourful(w))
}

// showProject is showReport for a configuration; it returns errReported when
// there are errors.
func showProject(cmd *cobra.Command, format, dir string, p *compiler.Project) error {
	if err := showReport(cmd, format, dir, p.Report, sources(p)); err != nil {
		return err
	}
	if p.Report.Failed() {
		return errReported
	}
	return nil
}

// fromHere is a folder's path from the current one, with slashes.
func fromHere(dir string) string {
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(dir) {
		if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
			dir = rel
		}
	}
	return filepath.ToSlash(dir)
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

// paintDiff colours a unified diff for a terminal.
func paintDiff(diff string) string {
	paint := func(line string, attrs ...color.Attribute) string {
		c := color.New(attrs...)
		c.EnableColor()
		text, newline := strings.CutSuffix(line, "\n")
		out := c.Sprint(text)
		if newline {
			out += "\n"
		}
		return out
	}
	var b strings.Builder
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			b.WriteString(paint(line, color.Bold))
		case strings.HasPrefix(line, "+"):
			b.WriteString(paint(line, color.FgGreen))
		case strings.HasPrefix(line, "-"):
			b.WriteString(paint(line, color.FgRed))
		case strings.HasPrefix(line, "@@"):
			b.WriteString(paint(line, color.FgCyan))
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}
