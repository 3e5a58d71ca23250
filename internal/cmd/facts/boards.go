package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// updateBoards lays out every board file below dir, derives what the machines of
// each release decide, and rewrites the tables by which a device is recognised.
func updateBoards(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "data", "*.json"))
	if err != nil {
		return err
	}
	var boards []*board.Board
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		b := &board.Board{}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(b); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".json"); b.ID != want {
			return fmt.Errorf("%s: id is %q, want %q", file, b.ID, want)
		}
		if b.Evidence == nil {
			return fmt.Errorf("%s: evidence is missing: give the source of each field", file)
		}
		deriveReleases(b)
		if err := writeJSON(file, b); err != nil {
			return err
		}
		boards = append(boards, b)
	}
	text, err := identities(boards)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "identities.go"), text)
}

// deriveReleases derives the board's releases from the machines of each branch.
func deriveReleases(b *board.Board) {
	b.Releases = map[string]board.Release{}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		var mine []release.Machine
		for _, m := range r.Machines() {
			if hasBoard(m, b) {
				mine = append(mine, m)
			}
		}
		if len(mine) == 0 {
			continue
		}
		sort.SliceStable(mine, func(i, j int) bool { return rank(mine[i], b) < rank(mine[j], b) })
		var out board.Release
		for _, m := range mine {
			out.Machines = append(out.Machines, m.Name)
		}
		out.NVPModel = mine[0].NVPModel
		out.Table, out.Verified, out.Basis = nearestTable(b, out.NVPModel, r)
		for _, m := range mine[1:] {
			if m.NVPModel != out.NVPModel {
				table, _, _ := nearestTable(b, m.NVPModel, r)
				out.Others = append(out.Others, board.Other{Machine: m.Name, NVPModel: m.NVPModel, Table: table})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(b.Tables)) {
			if own := b.Tables[key].Own; own != "" {
				out.OwnModel, out.OwnTable = own, key
			}
		}
		b.Releases[name] = out
	}
	b.Evidence["releases"] = board.Evidence{Source: "OE4T/meta-tegra conf/machine of each branch", Verified: true}
}

func hasBoard(m release.Machine, b *board.Board) bool {
	return len(m.DeviceTrees) > 0 && slices.ContainsFunc(b.DeviceTrees, func(part string) bool {
		return strings.Contains(m.DeviceTrees[0], part)
	})
}

// rank puts the chosen default first, then developer kits, then the rest.
func rank(m release.Machine, b *board.Board) int {
	switch {
	case m.Name == b.DefaultMachine:
		return 0
	case strings.HasPrefix(m.Name, "jetson-"):
		return 1
	}
	return 2
}

// nearestTable returns the stock table that was read for the L4T nearest to the release's. basis
// is that L4T, when it differs.
func nearestTable(b *board.Board, file string, r release.Release) (key string, verified bool, basis string) {
	best := -1
	for _, name := range slices.Sorted(maps.Keys(b.Tables)) {
		t := b.Tables[name]
		if !slices.Contains(t.Files, file) || t.Lines != nil && !slices.Contains(t.Lines, r.Line()) {
			continue
		}
		near := 0
		if major, _, _ := strings.Cut(t.L4T, "."); "R"+major == r.Line() {
			near = 1
		}
		holds := slices.ContainsFunc(t.Holds, func(v string) bool { return strings.HasPrefix(r.L4T+".", v+".") })
		if holds {
			near = 2
		}
		if near > best {
			best, key, verified, basis = near, name, holds, t.L4T
		}
	}
	if verified {
		basis = ""
	}
	return key, verified, basis
}

// identities writes the Go tables by which a device recognises its board. They are
// code, because the enforcer must not decode the facts to read a few strings.
func identities(boards []*board.Board) ([]byte, error) {
	var modules, kits bytes.Buffer
	var ids []string
	for _, b := range boards {
		if b.IdentifiedBy != "" {
			ids = append(ids, b.ID)
		}
		switch b.IdentifiedBy {
		case "":
		case "module":
			var numbers []string
			for _, entry := range b.Compatible {
				// The last of "nvidia,CARRIER+MODULE" and "nvidia,MODULE".
				number := entry[strings.LastIndexAny(entry, ",+")+1:]
				if !slices.Contains(numbers, number) {
					numbers = append(numbers, number)
				}
			}
			fmt.Fprintf(&modules, "case %q:\nreturn %#v\n", b.ID, numbers)
		case "kit":
			fmt.Fprintf(&kits, "case %q:\nreturn %#v\n", b.ID, b.KitCompatible)
		default:
			return nil, fmt.Errorf("board %s: identified_by is %q, want \"module\" or \"kit\"", b.ID, b.IdentifiedBy)
		}
	}
	return format.Source(fmt.Appendf(nil, `// Code generated from data/*.json by go run ./internal/cmd/facts update. DO NOT EDIT.

package board

// recognised are the boards that a device tree identifies, by module or by kit.
var recognised = %#v

func modules(id string) []string {
switch id {
%s}
return nil
}

func kits(id string) []string {
switch id {
%s}
return nil
}
`, ids, modules.Bytes(), kits.Bytes()))
}
