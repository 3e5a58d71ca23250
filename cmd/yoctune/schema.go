package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/reference"
	"github.com/yoctune/yoctune/internal/cli"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "schema [DEFINITION]",
		Annotations: cli.Formats("text", "json", "markdown", "jsonschema", "cue"),
		Short:       "Print the configuration language as a reference, JSON Schema or CUE",
		Long: `Print the language of configurations, or one definition of it, such as CPU. --format
chooses how:
  markdown    the reference for people; the same as text
  jsonschema  for editors, and for validators of what "cue export" prints; the same as json
  cue         the definitions themselves`,
		Example: `  yoctune schema > reference.md
  yoctune schema CPU
  yoctune schema --format jsonschema > config.schema.json`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			r, err := reference.Language()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return r.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := renderSchema(cli.Format(cmd), args)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}

// renderSchema writes the whole language, or the definition that names has.
func renderSchema(format string, names []string) ([]byte, error) {
	r, err := reference.Language()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		switch format {
		case "cue":
			return reference.Text(), nil
		case "json", "jsonschema":
			return r.JSONSchema()
		}
		return r.Markdown(), nil
	}
	d, ok := r.Lookup(names[0])
	if !ok {
		if near := diag.Nearest(names[0], r.Names()); near != "" {
			return nil, fmt.Errorf("the language has no definition %q; did you mean %q?", names[0], near)
		}
		return nil, fmt.Errorf("the language has no definition %q; 'yoctune schema' lists them", names[0])
	}
	switch format {
	case "cue":
		return d.CUE()
	case "json", "jsonschema":
		return r.JSONSchemaOf(d)
	}
	return r.MarkdownOf(d), nil
}
