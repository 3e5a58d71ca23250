package strict

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var errUsage = errors.New("usage")

func TestWhatIsNoCommandIsAUsageError(t *testing.T) {
	for args, want := range map[string]string{
		"":                   "",
		"group":              "",
		"group do":           "",
		"help":               "",
		"help group do":      "",
		"grop":               `unknown command "grop" for "prog"; did you mean "group"?`,
		"zzz":                `unknown command "zzz" for "prog"`,
		"group zzz":          `unknown command "zzz" for "prog group"`,
		"group ddo":          `unknown command "ddo" for "prog group"; did you mean "do"?`,
		"help zzz":           `there is no help about "zzz"`,
		"help group zzz":     `there is no help about "group zzz"`,
		"completion csh":     `unknown command "csh" for "prog completion"; did you mean "bash"?`,
		"group do something": `unknown command "something" for "prog group do"`,
	} {
		root := &cobra.Command{Use: "prog", SilenceErrors: true, SilenceUsage: true}
		group := &cobra.Command{Use: "group"}
		group.AddCommand(&cobra.Command{Use: "do", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }})
		root.AddCommand(group)
		Commands(root, func(err error) error { return errors.Join(errUsage, err) })
		root.SetArgs(strings.Fields(args))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		err := root.Execute()
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), errUsage.Error()+"\n")
		}
		if got != want {
			t.Errorf("prog %s: %q, want %q", args, got, want)
		}
	}
}
