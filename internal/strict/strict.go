// Package strict makes cobra refuse what it lets pass: a command that does not exist
// below one that only groups others, a topic of help that is none, and a shell that
// has no completion. All of them are usage errors here, with what may have been meant.
package strict

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Commands does so for root and everything below it. It is called when all
// commands are added; fail marks an error as one of usage.
func Commands(root *cobra.Command, fail func(error) error) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return fail(fmt.Errorf("there is no help about %q", strings.Join(args, " ")))
				}
				return nil
			}
		}
	}
	groups(root, fail)
}

// Usage is what is said below an error of usage: how the command is called.
func Usage(cmd *cobra.Command) string {
	text := fmt.Sprintf("Run '%s --help' for more.", cmd.CommandPath())
	if cmd.HasSubCommands() {
		return text
	}
	return fmt.Sprintf("usage: %s\n%s", cmd.UseLine(), text)
}

func groups(cmd *cobra.Command, fail func(error) error) {
	for _, sub := range cmd.Commands() {
		groups(sub, fail)
	}
	if !cmd.HasSubCommands() || cmd.Runnable() {
		return // one that does something itself says what it takes
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			err = fmt.Errorf("%w; did you mean %q?", err, near[0])
		}
		return fail(err)
	}
	// Without something to run cobra shows the help before it looks at the arguments.
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}
