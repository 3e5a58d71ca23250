package main

import (
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/language/reference"
	"github.com/yoctune/yoctune/internal/cli"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "schema",
		Annotations: cli.Formats("text", "json", "markdown", "jsonschema", "cue"),
		Short:       "Print the configuration language as a reference, JSON Schema or CUE",
		Long: `Print the language of configurations. --format chooses how:
  markdown    the reference for people; the same as text
  jsonschema  for editors, and for validators of what "cue export" prints; the same as json
  cue         the definitions themselves`,
		Example: `  yoctune schema > reference.md
  yoctune schema --format jsonschema > config.schema.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := cli.Format(cmd)
			text, err := schemaAs(format)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}

func schemaAs(format string) ([]byte, error) {
	if format == "cue" {
		return reference.Text()
	}
	r, err := reference.Language()
	if err != nil {
		return nil, err
	}
	if format == "json" || format == "jsonschema" {
		return r.JSONSchema()
	}
	return r.Markdown(), nil
}
