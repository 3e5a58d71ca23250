package review

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

// Kind is what happened to something.
type Kind string

// What can happen.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Need is what a device needs before a change is in force, once it has the new
// files. Later ones include the earlier.
type Need int

// What a device can need.
const (
	noNeed  Need = iota // it applies while the device runs
	build               // only the build changes; the device has nothing to do
	restart             // a service or pipeline starts again
	reboot
	reflash
)

var needs = [...]string{"nothing", "build", "restart", "reboot", "reflash"}

func (n Need) String() string { return needs[n] }

// MarshalText writes the name.
func (n Need) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// Risk is how much can go wrong on the device.
type Risk int

// Levels of risk.
const (
	low Risk = iota
	medium
	high
)

var risks = [...]string{"low", "medium", "high"}

func (r Risk) String() string { return risks[r] }

// MarshalText writes the name.
func (r Risk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Change is one difference in meaning.
type Change struct {
	Area    string         `json:"area"` // as people call it: power mode, sysctl, kernel option
	ID      string         `json:"id"`   // as in plan.Origins
	Name    string         `json:"name"`
	Kind    Kind           `json:"change"`
	Was     string         `json:"was,omitempty"`
	Now     string         `json:"now,omitempty"`
	Details []Detail       `json:"details,omitempty"`
	Need    Need           `json:"needs"`
	Rebuild []string       `json:"rebuild,omitempty"` // recipes
	Risk    Risk           `json:"risk"`
	Why     string         `json:"why,omitempty"`    // what the risk is
	Origin  *plan.Position `json:"origin,omitempty"` // in the new configuration; in the old one for what was removed
}

// Detail is one value inside a change.
type Detail struct {
	Name string `json:"name"`
	Was  string `json:"was,omitempty"`
	Now  string `json:"now,omitempty"`
}

// Target is what changes for one device.
type Target struct {
	Name    string
	Machine string
	Board   string
	Release string
	Kind    Kind // Added and Removed targets have no changes of their own
	Changes []Change
	Own     []Change // those of Changes that are not among the review's Shared

	was, now *target
}

// greatest returns the greatest need and risk of changes.
func greatest(changes []Change) (need Need, risk Risk) {
	for _, c := range changes {
		need, risk = max(need, c.Need), max(risk, c.Risk)
	}
	return need, risk
}

// Need is the most that any change needs.
func (t Target) Need() Need {
	need, _ := greatest(t.Changes)
	return need
}

// Risk is the greatest of any change.
func (t Target) Risk() Risk {
	_, risk := greatest(t.Changes)
	return risk
}

// Rebuild lists the recipes that have to be built again.
func (t Target) Rebuild() []string {
	all := map[string]bool{}
	for _, c := range t.Changes {
		for _, r := range c.Rebuild {
			all[r] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// File is a file that differs.
type File struct {
	Path string
	Kind Kind
	Was  []byte
	Now  []byte
}

// Review is what changes from one layer to another.
type Review struct {
	Layer    string
	Old, New string // labels of the sides
	Build    []Change
	Targets  []Target // by name; only those that differ
	Shared   []Change // of each of several targets that change
	Files    []File   // by path
	Same     int      // targets without a difference
	Folder   string   // of the configuration, seen from the current folder: text shows positions below it
}

// Clean reports whether the layers are equal.
func (r *Review) Clean() bool { return len(r.Files) == 0 }

// Compare finds the changes between two sides. With across, each side has one target, and the
// two are compared even if their names differ.
func Compare(was, now Side, across bool) (*Review, error) {
	before, err := read(was)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", was.Label, err)
	}
	after, err := read(now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", now.Label, err)
	}
	r := &Review{Layer: after.name, Old: was.Label, New: now.Label}
	r.compareFiles(was.Files, now.Files, renamer(before, after, across))
	r.Build = buildChanges(before, after)
	for _, p := range pairTargets(before, after, across) {
		r.addTarget(p[0], p[1])
	}
	r.addUnexplained(before, after)
	r.Targets = slices.DeleteFunc(r.Targets, func(t Target) bool {
		same := t.Kind == Changed && len(t.Changes) == 0
		if same {
			r.Same++
		}
		return same
	})
	slices.SortFunc(r.Targets, func(a, b Target) int { return strings.Compare(a.Name, b.Name) })
	r.collectShared()
	return r, nil
}

// collectShared finds the changes that several targets have in common.
func (r *Review) collectShared() {
	same := func(c Change) string {
		return fmt.Sprintf("%q%q%q%q%q%q", c.ID, c.Area, c.Name, c.Was, c.Now, c.Details)
	}
	times, targets := map[string]int{}, 0
	for _, t := range r.Targets {
		if t.Kind == Changed {
			targets++
		}
		for _, c := range t.Changes {
			times[same(c)]++
		}
	}
	shared := func(c Change) bool { return targets > 1 && times[same(c)] == targets }
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind == Changed && r.Shared == nil {
			r.Shared = slices.DeleteFunc(slices.Clone(t.Changes), func(c Change) bool { return !shared(c) })
		}
		t.Own = slices.DeleteFunc(slices.Clone(t.Changes), shared)
	}
}

// renamer gives the files of one machine the paths they would have for the other,
// so that across targets like is compared with like.
func renamer(before, after *layer, across bool) func(string) string {
	if !across || len(before.targets) != 1 || len(after.targets) != 1 {
		return func(name string) string { return name }
	}
	only := func(l *layer) string { return "/" + slices.Collect(maps.Keys(l.targets))[0] + "/" }
	return strings.NewReplacer(only(before), only(after)).Replace
}

func (r *Review) compareFiles(was, now []emitters.File, rename func(string) string) {
	before, after := map[string][]byte{}, map[string][]byte{}
	for _, f := range was {
		before[rename(f.Path)] = f.Data
	}
	for _, f := range now {
		after[f.Path] = f.Data
	}
	eachKey(before, after, func(name string) {
		a, old := before[name]
		b, new := after[name]
		switch {
		case !old:
			r.Files = append(r.Files, File{name, Added, nil, b})
		case !new:
			r.Files = append(r.Files, File{name, Removed, a, nil})
		case !bytes.Equal(a, b):
			r.Files = append(r.Files, File{name, Changed, a, b})
		}
	})
}

// pairTargets matches targets by name, then by machine.
func pairTargets(before, after *layer, across bool) [][2]*target {
	var out [][2]*target
	used := map[*target]bool{}
	find := func(same func(*target) bool) *target {
		for _, m := range slices.Sorted(maps.Keys(before.targets)) {
			if t := before.targets[m]; !used[t] && same(t) {
				used[t] = true
				return t
			}
		}
		return nil
	}
	machines := slices.Sorted(maps.Keys(after.targets))
	match := map[*target]*target{}
	for _, how := range []func(a, b *target) bool{
		func(a, b *target) bool { return a.Target == b.Target },
		func(a, b *target) bool { return a.machine == b.machine },
		func(_, _ *target) bool { return across },
	} {
		for _, m := range machines {
			if now := after.targets[m]; match[now] == nil {
				match[now] = find(func(t *target) bool { return how(t, now) })
			}
		}
	}
	for _, m := range machines {
		out = append(out, [2]*target{match[after.targets[m]], after.targets[m]})
	}
	for _, m := range slices.Sorted(maps.Keys(before.targets)) {
		if t := before.targets[m]; !used[t] {
			out = append(out, [2]*target{t, nil})
		}
	}
	return out
}

func (r *Review) addTarget(was, now *target) {
	shown := now
	t := Target{Kind: Changed, was: was, now: now}
	switch {
	case was == nil:
		t.Kind = Added
	case now == nil:
		t.Kind, shown = Removed, was
	default:
		t.Changes = compare(was, now)
	}
	t.Name, t.Machine, t.Board, t.Release = shown.Target, shown.machine, shown.Board, shown.Release
	r.Targets = append(r.Targets, t)
}

// allChanges returns the changes of the build and of every target.
func (r *Review) allChanges() []Change {
	all := slices.Clone(r.Build)
	for _, t := range r.Targets {
		all = append(all, t.Changes...)
	}
	return all
}

// Need is the most that any change needs.
func (r *Review) Need() Need {
	need, _ := greatest(r.allChanges())
	return need
}

// Risk is the greatest of any change.
func (r *Review) Risk() Risk {
	_, risk := greatest(r.allChanges())
	return risk
}

// Changes counts the changes. A target that is new or gone is one.
func (r *Review) Changes() int {
	n := len(r.allChanges())
	for _, t := range r.Targets {
		if t.Kind != Changed {
			n++
		}
	}
	return n
}
