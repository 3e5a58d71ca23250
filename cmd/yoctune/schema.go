package main

import (
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/language/reference"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "schema",
		Annotations: map[string]string{moreFormats: "markdown jsonschema cue"},
		Short:       "Print the language: as a reference, as JSON Schema, or as CUE",
		Long: `Print the language that a configuration is written in.

--format is markdown, the reference for people and what text means here; jsonschema,
for editors and validators of configurations as "cue export" prints them; or cue,
the definitions themselves.`,
		Example: `  yoctune schema > reference.md
  yoctune schema --format jsonschema > config.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, err := formatOf(cmd)
			if err != nil {
				return err
			}
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
