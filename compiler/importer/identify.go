package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/board"
	recipefacts "github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// identify finds out which release, machine and board the files are for.
func (im *importer) identify() error {
	clues := im.findClues()
	im.distro = clues.chosenDistro()
	im.layer, im.priority, im.collections = clues.collection, clues.priorities[clues.collection], clues.collections

	names := []string{im.o.Release}
	if im.o.Release == "" {
		names = clues.listReleases()
	}
	if len(names) == 0 {
		alsoBoard := ""
		if im.o.Board == "" && im.o.Machine == "" && len(clues.machineFiles) == 0 {
			alsoBoard = "; and give --board: " + strings.Join(board.IDs(), ", ")
		}
		return fmt.Errorf("%w: no LAYERSERIES_COMPAT names a release; give --release: %s%s", ErrWhich, strings.Join(release.Names(), ", "), alsoBoard)
	}
	for _, name := range names {
		r, ok := release.Lookup(name)
		if !ok {
			return fmt.Errorf("release %q is %w; there are %s", name, ErrUnknown, strings.Join(release.Names(), ", "))
		}
		im.release = r
		err := im.identifyBoard(clues)
		if err == nil || im.o.Release != "" || name == names[len(names)-1] {
			return err
		}
	}
	return nil
}

// identifyBoard finds machine and board for the release.
func (im *importer) identifyBoard(c clues) error {
	im.machine = cmp.Or(im.o.Machine, c.chosenMachine(im.release.Name))
	if im.machine == "" && len(c.machineFiles) > 1 {
		if b, ok := board.Lookup(im.o.Board); ok {
			machines := b.Releases[im.release.Name].Machines
			if i := slices.IndexFunc(machines, func(m string) bool { return slices.Contains(c.machineFiles, m) }); i >= 0 {
				im.machine = machines[i]
			}
		}
	}
	if im.machine == "" && len(c.machineFiles) > 1 {
		return fmt.Errorf("%w: the layer has several machines; give --machine: %s", ErrWhich, strings.Join(c.machineFiles, ", "))
	}
	if im.machine == "" && len(c.machineFiles) == 1 {
		im.machine = c.machineFiles[0]
	}
	id := im.o.Board
	if id == "" {
		candidates := likelyBoards(c.stockMachine(im.machine), im.release.Name)
		if im.machine == "" {
			candidates = c.listBoards(im.release.Name)
		}
		if len(candidates) == 0 && im.machine != "" {
			return fmt.Errorf("%w: no known module for machine %q on %s; give --board: %s", ErrWhich, im.machine, im.release.Name, strings.Join(board.IDs(), ", "))
		}
		if len(candidates) != 1 {
			if len(candidates) == 0 {
				candidates = board.IDs()
			}
			return fmt.Errorf("%w: give --board: %s", ErrWhich, strings.Join(candidates, ", "))
		}
		id = candidates[0]
	}
	b, ok := board.Lookup(id)
	if !ok {
		return fmt.Errorf("board %q is %w; there are %s", id, ErrUnknown, strings.Join(board.IDs(), ", "))
	}
	im.board = b
	first, others := boardsOf(c.stockMachine(im.machine), im.release.Name)
	if all := append(first, others...); len(all) > 0 && !slices.Contains(all, id) {
		return fmt.Errorf("%w: machine %s is for %s, not for %s; change --machine or --board", ErrWhich, im.machine, strings.Join(all, ", "), id)
	}
	facts, ok := b.Releases[im.release.Name]
	if !ok || len(facts.Machines) == 0 {
		return fmt.Errorf("board %s does not run on release %s: %w", id, im.release.Name, ErrUnknown)
	}
	if im.machine == "" {
		im.machine = facts.Machines[0]
	}
	im.overrides = c.overrides[im.machine]
	im.custom = !slices.Contains(facts.Machines, im.machine)
	return nil
}

// boardsOf lists the boards that a machine of meta-tegra is for: those whose
// default machine it is, and the others.
func boardsOf(machine, releaseName string) (first, others []string) {
	for _, id := range board.IDs() {
		b, _ := board.Lookup(id)
		switch i := slices.Index(b.Releases[releaseName].Machines, machine); {
		case i == 0:
			first = append(first, id)
		case i > 0:
			others = append(others, id)
		}
	}
	return first, others
}

// likelyBoards returns the board that a machine is for, or several when that is not clear.
func likelyBoards(machine, releaseName string) []string {
	first, others := boardsOf(machine, releaseName)
	if len(first) > 0 {
		return first
	}
	return others
}

// clues holds the files' hints about board, release and layer.
type clues struct {
	series       []string // LAYERSERIES_COMPAT
	machines     []string // MACHINE of local.conf and its like
	machineFiles []string // conf/machine/*.conf
	requires     map[string]string
	overrides    map[string][]string // MACHINEOVERRIDES, by machine
	distros      []string            // DISTRO of local.conf and its like
	collection   string
	collections  []string
	priorities   map[string]string // by collection
	powerFiles   []string          // base names of power mode files
}

