package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/kconfig"
)

// usage is a place where a recipe names a file.
type usage struct {
	recipe    string // its name without version
	file      string // of the recipe, or of the kernel feature (.scc) in between
	line      int
	name      []string // components of the path in SRC_URI, perhaps with globs
	overrides []string
	kernel    bool   // the recipe builds Linux
	dest      string // folder that it installs the file to; "" where unknown
}

// usages are the files that the recipes among the sources name.
type usages struct {
	byBase  map[string][]usage
	folders []usage  // whose last component is a folder or has a glob
	kernels []string // folders of kernel recipes that name files
	paths   map[string][]string
	dests   map[string][]install // by base name
}

// install is a line of a recipe's task that copies a file.
type install struct{ dir, dest string }

// recipeFile reports whether a source is a recipe, an append or a file that they include, and
// returns the recipe's name.
func recipeFile(name string) (string, bool) {
	ext := path.Ext(name)
	if ext != ".bb" && ext != ".bbappend" && ext != ".inc" || slices.Contains(strings.Split(path.Dir(name), "/"), "conf") {
		return "", false
	}
	recipe, _, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ext), "_")
	return recipe, true
}

// buildsKernel reports whether a recipe builds Linux.
func buildsKernel(name, recipe string, text []byte) bool {
	if strings.HasPrefix(recipe, "linux-firmware") || strings.HasPrefix(recipe, "kernel-module-") {
		return false
	}
	if recipe == "linux" || strings.HasPrefix(recipe, "linux-") || path.Ext(name) == ".inc" && path.Base(path.Dir(name)) == "linux" {
		return true
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "inherit" && (slices.Contains(words, "kernel") || slices.Contains(words, "kernel-yocto")) {
			return true
		}
	}
	return false
}

// findUsages reads the recipes.
func (im *importer) findUsages() {
	u := &usages{byBase: map[string][]usage{}, paths: map[string][]string{}, dests: map[string][]install{}}
	im.used = u
	kernelIncludes := im.findKernelIncludes()
	for _, s := range im.sources {
		recipe, ok := recipeFile(s.Name)
		if s.Kind != BitBake || !ok {
			continue
		}
		lines, problem := split(s)
		if problem != "" {
			continue
		}
		kernel := buildsKernel(s.Name, recipe, s.Text) || kernelIncludes[s.Name]
		expand := strings.NewReplacer("${PN}", recipe, "${BPN}", recipe, "${MACHINE}", im.machine)
		for _, group := range groupContinuedLines(lines) {
			text := joinLines(group)
			u.addInstall(path.Dir(s.Name), text)
			a, ok := parseAssignment(text)
			switch {
			case !ok || a.Flag != "":
			case a.base == "FILESEXTRAPATHS":
				for p := range strings.SplitSeq(expand.Replace(a.Value), ":") {
					if p = strings.TrimPrefix(p, "${THISDIR}/"); p != "" && !strings.Contains(p, "${") {
						u.paths[s.Name] = append(u.paths[s.Name], path.Clean(p))
					}
				}
			case a.isRemove():
			case a.base == "SRC_URI" || a.base == "KERNEL_CONFIG_FRAGMENTS" || a.base == "DELTA_KERNEL_DEFCONFIG":
				for w := range strings.FieldsSeq(expand.Replace(a.Value)) {
					w, _, _ = strings.Cut(strings.TrimPrefix(w, "file://"), ";")
					if !strings.Contains(w, "://") {
						u.add(usage{recipe: recipe, file: s.Name, line: group[0].Line, name: strings.Split(globOf(w), "/"), overrides: a.overrides, kernel: kernel})
					}
				}
			}
		}
		if kernel {
			u.kernels = append(u.kernels, path.Dir(s.Name))
		}
	}
	im.findFeatures()
}

// findKernelIncludes returns the files that kernel recipes require: those below the recipe's
// folder, and those whose path the recipe gives.
func (im *importer) findKernelIncludes() map[string]bool {
	files := map[string]bool{}
	for _, s := range im.sources {
		recipe, ok := recipeFile(s.Name)
		if s.Kind != BitBake || !ok || !buildsKernel(s.Name, recipe, s.Text) {
			continue
		}
		for line := range strings.Lines(string(s.Text)) {
			words := strings.Fields(line)
			if len(words) != 2 || words[0] != "require" && words[0] != "include" || !strings.HasSuffix(words[1], ".inc") {
				continue
			}
			for _, other := range im.sources {
				if path.Base(other.Name) == path.Base(words[1]) && (isBelow(path.Dir(s.Name), other.Name) || strings.Contains(words[1], "/") && strings.HasSuffix(other.Name, "/"+words[1])) {
					files[other.Name] = true
				}
			}
		}
	}
	return files
}

