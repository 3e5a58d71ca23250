package manifest

import (
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/internal/signature"
)

// Describe adds the meanings in the manifest to files. If a file differs from its manifest
// entry (it was edited, or the manifest is of version 1 or nil), its meanings are inferred
// from its text: the current content of a layer decides. Files that have meanings keep them.
func Describe(files []emitters.File, m *Manifest) []emitters.File {
	machines := map[string]bool{}
	for _, f := range files {
		if path.Base(f.Path) == "plan.json" {
			machines[machineOf(f.Path)] = true
		}
	}
	out := slices.Clone(files)
	for i := range out {
		f := &out[i]
		if f.Means != nil {
			continue
		}
		if m != nil && m.Schema != schema1 {
			if e, ok := m.Files[f.Path]; ok && e.SHA256 == Digest(f.Data) {
				f.Machine, f.Means, f.From = e.Machine, e.Means, e.From
				if e.Dest != "" {
					f.Install = &emitters.Install{Dest: e.Dest}
				}
				continue
			}
		}
		if machine := machineOf(f.Path); machines[machine] {
			f.Machine = machine
		}
		f.Means = inferMeanings(*f, machines)
	}
	return out
}

// machineOf is the folder below files/ that contains a file, directly or in a
// folder that is taken whole.
func machineOf(name string) string {
	dir := path.Dir(name)
	if folder := path.Base(dir); (folder == "plan" || folder == "keys") && path.Base(path.Dir(path.Dir(dir))) == "files" {
		dir = path.Dir(dir)
	}
	return emitters.FolderMachine(path.Base(dir))
}

// maxInferred bounds the text that [Describe] reads, in bytes. Files of layers stay below
// a tenth.
const maxInferred = 4 << 20

// CheckSize refuses a file that was edited and has grown too large for [Describe].
func CheckSize(f emitters.File) error {
	if f.Means == nil && len(f.Data) > maxInferred && isRead(f.Path) {
		return fmt.Errorf("%s: %d bytes are more than the limit of %d; restore the file, or build the layer again", f.Path, len(f.Data), maxInferred)
	}
	return nil
}

// isRead reports whether the text of a file has meanings. Models, programs and data have none.
func isRead(name string) bool {
	return emitters.IsBitBake(name) || strings.Contains(path.Base(name), ".d-") ||
		slices.Contains([]string{".cfg", ".conf", ".pub", ".service", ".slice", ".timer"}, path.Ext(name))
}

// inferMeanings reads the meanings of a file from its text, as yoctune 0.1 wrote it.
func inferMeanings(f emitters.File, machines map[string]bool) []emitters.Meaning {
	if len(f.Data) > maxInferred || !isRead(f.Path) {
		return nil
	}
	base, folder, text := path.Base(f.Path), path.Base(path.Dir(f.Path)), string(f.Data)
	unit := func(name, value, id string) []emitters.Meaning {
		return []emitters.Meaning{{Kind: emitters.Unit, Name: name, Value: value, ID: id}}
	}
	out := emitters.ReadBitBake(f.Path, f.Data, machines)
	switch {
	case strings.HasPrefix(f.Path, "recipes-kernel/") && strings.HasSuffix(base, ".cfg"):
		return append(out, readOptions(text)...)
	case folder == "keys" && strings.HasSuffix(base, ".pub"):
		return append(out, readPublicKey(strings.TrimSuffix(base, ".pub"), f.Data))
	case strings.Contains(base, ".service.d-"), strings.Contains(base, ".timer.d-"), strings.Contains(base, ".slice.d-"):
		name, _, _ := strings.Cut(base, ".d-")
		return append(out, unit(name, "drop-in", "services."+name)...)
	case strings.HasSuffix(base, ".service"), strings.HasSuffix(base, ".timer"):
		return append(out, unit(base, "unit", "services."+base)...)
	case strings.HasSuffix(base, ".slice"):
		return append(out, unit(base, "unit", "cpu.isolate")...)
	case base == "yoctune-modprobe.conf":
		return append(out, readBlacklist(text)...)
	case strings.HasPrefix(base, "packagegroup-") && strings.HasSuffix(base, ".bb"):
		return append(out, readPackages(text, "", machines)...)
	case strings.HasPrefix(f.Path, "dynamic-layers/") && strings.HasSuffix(base, ".bbappend"):
		return append(out, readPackages(text, strings.Split(f.Path, "/")[1], machines)...)
	case strings.HasSuffix(folder, "-models") && strings.HasSuffix(base, ".bb"):
		return append(append(out, readModels(text, machines)...), readCarried(text, machines)...)
	case folder == "yoctune-onnxruntime" && strings.HasSuffix(base, ".bb"):
		return append(out, readProgram(strings.TrimSuffix(base, ".bb"), text)[0])
	case (folder == "yoctuned" || folder == "yoctune-cuda") && strings.HasSuffix(base, ".bb"):
		return append(out, readProgram(strings.TrimSuffix(base, ".bb"), text)...)
	case strings.HasSuffix(folder, "-config") && strings.HasSuffix(base, ".bb"):
		return append(out, readEnabled(text, machines)...)
	}
	return out
}

