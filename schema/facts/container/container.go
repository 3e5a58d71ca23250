// Package container holds facts about container engines: the options of "run" and "create", from the
// sources of Docker's command line and of Podman. nerdctl has Docker's.
package container

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/spelling"
)

//go:embed data/options.txt
var embedded string

// load returns for each engine whether an option takes a value, by its name and letter without hyphens.
var load = sync.OnceValue(func() map[string]map[string]bool {
	engines := map[string]map[string]bool{}
	_, rows, _ := strings.Cut(embedded, "\n\n")
	for line := range strings.Lines(rows) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		options := map[string]bool{}
		for _, w := range words[1:] {
			names, hasValue := strings.CutSuffix(w, "=")
			for name := range strings.SplitSeq(names, ",") {
				options[name] = hasValue
			}
		}
		engines[words[0]] = options
	}
	engines["nerdctl"] = engines["docker"]
	return engines
})

// Sources are the commits that were read, each as "owner/name commit".
func Sources() []string {
	head, _, _ := strings.Cut(embedded, "\n\n")
	return strings.Split(head, "\n")
}

// Options lists the long options of an engine.
func Options(engine string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(load()[engine])), func(name string) bool { return len(name) == 1 })
}

// TakesValue reports whether an option of an engine, without hyphens, is followed by a value.
func TakesValue(engine, option string) (takes, known bool) {
	takes, known = load()[engine][option]
	return takes, known
}

// Nearest finds the option of an engine that a misspelt one was meant to be; "" if none is near.
func Nearest(engine, option string) string { return spelling.Nearest(option, Options(engine)) }
