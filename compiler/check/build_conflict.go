package check

import (
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/variable"
)

// The rules of this file find fields of build that take each other's effect away.
func conflictRules() []Rule {
	return []Rule{
		{
			ID: "list-both", Severity: diag.Error,
			Title: "a list gains and loses the same word",
			Cause: "bitbake removes words after it has added all others, so that the word is not in the list, wherever it was added.",
			Fix:   "write the word in one of the two places",
			Wrong: `build: distroFeatures: {append: ["bluetooth"], remove: ["bluetooth"]}`,
			Right: `build: distroFeatures: append: ["bluetooth"]`,
			See:   "https://docs.yoctoproject.org/bitbake/bitbake-user-manual/bitbake-user-manual-metadata.html: removal (override style syntax)",
			build: checkListBoth,
		},
		{
			ID: "parallel-machine", Severity: diag.Warning,
			Title: "more parallel work than the build machine has cores or memory for",
			Cause: "Each job of make may take 2 GiB at its worst, and of the tasks that run at the same time about half compile. More of them than fit make the machine swap, or the kernel end a compiler.",
			Fix:   "leave the number out: it follows from parallel.machine",
			Wrong: `build: parallel: {make: 64, machine: {cores: 16, memory: "32GiB"}}`,
			Right: `build: parallel: machine: {cores: 16, memory: "32GiB"}`,
			See:   "https://docs.yoctoproject.org/dev/dev-manual/speeding-up-build.html",
			build: checkParallelMachine,
		},
	}
}

func checkListBoth(b *builder) {
	report := func(list string, added, removed []config.String) {
		for _, w := range added {
			if slices.ContainsFunc(removed, func(r config.String) bool { return r.Text == w.Text }) {
				b.reportAt(w, w.Show(), "", "%s gains and loses %s, and it is not there in the end", list, w.Text)
			}
		}
	}
	words := func(list string, change *config.WordChange) {
		added, removed := change.Append.Items, change.Remove.Items
		if v := b.Variables.Get(list); v.Struct.IsSet() {
			added, removed = slices.Concat(added, v.Struct.Append.Items), slices.Concat(removed, v.Struct.Remove.Items)
		}
		report(list, added, removed)
	}
	words("DISTRO_FEATURES", &b.DistroFeatures)
	words("MACHINE_FEATURES", &b.MachineFeatures)
	report("IMAGE_FEATURES", b.Image.Features.Items, b.Image.RemoveFeatures.Items)
	if b.Image.ReadOnly.On {
		for _, w := range b.Image.RemoveFeatures.Items {
			if w.Text == "read-only-rootfs" {
				b.reportAt(w, w.Show(), "", "image.readOnly adds read-only-rootfs, and it is not there in the end")
			}
		}
	}
	for _, c := range b.PackageConfig.Entries {
		report("PACKAGECONFIG of "+c.Key(), c.Append.Items, c.Remove.Items)
	}
	for _, v := range b.Variables.Entries {
		if name := v.Key(); v.Struct.IsSet() && name != "DISTRO_FEATURES" && name != "MACHINE_FEATURES" {
			report(name, v.Struct.Append.Items, v.Struct.Remove.Items)
		}
	}
}

func checkParallelMachine(b *builder) {
	m := &b.Parallel.Machine
	if !m.IsSet() {
		return
	}
	memory, err := resolve.Size(m.Memory.Node())
	if err != nil {
		return // resolve reports it
	}
	jobs, tasks := resolve.Parallelism(int64(m.Cores.Value), memory)
	for _, n := range []struct {
		config.Int
		what string
		fits int
	}{{b.Parallel.Make, "jobs of make", jobs}, {b.Parallel.Tasks, "tasks", tasks}} {
		if n.IsSet() && n.Value > 2*n.fits {
			b.reportAt(n, n.Show(), "", "%d parallel %s, and the machine's %d cores and %s are for %d", n.Value, n.what, m.Cores.Value, strings.Trim(m.Memory.Show(), `"`), n.fits)
		}
	}
}

// checkPathReferences examines paths of the build machine, which may begin with a variable.
func checkPathReferences(b *builder) {
	report := func(part config.Part, path string, isKey bool) {
		m := reference.FindStringSubmatch(path)
		if m == nil {
			return
		}
		for _, r := range b.releases() {
			if _, known := variable.Lookup(r.Name, m[1]); known || !variable.IsRead(r.Name) {
				continue
			}
			f := b.raise(part, "%s has no variable %s, and the path keeps the text %s", r.Name, m[1], m[0])
			if isKey {
				f.Pos = part.Where().KeyPos()
			} else {
				f.Got = part.Where().Show()
			}
			f.Help = "write a path, or a variable of the release such as ${TOPDIR}"
			if near := variable.Nearest(r.Name, m[1]); near != "" {
				f.Help = "did you mean ${" + near + "}?"
			} else {
				f.Severity = diag.Warning
			}
			return
		}
	}
	for _, p := range []config.String{b.SState.Dir, b.Downloads.Dir, b.Hashserve.Database} {
		report(p, p.Text, false)
	}
	for _, d := range b.DiskMonitor.Entries {
		report(d, d.Key(), true)
	}
}
