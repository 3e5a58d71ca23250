// Package machines extends the configuration of tests/series to a target for every
// machine of a release of meta-tegra.
package machines

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

var target = regexp.MustCompile(`\{board: "([^"]+)", machine: "([^"]+)", release: "([^"]+)", use: (\[[^\]]*\](?:, memory: thp: "[a-z]+")?)`)

// Config returns the files of the configuration in dir with targets added for machines of a
// release that have none. Each gets the first board whose facts name the machine, and the profiles
// of the first target of the same release and SoC.
//
// Machines without a board are returned as missing, by release.
func Config(dir string) (files map[string][]byte, missing map[string][]string, err error) {
	files, missing = map[string][]byte{}, map[string][]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, nil, err
		}
	}
	const opening = "\ttargets: {\n"
	text := files["config.cue"]
	before, after, ok := bytes.Cut(text, []byte(opening))
	if !ok {
		return nil, nil, errors.New("config.cue has no targets")
	}
	taken, use := map[string]bool{}, map[string]string{}
	for _, m := range target.FindAllStringSubmatch(string(text), -1) {
		taken[m[3]+" "+m[2]] = true
		b, _ := board.Lookup(m[1])
		if like := m[3] + " " + b.SoC; use[like] == "" {
			use[like] = m[4]
		}
	}
	var more strings.Builder
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		for _, m := range r.Machines() {
			if taken[name+" "+m.Name] {
				continue
			}
			b, ok := boardOf(name, m.Name)
			if !ok {
				missing[name] = append(missing[name], m.Name)
				continue
			}
			profiles := use[name+" "+b.SoC]
			if profiles == "" {
				profiles = `["common"]`
			}
			fmt.Fprintf(&more, "\t\t%q: {board: %q, machine: %q, release: %q, use: %s}\n", strings.ReplaceAll(name, ".", "-")+"-"+m.Name, b.ID, m.Name, name, profiles)
		}
	}
	files["config.cue"] = slices.Concat(before, []byte(opening+more.String()), after)
	return files, missing, nil
}

func boardOf(release, machine string) (*board.Board, bool) {
	for _, id := range board.IDs() {
		b, _ := board.Lookup(id)
		if slices.Contains(b.Releases[release].Machines, machine) {
			return b, true
		}
	}
	return nil, false
}
