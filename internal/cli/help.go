package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of help, in characters.
const helpWidth = 88

// help is the help page of a command.
func help(cmd *cobra.Command) string {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n", strings.TrimSpace(text))
	if cmd.HasSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.Annotations[groupKey] == "" {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.Trim(cmd.Example, "\n"))
	}
	commandLists(&b, cmd)
	flagList(&b, "Flags", cmd, cmd.LocalNonPersistentFlags())
	if cmd.HasParent() {
		flagList(&b, "Global flags", cmd, cmd.InheritedFlags())
	} else {
		flagList(&b, "Global flags", cmd, cmd.PersistentFlags())
	}
	if cmd.HasSubCommands() {
		fmt.Fprintf(&b, "\nRun '%s COMMAND --help' for the help of a command.\n", cmd.CommandPath())
	}
	return b.String()
}

// commandLists lists the commands below one, by group.
func commandLists(b *strings.Builder, cmd *cobra.Command) {
	width := 0
	for _, sub := range cmd.Commands() {
		width = max(width, len(sub.Name()))
	}
	list := func(title, id string) {
		head := "\n" + title + ":\n"
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && sub.GroupID == id {
				fmt.Fprintf(b, "%s  %-*s  %s\n", head, width, sub.Name(), sub.Short)
				head = ""
			}
		}
	}
	list("Commands", "")
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
}

// FlagRow is a flag as help and man pages show it.
type FlagRow struct {
	Short, Long string // without dashes; Short may be ""
	Value       string // name of its value, "" for a switch
	Text        string // with the default
}

// FlagRows returns the visible flags of a command among flags.
func FlagRows(cmd *cobra.Command, flags *pflag.FlagSet) []FlagRow {
	var rows []FlagRow
	visibleFlags(flags, func(f *pflag.Flag) {
		value, text := placeholder(f)
		if f.Name == formatFlag {
			text = "output format: " + enumerate(formats(cmd), "or")
		}
		if d := defaultText(f); d != "" {
			text += " (default " + d + ")"
		}
		rows = append(rows, FlagRow{f.Shorthand, f.Name, value, text})
	})
	return rows
}

// flagList lists flags with their placeholders in a column and their texts beside it.
func flagList(b *strings.Builder, title string, cmd *cobra.Command, flags *pflag.FlagSet) {
	rows := FlagRows(cmd, flags)
	names := make([]string, len(rows))
	width := 0
	for i, r := range rows {
		names[i] = "      --" + r.Long
		if r.Short != "" {
			names[i] = "  -" + r.Short + ", --" + r.Long
		}
		if r.Value != "" {
			names[i] += " " + r.Value
		}
		width = max(width, utf8.RuneCountInString(names[i]))
	}
	for i, r := range rows {
		if i == 0 {
			fmt.Fprintf(b, "\n%s:\n", title)
		}
		for j, line := range wrap(r.Text, helpWidth-width-3) {
			if j > 0 {
				names[i] = ""
			}
			fmt.Fprintf(b, "%-*s   %s\n", width, names[i], line)
		}
	}
}

// placeholder splits the usage of a flag, "`FILE` to write", into the name of its value
// and the text, which help shows in two columns. Elsewhere in the usage the name is
// part of the text.
func placeholder(f *pflag.Flag) (name, text string) {
	name, text = pflag.UnquoteUsage(f)
	if rest, ok := strings.CutPrefix(f.Usage, "`"+name+"`"); ok {
		text = strings.TrimLeft(rest, " :")
	}
	return name, text
}

// defaultText is the default of a flag unless it is empty.
func defaultText(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return ""
	}
	return strings.Trim(f.DefValue, "[]")
}

// wrap breaks a text into lines of at most width characters where words allow it.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
