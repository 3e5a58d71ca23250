package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	// A flag of pflag: the method, a name or its constant, and the letter of methods that end in P.
	engineFlag = regexp.MustCompile(`[fF]lags\.((?:Bool|Count|Duration|Float|Int|String|Uint|Var)[A-Za-z0-9]*)\(\s*(?:&?[\w.]+(?:\(\))?,\s*)?(?:"([a-z][a-z0-9-]+)"|(\w*FlagName)),\s*(?:"(\w?)")?`)
	engineName = regexp.MustCompile(`(\w+FlagName) *:?= *"([a-z][a-z0-9-]*)"`)
)

// writeContainers writes the options of "run" and "create" of container engines: "=" marks those
// that take a value, and a letter follows a comma.
func writeContainers(docker, podman repository, out string) error {
	var head, rows strings.Builder
	for _, engine := range []struct {
		name, source string
		repo         repository
		files        []string
	}{
		{"docker", "docker/cli", docker, []string{"cli/command/container/opts.go", "cli/command/container/run.go", "cli/command/container/create.go"}},
		{"podman", "containers/podman", podman, []string{"cmd/podman/common/create.go", "cmd/podman/common/netflags.go", "cmd/podman/containers/run.go", "cmd/podman/containers/create.go"}},
	} {
		commit, err := engine.repo.git("rev-parse", "HEAD")
		if err != nil {
			return err
		}
		var options []string
		for _, name := range engine.files {
			text, err := engine.repo.git("show", "HEAD:"+name)
			if err != nil {
				return err
			}
			constants := map[string]string{}
			for _, m := range engineName.FindAllStringSubmatch(text, -1) {
				constants[m[1]] = m[2]
			}
			for _, m := range engineFlag.FindAllStringSubmatch(text, -1) {
				option := m[2] + constants[m[3]]
				if option == "" {
					return fmt.Errorf("%s of %s: no name of %s", name, engine.source, m[3])
				}
				if m[4] != "" && strings.HasSuffix(m[1], "P") {
					option += "," + m[4]
				}
				if !strings.HasPrefix(m[1], "Bool") && !strings.HasPrefix(m[1], "Count") {
					option += "="
				}
				options = append(options, option)
			}
		}
		slices.Sort(options)
		fmt.Fprintf(&head, "%s %s\n", engine.source, strings.TrimSpace(commit))
		fmt.Fprintf(&rows, "%s %s\n", engine.name, strings.Join(slices.Compact(options), " "))
	}
	return writeFile(filepath.Join(out, "options.txt"), []byte(head.String()+"\n"+rows.String()))
}
