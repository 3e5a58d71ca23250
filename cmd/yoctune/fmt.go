package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	jsonnetfmt "github.com/google/go-jsonnet/formatter"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/outfile"
)

func newFmtCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "fmt [DIR]",
		Short: "Format the files of a configuration",
		Long: `Format the .cue, .hcl, .jsonnet and .libsonnet files in DIR (default: the current
folder) in place, and print the names of those that changed. Subfolders such as cue.mod
are left alone. A file that cannot be parsed is not changed.

With --check nothing is written, and the differences are shown.

Exit status: 0 done, or nothing to do, 1 a file cannot be read, 3 a file would change
(with --check).`,
		Example: `  yoctune fmt .
  yoctune fmt . --check`,
		RunE: runInFolder(func(cmd *cobra.Command, dir string) error { return formatFolder(cmd, dir, check) }),
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit with 3 when a file would change")
	return cmd
}

func formatFolder(cmd *cobra.Command, dir string, check bool) error {
	p := cli.NewPrinter(cmd)
	names, err := configurationFiles(dir)
	if err != nil {
		return err
	}
	changed := 0
	for _, name := range names {
		was, now, err := formatFile(name)
		if err != nil {
			return err
		}
		if string(was) == string(now) {
			continue
		}
		changed++
		if p.JSON {
			p.Line("formatted", struct {
				Path string `json:"path"`
			}{name})
		}
		if check {
			if !p.JSON {
				showDiff(p, review.UnifiedDiff(was, now, name, name))
			}
			continue
		}
		if err := outfile.Replace(map[string][]byte{name: now}); err != nil {
			return err
		}
		if !p.JSON {
			p.Printf("%s\n", name)
		}
	}
	if p.JSON {
		p.Summary("fmt", struct {
			Files   int  `json:"files"`
			Changed int  `json:"changed"`
			Written bool `json:"written"`
		}{len(names), changed, !check})
	}
	return cli.Answer(!check || changed == 0)
}

// formatter formats a source file.
type formatter func(name string, text []byte) ([]byte, error)

// formatters are the formatters by file extension.
func formatters() map[string]formatter {
	jsonnet := func(name string, text []byte) ([]byte, error) {
		out, err := jsonnetfmt.Format(name, string(text), jsonnetfmt.DefaultOptions())
		return []byte(out), err
	}
	return map[string]formatter{
		".cue":       formatCUE,
		".hcl":       formatHCL,
		".jsonnet":   jsonnet,
		".libsonnet": jsonnet,
	}
}

func formatCUE(name string, text []byte) ([]byte, error) {
	// Only the parser takes the file's name, which its errors need.
	if _, err := parser.ParseFile(name, text, parser.ParseComments); err != nil {
		for _, e := range cueerrors.Errors(err) {
			return nil, fmt.Errorf("%s: %w", e.Position(), e)
		}
	}
	return format.Source(text)
}

func formatHCL(name string, text []byte) ([]byte, error) {
	// The formatter itself accepts anything.
	if _, diags := hclwrite.ParseConfig(text, name, hcl.InitialPos); diags.HasErrors() {
		return nil, diags
	}
	return hclwrite.Format(text), nil
}

// configurationFiles lists the files in a folder that can be formatted. Links are left to the
// folder of the file, and what is neither a file nor a folder is refused, as vet does.
func configurationFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("formatting: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && e.Type() != fs.ModeSymlink && formatters()[filepath.Ext(e.Name())] != nil && !strings.HasPrefix(e.Name(), ".") {
			name := filepath.Join(dir, e.Name())
			if !e.Type().IsRegular() {
				return nil, fmt.Errorf("formatting: %s is not a regular file", name)
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("formatting %s: the folder has no .cue, .hcl or .jsonnet file", dir)
	}
	return names, nil
}

// formatFile returns a file as it is, and formatted.
func formatFile(name string) (was, now []byte, err error) {
	if was, err = infile.Read(name, load.MaxSource); err != nil {
		return nil, nil, fmt.Errorf("formatting: %w", err)
	}
	if nestingDepth(was) > maxNesting {
		return nil, nil, fmt.Errorf("formatting %s: brackets are nested more than %d deep", name, maxNesting)
	}
	if now, err = formatters()[filepath.Ext(name)](name, was); err != nil {
		return nil, nil, fmt.Errorf("formatting: %w", err)
	}
	if len(now) > 0 && now[len(now)-1] != '\n' {
		now = append(now, '\n')
	}
	return was, now, nil
}

// maxNesting bounds brackets before a recursive parser sees the text.
const maxNesting = 200

// nestingDepth returns the depth of brackets. It ignores strings and comments, as no real
// configuration comes near the limit.
func nestingDepth(text []byte) int {
	depth, deepest := 0, 0
	for _, c := range text {
		switch c {
		case '{', '[', '(':
			depth++
			deepest = max(deepest, depth)
		case '}', ']', ')':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}
