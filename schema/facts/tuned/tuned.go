// Package tuned holds facts about tuned: its plugins, and the options that each declares in
// tuned's sources. Options of plugins that take any name (sysctl, sysfs, modules) are not
// among them.
package tuned

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed data/tuned.txt
var embedded string

var load = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	_, rows, _ := strings.Cut(embedded, "\n\n")
	for line := range strings.Lines(rows) {
		if words := strings.Fields(line); len(words) > 0 {
			all[words[0]] = words[1:]
		}
	}
	return all
})

// Source is the commit that was read, as "owner/name commit".
func Source() string {
	line, _, _ := strings.Cut(embedded, "\n")
	return line
}

// Plugins lists the plugins.
func Plugins() []string { return slices.Sorted(maps.Keys(load())) }

// Options lists the options of a plugin; ok is false for an unknown plugin.
func Options(plugin string) (options []string, ok bool) {
	options, ok = load()[plugin]
	return slices.Clone(options), ok
}
