// Package manual writes a program's man pages and completions for release packages. Programs
// link it only with the tag manual, because the generator is larger than the text.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
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
	return doc.GenManTree(root, &doc.GenManHeader{
		Title: strings.ToUpper(name), Section: "1", Source: name + " " + root.Version, Manual: name + " manual", Date: &when,
	}, man)
}

// dress prepares a command for the generator, which reads its texts as Markdown: a placeholder
// such as <layer> is no HTML. No line names the generator.
func dress(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Long = escape(cmd.Long)
	for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(f.Usage, `\<`) {
				f.Usage = escape(f.Usage)
			}
		})
	}
	for _, sub := range cmd.Commands() {
		dress(sub)
	}
}

func escape(text string) string { return strings.ReplaceAll(text, "<", `\<`) }
