package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/reference"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/cli/clitest"
)

func TestEveryCommandHasHelpAndExamplesThatItAccepts(t *testing.T) {
	clitest.CheckHelp(t, newRootCommand)
}

// runJSON runs a command line with --format json and decodes its lines.
func runJSON[T any](t *testing.T, args ...string) []T {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(t.Context(), append(args, "--format", "json"), &out, &errOut); code != cli.ExitDone {
		t.Fatalf("%q: exit %d: %s", args, code, &errOut)
	}
	var all []T
	for line := range strings.Lines(out.String()) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v in %s", args, err, line)
		}
		all = append(all, v)
	}
	return all
}

// A "see" line must be usable without this repository: it names a command that the program
// accepts, or a document published elsewhere.
func TestNoSeeLineNamesAFileOfThisRepository(t *testing.T) {
	type object struct{ Type, ID, See string }
	see := map[string]string{} // id by text
	for _, topic := range runJSON[object](t, "explain", "--list") {
		if topic.Type == "path" || topic.Type == "summary" {
			continue
		}
		for _, page := range runJSON[object](t, "explain", topic.ID) {
			if page.See != "" {
				see[page.See] = topic.ID
			}
		}
	}
	if len(see) < 50 {
		t.Fatalf("only %d pages have a see line", len(see))
	}
	lang, err := reference.Language()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]string{nil, {"targets", "cam"}, {"targets", "cam", "cpu", "governor"}, {"targets", "cam", "pipelines", "p", "budget", "memory"}, {"build", "sstate", "dir"}} {
		doc, known := conform.Language().Describe(path)
		if !known {
			t.Fatalf("the language has no %q", path)
		}
		if doc.See != "" {
			see[doc.See] = strings.Join(path, ".")
		}
	}
	for text, where := range see {
		if err := checkSee(lang, text); err != nil {
			t.Errorf("%s: see %q: %v", where, text, err)
		}
	}
}

// checkSee refuses a text that names a file of this repository, or a command or a
// definition that does not exist.
func checkSee(lang *reference.Reference, text string) error {
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" ,;:()", c) }) {
		if _, err := os.Stat(filepath.Join("..", "..", word)); err == nil && strings.ContainsAny(word, "./") {
			return fmt.Errorf("%s is a file of this repository", word)
		}
	}
	command, _, _ := strings.Cut(text, ";")
	command, isCommand := strings.CutPrefix(command, "yoctune ")
	if !isCommand {
		return nil
	}
	args := strings.Fields(command)
	found, rest, err := newRootCommand().Find(args)
	if err != nil {
		return err
	}
	if name, ok := strings.CutPrefix(command, "schema "); ok {
		if _, known := lang.Lookup(name); !known {
			return errors.New("there is no such definition")
		}
	}
	if args[len(args)-1] == "--help" {
		return nil
	}
	return found.ValidateArgs(rest)
}
