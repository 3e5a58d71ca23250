package checklayer

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

const otherCase = "other"

// checkOtherMachines computes signatures for a machine that is not a target of the
// layer, with the layer enabled: every recipe must have the signatures that it has
// without the layer and with the same settings. yocto-check-layer does this for a
// layer that is not enabled.
func (g *rig) checkOtherMachines(ctx context.Context, log string) outcome {
	machine := g.similarMachine()
	if machine == "" {
		name, _ := g.src.bsp()
		return outcome{skip: "no machine of " + name + " that shares files with " + g.opt.Machine + " is left: the others are targets of the layer, or derived from them"}
	}
	mine := g.opt.Machine
	g.opt.Machine = machine
	defer func() { g.opt.Machine = mine }()

	s, _, o := g.resolveSamples(ctx, log, otherCase, append(g.layer.enableLines(g.src.Fragments), g.rigLines()...))
	if len(o.errors) > 0 {
		return o
	}
	with, out, err := g.signatures(ctx, otherCase, log)
	if err != nil {
		return outcome{errors: errorLines(out, err)}
	}
	// The same settings, without the layer's recipes and appends.
	var settings []string
	for _, name := range g.layer.Settings {
		settings = append(settings, "require "+filepath.Join(g.layer.Dir, "conf", "yoctune", name+".conf"))
	}
	unpack, err := g.layer.unpackDir()
	if err != nil {
		return failedOutcome(err)
	}
	lines := slices.Concat(unpack, g.rigLines(), g.sampleMask())
	if g.src.Fragments && len(g.layer.Fragments) > 0 { // bitbake reads a fragment after local.conf
		lines = slices.Concat(g.localConf(), lines, settings)
	} else {
		lines = slices.Concat(g.localConf(), settings, lines)
	}
	if err := g.configure(otherCase, conf{Layers: append(g.src.layers(), s.Dir), Lines: lines}); err != nil {
		return failedOutcome(err)
	}
	without, out, err := g.signatures(ctx, otherCase, log)
	if err != nil {
		return outcome{errors: errorLines(out, err)}
	}
	o = compareSignatures(with, without, func(pn string) bool {
		return g.layer.owns(pn) || strings.HasPrefix(pn, "yoctune-stand-in") || pn == "meta-world-pkgdata"
	}, func(pn string) bool {
		_, err := os.Stat(s.file(pn))
		return err == nil && !slices.Contains(g.layer.appended(), pn)
	})
	o.notes = append(o.notes, "compared for machine "+machine+", which is not a target")
	return o
}

// machineOverrides finds the names that a machine's file adds to its overrides: what
// applies to them applies to the machine too.
var machineOverrides = lazyregexp.New(`(?m)^MACHINEOVERRIDES\s*=\.\s*"([^"]*)"`)

var machineInclude = lazyregexp.New(`(?m)^\s*(?:require|include)\s+conf/machine/(\S+)`)

// similarMachine returns the machine of the BSP that shares the most files with the one
// being checked and is not a target of the layer, or "".
func (g *rig) similarMachine() string {
	mine, _ := g.machineFiles(g.opt.Machine, 3)
	best, most := "", 0
	for _, m := range g.src.machines() {
		if slices.Contains(g.layer.Machines, m) {
			continue
		}
		names, inherits := g.machineFiles(m, 3)
		shared := 0
		for _, name := range names {
			if slices.Contains(mine, name) {
				shared++
			}
		}
		if shared > most && !inherits { // one that inherits is meant to have what its model has
			best, most = m, shared
		}
	}
	return best
}

// machineFiles returns the files that a machine's file includes, directly, through another
// machine's or through files of the extra layers, and whether the name of a target is among
// its overrides.
func (g *rig) machineFiles(machine string, depth int) (names []string, inherits bool) {
	return g.includedFiles(g.src.machineFile(machine), depth)
}

