package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/variable"
	"github.com/yoctune/yoctune/schema/spelling"
)

// The rules of this file check build.variables against the variables that the metadata of
// each release has. Each variable passes [builder.judge] once and gets at most one finding.
func variableRules() []Rule {
	return []Rule{
		{
			ID: "build-variable-renamed", Severity: diag.Error, Firm: true,
			Title: "the release refuses the variable",
			Cause: "bitbake and oe-core keep a list of variables that were renamed or removed. The build stops wherever one of them is set.",
			Fix:   "use the new name, or remove it",
			Wrong: "targets: cam: release: \"master\"\nbuild: variables: BB_DANGLINGAPPENDS_WARNONLY: \"1\"",
			Right: "targets: cam: release: \"master\"\nbuild: rmWork: true",
			See:   "oe-core meta/conf/bitbake.conf: BB_RENAMED_VARIABLES",
			build: judgeVariables,
		},
		{
			ID: "build-variable-cuda", Severity: diag.Error,
			Title: "a variable overrides the CUDA set-up of meta-tegra",
			Cause: "meta-tegra computes the compiler, its host compiler, the version and the architectures from the machine. Set by hand, they break CMake's own compiler test, name recipes that do not exist, or produce code for the wrong chip.",
			Fix:   "remove it; inherit cuda in the recipe",
			Wrong: `build: variables: CUDAHOSTCXX: "/usr/bin/g++"`, Right: `build: rmWork: true`,
			See:   "meta-tegra classes-recipe/cuda.bbclass",
			build: judgeVariables,
		},
		{
			ID: "build-variable-mirror", Severity: diag.Error,
			Title: "a mirror is not a URL",
			Cause: "The fetcher needs an address with a scheme. With a plain path it fails with a malformed URL, even though the path exists.",
			Fix:   "write file:// before the path",
			Wrong: `build: variables: NVIDIA_DEVNET_MIRROR: "/home/user/sdkm_downloads"`,
			Right: `build: variables: NVIDIA_DEVNET_MIRROR: "file:///home/user/sdkm_downloads"`,
			See:   "bitbake lib/bb/fetch2",
			build: judgeVariables,
		},
		{
			ID: "build-variable-unknown", Severity: diag.Error,
			Title: "the release has no such variable",
			Cause: "bitbake accepts any name and reports no variable that nothing reads. The name is in none of bitbake, openembedded-core, meta-tegra, meta-openembedded and meta-tegra-community at this release, and one there is spelt almost like it. Without a similar name this is a warning.",
			Fix:   "correct the name, or set external: true if a layer of yours reads it",
			Wrong: `build: variables: XTRA_IMAGE_FEATURES: "x"`,
			Right: `build: variables: ACME_UPDATE_URL: {value: "https://update.example.com", external: true}`,
			See:   "https://docs.yoctoproject.org/ref-manual/variables.html; the layers' own files",
			build: judgeVariables,
		},
		{
			ID: "build-variable-field", Severity: diag.Error,
			Title: "the variable has a field of its own",
			Cause: "yoctune sets the variable from the field, and checks the field's value. Two assignments of one variable would hide each other.",
			Fix:   "set the field under build that the message names",
			Wrong: `build: variables: PARALLEL_MAKE: "-j 8"`, Right: `build: parallel: make: 8`,
			See:   "yoctune schema Build",
			build: judgeVariables,
		},
		{
			ID: "build-variable-reserved", Severity: diag.Error, Firm: true,
			Title: "a layer must not set the variable",
			Cause: "The variable belongs to whoever runs the build, or an assignment in a layer would break the image or the layer itself.",
			Fix:   "set it in local.conf",
			Wrong: `build: variables: MACHINE: "jetson-orin-nano-devkit"`, Right: `build: rmWork: true`,
			See:   "oe-core meta/conf/bitbake.conf",
			build: judgeVariables,
		},
		{
			ID: "build-variable-recipe", Severity: diag.Error,
			Title: "the variable describes one recipe",
			Cause: "Recipes and their classes assign the variable, or derive it from the recipe's name. In configuration an assignment is lost where a recipe assigns too, and gives all other recipes the same value.",
			Fix:   "set it in the recipe, or in an append of your own layer",
			Wrong: `build: variables: COMPATIBLE_MACHINE: "tegra"`, Right: `build: rmWork: true`,
			See:   "https://docs.yoctoproject.org/ref-manual/variables.html; the layers' own files",
			build: judgeVariables,
		},
		{
			ID: "build-variable-lost", Severity: diag.Error,
			Title: "a later file overrides the variable",
			Cause: "bitbake reads the layer's settings with local.conf, before the configurations of machine and distribution and before the classes that every recipe inherits. One of these assigns the variable without a condition, so that the layer's value is lost.",
			Fix:   "set it in a machine or distribution of your own",
			Wrong: `build: variables: SSTATE_VERSION: "99"`, Right: `build: rmWork: true`,
			See:   "oe-core meta/conf/bitbake.conf",
			build: judgeVariables,
		},
		{
			ID: "build-variable-list", Severity: diag.Error,
			Title: "an assignment replaces a list",
			Cause: "Several files add words to the variable. Assigned as a whole, it loses what the distribution, the machine and local.conf have added. bitbake removes whole words, not patterns.",
			Fix:   "add words with append, remove words with remove; value replaces the list on purpose",
			Wrong: `build: variables: LICENSE_FLAGS_ACCEPTED: "commercial"`,
			Right: `build: variables: LICENSE_FLAGS_ACCEPTED: append: ["commercial"]`,
			See:   "https://docs.yoctoproject.org/bitbake/bitbake-user-manual/bitbake-user-manual-metadata.html: appending and removing (override style syntax)",
			build: judgeVariables,
		},
		{
			ID: "build-variable-reference", Severity: diag.Error,
			Title: "a value refers to a variable that does not exist",
			Cause: "bitbake puts the value of a variable in for ${NAME}. A name that nothing defines stays in the value as it is written, and one that contains itself stops the build.",
			Fix:   "correct the name, or set external: true if a layer of yours defines it",
			Wrong: `build: variables: SSTATE_ALLOW_OVERLAP_FILES: append: ["${DEPLOYDIR_IMAGE}/boot"]`,
			Right: `build: variables: SSTATE_ALLOW_OVERLAP_FILES: append: ["${DEPLOY_DIR_IMAGE}/boot"]`,
			See:   "bitbake lib/bb/data_smart.py: expandWithRefs",
			build: func(b *builder) { judgeVariables(b); checkPathReferences(b) },
		},
		{
			ID: "build-variable-machine", Severity: diag.Error,
			Title: "the value belongs to another machine",
			Cause: "The machine's configuration sets the variable, and other recipes depend on its value. A power table of another module names clocks and cores that this module lacks.",
			Fix:   "choose the machine of the module; power.table changes the modes",
			Wrong: "targets: cam: release: \"scarthgap\"\nbuild: variables: NVPMODEL: \"nvpmodel_p3701_0000\"",
			Right: "targets: cam: release: \"scarthgap\"\nbuild: rmWork: true",
			See:   "meta-tegra conf/machine",
			build: judgeVariables,
		},
	}
}

