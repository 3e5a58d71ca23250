package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/importer"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/outfile"
	"github.com/yoctune/yoctune/internal/printable"
)

// importOptions are the flags of import.
type importOptions struct {
	importer.Options
	out                string
	force, strict, all bool
}

func newImportCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE|DIR...",
		Short: "Convert existing tuning files to a yoctune configuration",
		Long: fmt.Sprintf(`Read power mode files, sysctl.d files, kernel fragments, local.conf, kernel command
lines, units, udev rules, module settings, scripts, or a whole layer, and write an
equivalent yoctune configuration. - reads standard input, and needs --as.

The report accounts for every line: understood, adjusted or left, with the reason, and
names every file that was not read. Lines that "yoctune vet" would refuse are left, so the
written configuration has no errors. The report also points out well-known traps. Links in
a folder are followed to files, not to folders.

Without -o the configuration goes to standard output and the report to standard error.
--as gives the kind of the files where names and content do not show it:
%s.

Exit status: 0 imported, 1 the request is wrong or no file can be imported, 2 wrong usage, 3 lines were left (with
--strict).`, strings.Join(importer.Kinds(), ", ")),
		Example: `  yoctune import meta-vision -o config/config.cue
  yoctune import nvpmodel.conf --board orin-nano-8gb --release scarthgap
  yoctune import 90-net.conf --as sysctl --board agx-orin-64gb --release wrynose --all
  ssh device sysctl -a | yoctune import - --as sysctl --board agx-orin-64gb --release wrynose`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runImport(cmd, args, o)
		},
	}
	f := cmd.Flags()
	f.StringVar((*string)(&o.Kind), "as", "", "`KIND` of the files (default: by name and content)")
	f.StringVar(&o.Board, "board", "", "`BOARD` that the files are for (default: from the machine or the power mode file)")
	f.StringVar(&o.Release, "release", "", "`RELEASE` of meta-tegra (default: from LAYERSERIES_COMPAT)")
	f.StringVar(&o.Machine, "machine", "", "`MACHINE` of bitbake (default: from the files, else the board's)")
	f.StringVar(&o.Layer, "name", "", "`NAME` for layer.name (default: that of the imported layer)")
	f.StringVar(&o.Maintainer, "maintainer", "", "`PERSON` for layer.maintainer, as \"Name <mail>\"")
	f.StringVarP(&o.out, "output", "o", "", "`FILE` to write the configuration to (default: standard output)")
	f.BoolVar(&o.force, "force", false, "overwrite an existing file")
	f.BoolVar(&o.strict, "strict", false, "exit with 3 when a line was left")
	f.BoolVar(&o.all, "all", false, "show every line in the report, also those that were understood")
	return cmd
}

func runImport(cmd *cobra.Command, names []string, o importOptions) error {
	if o.Kind != "" && !slices.Contains(importer.Kinds(), string(o.Kind)) {
		return cli.UsageError(fmt.Errorf("--as %s: choose one of %s", o.Kind, strings.Join(importer.Kinds(), ", ")))
	}
	if isStdout(o.out) {
		o.out = ""
	} else if !o.force {
		if _, err := os.Lstat(o.out); err == nil {
			return fmt.Errorf("%s exists: choose another file with -o, or overwrite it with --force", o.out)
		}
	}
	read, err := readSources(cmd, names, o.Kind)
	if err != nil {
		return err
	}
	o.Check = checkFiles
	result, err := importer.Import(read.sources, o.Options)
	if errors.Is(err, importer.ErrNothing) {
		return reportNothing(cmd, names, result, read, err)
	}
	if err != nil {
		if errors.Is(err, importer.ErrWhich) || errors.Is(err, importer.ErrUnknown) {
			return cli.UsageError(err)
		}
		return err
	}
	if o.out != "" {
		if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
			return fmt.Errorf("writing the configuration: %w", err)
		}
		if err := outfile.Write(o.out, result.Config); err != nil {
			return err
		}
	}
	if err := showImport(cmd, result, read, o); err != nil {
		return err
	}
	return cli.Answer(!o.strict || result.Count(importer.Left) == 0)
}

// filesRead is what was read to import, and the files that hold no settings.
type filesRead struct {
	sources []importer.Source
	skipped []importer.Skipped
}

// readSources reads the files and folders to import; - is standard input.
func readSources(cmd *cobra.Command, names []string, kind importer.Kind) (read filesRead, err error) {
	stdin := slices.Index(names, "-")
	if stdin < 0 {
		read.sources, read.skipped, err = importer.Read(names)
		return read, err
	}
	rest := slices.Delete(slices.Clone(names), stdin, stdin+1)
	if slices.Contains(rest, "-") {
		return read, cli.UsageError(errStdinTwice)
	}
	if kind == "" {
		return read, cli.UsageError(errors.New("--as KIND is required for standard input (-)"))
	}
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), importer.MaxFile+1))
	if err != nil {
		return read, fmt.Errorf("reading standard input: %w", err)
	}
	if len(text) > importer.MaxFile {
		return read, fmt.Errorf("standard input is larger than %d MiB", importer.MaxFile>>20)
	}
	read.sources, read.skipped, err = importer.Read(rest)
	read.sources = slices.Insert(read.sources, 0, importer.Source{Name: "stdin", Text: text})
	return read, err
}

