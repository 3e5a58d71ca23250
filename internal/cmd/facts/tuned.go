package main

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	tunedOptions = regexp.MustCompile(`(?ms)^\tdef _get_config_options\(\w+\):\n(.*?)\n\t(?:def|@)`)
	tunedKey     = regexp.MustCompile(`"([a-z0-9_.]+)"\s*:`)
)

// writeTuned writes the plugins of tuned with the options that each declares.
func writeTuned(tuned repository, out string) error {
	commit, err := tuned.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	files, err := tuned.readFiles("HEAD", func(name string) bool {
		return path.Dir(name) == "tuned/plugins" && strings.HasPrefix(path.Base(name), "plugin_")
	})
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "redhat-performance/tuned %s\n\n", strings.TrimSpace(commit))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text.WriteString(strings.TrimSuffix(strings.TrimPrefix(path.Base(name), "plugin_"), ".py"))
		if body := tunedOptions.FindStringSubmatch(files[name]); body != nil {
			for _, key := range tunedKey.FindAllStringSubmatch(body[1], -1) {
				text.WriteString(" " + key[1])
			}
		}
		text.WriteString("\n")
	}
	return writeFile(out, []byte(text.String()))
}