// setting is an entry of build.variables.
type setting = config.Either[config.String, config.Variable]

// valueOf is the value that an entry assigns, unset if it only adds or removes words.
func valueOf(v *setting) config.String {
	if v.Struct.IsSet() {
		return v.Struct.Value
	}
	return v.Scalar
}

// verdict is what is wrong with an entry.
type verdict struct {
	rule    string      // "" for nothing
	at      config.Part // the name of the entry where nil
	message string
	help    string
	near    string // the name that was probably meant
	value   string // the value that was probably meant, as CUE
	warning bool
}

// judgeVariables reports the entries that a rule is about.
func judgeVariables(b *builder) {
	for _, v := range b.Variables.Entries {
		j := b.judge(v)
		if j.rule != b.rule.ID {
			continue
		}
		var part config.Part = v
		if j.at != nil {
			part = j.at
		}
		f := b.raise(part, "%s", j.message)
		if j.at == nil {
			f.Pos = v.KeyPos()
		} else {
			f.Got = part.Where().Show()
		}
		if j.help != "" {
			f.Help = j.help
		}
		if j.near != "" {
			f.Edits = []diag.Edit{{Kind: diag.RenameField, Pos: f.Pos, Text: j.near}}
		}
		if j.value != "" {
			f.Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: f.Pos, Text: j.value}}
		}
		if j.warning {
			f.Severity = diag.Warning
		}
	}
}