// reportNothing reports what was found where nothing can be imported.
func reportNothing(cmd *cobra.Command, names []string, r *importer.Result, read filesRead, err error) error {
	if out := cli.NewPrinter(cmd); out.JSON {
		showFilesJSON(out, r, read)
	} else {
		writeFiles(cmd.ErrOrStderr(), r.Lines, read)
	}
	return fmt.Errorf("importing %s: %w; --as KIND gives the kind where names and content do not show it", strings.Join(names, ", "), err)
}

// checkFiles checks a configuration as vet does.
func checkFiles(files map[string][]byte) *diag.Report {
	p := compiler.OpenFiles(files)
	p.Verify()
	return p.Report
}

func showFilesJSON(out cli.Printer, r *importer.Result, read filesRead) {
	for _, s := range read.sources {
		if s.Link != "" {
			out.Line("link", struct {
				File   string `json:"file"`
				Target string `json:"target"`
			}{s.Name, s.Link})
		}
	}
	for _, l := range r.Lines {
		out.Line("line", l)
	}
	for _, f := range read.skipped {
		out.Line("skipped", f)
	}
}

func showImport(cmd *cobra.Command, r *importer.Result, read filesRead, o importOptions) error {
	out := cli.NewPrinter(cmd)
	if out.JSON {
		showFilesJSON(out, r, read)
		if o.out == "" {
			out.Line("config", struct {
				Text string `json:"text"`
			}{string(r.Config)})
		}
		out.Summary("import", summaryOf(r, read))
		return nil
	}
	report := cmd.OutOrStdout()
	if o.out == "" {
		if _, err := out.Write(r.Config); err != nil {
			return err
		}
		report = cmd.ErrOrStderr()
	}
	return writeImportReport(report, r, read, o)
}

// importSummary counts lines by verdict.
type importSummary struct {
	Board      string `json:"board"`
	Machine    string `json:"machine"`
	Release    string `json:"release"`
	Lines      int    `json:"lines"`
	Understood int    `json:"understood"`
	Adjusted   int    `json:"adjusted"`
	Left       int    `json:"left"`
	Comments   int    `json:"comments"`
	Traps      int    `json:"traps"`
	Skipped    int    `json:"skipped,omitempty"` // files that hold no settings
}

func summaryOf(r *importer.Result, read filesRead) importSummary {
	s := importSummary{Board: r.Board, Machine: r.Machine, Release: r.Release, Lines: len(r.Lines),
		Understood: r.Count(importer.Understood), Adjusted: r.Count(importer.Adjusted), Left: r.Count(importer.Left), Comments: r.Count(importer.Comment), Skipped: len(read.skipped)}
	for _, l := range r.Lines {
		s.Traps += len(l.Traps)
	}
	return s
}

func writeImportReport(out io.Writer, r *importer.Result, read filesRead, o importOptions) error {
	traps := importer.Traps()
	var met []importer.Trap
	var shown []*importer.Line
	for _, l := range r.Lines {
		for _, t := range l.Traps {
			if !slices.Contains(met, t) {
				met = append(met, t)
			}
		}
		if o.all || l.Verdict != importer.Comment && (l.Verdict != importer.Understood || len(l.Traps)+len(l.Remarks) > 0) {
			shown = append(shown, l)
		}
	}
	writeFiles(out, shown, read)
	if len(met) > 0 {
		fmt.Fprintln(out, "Traps found:")
		for _, t := range met {
			fmt.Fprintf(out, "  %s: %s\n", t, traps[t])
		}
	}
	s := summaryOf(r, read)
	to, skipped := "", ""
	if o.out != "" {
		to = o.out + ": "
	}
	if s.Skipped > 0 {
		skipped = fmt.Sprintf("; %s without settings", count(s.Skipped, "file"))
	}
	_, err := fmt.Fprintf(out, "%sboard %s, machine %s, release %s: %s: %d understood, %d adjusted, %d left, %d blank or comment%s\n",
		to, s.Board, s.Machine, s.Release, count(s.Lines, "line"), s.Understood, s.Adjusted, s.Left, s.Comments, skipped)
	return err
}

// writeFiles writes lines below the names of their files, then the files that were not read.
func writeFiles(out io.Writer, lines []*importer.Line, read filesRead) {
	links := map[string]string{}
	for _, s := range read.sources {
		if s.Link != "" && s.Unread == "" {
			links[s.Name] = " -> " + s.Link
		}
	}
	const indent = "                      "
	file := ""
	for _, l := range lines {
		if l.File != file {
			file = l.File
			printable.Fprintf(out, "%s%s\n", file, links[file])
		}
		var marks []string
		for _, t := range l.Traps {
			marks = append(marks, string(t))
		}
		text := cmp.Or(l.Text, "(whole file)")
		printable.Fprintf(out, "  %6s  %-10s  %s\n", fmt.Sprintf("%d:%d", l.Line, l.Column), l.Verdict, strings.ReplaceAll(text, "\t", " "))
		for _, more := range []struct{ mark, text string }{{"->", l.Path}, {"=", l.Why}, {"!", strings.Join(marks, ", ")}, {"~", strings.Join(l.Remarks, "; ")}} {
			if more.text != "" {
				printable.Fprintf(out, "%s%s %s\n", indent, more.mark, more.text)
			}
		}
	}
	for i, f := range read.skipped {
		if i == 0 {
			fmt.Fprintln(out, "Not read:")
		}
		printable.Fprintf(out, "  %s: %s\n", f.File, f.Why)
	}
}
