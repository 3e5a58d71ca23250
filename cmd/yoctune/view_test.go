package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
)

func TestDiffsCannotControlTheTerminal(t *testing.T) {
	var out strings.Builder
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	showDiff(cli.NewPrinter(cmd), "--- a\n+++ b\n@@ -1 +1 @@\n-\tquiet\n+\x1b[2J\u202eloud\r\n")
	if want := "--- a\n+++ b\n@@ -1 +1 @@\n-\tquiet\n+" + `\x1b[2J\u202eloud\r` + "\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}
