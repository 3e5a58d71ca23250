// Package manual writes a program's man pages and completions for release packages. Programs
// link it only with the tag manual, because the generator is larger than the text.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Main is the main function of a program with the tag manual: PROGRAM DIR SECONDS writes the
// pages and completions below DIR, dated SECONDS after 1970.
func Main(root *cobra.Command) {
	if err := run(root, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run(root *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: %s DIR SECONDS", root.Name())
	}
	seconds, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	return Write(root, args[0], time.Unix(seconds, 0).UTC())
}

// Write writes man1/*.1 and completions below dir, at the paths that they have below
// /usr/share.
func Write(root *cobra.Command, dir string, when time.Time) error {
	name := root.Name()
	man := filepath.Join(dir, "man", "man1")
	files := map[string]func(string) error{
		filepath.Join("bash-completion", "completions", name):              func(f string) error { return root.GenBashCompletionFileV2(f, true) },
		filepath.Join("zsh", "vendor-completions", "_"+name):               root.GenZshCompletionFile,
		filepath.Join("fish", "vendor_completions.d", name+".fish"):        func(f string) error { return root.GenFishCompletionFile(f, true) },
		filepath.Join("powershell", "Completions", name+"-completion.ps1"): root.GenPowerShellCompletionFileWithDesc,
	}
	for file, write := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	dress(root)
	err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: name + " " + root.Version, Manual: name + " manual", Date: &when}, man)
	if err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(man, "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		if err := os.WriteFile(page, tidy(text, when), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tidy gives a page the whole date, and makes its flags tagged paragraphs: the generator
// writes month and year, and a tab before the text of a flag.
func tidy(page []byte, when time.Time) []byte {
	date := regexp.MustCompile(`(?m)^(\.TH "[^"]*" "1" )"[^"]*"`)
	flag := regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-.*)\n\t`)
	page = date.ReplaceAll(page, []byte(`$1"`+when.Format(time.DateOnly)+`"`))
	page = flag.ReplaceAll(page, []byte(".TP\n$1\n"))
	return bytes.ReplaceAll(page, []byte(lessThan), []byte("<"))
}

// dress prepares a command for the generator, which reads its texts as Markdown: a placeholder
// such as <layer> is no HTML. No line names the generator.
func dress(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Long = markdown(cmd.Long)
	for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(f.Usage, `\<`) {
				f.Usage = escape(f.Usage)
				f.DefValue = strings.ReplaceAll(f.DefValue, "<", lessThan)
			}
		})
	}
	for _, sub := range cmd.Commands() {
		dress(sub)
	}
}

// lessThan stands for < in the default of a flag, which the generator quotes: a backslash
// before it would be doubled.
const lessThan = "‹"

// markdown turns a text into Markdown: indented lines are shown as they stand.
func markdown(text string) string {
	var b strings.Builder
	block := false
	for line := range strings.Lines(text) {
		if indented := strings.HasPrefix(line, "  "); indented != block {
			b.WriteString("\n```\n")
			block = indented
		}
		if !block {
			line = escape(line)
		}
		b.WriteString(line)
	}
	if block {
		b.WriteString("\n```\n")
	}
	return b.String()
}

func escape(text string) string { return strings.ReplaceAll(text, "<", `\<`) }