// globOf makes a glob of a name with variables.
func globOf(name string) string {
	for {
		start := strings.Index(name, "${")
		if start < 0 {
			return name
		}
		end := strings.IndexByte(name[start:], '}')
		if end < 0 {
			return name
		}
		name = name[:start] + "*" + name[start+end+1:]
	}
}

func (u *usages) add(n usage) {
	base := n.name[len(n.name)-1]
	switch {
	case strings.Trim(base, "*") == "": // could be any file
	case path.Ext(base) == "" || strings.Contains(base, "*"):
		u.folders = append(u.folders, n)
	}
	u.byBase[base] = append(u.byBase[base], n)
}

// addInstall notes where a line of a task copies files to.
func (u *usages) addInstall(dir, text string) {
	words := strings.Fields(text)
	if len(words) < 3 || words[0] != "install" && words[0] != "cp" {
		return
	}
	dest := strings.Trim(words[len(words)-1], `"`)
	if !strings.Contains(dest, "${D}") {
		return
	}
	for _, w := range words[1 : len(words)-1] {
		if base := path.Base(strings.Trim(w, `"`)); strings.Contains(w, "/") && !strings.ContainsAny(base, "*$") {
			u.dests[base] = append(u.dests[base], install{dir, dest})
		}
	}
}

// isBelow reports whether a file lies in a folder.
func isBelow(dir, file string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") }

// matchesEnd reports whether a file's path ends with the components of a name; with folders,
// whether it has them anywhere.
func matchesEnd(name, file []string, folders bool) bool {
	for end := len(file); end >= len(name); end-- {
		at := file[end-len(name) : end]
		if equalGlobs(name, at) {
			return true
		}
		if !folders {
			return false
		}
	}
	return false
}

func equalGlobs(globs, names []string) bool {
	for i, g := range globs {
		if ok, err := path.Match(g, names[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// of returns the usages of a file by the recipes next to it, or else by any.
func (u *usages) of(file string) []usage {
	parts := strings.Split(file, "/")
	var near, far []usage
	try := func(n usage, folders bool) {
		dir := path.Dir(n.file)
		rel := parts
		if isBelow(dir, file) && dir != "." {
			rel = strings.Split(strings.TrimPrefix(file, dir+"/"), "/")
		}
		switch {
		case !matchesEnd(n.name, rel, folders):
		case isBelow(dir, file):
			near = append(near, n)
		case !folders:
			far = append(far, n)
		}
	}
	for _, n := range u.byBase[path.Base(file)] {
		try(n, false)
	}
	for _, n := range u.folders {
		try(n, true)
	}
	if len(near) == 0 {
		return far
	}
	return near
}

// findFeatures follows the kernel features (.scc) that kernel recipes name to the fragments
// that they name.
func (im *importer) findFeatures() {
	features := map[string]Source{}
	var open []string
	origin := map[string]usage{}
	wanted := im.wantedFeatures()
	for _, s := range im.sources {
		if s.Kind != Scc {
			continue
		}
		features[s.Name] = s
		of := im.used.of(s.Name)
		i := slices.IndexFunc(of, func(n usage) bool { return n.kernel })
		switch {
		case i >= 0:
			origin[s.Name] = of[i]
		case wanted(s):
			origin[s.Name] = usage{recipe: im.release.Provider, kernel: true}
		default:
			continue
		}
		open = append(open, s.Name)
	}
	for len(open) > 0 {
		name := open[0]
		open = open[1:]
		im.features = append(im.features, name)
		for _, f := range readFeature(features[name]) {
			target := path.Join(path.Dir(name), f.file)
			if f.include {
				for other := range features {
					if _, seen := origin[other]; !seen && (other == target || strings.HasSuffix(other, "/"+f.file)) {
						origin[other] = origin[name]
						open = append(open, other)
					}
				}
				continue
			}
			n := origin[name]
			n.file, n.line, n.name, n.kernel = name, f.line, strings.Split(f.file, "/"), true
			im.used.add(n)
		}
	}
}

// wantedFeatures returns whether a feature describes the machine, or a variable names it.
func (im *importer) wantedFeatures() func(Source) bool {
	var named []string
	for _, s := range im.sources {
		if s.Kind != BitBake || !strings.Contains(string(s.Text), "KERNEL_FEATURES") {
			continue
		}
		lines, _ := split(s)
		for _, group := range groupContinuedLines(lines) {
			if a, ok := parseAssignment(joinLines(group)); ok && a.base == "KERNEL_FEATURES" && !a.isRemove() {
				named = append(named, strings.Fields(a.Value)...)
			}
		}
	}
	return func(s Source) bool {
		for _, n := range named {
			if strings.HasSuffix("/"+s.Name, "/"+n) {
				return true
			}
		}
		for line := range strings.Lines(string(s.Text)) {
			if w := strings.Fields(line); len(w) == 3 && w[0] == "define" && w[1] == "KMACHINE" && w[2] == im.machine {
				return true
			}
		}
		return false
	}
}

// fileScope decides whether a file takes part in the build of the machine, and for whom: why
// is the reason if not, and note what the report adds to its lines otherwise.
func (im *importer) fileScope(s Source) (scope, why, note string) {
	users := im.used.of(s.Name)
	if why := im.foreignPlace(s, users); why != "" {
		return "", why, ""
	}
	if s.Kind == Kconfig {
		if why := im.foreignFragment(s, users); why != "" {
			return "", why, ""
		}
		users = slices.DeleteFunc(slices.Clone(users), func(n usage) bool { return !n.kernel })
		if len(users) == 0 && slices.ContainsFunc(im.used.kernels, func(dir string) bool { return isBelow(dir, s.Name) }) {
			return "", "no recipe of these files names it, so it reaches no kernel", ""
		}
	}
	for i, n := range users {
		var no string
		scope, no = im.scopeOf(n.overrides)
		if no == "" {
			scope, no = im.folderScope(s, n, scope)
		}
		if no == "" {
			note = im.noteKernel(s, n)
			if note != "" && isWhole(s) {
				return "", fmt.Sprintf("the whole configuration of %s, and the kernel is %s", n.recipe, im.release.Provider), ""
			}
			return scope, "", note
		}
		if i == 0 {
			why = fmt.Sprintf("%s:%d names it: %s", path.Base(n.file), n.line, no)
		}
	}
	return everywhere, why, ""
}

// foreignPlace explains why a file acts in another place than the running system, "" if it acts there:
// in the initramfs, or in the systemd of a user.
func (im *importer) foreignPlace(s Source, users []usage) string {
	if slices.Contains([]Kind{Kconfig, Scc, Kas, Cmdline}, s.Kind) {
		return ""
	}
	const user, initramfs = "a unit of systemd's user manager; yoctune writes units of the system", "it belongs to the initramfs, and yoctune sets up the running system"
	folders := strings.Split(path.Dir(s.Name), "/")
	isInitramfs := func(name string) bool {
		return strings.HasPrefix(name, "initramfs") || strings.HasPrefix(name, "initrd")
	}
	for i, f := range folders {
		switch {
		case isInitramfs(f) || f == "initcpio" || f == "modules.d" && i > 0 && folders[i-1] == "dracut":
			return initramfs
		case s.Kind == Systemd && f == "user" && i > 0 && folders[i-1] == "systemd":
			return user
		}
	}
	if len(users) > 0 && !slices.ContainsFunc(users, func(n usage) bool { return !isInitramfs(n.recipe) }) {
		return initramfs
	}
	if s.Kind == Systemd {
		for _, in := range im.used.dests[path.Base(s.Name)] {
			if isBelow(in.dir, s.Name) && (strings.Contains(in.dest, "systemd_user_unitdir") || strings.Contains(in.dest, "systemd_userunitdir") || strings.Contains(in.dest, "/systemd/user")) {
				return user
			}
		}
	}
	return ""
}

// isWhole reports whether a file is a whole kernel configuration and not a fragment.
func isWhole(s Source) bool {
	return strings.HasSuffix(path.Base(s.Name), "defconfig") || bytes.Count(s.Text, []byte("CONFIG_")) >= wholeConfig
}

// noteKernel notes that a fragment is for another kernel than the release's.
func (im *importer) noteKernel(s Source, n usage) string {
	if s.Kind != Kconfig || path.Ext(n.file) == ".inc" || n.recipe == im.release.Provider || n.recipe == im.release.RTProvider {
		return ""
	}
	return fmt.Sprintf("it is for %s; yoctune adds options to %s", n.recipe, im.release.Provider)
}

// folderScope finds the override that the folder of a file stands for: bitbake reads
// files/MACHINE/NAME for that machine only.
func (im *importer) folderScope(s Source, n usage, scope string) (string, string) {
	dir := path.Dir(n.file)
	if !isBelow(dir, s.Name) || path.Ext(n.file) == ".scc" {
		return scope, ""
	}
	rel := path.Dir(strings.TrimPrefix(s.Name, dir+"/"))
	for range n.name[:len(n.name)-1] {
		rel = path.Dir(rel)
	}
	for _, p := range append(slices.Clone(im.used.paths[n.file]), "files", n.recipe) {
		if rel == p {
			return scope, ""
		}
		if rest, ok := strings.CutPrefix(rel, p+"/"); ok && !strings.Contains(rest, "/") && !strings.Contains(n.name[0], "*") {
			inner, no := im.scopeOf([]string{rest})
			return cmp.Or(inner, scope), no
		}
	}
	return scope, ""
}

// scopeOf returns the scope of what has overrides, or why they are not of the machine.
func (im *importer) scopeOf(overrides []string) (scope, why string) {
	scope = everywhere
	for _, o := range overrides {
		switch {
		case o == im.machine || slices.Contains(im.overrides, o):
			scope = im.machine
		case o == "tegra" || o == im.board.SoC || o == "${PN}" || strings.HasPrefix(o, "cuda") || o == "class-target" || o == "aarch64":
		case strings.HasPrefix(o, "pn-"):
			return "", "it is for one recipe only"
		default:
			return "", fmt.Sprintf("the override %s is not of machine %s", clean(o), im.machine)
		}
	}
	return scope, ""
}

// foreignFragment returns why a fragment is not Linux's: another recipe names it, it lies in
// the folder of another, or the kernel has few of its options.
func (im *importer) foreignFragment(s Source, users []usage) string {
	if slices.ContainsFunc(users, func(n usage) bool { return n.kernel }) {
		return ""
	}
	if len(users) > 0 {
		n := users[0]
		return fmt.Sprintf("options of %s, not of Linux: %s:%d names the file", n.recipe, path.Base(n.file), n.line)
	}
	parts := strings.Split(s.Name, "/")
	for i := len(parts) - 3; i >= 0; i-- {
		if category, ok := strings.CutPrefix(parts[i], "recipes-"); ok && !strings.HasPrefix(parts[i+1], "linux") && category != "kernel" {
			return fmt.Sprintf("options of %s, not of Linux: the file lies in its folder", clean(parts[i+1]))
		}
	}
	facts, err := kconfig.ForRelease(im.release.Name)
	if err != nil {
		return ""
	}
	cfg, _ := kconfig.ReadFragment(s.Name, s.Text)
	unknown := 0
	for _, l := range cfg.Lines {
		if _, ok := facts.Lookup(l.Symbol); !ok {
			unknown++
		}
	}
	if unknown > 1 && 2*unknown > len(cfg.Lines) {
		return fmt.Sprintf("the kernel of %s has only %d of its %d options: it is not a fragment of Linux", im.release.Name, len(cfg.Lines)-unknown, len(cfg.Lines))
	}
	return ""
}

// kindByRecipe corrects a kind that was guessed from the content of a .conf file: a recipe
// shows where it installs the file.
func (im *importer) kindByRecipe(s Source) Kind {
	if path.Ext(s.Name) != ".conf" || KindOf(s.Name, nil) != Other {
		return s.Kind
	}
	for _, in := range im.used.dests[path.Base(s.Name)] {
		if !isBelow(in.dir, s.Name) {
			continue
		}
		// The destination is a folder or the file's new path.
		if kind := KindOf(strings.ReplaceAll(in.dest, "${D}", "")+"/x.conf", nil); kind != Other {
			return kind
		}
		if kind := KindOf(strings.ReplaceAll(in.dest, "${D}", ""), nil); kind != Other {
			return kind
		}
		return Other
	}
	return s.Kind
}
