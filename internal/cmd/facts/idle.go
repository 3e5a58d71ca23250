package main

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/linux"
)

// The kernel names an idle state after its node (drivers/cpuidle/dt_idle_states.c), and the state
// that needs no node after the instruction.
var (
	idleNode   = regexp.MustCompile(`(?:[A-Za-z0-9_]+\s*:\s*)?([a-z0-9-]+)\s*\{[^{}]*compatible\s*=\s*"arm,idle-state"`)
	processors = regexp.MustCompile(`^(tegra[0-9]+)-`)
)

const shallowest = "WFI"

// writeIdle writes the names of the idle states in NVIDIA's device trees, by L4T and processor.
func writeIdle(sources, out string) error {
	var text strings.Builder
	for _, s := range linux.Sources() {
		l4t, vendor := strings.CutPrefix(s.Note, "L4T ")
		if !vendor {
			continue
		}
		line, _, _ := strings.Cut(l4t, ".")
		files, err := repository(folder(sources, s.Repository)).readFiles(s.Commit, func(name string) bool {
			return strings.HasPrefix(name, "hardware/nvidia/soc/") && strings.HasSuffix(name, ".dtsi")
		})
		if err != nil {
			return err
		}
		states := map[string][]string{}
		for _, file := range slices.Sorted(maps.Keys(files)) {
			m := processors.FindStringSubmatch(path.Base(file))
			for _, found := range idleNode.FindAllStringSubmatch(comments.ReplaceAllString(files[file], ""), -1) {
				if m != nil && !slices.Contains(states[m[1]], found[1]) {
					states[m[1]] = append(states[m[1]], found[1])
				}
			}
		}
		fmt.Fprintf(&text, "source %s %s\n", s.Repository, s.Commit)
		for _, soc := range slices.Sorted(maps.Keys(states)) {
			fmt.Fprintf(&text, "R%s %s %s %s\n", line, soc, shallowest, strings.Join(states[soc], " "))
		}
	}
	return writeFile(out, []byte(text.String()))
}
