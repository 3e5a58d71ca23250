package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/outfile"
)

// sourceSuffixes are those of the files of a configuration.
func sourceSuffixes() []string { return []string{".cue", ".hcl", ".jsonnet", ".libsonnet"} }

// runInFolder returns a command function that calls run with the configuration folder [DIR].
func runInFolder(run func(cmd *cobra.Command, dir string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		dir, err := configurationFolder(args)
		if err != nil {
			return err
		}
		return run(cmd, dir)
	}
}

// configurationFolder returns the folder of the configuration that the arguments name:
// the current one without arguments, and the folder of a file of a configuration.
func configurationFolder(args []string) (string, error) {
	if len(args) == 0 {
		return ".", nil
	}
	return folderOf(args[0])
}

func folderOf(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil || info.IsDir() {
		return name, nil // a folder that is missing is reported where it is read
	}
	if slices.Contains(sourceSuffixes(), filepath.Ext(name)) {
		return filepath.Dir(name), nil
	}
	return "", fmt.Errorf("%s is not a folder; give the folder of the configuration", name)
}

// errStdinTwice is returned when two arguments name standard input.
var errStdinTwice = errors.New("standard input (-) can be read only once")

// writeOutput writes data to the file of --output, or to standard output when it is
// empty or "-".
func writeOutput(cmd *cobra.Command, name string, data []byte) error {
	if isStdout(name) {
		_, err := cmd.OutOrStdout().Write(data)
		return err
	}
	return outfile.Write(name, data)
}

func isStdout(name string) bool { return name == "" || name == "-" }

// shellWord writes a path so that a shell takes it for one word.
func shellWord(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+", r)
	}) {
		return path
	}
	word, err := quote.Shell(path)
	if err != nil {
		return path // no shell can have it
	}
	return word
}

// exists reports whether there is something at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
