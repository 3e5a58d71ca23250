package manual_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli/manual"
)

// Pages show options as help does: the name of a value, and a default where there is one.
func TestPages(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "Do things", Long: "Do things with <names>.", Version: "1"}
	root.PersistentFlags().String("root", "/", "`DIR` to use in place of /")
	sub := &cobra.Command{Use: "make FILE", Short: "Make a thing", Long: "Make a thing.", Example: "  tool make a", Run: func(*cobra.Command, []string) {}}
	sub.Flags().StringP("output", "o", "", "`FILE` to write (default: standard output)")
	sub.Flags().Bool("force", false, "overwrite .files")
	sub.Flags().Int("level", 3, "`NUMBER` of rounds")
	root.AddCommand(sub)
	dir := t.TempDir()
	if err := manual.Write(root, dir, time.Unix(0, 0).UTC()); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string][]string{
		"tool.1": {"\\fBtool\\fP \\fICOMMAND\\fP [\\fIOPTION\\fP...]\n", "Do things with <names>", "\\fB--root\\fP \\fIDIR\\fP\nto use in place of / (default /)\n"},
		"tool-make.1": {
			`.TH "TOOL-MAKE" "1" "1970-01-01"`, "\\fBtool make FILE\\fP [\\fIOPTION\\fP...]\n",
			".SH OPTIONS\n", "\\fB-o\\fP, \\fB--output\\fP \\fIFILE\\fP\nto write (default: standard output)\n",
			"\\fB--force\\fP\noverwrite .files\n", "\\fB--level\\fP \\fINUMBER\\fP\nof rounds (default 3)\n",
			".SH OPTIONS OF ALL COMMANDS\n.TP\n\\fB--root\\fP", ".SH EXAMPLE",
		},
	} {
		name := filepath.Join(dir, "man", "man1", page)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s has no %q:\n%s", page, w, text)
			}
		}
		if strings.Contains(string(text), "[=false]") || strings.Contains(string(text), `=""`) {
			t.Errorf("%s has the generator's defaults:\n%s", page, text)
		}
		if mandoc, err := exec.LookPath("mandoc"); err != nil {
			t.Log("mandoc is not installed: the syntax of the pages was not checked")
		} else if out, err := exec.Command(mandoc, "-Tlint", "-Werror", name).CombinedOutput(); err != nil {
			t.Errorf("mandoc: %v\n%s", err, out)
		}
	}
}
