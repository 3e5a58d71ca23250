// Package clitest checks the help of a program in tests.
package clitest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CheckHelp fails the test unless each command has a long text, an example of its own
// whose command lines the program accepts, and flags whose help does not repeat the name
// of their value. newRoot returns a fresh root command.
func CheckHelp(t *testing.T, newRoot func() *cobra.Command) {
	t.Helper()
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s: the short text, the long text or the example is missing", cmd.CommandPath())
		}
		own := cmd.HasSubCommands() || cmd.Hidden
		for _, args := range invocations(cmd.Root().Name(), cmd.Example) {
			found, rest, err := newRoot().Find(args)
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: the example %q fails: %v", cmd.CommandPath(), args, err)
				continue
			}
			own = own || found.CommandPath() == cmd.CommandPath()
		}
		if !own {
			t.Errorf("%s: no example runs the command", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name, text := pflag.UnquoteUsage(f)
			if name != "" && len(regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).FindAllString(text, -1)) > 1 {
				t.Errorf("%s: the help of --%s repeats %s", cmd.CommandPath(), f.Name, name)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot())
}

var (
	words      = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	separators = regexp.MustCompile(`\s(?:\||&&|;)\s|<\(`)
	comment    = regexp.MustCompile(`\s#.*`)
	assignment = regexp.MustCompile(`^[A-Z_]+=`)
)

// invocations returns the arguments of every invocation of program in an example.
func invocations(program, example string) [][]string {
	var all [][]string
	for line := range strings.Lines(strings.ReplaceAll(example, "\\\n", " ")) {
		for _, part := range separators.Split(comment.ReplaceAllString(line, ""), -1) {
			args := words.FindAllString(strings.TrimSuffix(strings.TrimSpace(part), ")"), -1)
			for len(args) > 0 && assignment.MatchString(args[0]) {
				args = args[1:]
			}
			if len(args) == 0 || args[0] != program {
				continue
			}
			if i := slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, ">") }); i >= 0 {
				args = args[:i]
			}
			for i := range args {
				args[i] = strings.Trim(args[i], `'"`)
			}
			all = append(all, args[1:])
		}
	}
	return all
}