// judge finds what is wrong with an entry on the releases of the project.
func (b *builder) judge(v *setting) verdict {
	if _, err := quote.BitBakeVariable(v.Key()); err != nil {
		return verdict{} // the schema refuses it
	}
	releases := b.releases()
	if len(releases) == 0 {
		releases = []release.Release{{}} // no target is valid, and some mistakes hold for every release
	}
	for _, r := range releases {
		for _, test := range []func(*builder, *setting, release.Release) verdict{
			judgeRenamed, judgeField, judgeCUDA, judgeMirror, judgeName, judgePlace, judgeMachine, judgeList, judgeReferences,
		} {
			if j := test(b, v, r); j.rule != "" {
				return j
			}
		}
	}
	return verdict{}
}

func judgeRenamed(_ *builder, v *setting, r release.Release) verdict {
	name := v.Key()
	if name == "BB_DANGLINGAPPENDS_WARNONLY" {
		return verdict{rule: "build-variable-renamed",
			message: name + " hides appends without a recipe in every layer of the build, and newer releases refuse it",
			help:    "name the layers that may be absent in BBFILES_DYNAMIC of the layer with the appends"}
	}
	was, refused := r.FindRenamed(name)
	if !refused {
		return verdict{}
	}
	j := verdict{rule: "build-variable-renamed", message: fmt.Sprintf("%s refuses %s", r.Name, name), help: was.Message}
	if was.New != "" {
		j.help, j.near = "the name is now "+was.New, was.New
	}
	return j
}

func judgeField(b *builder, v *setting, _ release.Release) verdict {
	name := v.Key()
	if name == "BB_DISKMON_DIRS" && len(b.DiskMonitor.Entries) > 0 {
		return verdict{rule: "build-variable-field", message: "build.diskMonitor sets " + name + " too", help: "keep build.diskMonitor"}
	}
	if field := variable.Field(name); field != "" {
		return verdict{rule: "build-variable-field", message: name + " has a field of its own", help: "use " + field}
	}
	if j := judgeSystemd(v); j.rule != "" {
		return j
	}
	if why := variable.Reserved(name, !valueOf(v).IsSet()); why != "" {
		return verdict{rule: "build-variable-reserved", message: fmt.Sprintf("a layer must not set %s: %s", name, why)}
	}
	return verdict{}
}

// judgeSystemd refuses another init system: the recipes of the layer require systemd
// (REQUIRED_DISTRO_FEATURES), and images would silently lack its settings.
func judgeSystemd(v *setting) verdict {
	value := valueOf(v)
	if v.Key() != "INIT_MANAGER" || !value.IsSet() || value.Text == "systemd" {
		return verdict{}
	}
	return verdict{rule: "build-variable-reserved", at: value, help: "remove it",
		message: fmt.Sprintf("the layer needs systemd, and INIT_MANAGER %q switches it off", value.Text)}
}