// readOptions reads a kernel fragment.
func readOptions(text string) []emitters.Meaning {
	var out []emitters.Meaning
	for line := range strings.Lines(text) {
		if l, ok := kconfig.ParseLine(strings.TrimSpace(line)); ok {
			out = append(out, emitters.Meaning{Kind: emitters.Option, Name: l.Symbol, Value: l.Value, ID: "kernel.config." + l.Symbol})
		}
	}
	return out
}

func readPublicKey(name string, data []byte) emitters.Meaning {
	m := emitters.Meaning{Kind: emitters.Key, Name: name, Value: "no key", ID: "runtime.keys." + name}
	if k, err := signature.ParseKey(data); err == nil {
		m.Value = k.ID()
	}
	return m
}

// readBlacklist reads a file of modprobe.d.
func readBlacklist(text string) []emitters.Meaning {
	var out []emitters.Meaning
	for line := range strings.Lines(text) {
		if module, ok := strings.CutPrefix(strings.TrimSpace(line), "blacklist "); ok {
			out = append(out, emitters.Meaning{Kind: emitters.Module, Name: module, Value: "blacklist", ID: "modules." + module})
		}
	}
	return out
}

// readPackages reads a package group, or the append to it for a collection.
func readPackages(text, collection string, machines map[string]bool) []emitters.Meaning {
	var out []emitters.Meaning
	for _, a := range emitters.Assignments(text) {
		action := "install"
		switch {
		case strings.HasPrefix(a.Name, "RRECOMMENDS:"):
			action = "recommend"
		case !strings.HasPrefix(a.Name, "RDEPENDS:"):
			continue
		}
		for _, p := range strings.Fields(a.Value) {
			m := emitters.Meaning{Kind: emitters.Package, Name: p, Value: action, Machine: emitters.MachineOf(a.Name, machines), With: collection, ID: "packages." + p}
			if collection != "" {
				m.ID = "build.optional." + collection
			} else if module, ok := strings.CutPrefix(p, "kernel-module-"); ok {
				m.ID = "modules." + strings.ReplaceAll(module, "-", "_")
			} else if id, ok := owners[p]; ok {
				m.ID = id
			} else if strings.HasPrefix(p, "yoctune-") && strings.HasSuffix(p, "-models") {
				m.ID = "pipelines"
			}
			out = append(out, m)
		}
	}
	return out
}

// owners are the parts of a configuration that ask for packages of other names.
var owners = map[string]string{"yoctuned": "runtime", "yoctune-cuda": "runtime.cuda", "yoctuned-serve": "monitor.metrics"}

