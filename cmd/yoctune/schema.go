package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/reference"
	"github.com/yoctune/yoctune/compiler/language/scaffold"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/schema"
)

func newSchemaCommand() *cobra.Command {
	var module string
	cmd := &cobra.Command{
		Use:         "schema [DEFINITION]",
		Annotations: cli.Formats("text", "json", "markdown", "jsonschema", "cue"),
		Short:       "Print the configuration language as a reference, JSON Schema or CUE",
		Long: `Print the language of configurations, or one definition of it, such as CPU. --format
chooses how:
  markdown    the reference for people; the same as text
  jsonschema  for editors, and for validators of what "cue export" prints; the same as json
  cue         the definitions themselves

With --module the command writes the definitions to a folder, as the CUE module
github.com/yoctune/yoctune/schema. "cue mod publish" takes it to a registry, for projects
that get the module from one instead of cue.mod/pkg.`,
		Example: `  yoctune schema > reference.md
  yoctune schema CPU
  yoctune schema --format jsonschema > config.schema.json
  yoctune schema --module schema-module`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			r, err := reference.Language()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return r.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if module != "" {
				return writeSchemaModule(cmd, module, args)
			}
			text, err := renderSchema(cli.Format(cmd), args)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&module, "module", "", "`DIR` to write the language to as a CUE module")
	return cmd
}

// writeSchemaModule writes the language as a CUE module into an empty folder.
func writeSchemaModule(cmd *cobra.Command, dir string, args []string) error {
	if len(args) > 0 {
		return cli.UsageError(fmt.Errorf("--module writes the whole language: leave out %s", args[0]))
	}
	written, err := scaffold.Write(dir, ".", scaffold.SchemaModule(), false)
	if errors.Is(err, scaffold.ErrNotEmpty) {
		return fmt.Errorf("%w; choose another folder", err)
	}
	if err != nil {
		return err
	}
	cli.NewPrinter(cmd).Printf("%s: wrote module %s, %s\n", dir, schema.ImportPath, count(len(written.Files), "file"))
	return nil
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
