package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageHint follows a usage error.
func usageHint(cmd *cobra.Command) string {
	text := fmt.Sprintf("Run '%s --help' for more.", cmd.CommandPath())
	if cmd.HasSubCommands() {
		return text
	}
	return fmt.Sprintf("usage: %s\n%s", cmd.UseLine(), text)
}

// argument is a positional argument of a usage line, such as FILE... or [DIR].
type argument struct {
	name     string
	optional bool
	repeated bool
}

// arguments reads the usage line of a command, which therefore cannot promise anything
// other than those checked.
func arguments(cmd *cobra.Command) []argument {
	var out []argument
	fields := strings.Fields(cmd.Use)[1:]
	for i := 0; i < len(fields); i++ {
		word := fields[i]
		if flag, isFlag := strings.CutPrefix(word, "-"); isFlag {
			if f := lookup(cmd, strings.TrimPrefix(flag, "-")); f != nil && f.NoOptDefVal == "" {
				i++ // its value
			}
			continue
		}
		if word == "[flags]" {
			continue
		}
		var a argument
		word, a.repeated = strings.CutSuffix(word, "...")
		if inner, ok := strings.CutPrefix(word, "["); ok {
			a.optional = true
			word = strings.TrimSuffix(inner, "]")
			if cut, ok := strings.CutSuffix(word, "..."); ok {
				word, a.repeated = cut, true
			}
		}
		a.name = word
		out = append(out, a)
	}
	return out
}

func lookup(cmd *cobra.Command, name string) *pflag.Flag {
	if len(name) == 1 {
		return cmd.Flags().ShorthandLookup(name)
	}
	return cmd.Flags().Lookup(name)
}

// checkArguments compares the arguments with the usage line and with ValidArgs.
func checkArguments(cmd *cobra.Command, args []string) error {
	var missing []string
	left := len(args)
	for _, a := range arguments(cmd) {
		if left > 0 {
			left--
			if a.repeated {
				left = 0
			}
		} else if !a.optional {
			missing = append(missing, a.name)
		}
	}
	switch {
	case len(missing) == 1:
		return fmt.Errorf("missing argument: %s", missing[0])
	case len(missing) > 1:
		return fmt.Errorf("missing arguments: %s", strings.Join(missing, " "))
	case left > 0:
		return fmt.Errorf("unexpected argument %q", args[len(args)-left])
	}
	if len(cmd.ValidArgs) == 0 {
		return nil
	}
	for _, arg := range args {
		if !slices.Contains(cmd.ValidArgs, arg) {
			return fmt.Errorf("%q is not one of %s%s", arg, enumerate(cmd.ValidArgs, "or"), didYouMean(arg, cmd.ValidArgs))
		}
	}
	return nil
}

// Annotations that cobra gives to flags.
const (
	requiredKey  = cobra.BashCompOneRequiredFlag
	exclusiveKey = "cobra_annotation_mutually_exclusive"
)

// checkFlags finds required flags that are missing and flags that exclude each other.
func checkFlags(cmd *cobra.Command) (err error) {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(f.Annotations[requiredKey], "true") && !f.Changed {
			name, _ := placeholder(f)
			missing = append(missing, "--"+f.Name+" "+name)
		}
	})
	switch len(missing) {
	case 0:
	case 1:
		return fmt.Errorf("%s is required", missing[0])
	default:
		return fmt.Errorf("%s are required", enumerate(missing, "and"))
	}
	first := map[string]string{} // flag by group
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, group := range f.Annotations[exclusiveKey] {
			if other := first[group]; other != "" && err == nil {
				err = fmt.Errorf("--%s and --%s cannot be used together", other, f.Name)
			}
			first[group] = f.Name
		}
	})
	return err
}

// flagError words what pflag found wrong.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var noValue *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		var names []string
		visibleFlags(cmd.Flags(), func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		word := "--" + unknown.GetSpecifiedName()
		return fmt.Errorf("unknown flag %s%s", word, didYouMean(word, names))
	case errors.As(err, &noValue):
		name, _ := placeholder(noValue.GetFlag())
		return fmt.Errorf("--%s needs a value: --%s %s", noValue.GetFlag().Name, noValue.GetFlag().Name, name)
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return fmt.Errorf("--%s %q: %s", f.Name, invalid.GetValue(), valueFault(f.Value.Type(), invalid))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s is not a flag", syntax.GetSpecifiedFlag())
	}
	return err
}

// valueFault describes what is wrong with the value of a flag.
func valueFault(kind string, err error) string {
	if errors.Is(err, strconv.ErrRange) {
		return "the number is out of range"
	}
	switch kind {
	case "duration":
		return "write a duration such as 500ms, 10s or 5m"
	case "bool":
		return "write true or false"
	case "float64":
		return "write a number"
	case "int", "int64":
		return "write a whole number"
	case "uint64":
		return "write a whole number that is not negative"
	}
	return errors.Unwrap(err).Error()
}
