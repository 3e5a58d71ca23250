package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that takes one of some words.
type choice struct {
	value *string
	words []string
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (choice) Type() string { return "choice" }

func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("choose %s", enumerate(c.words, "or"))
	}
	*c.value = s
	return nil
}

// ChoiceVar adds a flag that takes one of words. Its default may be empty. Help lists the
// words behind the usage, and shells complete them.
func ChoiceVar(cmd *cobra.Command, value *string, name, def, usage string, words ...string) {
	*value = def
	cmd.Flags().Var(choice{value, words}, name, usage+": "+enumerate(words, "or"))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}
