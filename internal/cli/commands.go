package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yoctune/yoctune/schema/spelling"
)

// Group is a set of commands that help lists under one title.
type Group struct {
	Title    string
	Commands []func() *cobra.Command
}

// otherCommands is the title of the group of help, completion and version.
const otherCommands = "Other commands"

// NewRoot completes a program's root command: it adds the groups, the commands help and
// completion, and the flags --help, --version and --format, and makes cobra refuse what
// it accepts by itself, such as an unknown command below a group.
func NewRoot(root *cobra.Command, version string, groups []Group, other ...func() *cobra.Command) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version
	root.Flags().Bool("version", false, "print the version and exit")
	root.PersistentFlags().String(formatFlag, "text", "`FORMAT` of the output: text or json")
	cobra.CheckErr(root.RegisterFlagCompletionFunc(formatFlag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return formats(cmd), cobra.ShellCompDirectiveNoFileComp
	}))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return UsageError(flagError(cmd, err)) })
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _, _ = fmt.Fprint(cmd.OutOrStdout(), help(cmd)) }) // the output keeps its error
	root.SetHelpCommand(newHelpCommand(root))
	root.CompletionOptions.DisableDefaultCmd = true

	groups = append(groups, Group{otherCommands, append(other, func() *cobra.Command { return newCompletionCommand(root) })})
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title})
		for _, newCommand := range g.Commands {
			cmd := newCommand()
			cmd.GroupID = g.Title
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(otherCommands)
	root.InitDefaultHelpCmd()
	complete(root)
	return root
}

// complete adds to a command and those below it what all commands have.
func complete(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		complete(sub)
	}
	cmd.Flags().BoolP("help", "h", false, "show this help")
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return UsageError(fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(args[0], subcommands(cmd))))
		}
		if cmd.Annotations == nil {
			cmd.Annotations = map[string]string{}
		}
		cmd.Annotations[groupKey] = "true"
		// Without something to run cobra shows the help before it looks at the arguments.
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		return
	}
	if cmd.Args == nil {
		cmd.Args = checkArguments
	}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		for _, step := range []func() error{
			func() error { return check(cmd, args) }, func() error { return checkFlags(cmd) }, func() error { return checkFormat(cmd) },
		} {
			if err := step(); err != nil {
				return UsageError(err)
			}
		}
		return nil
	}
}

// groupKey is the annotation of a command that does nothing without one below it.
const groupKey = "group"

func subcommands(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
			names = append(names, sub.Aliases...)
		}
	}
	return names
}

// didYouMean is the end of a message about an unknown word.
func didYouMean(word string, known []string) string {
	if near := spelling.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]...",
		Short: "Show the help of a command",
		Long: `Show the help of a command, as --help does. Without a command, list all commands.

Exit status: 0 done, 2 there is no such command.`,
		Example: "  " + root.Name() + " help\n  " + root.Name() + " help version",
		Args: func(_ *cobra.Command, args []string) error {
			at := root
			for _, word := range args {
				next := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
				if next < 0 {
					return fmt.Errorf("no help topic %q%s", strings.Join(args, " "), didYouMean(word, subcommands(at)))
				}
				at = at.Commands()[next]
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return subcommands(at), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			at, _, err := root.Find(args)
			if err != nil {
				return err
			}
			return at.Help()
		},
	}
}

// bashWords stands in for the package bash-completion, which images of devices lack.
const bashWords = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
    }
fi
`

func newCompletionCommand(root *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print a completion script for a shell",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Long: `Print a script that makes a shell complete commands, flags and their values.
The script takes effect in the shell that sources it; where to install it so that new
shells find it is up to the shell:

  bash  /etc/bash_completion.d/, or ~/.local/share/bash-completion/completions/
  zsh   a folder of $fpath, in a file whose name is _ and the program's
  fish  ~/.config/fish/completions/, in a file that ends in .fish`,
		Example: fmt.Sprintf(`  source <(%[1]s completion bash)
  %[1]s completion zsh >~/.zfunc/_%[1]s`, root.Name()),
	}
	descriptions := cmd.Flags().Bool("no-descriptions", false, "complete names without their descriptions")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root, w, describe := cmd.Root(), cmd.OutOrStdout(), !*descriptions
		switch {
		case args[0] == "bash":
			if _, err := io.WriteString(w, bashWords); err != nil {
				return err
			}
			return root.GenBashCompletionV2(w, describe)
		case args[0] == "zsh" && describe:
			return root.GenZshCompletion(w)
		case args[0] == "zsh":
			return root.GenZshCompletionNoDesc(w)
		case args[0] == "fish":
			return root.GenFishCompletion(w, describe)
		case describe:
			return root.GenPowerShellCompletionWithDesc(w)
		}
		return root.GenPowerShellCompletion(w)
	}
	return cmd
}

const formatFlag = "format"

// formatsKey is the annotation with the output formats of a command.
const formatsKey = "formats"

// Formats is the annotation of a command whose --format takes these instead of text
// and json.
func Formats(names ...string) map[string]string {
	return map[string]string{formatsKey: strings.Join(names, " ")}
}

func formats(cmd *cobra.Command) []string {
	if own, ok := cmd.Annotations[formatsKey]; ok {
		return strings.Fields(own)
	}
	return []string{"text", "json"}
}

// Format returns the output format that the user chose.
func Format(cmd *cobra.Command) string {
	f := cmd.Flags().Lookup(formatFlag)
	if f == nil { // the flags could not be parsed
		return "text"
	}
	return f.Value.String()
}

func checkFormat(cmd *cobra.Command) error {
	if format, offered := Format(cmd), formats(cmd); !slices.Contains(offered, format) {
		return fmt.Errorf("--format %s: this command offers %s", format, enumerate(offered, "and"))
	}
	return nil
}

// enumerate joins words as a sentence does.
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// visibleFlags calls f for each flag that help shows.
func visibleFlags(flags *pflag.FlagSet, f func(*pflag.Flag)) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			f(flag)
		}
	})
}
