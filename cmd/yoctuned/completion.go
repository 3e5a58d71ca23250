package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// completer gives the words that a shell may complete.
type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// completeFrom completes argument number position with words of a plan: that in argument
// number planAt or in --plan, else the installed one. Other arguments are files.
func completeFrom(position, planAt int, words func(*rootfs.Root, *planfile.File) []string) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) != position {
			return nil, cobra.ShellCompDirectiveDefault
		}
		dev, err := rootfs.Open(rootDir(cmd))
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		src := planfile.Source{}
		if planAt < len(args) {
			src.Path = args[planAt]
		} else if f := cmd.Flags().Lookup("plan"); f != nil {
			src.Path = f.Value.String()
		}
		file, err := planfile.Load(dev, src)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(words(dev, file), func(w string) bool { return !strings.HasPrefix(w, toComplete) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// nodesOf lists the names of a plan's nodes: paths and the ids of settings.
func nodesOf(dev *rootfs.Root, file *planfile.File) []string {
	var words []string
	for _, r := range enforce.Verify(dev, file.Plan, enforce.DefaultOptions()) {
		words = append(words, r.Path, r.ID)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// pipelinesOf lists the pipelines of a plan.
func pipelinesOf(_ *rootfs.Root, file *planfile.File) []string {
	return slices.Sorted(maps.Keys(file.Plan.Pipelines))
}
