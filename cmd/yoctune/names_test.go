package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// vetNames runs vet on a target that sets names, and returns the ids of the findings by name.
func vetNames(t *testing.T, board, branch, field string, entries map[string]string) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	fmt.Fprintf(&b, "package box\nimport \"github.com/yoctune/yoctune/schema\"\nschema.#Config & {\nlayer: {name: \"box\", maintainer: \"x\"}\nsuppress: \"kernel-arg-config\": reason: \"names count\"\ntargets: cam: {board: %q, release: %q\n%s: {\n", board, branch, strings.ReplaceAll(field, ".", ": "))
	for name, value := range entries {
		fmt.Fprintf(&b, "%q: %s\n", name, value)
	}
	b.WriteString("}}}\n")
	if err := os.WriteFile(filepath.Join(dir, "config.cue"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	run(t.Context(), []string{"vet", dir, "--format", "json"}, &out, &errOut)
	found := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		var d struct{ ID, Path, Severity, Message string }
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, rest, ok := strings.Cut(d.Path, field+"."); ok {
			name := strings.Trim(rest, `"`)
			found[name] = append(found[name], d.Severity+" "+d.ID)
		} else if strings.HasPrefix(d.ID, "YT") {
			t.Fatalf("%s: %s", d.ID, d.Message)
		}
	}
	return found
}

// kernels lists a board and a release for each kernel that a release builds.
func kernels() map[string][2]string {
	return map[string][2]string{
		"4.9": {"agx-xavier", "kirkstone-l4t-r32.7.x"}, "5.10": {"agx-orin-64gb", "kirkstone"},
		"5.15": {"agx-orin-64gb", "scarthgap"}, "6.8": {"agx-orin-64gb", "wrynose"},
	}
}

// valueFor returns a value that an argument takes, as CUE.
func valueFor(a linux.Arg) string {
	switch a.Name {
	case "preempt":
		return `"full"`
	case "hugepagesz", "default_hugepagesz":
		return `"2M"`
	}
	switch kind, words, _ := strings.Cut(a.Value, ":"); kind {
	case "words":
		word, _, _ := strings.Cut(words, "|")
		return fmt.Sprintf("%q", word)
	case "size", "size@":
		return `"64M"`
	case "cores":
		return `"1"`
	case "cores,":
		return `"1"`
	}
	return "1"
}

