package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/importer"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// registerCompletions registers the values of flags for shells. A flag of one name takes the
// same values in every command.
func registerCompletions(cmd *cobra.Command) {
	for name, words := range map[string]func(cmd *cobra.Command, args []string) []string{
		"board":   func(*cobra.Command, []string) []string { return board.IDs() },
		"release": func(*cobra.Command, []string) []string { return release.Names() },
		"kernel":  func(*cobra.Command, []string) []string { return strings.Split(kernel.Names(), ", ") },
		"as":      func(*cobra.Command, []string) []string { return importer.Kinds() },
		"kind":    func(*cobra.Command, []string) []string { return drawings() },
		"target":  targetNames,
		"against": targetNames,
	} {
		if !hasFlag(cmd, name) {
			continue
		}
		rest := cobra.ShellCompDirectiveNoFileComp
		if name == "kernel" {
			rest = cobra.ShellCompDirectiveDefault // or a file
		}
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return words(cmd, args), rest
		}))
	}
	for _, name := range []string{"dir", "workdir", "bitbake", "oe-core", "meta-tegra", "extra-layer", "overlay", "buildstats"} {
		if hasFlag(cmd, name) {
			cobra.CheckErr(cmd.MarkFlagDirname(name))
		}
	}
	for _, sub := range cmd.Commands() {
		registerCompletions(sub)
	}
}

// targetNames lists the targets of the configuration that the arguments name.
func targetNames(cmd *cobra.Command, args []string) []string {
	o, err := projectOptions(cmd)
	if err != nil {
		o = compiler.Options{}
	}
	dir, err := configurationFolder(args[:min(len(args), 1)])
	if err != nil {
		return nil
	}
	return o.TargetNames(dir)
}

func hasFlag(cmd *cobra.Command, flag string) bool {
	return cmd.Flags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil
}