func (g *rig) includedFiles(file string, depth int) (names []string, inherits bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, false
	}
	for _, m := range machineOverrides.FindAllSubmatch(b, -1) {
		inherits = inherits || slices.ContainsFunc(strings.Split(string(m[1]), ":"), func(name string) bool { return slices.Contains(g.layer.Machines, name) })
	}
	for _, m := range machineInclude.FindAllSubmatch(b, -1) {
		name := string(m[1])
		names = append(names, name)
		next := g.src.extraFile(filepath.Join("conf", "machine", name))
		if base, ok := strings.CutSuffix(name, ".conf"); ok {
			next = g.src.machineFile(base)
		}
		if next != "" && depth > 0 {
			more, also := g.includedFiles(next, depth-1)
			names, inherits = append(names, more...), inherits || also
		}
	}
	return names, inherits
}

// unpackDir returns the layer's own definition of UNPACKDIR, which applies even if the layer
// is not enabled.
func (l *layer) unpackDir() ([]string, error) {
	b, err := os.ReadFile(filepath.Join(l.Dir, "conf", "layer.conf"))
	if err != nil {
		return nil, err
	}
	for s := range strings.Lines(string(b)) {
		if strings.HasPrefix(s, "UNPACKDIR ??=") {
			return []string{strings.TrimSpace(s)}, nil
		}
	}
	return nil, nil
}

// signatures returns the hashes of all tasks of a world build, by recipe and task.
func (g *rig) signatures(ctx context.Context, build, log string) (map[string]string, string, error) {
	file := filepath.Join(g.build(build), "locked-sigs.inc")
	if err := os.RemoveAll(file); err != nil {
		return nil, "", err
	}
	how := "none" // kirkstone writes the file in any case
	if b, err := os.ReadFile(filepath.Join(g.src.Meta, "lib", "oe", "sstatesig.py")); err == nil && strings.Contains(string(b), "'lockedsigs' in options") {
		how = "lockedsigs"
	}
	out, err := g.bitbake(ctx, build, log, "bitbake", "-S", how, "world")
	if err != nil {
		return nil, out, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, out, err
	}
	found := lockedSignatures(string(b))
	if len(found) == 0 {
		return nil, out, fmt.Errorf("%s has no signatures", file)
	}
	return found, out, nil
}

var lockedSignature = lazyregexp.New(`^\s+([^:\s]+:[^:\s]+):([0-9a-f]+) \\$`)

// lockedSignatures reads what `bitbake -S lockedsigs` writes.
func lockedSignatures(text string) map[string]string {
	found := map[string]string{}
	for s := range strings.Lines(text) {
		if m := lockedSignature.FindStringSubmatch(strings.TrimRight(s, "\n")); m != nil {
			found[m[1]] = m[2]
		}
	}
	return found
}

// compareSignatures names the tasks that differ or are on one side only, but for
// recipes that are left out. A stand-in is built only when something needs it: one
// that appears when the layer is enabled is what the layer's own recipes need.
func compareSignatures(with, without map[string]string, leftOut, standIn func(pn string) bool) outcome {
	var o outcome
	needed := map[string]bool{}
	same := 0
	recipes := map[string]bool{}
	for task, hash := range without {
		pn, _, _ := strings.Cut(task, ":")
		switch now, ok := with[task]; {
		case leftOut(pn):
		case !ok:
			o.errors = append(o.errors, task+" disappears when the layer is enabled")
		case now != hash:
			o.errors = append(o.errors, task+" changes its signature when the layer is enabled")
		default:
			same++
			recipes[pn] = true
		}
	}
	for task := range with {
		pn, _, _ := strings.Cut(task, ":")
		if _, ok := without[task]; ok || leftOut(pn) {
			continue
		}
		if standIn(pn) {
			needed[pn] = true
		} else {
			o.errors = append(o.errors, task+" appears when the layer is enabled")
		}
	}
	slices.Sort(o.errors)
	if len(o.errors) > maxErrorLines {
		o.errors = append(o.errors[:maxErrorLines], "… more in the log")
	}
	if len(o.errors) == 0 && same == 0 {
		o.errors = []string{"no signatures were compared"}
	}
	o.notes = []string{fmt.Sprintf("%d tasks of %d recipes have the same signature", same, len(recipes))}
	if len(needed) > 0 {
		o.notes = append(o.notes, "only the layer's own recipes need the stand-ins for "+strings.Join(slices.Sorted(maps.Keys(needed)), ", "))
	}
	return o
}