func (im *importer) findClues() clues {
	c := clues{priorities: map[string]string{}, requires: map[string]string{}, overrides: map[string][]string{}}
	for _, s := range im.sources {
		base := path.Base(s.Name)
		if s.Kind == NVPModel {
			c.powerFiles = append(c.powerFiles, strings.TrimSuffix(base, ".conf"))
		}
		if s.Kind == Kas {
			f, _ := parseKas(s, 0) // a file that cannot be read is left with the reason
			if isWord(f.machine) {
				c.machines = append(c.machines, f.machine)
			}
			c.series = append(c.series, f.branches...)
			c.distros = append(c.distros, f.distro)
		}
		if s.Kind != BitBake {
			continue
		}
		ofMachine := ""
		if path.Base(path.Dir(s.Name)) == "machine" && path.Ext(base) == ".conf" {
			ofMachine = strings.TrimSuffix(base, ".conf")
			c.machineFiles = append(c.machineFiles, ofMachine)
		}
		lines, problem := split(s)
		if problem != "" {
			continue
		}
		for _, group := range groupContinuedLines(lines) {
			text := joinLines(group)
			if file, ok := strings.CutPrefix(text, "require conf/machine/"); ok && ofMachine != "" && !strings.Contains(file, "/") && c.requires[ofMachine] == "" {
				c.requires[ofMachine] = strings.TrimSuffix(strings.TrimSpace(file), ".conf")
			}
			a, ok := parseAssignment(text)
			if !ok || a.Flag != "" {
				continue
			}
			switch {
			case a.base == "MACHINEOVERRIDES" && ofMachine != "":
				for w := range strings.SplitSeq(a.Value, ":") {
					if isWord(w) {
						c.overrides[ofMachine] = append(c.overrides[ofMachine], w)
					}
				}
			case strings.HasPrefix(a.base, "LAYERSERIES_COMPAT_"):
				c.series = append(c.series, strings.Fields(a.Value)...)
			case a.base == "MACHINE" && isWord(a.Value) && ofMachine == "" && path.Base(path.Dir(s.Name)) != "distro":
				c.machines = append(c.machines, a.Value)
			case a.base == "DISTRO" && isWord(a.Value) && parseRank(s) == localRank:
				c.distros = append(c.distros, a.Value)
			case a.base == "BBFILE_COLLECTIONS":
				if words := strings.Fields(a.Value); len(words) > 0 {
					c.collection = words[0]
					c.collections = append(c.collections, words...)
				}
			case strings.HasPrefix(a.base, "BBFILE_PRIORITY_") && len(a.Value) <= 2 && formatScalar(a.Value) == a.Value:
				c.priorities[strings.TrimPrefix(a.base, "BBFILE_PRIORITY_")] = a.Value
			}
		}
	}
	return c
}

// listReleases lists the releases that the files are made for, the newest first.
func (c clues) listReleases() []string {
	var out []string
	all := release.Series()
	slices.Reverse(all)
	for _, series := range all {
		if !slices.Contains(c.series, series) {
			continue
		}
		for _, prefer := range []bool{true, false} { // the branch named like the series comes first
			for _, name := range release.Names() {
				r, ok := release.Lookup(name)
				if ok && r.Series == series && (name == series) == prefer {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// chosenMachine returns the machine that a local.conf chooses: one that the release or the
// layer has, rather than the emulated one of a sample.
func (c clues) chosenMachine(releaseName string) string {
	for _, m := range c.machines {
		if slices.Contains(c.machineFiles, m) || len(likelyBoards(m, releaseName)) > 0 {
			return m
		}
	}
	if len(c.machines) > 0 && len(c.machineFiles) == 0 && !strings.HasPrefix(c.machines[0], "qemu") {
		return c.machines[0]
	}
	return ""
}

// stockMachine returns the machine of meta-tegra that a machine of the layer builds upon.
func (c clues) stockMachine(machine string) string {
	for range len(c.requires) {
		base, ok := c.requires[machine]
		if !ok {
			break
		}
		machine = base
	}
	return machine
}

// listBoards lists the boards whose stock power mode file is among the files.
func (c clues) listBoards(releaseName string) []string {
	var out []string
	for _, id := range board.IDs() {
		b, _ := board.Lookup(id)
		r := b.Releases[releaseName]
		for _, f := range c.powerFiles {
			if f != "" && (f == r.NVPModel || f == r.OwnModel) && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// layerName is layer.name.
func (im *importer) layerName() string {
	name := LayerName(cmp.Or(im.o.Layer, im.layer))
	if im.o.Layer == "" && recipefacts.IsLayer(im.release.Name, name) {
		return LayerName("imported-" + name) // the new layer stands beside the one that was read
	}
	return name
}

// LayerName derives a valid layer name from any text; "imported" if nothing is left.
func LayerName(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == 40 {
			break
		}
	}
	if name := strings.TrimRight(b.String(), "-"); name != "" {
		return name
	}
	return "imported"
}

// Nobody is the placeholder for a missing maintainer.
const Nobody = "Maintainer <maintainer@example.com>"

func (im *importer) targetName() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, im.machine)
}
