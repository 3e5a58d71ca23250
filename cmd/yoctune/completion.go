package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/importer"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// completions tells shells what flags take, wherever a flag of that name is: a word
// means the same in every command.
func completions(cmd *cobra.Command) {
	for name, words := range map[string]func(*cobra.Command) []string{
		"board":   func(*cobra.Command) []string { return board.IDs() },
		"release": func(*cobra.Command) []string { return release.Names() },
		"kernel":  func(*cobra.Command) []string { return strings.Split(kernel.Names(), ", ") },
		"as":      func(*cobra.Command) []string { return importer.Kinds() },
		"kind":    func(*cobra.Command) []string { return drawings() },
		"format":  formatsOf,
	} {
		if !has(cmd, name) {
			continue
		}
		rest := cobra.ShellCompDirectiveNoFileComp
		if name == "kernel" {
			rest = cobra.ShellCompDirectiveDefault // or a file
		}
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return words(cmd), rest
		}))
	}
	for _, name := range []string{"dir", "workdir", "bitbake", "oe-core", "meta-tegra", "extra-layer", "overlay", "buildstats"} {
		if has(cmd, name) {
			cobra.CheckErr(cmd.MarkFlagDirname(name))
		}
	}
	for _, sub := range cmd.Commands() {
		completions(sub)
	}
}

func has(cmd *cobra.Command, flag string) bool {
	return cmd.Flags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil
}
