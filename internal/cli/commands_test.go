package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// testRoot is a program with commands of every kind.
func testRoot() *cobra.Command {
	do := func(*cobra.Command, []string) error { return nil }
	return NewRoot(&cobra.Command{Use: "prog", Long: "prog tests the command line."}, "1.2.3", []Group{{"Main commands", []func() *cobra.Command{
		func() *cobra.Command { return &cobra.Command{Use: "vet [DIR]", Short: "Check", RunE: do} },
		func() *cobra.Command {
			cmd := &cobra.Command{Use: "build [DIR] -o OUT", Short: "Write", RunE: do, Annotations: Formats("text", "json", "sarif")}
			cmd.Flags().StringP("output", "o", "", "`OUT` folder to write to")
			cmd.Flags().Duration("timeout", time.Minute, "`TIME` that the build may take")
			cmd.Flags().Int("steps", 0, "number `N` of steps")
			cmd.Flags().Bool("all", false, "everything")
			cmd.Flags().Bool("one", false, "one")
			cmd.MarkFlagsMutuallyExclusive("all", "one")
			return cmd
		},
		func() *cobra.Command { return &cobra.Command{Use: "push LAYER REFERENCE", Short: "Publish", RunE: do} },
		func() *cobra.Command {
			return &cobra.Command{Use: "list [boards|releases]", Short: "List", ValidArgs: []string{"boards", "releases"}, RunE: do}
		},
		func() *cobra.Command {
			cmd := &cobra.Command{Use: "predict --kernel K FRAGMENT...", Short: "Predict", RunE: do}
			cmd.Flags().String("kernel", "", "`K` is the version of a kernel")
			cobra.CheckErr(cmd.MarkFlagRequired("kernel"))
			return cmd
		},
		func() *cobra.Command {
			return &cobra.Command{Use: "lease -- COMMAND [ARG...]", Short: "Lease", RunE: do}
		},
		func() *cobra.Command {
			group := &cobra.Command{Use: "facts", Short: "Facts"}
			group.AddCommand(&cobra.Command{Use: "show ID", Short: "Show", RunE: do})
			return group
		},
		func() *cobra.Command { return &cobra.Command{Use: "inner", Hidden: true, RunE: do} },
	}}})
}

func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                                 "",
		"--version":                        "",
		"facts":                            "",
		"facts show x":                     "",
		"help":                             "",
		"help facts show":                  "",
		"completion zsh":                   "",
		"vet":                              "",
		"vet a":                            "",
		"push a b":                         "",
		"predict --kernel 1 a b c":         "",
		"lease -- make -j8":                "",
		"inner":                            "",
		"vt":                               `unknown command "vt" for "prog"; did you mean "vet"?`,
		"bild":                             `unknown command "bild" for "prog"; did you mean "build"?`,
		"zzz":                              `unknown command "zzz" for "prog"`,
		"innr":                             `unknown command "innr" for "prog"`, // hidden
		"facts zzz":                        `unknown command "zzz" for "prog facts"`,
		"facts shwo":                       `unknown command "shwo" for "prog facts"; did you mean "show"?`,
		"help bild":                        `no help topic "bild"; did you mean "build"?`,
		"help nonsense":                    `no help topic "nonsense"`,
		"help facts shw":                   `no help topic "facts shw"; did you mean "show"?`,
		"completion csh":                   `"csh" is not one of bash, zsh, fish or powershell; did you mean "zsh"?`,
		"completion":                       "missing argument: bash|zsh|fish|powershell",
		"list board":                       `"board" is not one of boards or releases; did you mean "boards"?`,
		"vet a b":                          `unexpected argument "b"`,
		"build a b":                        `unexpected argument "b"`,
		"push":                             "missing arguments: LAYER REFERENCE",
		"push a":                           "missing argument: REFERENCE",
		"predict --kernel 1":               "missing argument: FRAGMENT",
		"predict a":                        "--kernel K is required",
		"lease":                            "missing argument: COMMAND",
		"build --outptu a":                 `unknown flag --outptu; did you mean "--output"?`,
		"build --zzzzzz a":                 "unknown flag --zzzzzz",
		"build -x":                         "unknown flag -x",
		"build -o":                         "--output needs a value: --output OUT",
		"build --timeout 5":                `--timeout "5": write a duration such as 500ms, 10s or 5m`,
		"build --steps 99999999999999999x": `--steps "99999999999999999x": write a whole number`,
		"build --all=maybe":                `--all "maybe": write true or false`,
		"build --all --one":                "--all and --one cannot be used together",
		"build --=x":                       "--=x is not a flag",
		"build --format yaml":              "--format yaml: this command offers text, json and sarif",
		"vet --format sarif":               "--format sarif: this command offers text and json",
	} {
		var stdout, stderr strings.Builder
		code := Run(context.Background(), testRoot(), strings.Fields(args), &stdout, &stderr)
		got := ""
		if code != ExitDone {
			got, _, _ = strings.Cut(strings.TrimPrefix(stderr.String(), "prog: "), "\n")
		}
		if got != want || (want != "") != (code == ExitUsage) {
			t.Errorf("prog %s: exit %d, %q, want %q", args, code, got, want)
		}
	}
}

func TestExitCodesAndTheJSONOfAFailure(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   int
		stdout string
	}{
		{nil, ExitDone, ""},
		{Answer(false), ExitNo, ""},
		{AlreadyReported(), ExitFailed, ""},
		{errors.New("broken"), ExitFailed, `{"type":"error","message":"broken"}` + "\n" + `{"type":"summary","command":"do","exit":1}` + "\n"},
		{UsageError(errors.New("wrong")), ExitUsage, `{"type":"error","message":"wrong"}` + "\n" + `{"type":"summary","command":"do","exit":2}` + "\n"},
	} {
		root := NewRoot(&cobra.Command{Use: "prog"}, "1", []Group{{"Main", []func() *cobra.Command{func() *cobra.Command {
			return &cobra.Command{Use: "do", RunE: func(*cobra.Command, []string) error { return c.err }}
		}}}})
		var stdout, stderr strings.Builder
		if code := Run(context.Background(), root, []string{"do", "--format", "json"}, &stdout, &stderr); code != c.code || stdout.String() != c.stdout {
			t.Errorf("%v: exit %d, %q", c.err, code, stdout.String())
		}
	}
}

// The placeholder of a flag is in one column, and its text in the next.
func TestHelpOfACommand(t *testing.T) {
	var stdout, stderr strings.Builder
	Run(context.Background(), testRoot(), []string{"build", "--help"}, &stdout, &stderr)
	const want = `Write

Usage:
  prog build [DIR] -o OUT [flags]

Flags:
      --all            everything
  -h, --help           show this help
      --one            one
  -o, --output OUT     folder to write to
      --steps N        number N of steps
      --timeout TIME   that the build may take (default 1m0s)

Global flags:
      --format FORMAT   output format: text, json or sarif (default text)
`
	if stdout.String() != want {
		t.Errorf("got\n%s", stdout.String())
	}
}

func TestHelpOfTheProgramGroupsTheCommands(t *testing.T) {
	var stdout, stderr strings.Builder
	Run(context.Background(), testRoot(), nil, &stdout, &stderr)
	for _, want := range []string{
		"\nUsage:\n  prog COMMAND\n", "\nMain commands:\n  build       Write\n  facts       Facts\n",
		"\nOther commands:\n  completion  Print a completion script for a shell\n  help        Show the help of a command\n",
		"\nFlags:\n  -h, --help      show this help\n      --version   print the version and exit\n",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	if strings.Contains(stdout.String(), "inner") {
		t.Error("a hidden command is shown")
	}
}
