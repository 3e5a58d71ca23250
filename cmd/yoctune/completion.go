package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/importer"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// registerCompletions registers the values of flags for shells. A flag of one name takes the
// same values in every command.
func registerCompletions(cmd *cobra.Command) {
	for name, words := range map[string]func() []string{
		"board":   func() []string { return board.IDs() },
		"release": func() []string { return release.Names() },
		"kernel":  func() []string { return strings.Split(kernel.Names(), ", ") },
		"as":      func() []string { return importer.Kinds() },
		"kind":    func() []string { return drawings() },
	} {
		if !hasFlag(cmd, name) {
			continue
		}
		rest := cobra.ShellCompDirectiveNoFileComp
		if name == "kernel" {
			rest = cobra.ShellCompDirectiveDefault // or a file
		}
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return words(), rest
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

func hasFlag(cmd *cobra.Command, flag string) bool {
	return cmd.Flags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil
}