func judgeCUDA(_ *builder, v *setting, r release.Release) verdict {
	value := valueOf(v)
	for _, guess := range []string{"CMAKE_CUDA_ARCHITECTURES=native", "CMAKE_CUDA_ARCHITECTURES=all"} {
		if strings.Contains(value.Text, guess) {
			return verdict{rule: "build-variable-cuda", at: value, message: "the build machine's GPU is not the device's"}
		}
	}
	_, known := variable.Lookup(r.Name, v.Key())
	if known && strings.Contains(v.Key(), "CUDA") && (v.Key() != "CUDA_VERSION" || value.Text != r.CUDA) {
		return verdict{rule: "build-variable-cuda", message: v.Key() + " is computed from the machine"}
	}
	return verdict{}
}

func judgeMirror(_ *builder, v *setting, _ release.Release) verdict {
	value := valueOf(v)
	if isMirror := strings.HasSuffix(v.Key(), "_MIRROR") || v.Key() == "SOURCE_MIRROR_URL"; isMirror && strings.HasPrefix(value.Text, "/") {
		return verdict{rule: "build-variable-mirror", at: value, message: v.Key() + " is a path, not a URL",
			help: fmt.Sprintf("did you mean %q?", "file://"+value.Text)}
	}
	return verdict{}
}

// variableLetters is the length of a word from which one wrong letter is a slip, in names of
// variables.
const variableLetters = 5

// judgeName examines whether the release has the variable.
func judgeName(_ *builder, v *setting, r release.Release) verdict {
	name := v.Key()
	if v.Struct.External.On || !variable.IsRead(r.Name) {
		return verdict{}
	}
	j := verdict{rule: "build-variable-unknown", message: fmt.Sprintf("%s has no variable %s", r.Name, name)}
	if a, none := r.FindAbsent(name); none {
		j.help = a.Instead
		if a.Since != "" {
			j.message = fmt.Sprintf("%s has no effect before %s, and this is %s", name, a.Since, r.Name)
		}
		return j
	}
	if _, known := variable.Lookup(r.Name, name); known {
		return verdict{}
	}
	if j.near = variable.Nearest(r.Name, name); j.near != "" {
		j.help = fmt.Sprintf("did you mean %q? Otherwise set external: true", j.near)
		j.warning = !spelling.IsSlip(name, j.near, variableLetters)
		return j
	}
	j.message = fmt.Sprintf("%s is not known to openembedded at %s", name, r.Name)
	j.help = "set external: true if a layer of yours defines it"
	j.warning = true
	return j
}

// judgePlace examines whether an assignment in configuration acts.
func judgePlace(b *builder, v *setting, r release.Release) verdict {
	name := v.Key()
	f, known := variable.Lookup(r.Name, name)
	switch {
	case !known:
	case f.Scope == variable.Recipe:
		return verdict{rule: "build-variable-recipe", message: fmt.Sprintf("%s acts in recipes (%s), not in configuration", name, f.Where)}
	case f.Lost != "" && valueOf(v).IsSet() && (f.Machines == nil || b.hasMachine(r, f.Machines)):
		return verdict{rule: "build-variable-lost", message: fmt.Sprintf("%s is assigned again by %s, which bitbake reads later", name, f.Lost)}
	}
	return verdict{}
}

// hasMachine reports whether a target of a release has one of the machines.
func (b *builder) hasMachine(r release.Release, machines []string) bool {
	for _, t := range b.project.Targets {
		if t.Release.Name == r.Name && slices.Contains(machines, t.Machine) {
			return true
		}
	}
	return false
}

// judgeMachine compares NVPMODEL with the power table that the machines of the targets install.
func judgeMachine(b *builder, v *setting, r release.Release) verdict {
	value := valueOf(v)
	if v.Key() != "NVPMODEL" || !value.IsSet() {
		return verdict{}
	}
	for _, t := range b.project.Targets {
		m, known := r.Machine(t.Machine)
		if t.Release.Name == r.Name && known && m.NVPModel != value.Text {
			return verdict{rule: "build-variable-machine", at: value,
				message: fmt.Sprintf("%s installs %s", t.Machine, m.NVPModel)}
		}
	}
	return verdict{}
}