// readModels reads the addresses and digests of the models recipe.
func readModels(text string, machines map[string]bool) []emitters.Meaning {
	var out []emitters.Meaning
	assignments := emitters.Assignments(text)
	sums := map[string]string{} // by the name parameter of an address
	for _, a := range assignments {
		if flag, ok := strings.CutPrefix(a.Name, "SRC_URI["); ok {
			sums[strings.TrimSuffix(flag, ".sha256sum]")] = a.Value
		}
	}
	for _, a := range assignments {
		machine := emitters.MachineOf(a.Name, machines)
		if machine == "" || !strings.HasPrefix(a.Name, "SRC_URI:append:") {
			continue
		}
		for _, uri := range strings.Fields(a.Value) {
			address, params, _ := strings.Cut(uri, ";")
			if name := strings.TrimPrefix(address, "file://"); name != address && !strings.Contains(name, "/") {
				continue // a file of the layer, see readCarried
			}
			sum := ""
			for p := range strings.SplitSeq(params, ";") {
				if name, ok := strings.CutPrefix(p, "downloadfilename=yoctune-"); ok {
					sum, _, _ = strings.Cut(name, ".") // an archive has a suffix
				} else if name, ok := strings.CutPrefix(p, "name="); ok && sum == "" {
					sum = sums[name]
				}
			}
			out = append(out, emitters.Meaning{Kind: emitters.Model, Name: path.Base(address), Value: address, SHA256: sum, Machine: machine, ID: "pipelines"})
		}
	}
	return out
}

// readEnabled reads the units that the config recipe enables.
func readEnabled(text string, machines map[string]bool) []emitters.Meaning {
	var out []emitters.Meaning
	for machine, words := range commands(text, machines) {
		if dir, unit := path.Split(words[len(words)-1]); words[0] == "ln" && strings.HasSuffix(dir, ".wants/") {
			pipeline := strings.TrimSuffix(strings.TrimPrefix(unit, "yoctuned-pipeline@"), ".service")
			out = append(out, emitters.Meaning{Kind: emitters.Unit, Name: unit, Value: "enabled", Machine: machine, ID: "pipelines." + pipeline})
		}
	}
	return out
}

// readCarried reads the files that the models recipe installs beside the plan.
func readCarried(text string, machines map[string]bool) []emitters.Meaning {
	var out []emitters.Meaning
	for machine, words := range commands(text, machines) {
		from, to := words[max(len(words)-2, 0)], words[len(words)-1]
		if name, ok := strings.CutPrefix(to, "${D}${nonarch_libdir}/yoctune/"); ok && words[0] == "install" {
			out = append(out, emitters.Meaning{Kind: emitters.Model, Name: name, Value: name, SHA256: strings.TrimPrefix(from, "${S}/"), Machine: machine, ID: "pipelines"})
		}
	}
	return out
}

// commands returns the words of each line in the functions of a recipe, for each machine that
// the function is for.
func commands(text string, machines map[string]bool) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		all := slices.Sorted(maps.Keys(machines))
		var of []string
		for line := range strings.Lines(text) {
			if name, ok := strings.CutSuffix(strings.TrimSpace(line), "() {"); ok {
				of = all
				if machine := emitters.MachineOf(name, machines); machine != "" {
					of = []string{machine}
				}
			}
			words := strings.Fields(line)
			for _, machine := range of {
				if len(words) > 0 && !yield(machine, words) {
					return
				}
			}
		}
	}
}

// readProgram reads the version of a program's recipe and the digests of what it
// fetches.
func readProgram(name, text string) []emitters.Meaning {
	pn, version, _ := strings.Cut(name, "_")
	p := emitters.Meaning{Kind: emitters.Program, Name: pn, Value: version, ID: "runtime.manifest"}
	licences := emitters.Meaning{Kind: emitters.Licences, Name: pn, ID: p.ID}
	for _, a := range emitters.Assignments(text) {
		switch a.Name {
		case "SRC_URI[sha256sum]", "SRC_URI[program.sha256sum]":
			p.SHA256 = a.Value
		case "SRC_URI[licenses.sha256sum]":
			licences.SHA256 = a.Value
		}
	}
	return []emitters.Meaning{p, licences}
}
