// Package manual writes a program's man pages and completions for release packages. Programs
// link it only with the tag manual, because the generator is larger than the text.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/yoctune/yoctune/internal/cli"
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
	return tidyAll(root, man, when)
}

// tidyAll completes the pages of a command and of those below it.
func tidyAll(cmd *cobra.Command, man string, when time.Time) error {
	page := filepath.Join(man, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, tidy(text, cmd, when), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			if err := tidyAll(sub, man, when); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	pageDate     = regexp.MustCompile(`(?m)^(\.TH "[^"]*" "1" )"[^"]*"`)
	pageSynopsis = regexp.MustCompile(`(?m)^\.SH SYNOPSIS\n\\fB.*\\fP$`)
	pageOptions  = regexp.MustCompile(`(?s)\n\.SH OPTIONS\n.*?\n(\.SH (?:EXAMPLE|SEE ALSO)\n|$)`)
)

// tidy gives a page the whole date, a synopsis as other pages have it, and the options as
// help shows them: the generator writes month and year, the default of every switch, and
// the placeholder of a value into its text.
func tidy(page []byte, cmd *cobra.Command, when time.Time) []byte {
	page = pageDate.ReplaceAll(page, []byte(`$1"`+when.Format(time.DateOnly)+`"`))
	rest := `\fP [\fIOPTION\fP...]`
	if cmd.HasAvailableSubCommands() {
		rest = `\fP \fICOMMAND\fP [\fIOPTION\fP...]`
	}
	page = pageSynopsis.ReplaceAllFunc(page, func(line []byte) []byte {
		return []byte(strings.TrimSuffix(strings.TrimSuffix(string(line), `\fP`), " [flags]") + rest)
	})
	list := options("OPTIONS", cli.FlagRows(cmd, cmd.NonInheritedFlags())) +
		options("OPTIONS OF ALL COMMANDS", cli.FlagRows(cmd, cmd.InheritedFlags()))
	return pageOptions.ReplaceAllFunc(page, func(match []byte) []byte {
		return []byte("\n" + list + string(pageOptions.FindSubmatch(match)[1]))
	})
}

// options writes a section of flags as tagged paragraphs.
func options(title string, rows []cli.FlagRow) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".SH %s\n", title)
	for _, r := range rows {
		b.WriteString(".TP\n")
		if r.Short != "" {
			fmt.Fprintf(&b, `\fB-%s\fP, `, r.Short)
		}
		fmt.Fprintf(&b, `\fB--%s\fP`, roff(r.Long))
		if r.Value != "" {
			fmt.Fprintf(&b, ` \fI%s\fP`, roff(r.Value))
		}
		fmt.Fprintf(&b, "\n%s\n\n", roff(r.Text))
	}
	return b.String()
}

// roff escapes text for a line of a page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// dress prepares a command for the generator, which reads its texts as Markdown: a placeholder
// such as <layer> is not HTML. No line names the generator.
func dress(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Long = markdown(cmd.Long)
	for _, sub := range cmd.Commands() {
		dress(sub)
	}
}

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