// judgeList examines how a list is changed.
func judgeList(_ *builder, v *setting, r release.Release) verdict {
	j := verdict{rule: "build-variable-list"}
	edit := &v.Struct
	for _, w := range slices.Concat(edit.Append.Items, edit.Remove.Items) {
		if w.Text == "" || strings.ContainsAny(w.Text, " \t") {
			j.at, j.message, j.help = w, fmt.Sprintf("%q is not one word", w.Text), "write each word as an element of its own"
			return j
		}
	}
	for _, w := range edit.Remove.Items {
		if strings.ContainsAny(w.Text, "*?[") {
			j.at, j.message, j.help = w, w.Text+" is a pattern, and bitbake removes whole words", "name each word"
			return j
		}
	}
	f, known := variable.Lookup(r.Name, v.Key())
	switch {
	case v.Struct.IsSet() && !edit.Value.IsSet() && !edit.Append.IsSet() && !edit.Remove.IsSet():
		j.message, j.help = v.Key()+" gets no value", "write value, append or remove"
	case known && f.List && !v.Struct.IsSet():
		words := strings.FieldsFunc(v.Scalar.Text, func(c rune) bool { return c == ' ' || string(c) == f.Separator })
		j.at, j.message = v.Scalar, v.Key()+" is a list, which an assignment replaces"
		j.help = fmt.Sprintf("write %s: append: %s to add, or value: to replace it", v.Key(), quoteWords(words))
		j.value = fmt.Sprintf("{append: %s}", quoteWords(words))
	default:
		return verdict{}
	}
	return j
}

var reference = lazyregexp.New(`\$\{([A-Z][A-Z0-9_]*)\}`)

// judgeReferences examines the variables that an entry refers to.
func judgeReferences(b *builder, v *setting, r release.Release) verdict {
	edit := &v.Struct
	if through := b.cycle(v.Key()); through != "" {
		return verdict{rule: "build-variable-reference", at: valueOf(v), message: fmt.Sprintf("the value of %s contains itself, through %s", v.Key(), through),
			help: "write one of the values out"}
	}
	for _, text := range slices.Concat([]config.String{valueOf(v)}, edit.Append.Items, edit.Remove.Items) {
		for _, m := range reference.FindAllStringSubmatch(text.Text, -1) {
			j := verdict{rule: "build-variable-reference", at: text}
			if m[1] == v.Key() {
				j.message, j.help = "the value of "+v.Key()+" contains itself", "write words to add under append"
				return j
			}
			if _, known := variable.Lookup(r.Name, m[1]); known || edit.External.On || !variable.IsRead(r.Name) {
				continue
			}
			j.message = fmt.Sprintf("%s has no variable %s, and the value keeps the text %s", r.Name, m[1], m[0])
			near := variable.Nearest(r.Name, m[1])
			if j.warning = near == ""; !j.warning {
				j.help = fmt.Sprintf("did you mean %q? Otherwise set external: true", "${"+near+"}")
			}
			return j
		}
	}
	return verdict{}
}

// references returns the variables that each entry refers to.
func (b *builder) references() map[string][]string {
	if b.refers == nil {
		b.refers = map[string][]string{}
		for _, v := range b.Variables.Entries {
			for _, text := range slices.Concat([]config.String{valueOf(v)}, v.Struct.Append.Items) {
				for _, m := range reference.FindAllStringSubmatch(text.Text, -1) {
					b.refers[v.Key()] = append(b.refers[v.Key()], m[1])
				}
			}
		}
	}
	return b.refers
}

// cycle returns the variable of the configuration through which name refers to itself, "" if
// it does not.
func (b *builder) cycle(name string) string {
	refers := b.references()
	seen := map[string]bool{name: true}
	for queue := slices.Clone(refers[name]); len(queue) > 0; queue = queue[1:] {
		for _, next := range refers[queue[0]] {
			if next == name && queue[0] != name {
				return queue[0]
			}
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return ""
}

func quoteWords(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, fmt.Sprintf("%q", w))
	}
	return "[" + strings.Join(out, ", ") + "]"
}