var argName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`) // #ArgName of the language

// usable reports whether a name can be written in a configuration, and no rule of another kind is
// about it.
func usable(name string) bool {
	return argName.MatchString(name) &&
		!slices.Contains([]string{"init", "rdinit", "lockdown", "lsm", "apparmor", "selinux", "enforcing", "single", "emergency", "rd.break", "elevator", "root", "rootflags", "rootdelay",
			"nfsroot", "hugepages", "module.sig_enforce", "systemd.debug_shell"}, name)
}

// Existing names, at random, are never refused or warned of; of misspelt ones nearly all are
// found. An argument or module that an option brings counts as existing where the option is on.
func TestRandomNamesOfKernelArguments(t *testing.T) {
	for line, where := range kernels() {
		r := rand.New(rand.NewPCG(1, 2))
		var names []string
		all := map[string]bool{}
		for a := range linux.Args(line) {
			all[a.Name] = true
			if a.Arch == "" && usable(a.Name) {
				names = append(names, a.Name)
			}
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		existing, mutated := map[string]string{}, map[string]string{}
		for _, n := range names[:min(1000, len(names))] {
			a, _ := linux.FindArg(line, n)
			existing[n] = valueFor(a)
			if m := mutate(r, n); !all[linux.Fold(m)] && usable(m) {
				mutated[m] = "1"
			}
		}
		refused := 0
		for name, ids := range vetNames(t, where[0], where[1], "kernel.args", existing) {
			if slices.ContainsFunc(ids, isAboutName) {
				refused++
				t.Errorf("%s: %s exists: %v", line, name, ids)
			}
		}
		flagged := vetNames(t, where[0], where[1], "kernel.args", mutated)
		t.Logf("%s: %d existing, %d refused; %d misspelt, %d found", line, len(existing), refused, len(mutated), len(flagged))
		if len(flagged)*100 < len(mutated)*95 {
			t.Errorf("%s: of %d misspelt names %d are found", line, len(mutated), len(flagged))
		}
	}
}

func TestRandomNamesOfModules(t *testing.T) {
	for line, where := range kernels() {
		r := rand.New(rand.NewPCG(3, 4))
		var names []string
		all := map[string]bool{}
		for m := range linux.Modules(line) {
			all[m.Name] = true
			if len(m.Name) <= 56 {
				names = append(names, m.Name)
			}
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		existing, mutated := map[string]string{}, map[string]string{}
		for _, n := range names[:min(1000, len(names))] {
			existing[n] = `"blacklist"`
			if m := mutate(r, n); !all[linux.Fold(m)] {
				mutated[m] = `"blacklist"`
			}
		}
		found := vetNames(t, where[0], where[1], "modules", existing)
		for name, ids := range found {
			// A module that exists may be built in, where a blacklist entry has no effect.
			if !slices.Equal(ids, []string{"warning module-builtin"}) {
				t.Errorf("%s: %s exists: %v", line, name, ids)
			}
		}
		flagged := vetNames(t, where[0], where[1], "modules", mutated)
		t.Logf("%s: %d existing, %d refused; %d misspelt, %d found", line, len(existing), len(found), len(mutated), len(flagged))
		if len(flagged)*100 < len(mutated)*95 {
			t.Errorf("%s: of %d misspelt names %d are found", line, len(mutated), len(flagged))
		}
	}
}

// isAboutName reports whether a finding is that a name does not exist, or has a wrong value.
func isAboutName(id string) bool {
	return slices.ContainsFunc([]string{"kernel-arg-name", "kernel-arg-unknown", "kernel-arg-arch", "kernel-arg-value", "YT"}, func(s string) bool { return strings.Contains(id, s) })
}

// mutate changes, drops, doubles or swaps letters of a name.
func mutate(r *rand.Rand, name string) string {
	i := 1 + r.IntN(max(len(name)-1, 1))
	if i >= len(name) {
		return name + "x"
	}
	switch r.IntN(4) {
	case 0:
		return name[:i] + string(rune('a'+r.IntN(26))) + name[i+1:]
	case 1:
		return name[:i] + name[i+1:]
	case 2:
		return name[:i] + name[i:i+1] + name[i:]
	}
	return name[:i-1] + name[i:i+1] + name[i-1:i] + name[i+1:]
}

// The arguments and modules that the BSP's own machines name are right, whatever the kernel.
func TestTheBSPsOwnNamesAreRight(t *testing.T) {
	checked := 0
	for _, branch := range release.Names() {
		r, _ := release.Lookup(branch)
		if _, ok := kernel.Find(r.Kernel); !ok {
			t.Fatalf("%s: no facts about kernel %s", branch, r.Kernel)
		}
		where, ok := kernels()[r.Kernel]
		if !ok {
			t.Fatalf("no board for %s", r.Kernel)
		}
		entries := map[string]string{}
		for _, m := range r.Machines() {
			for word := range strings.FieldsSeq(m.KernelArgs) {
				name, value, has := strings.Cut(word, "=")
				if !usable(name) {
					continue
				}
				entries[name] = "true"
				if has {
					entries[name] = fmt.Sprintf("%q", value)
				}
			}
		}
		checked += len(entries)
		for name, ids := range vetNames(t, where[0], branch, "kernel.args", entries) {
			if slices.ContainsFunc(ids, isAboutName) {
				t.Errorf("%s: %s=%s: %v", branch, name, entries[name], ids)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d arguments checked", checked)
	}
}
