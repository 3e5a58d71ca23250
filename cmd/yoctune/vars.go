package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/internal/cli"
)

// addVariableFlag adds --var, which sets the variables of a configuration.
func addVariableFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringArray("var", nil, "`NAME=VALUE` sets a variable: var.NAME in HCL, std.extVar('NAME') in Jsonnet; may be repeated")
	return cmd
}

// addRuntimeFlag adds --runtime to a command that makes whole layers.
func addRuntimeFlag(cmd *cobra.Command) {
	cmd.Flags().String("runtime", "", "`DIR` with the programs that layers contain (default: ../lib/yoctune beside yoctune, or those embedded in it)")
}

// openProject reads the configuration in a folder, with the variables of the command
// line.
func openProject(cmd *cobra.Command, dir string) (*compiler.Project, error) {
	o, err := projectOptions(cmd)
	if err != nil {
		return nil, err
	}
	return o.Open(dir)
}

func projectOptions(cmd *cobra.Command) (compiler.Options, error) {
	given, err := cmd.Flags().GetStringArray("var")
	if err != nil {
		return compiler.Options{}, err
	}
	o := compiler.Options{Vars: map[string]string{}}
	if f := cmd.Flags().Lookup("runtime"); f != nil {
		o.Runtime = f.Value.String()
		if f.Changed && o.Runtime == "" {
			return o, cli.UsageError(errors.New("--runtime needs the name of a folder"))
		}
	}
	if cache, err := os.UserCacheDir(); err == nil {
		o.Cache = filepath.Join(cache, "yoctune", "kernel")
	}
	for _, g := range given {
		name, value, ok := strings.Cut(g, "=")
		if !ok || name == "" {
			return o, cli.UsageError(fmt.Errorf("--var %s: write it as NAME=VALUE", g))
		}
		o.Vars[name] = value
	}
	return o, nil
}
