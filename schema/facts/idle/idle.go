// Package idle holds the names of the idle states of processors, which internal/cmd/facts extracted
// from NVIDIA's device trees at the commits that the file names. Those of processors whose firmware
// or own driver has the states are not in it.
package idle

import (
	_ "embed"
	"strings"
)

//go:embed data/idle.txt
var embedded string

// States lists the idle states of a processor on a line of L4T such as R32; none where they are not
// known.
func States(soc, line string) []string {
	for row := range strings.Lines(embedded) {
		if words := strings.Fields(row); words[0] == line && words[1] == soc {
			return words[2:]
		}
	}
	return nil
}
