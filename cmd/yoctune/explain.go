package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
)

func newExplainCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "explain ID | PATH | FILE:LINE",
		Short: "Explain a diagnostic, a rule, or a field of the configuration",
		Long: `Explain one of:

  a diagnostic or a rule   YT0103, tcp-cc-bbr
  a field                  targets.cam.sysctl."vm.swappiness": its value, who said
                           so, what it replaced, what the kernel takes, what else it
                           touches, the settings and files it becomes
  a line                   config.cue:12: the fields written there

Fields and lines are looked up in the configuration of --dir.`,
		Example: `  yoctune explain YT0105
  yoctune explain targets.line-camera.sysctl.vm.swappiness --dir examples/video-analytics`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			ids := compiler.PageIDs()
			return slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, toComplete) }), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := formatOf(cmd)
			if err != nil {
				return err
			}
			if page, ok := compiler.Page(args[0]); ok {
				return showPage(cmd, format, page)
			}
			if looksLikeID(args[0]) {
				hint := diag.DidYouMean(args[0], compiler.PageIDs())
				if hint == "" {
					hint = "docs/rules.md lists what there is"
				}
				return fmt.Errorf("nothing is called %q; %s", args[0], hint)
			}
			return explainField(cmd, format, dir, args[0])
		},
	}
	variables(cmd)
	cmd.Flags().StringVar(&dir, "dir", ".", "`DIR` of the configuration")
	return cmd
}

// looksLikeID tells a mistyped id from a field at the margin of a configuration.
func looksLikeID(s string) bool {
	return regexp.MustCompile(`^(YT[0-9]*|[a-z0-9]+(-[a-z0-9]+)+)$`).MatchString(s)
}

func showPage(cmd *cobra.Command, format string, page diag.Explanation) error {
	w := cmd.OutOrStdout()
	if format == "json" {
		writeJSONLine(w, struct {
			Type string `json:"type"`
			diag.Explanation
		}{"explanation", page})
		endJSON(cmd)
		return nil
	}
	fmt.Fprintf(w, "%s: %s\n", page.ID, page.Title)
	if page.Severity != "" {
		fmt.Fprintf(w, "severity: %s\n", page.Severity)
	}
	fmt.Fprintf(w, "\n%s\n\nWhat to do: %s\n", page.Cause, page.Fix)
	for _, example := range []struct{ label, text string }{{"Wrong", page.Wrong}, {"Right", page.Right}} {
		if example.text != "" {
			fmt.Fprintf(w, "\n%s:\n    %s\n", example.label, strings.ReplaceAll(example.text, "\n", "\n    "))
		}
	}
	if page.See != "" {
		fmt.Fprintf(w, "\nSee: %s\n", page.See)
	}
	return nil
}

func explainField(cmd *cobra.Command, format, dir, what string) error {
	p, err := openProject(cmd, dir)
	if err != nil {
		return err
	}
	paths := []string{what}
	if at, ok := p.PathsAt(what); ok {
		if len(at) == 0 {
			return fmt.Errorf("no field of the configuration is written at %s", what)
		}
		paths = at
	}
	w := cmd.OutOrStdout()
	for i, path := range paths {
		a, err := p.Explain(path)
		if err != nil {
			return err
		}
		if format == "json" {
			writeJSONLine(w, struct {
				Type string `json:"type"`
				compiler.Account
			}{"account", a})
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		showAccount(w, a)
	}
	if format == "json" {
		endJSON(cmd)
	}
	return nil
}

func showAccount(w io.Writer, a compiler.Account) {
	fmt.Fprintln(w, a.Path)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "  %-10s %s\n", label, text)
		}
	}
	line("", a.Doc)
	line("takes", a.Expected)
	line("value", a.Value)
	if a.Pos != nil {
		at := compiler.Place(*a.Pos)
		if a.Profile != "" {
			at += ", profile " + a.Profile
		}
		line("written", at)
	} else {
		line("written", "nowhere in this configuration")
	}
	for _, r := range a.Replaced {
		line("replaces", r)
	}
	for _, n := range a.Notes {
		line("facts", n)
	}
	for _, n := range a.Implies {
		line("implies", n)
	}
	for _, n := range a.Touches {
		line("touches", n)
	}
	line("kernel", a.Kernel)
	for _, s := range a.Settings {
		where := s.Select.Path
		if where == "" {
			where = strings.Join(strings.Fields(s.Select.Class+" "+s.Select.Name+s.Select.OFNode+" "+s.Select.Attr), " ")
		}
		line("setting", fmt.Sprintf("%s = %s (%s, %s)", where, s.Want, s.Policy, s.ID))
	}
	for _, f := range a.Files {
		line("file", f)
	}
	line("schema", a.See)
	for _, r := range a.Rules {
		line("says", r)
	}
}
