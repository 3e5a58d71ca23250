package synthetic_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/synthetic"
	"github.com/yoctune/yoctune/schema/facts/board"
)

var update = flag.Bool("update", false, "rewrite the table of devices in docs/facts.md")

// docs/facts.md lists which boards have a device, and what the facts of the others lack.
func TestTheDocsListTheDevices(t *testing.T) {
	const page = "../../docs/facts.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(text), "<!-- devices -->\n")
	_, tail, ends := strings.Cut(rest, "<!-- end -->")
	if !begins || !ends {
		t.Fatalf("%s has no table of devices", page)
	}
	table := "| board | device |\n|---|---|\n"
	for _, id := range board.IDs() {
		state := "yes"
		if why := synthetic.Missing(id); why != nil {
			_, lack, _ := strings.Cut(why.Error(), ": its facts have ")
			state = "no: the facts have " + lack
		}
		table += "| `" + id + "` | " + state + " |\n"
	}
	want := head + "<!-- devices -->\n" + table + "<!-- end -->" + tail
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the table of devices in %s is not up to date: go test ./internal/synthetic -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
