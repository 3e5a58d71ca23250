package importer

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/variable"
	"github.com/yoctune/yoctune/schema/formats/bitbake"
)

// assignment is a line of a .conf file or recipe that sets a variable.
type assignment struct {
	bitbake.Assignment
	base      string   // without overrides
	op        string   // "=", "append", "prepend", "remove", ...
	overrides []string // that are neither an operation nor part of the name
	old       bool     // written with the operators of before honister
}

// oldOperator is FOO_append or FOO_append_machine. Only lower-case names follow,
// as overrides are.
var oldOperator = lazyregexp.New(`^([A-Z0-9_]*[A-Z0-9])_(append|prepend|remove)((?:_[a-z0-9-]+)*)$`)

// parseAssignment reads a logical line.
func parseAssignment(line string) (assignment, bool) {
	parsed, ok := bitbake.ParseAssignment(line)
	if !ok {
		return assignment{}, false
	}
	a := assignment{Assignment: parsed}
	a.base, a.op, a.overrides = parsed.Split()
	for i, o := range a.overrides {
		a.overrides[i] = strings.TrimPrefix(o, quote.OverridePrefix)
	}
	if o := oldOperator.FindStringSubmatch(a.base); o != nil {
		a.old, a.base, a.op = true, o[1], o[2]
		for ov := range strings.SplitSeq(strings.TrimPrefix(o[3], "_"), "_") {
			if ov != "" {
				a.overrides = append(a.overrides, ov)
			}
		}
	}
	return a, true
}

// modernName returns the assignment's left side in the current override syntax.
func (a assignment) modernName() string {
	s := a.base
	if a.op == "append" || a.op == "prepend" || a.op == "remove" {
		s += ":" + a.op
	}
	for _, o := range a.overrides {
		s += ":" + o
	}
	return s
}

func (a assignment) isRemove() bool { return a.op == "remove" }

// readBitBake reads configuration and recipes. It imports variables that have a yoctune field
// and leaves everything else.
func (im *importer) readBitBake(lines []*Line, s Source) {
	r := &recipe{im: im, source: s, column: 1}
	r.readAll(lines)
}

// readAll reads the lines of a file, or of text in one.
func (r *recipe) readAll(lines []*Line) {
	groups := groupContinuedLines(lines)
	for _, g := range groups {
		if text := joinLines(g); strings.HasPrefix(text, "inherit ") && slices.Contains(strings.Fields(text), "allarch") {
			r.allarch = g[0]
		}
	}
	for _, g := range groups {
		r.readStatement(g)
		copyVerdict(g)
	}
}

type recipe struct {
	im       *importer
	source   Source
	function string // name of the shell or Python function that lines belong to
	python   bool   // it ends with the indentation
	column   int    // where lines start that are not indented
	allarch  *Line
}

var functionStart = lazyregexp.New(`^(?:python\s+|fakeroot\s+)*([A-Za-z0-9_:.${}+-]*)\s*\(\s*\)\s*\{`)

func (r *recipe) readStatement(g []*Line) {
	l, text := g[0], joinLines(g)
	if r.function != "" && r.readFunction(l, text) {
		return
	}
	if m := functionStart.FindStringSubmatch(text); m != nil {
		r.function, r.python = m[1]+" ", strings.HasPrefix(text, "python")
		l.leave("a function: yoctune's tasks are fixed, and values go into files")
		if strings.HasSuffix(strings.TrimSpace(text), "}") {
			r.findTaskTraps(l, text)
			r.function = ""
		}
		return
	}
	word1, rest, _ := strings.Cut(text, " ")
	switch word1 {
	case "def":
		r.function, r.python = "def", true
		l.leave("a function: yoctune's tasks are fixed, and values go into files")
		return
	case "include", "require":
		r.readRequire(l, word1, strings.TrimSpace(rest))
		return
	case "inherit":
		l.leave("a recipe's class; yoctune writes its own recipes")
		return
	case "addtask", "deltask", "EXPORT_FUNCTIONS", "unset", "addfragments", "addpylib":
		l.leavef("%s stays where it is", word1)
		return
	}
	a, ok := parseAssignment(text)
	if !ok {
		l.leave("not an assignment that yoctune reads")
		return
	}
	r.readAssignment(l, a)
}

// readFunction reads a line of a function and reports whether it was one.
func (r *recipe) readFunction(l *Line, text string) bool {
	if r.python && r.function == "def" {
		if l.Column <= r.column {
			r.function = ""
			return false
		}
		l.leave("part of a function")
		return true
	}
	l.leave("part of a function")
	if strings.HasPrefix(text, "}") && l.Column <= r.column {
		r.function = ""
		return true
	}
	r.findTaskTraps(l, text)
	return true
}

// findTaskTraps looks for the traps of shell tasks.
func (r *recipe) findTaskTraps(l *Line, text string) {
	switch {
	case strings.Contains(text, ".config") && strings.Contains(text, "CONFIG_"):
		l.addTrap(editedConfig)
		l.addNote("write the option under kernel.config")
	case strings.Contains(text, "THISDIR") || strings.Contains(text, "SAVED"):
		l.addTrap(layerPath)
	case strings.Contains(text, "PM_CONFIG DEFAULT"):
		l.addNote("power.default sets the mode by its name")
	}
}

func (r *recipe) readRequire(l *Line, kind, file string) {
	base := path.Base(file)
	for _, s := range r.im.sources {
		if isWord(base) && path.Base(s.Name) == base {
			l.markUnderstood("%s is imported as well", s.Name)
			return
		}
	}
	if strings.HasPrefix(file, "conf/machine/") {
		l.markUnderstood("the machine is %s", r.im.machine)
		return
	}
	l.leavef("%s of a file that was not given", kind)
}

// chooseScope sets the scope from the overrides of an assignment. It returns why the line
// is left, or "".
func (r *recipe) chooseScope(a assignment) string {
	im := r.im
	im.scope = everywhere
	if path.Base(path.Dir(r.source.Name)) == "machine" && strings.TrimSuffix(path.Base(r.source.Name), ".conf") != im.machine {
		return "the file is for another machine than " + im.machine
	}
	scope, why := im.scopeOf(a.overrides)
	im.scope = scope
	return why
}

// setters are the variables that have a field.
var setters = sync.OnceValue(func() map[string]func(*recipe, *Line, assignment) {
	build := func(read func(*Line, string) (string, bool), names ...string) func(*recipe, *Line, assignment) {
		return func(r *recipe, l *Line, a assignment) {
			if a.edits() {
				l.leave("the operator joins it with a value that is set elsewhere")
				return
			}
			if v, ok := read(l, strings.TrimSpace(a.Value)); ok {
				r.im.setField(l, v, append([]string{"build"}, names...)...)
			}
		}
	}
	list := func(names ...string) func(*recipe, *Line, assignment) {
		return func(r *recipe, l *Line, a assignment) { r.addToList(l, a, append([]string{"build"}, names...)...) }
	}
	packages := func(r *recipe, l *Line, a assignment) { r.readPackages(l, a, "install") }
	return map[string]func(*recipe, *Line, assignment){
		"BB_NUMBER_THREADS":           build(readCount, "parallel", "tasks"),
		"PARALLEL_MAKE":               build(readJobs, "parallel", "make"),
		"BB_PRESSURE_MAX_CPU":         build(readCount, "pressure", "cpu"),
		"BB_PRESSURE_MAX_IO":          build(readCount, "pressure", "io"),
		"BB_PRESSURE_MAX_MEMORY":      build(readCount, "pressure", "memory"),
		"SSTATE_DIR":                  build(readFolder, "sstate", "dir"),
		"DL_DIR":                      build(readFolder, "downloads", "dir"),
		"BB_HASHSERVE_DB_DIR":         build(readFolder, "hashserve", "database"),
		"BB_LOADFACTOR_MAX":           build(readText, "parallel", "load"),
		"SOURCE_MIRROR_URL":           build(readText, "downloads", "own"),
		"BB_GENERATE_MIRROR_TARBALLS": build(readSwitchAs("true"), "downloads", "archive"),
		"BB_NO_NETWORK":               build(readSwitchAs("none"), "downloads", "network"),
		"BB_FETCH_PREMIRRORONLY":      build(readSwitchAs("mirrors"), "downloads", "network"),
		"BB_ALLOWED_NETWORKS":         list("downloads", "hosts"),
		"BB_SIGNATURE_HANDLER":        (*recipe).readSignatureHandler,
		"RM_WORK_EXCLUDE":             list("rmWorkExclude"),
		"PACKAGE_CLASSES":             (*recipe).readPackageClasses,
		"BB_HASHSERVE":                build(readText, "hashserve", "address"),
		"BB_HASHSERVE_UPSTREAM":       build(readText, "hashserve", "upstream"),
		"SSTATE_MIRRORS":              func(r *recipe, l *Line, a assignment) { r.readMirrors(l, a, "file://.*", "build", "sstate", "mirrors") },
		"PREMIRRORS": func(r *recipe, l *Line, a assignment) {
			r.readMirrors(l, a, ".*://.*/.*", "build", "downloads", "mirrors")
		},
		"INHERIT":                             (*recipe).inheritAll,
		"USER_CLASSES":                        (*recipe).inheritAll,
		"IMAGE_INSTALL":                       packages,
		"CORE_IMAGE_EXTRA_INSTALL":            packages,
		"MACHINE_EXTRA_RRECOMMENDS":           packages,
		"MACHINE_EXTRA_RDEPENDS":              packages,
		"MACHINE_ESSENTIAL_EXTRA_RDEPENDS":    packages,
		"MACHINE_ESSENTIAL_EXTRA_RRECOMMENDS": packages,
		"PACKAGE_EXCLUDE":                     func(r *recipe, l *Line, a assignment) { r.readPackages(l, a, "exclude") },
		"BAD_RECOMMENDATIONS":                 list("image", "badRecommendations"),
		"KERNEL_MODULE_AUTOLOAD":              (*recipe).readAutoload,
		"KERNEL_ARGS":                         (*recipe).readKernelArgs,
		"NVPMODEL_CONFIG_DEFAULT":             (*recipe).readPowerDefault,
		"PREFERRED_PROVIDER_virtual/kernel":   (*recipe).readKernelProvider,
		"MACHINE":                             func(r *recipe, l *Line, a assignment) { l.markUnderstood("the target's machine is %s", r.im.machine) },
		"DISTRO_FEATURES":                     (*recipe).readDistroFeatures,
		"MACHINE_FEATURES": func(r *recipe, l *Line, a assignment) {
			r.changeWords(l, a, strings.Fields(a.Value), "build", "machineFeatures")
		},
		"PACKAGECONFIG": func(_ *recipe, l *Line, _ assignment) {
			l.leave("packageConfig has the options of one recipe (pn-NAME)")
		},
		"BB_DISKMON_DIRS":      (*recipe).readDiskMonitor,
		"INIT_MANAGER":         (*recipe).readInitManager,
		"IMAGE_FEATURES":       (*recipe).readImageFeatures,
		"EXTRA_IMAGE_FEATURES": (*recipe).readImageFeatures,
		"SRC_URI":              (*recipe).readSourceURI,
		"RDEPENDS":             (*recipe).readDependencies,
		"BBFILE_COLLECTIONS":   func(r *recipe, l *Line, _ assignment) { l.markUnderstood("the layer is called %s", r.im.layerName()) },
	}
})

// leaveRenamed leaves a line with a name that the release has given up.
func (im *importer) leaveRenamed(l *Line, name string, to release.Renamed) {
	if to.New != "" {
		l.leavef("%s refuses %s: it is now called %s", im.release.Name, name, to.New)
		return
	}
	l.leavef("%s refuses %s: %s", im.release.Name, name, to.Message)
}

// noteVariable notes why bitbake would not do what a line of local.conf intends.
func (r *recipe) noteVariable(l *Line, a assignment) {
	dir := path.Base(path.Dir(r.source.Name))
	if path.Ext(r.source.Name) != ".conf" || path.Base(r.source.Name) == "layer.conf" || dir == "machine" || dir == "distro" || dir == "include" ||
		a.Flag != "" || len(a.overrides) > 0 || strings.ToUpper(a.base) != a.base || strings.ContainsAny(a.base, "${-./") {
		return
	}
	rel := r.im.release.Name
	f, known := variable.Lookup(rel, a.base)
	isEdit := a.op == "append" || a.op == "prepend" || a.op == "remove"
	switch {
	case !known && variable.IsRead(rel):
		l.addNote("%s is not known to openembedded at %s", clean(a.base), rel)
		if near := variable.Nearest(rel, a.base); near != "" {
			l.addTrap(unknownVariable)
			l.addNote("did you mean %s?", near)
		}
	case f.Scope == variable.Recipe:
		l.addTrap(recipeVariable)
		l.addNote("%s acts in recipes (%s), not in configuration", a.base, f.Where)
	case f.Lost != "" && !isEdit && (f.Machines == nil || slices.Contains(f.Machines, r.im.machine)):
		l.addTrap(lostVariable)
		l.addNote("%s assigns %s later, so this is lost", f.Lost, a.base)
		if f.List {
			l.addNote("%s:append adds to it", a.base)
		}
	}
}

func (r *recipe) readAssignment(l *Line, a assignment) {
	im := r.im
	if a.old {
		l.addTrap(oldOperatorTrap)
		l.addNote("the current syntax is %s", a.modernName())
	}
	if to, ok := im.release.FindRenamed(a.base); ok {
		l.addTrap(renamedVariable)
		im.leaveRenamed(l, a.base, to)
		return
	}
	defer r.noteVariable(l, a)
	defer r.noteAssignment(l, a)
	if a.base == "do_fetch" && a.Flag == "number_threads" {
		if v, ok := readCount(l, a.Value); ok {
			im.setField(l, v, "build", "parallel", "downloads")
		}
		return
	}
	set := setters()[a.base]
	if set == nil && r.isLocal() {
		set = (*recipe).readVariable
	}
	switch {
	case isLayerVariable(a.base):
		im.readLayerVariable(l, a)
		return
	case a.base == "FILESEXTRAPATHS":
		l.markUnderstood("yoctune writes its own")
		return
	case a.base == "BB_DANGLINGAPPENDS_WARNONLY":
		l.addTrap(hiddenAppends)
		l.leavef("%s still accepts it; newer releases stop the build", im.release.Name)
		return
	case set == nil || a.Flag != "":
		l.leavef("yoctune has no field for %s", clean(a.Name))
		return
	}
	if r.readForRecipe(l, a) {
		return
	}
	if r.assignForRecipe(l, a) {
		return
	}
	if why := r.chooseScope(a); why != "" {
		l.leave(why)
		return
	}
	earlier := im.assigned[a.base].line
	if why := r.beaten(l, a); why != "" {
		l.leave(why)
		return
	}
	defer im.dropReplaced(earlier, l, a)
	if a.old {
		l.Verdict = Adjusted
	}
	set(r, l, a)
	im.scope = everywhere
	if l.Verdict == "" && !l.partial {
		l.markUnderstood("")
	}
}

// leaveExpansion leaves a value that bitbake computes, and reports whether it did.
func leaveExpansion(l *Line, value string) bool {
	if !strings.Contains(value, "${") {
		return false
	}
	l.addTrap(environmentOnly)
	l.leavePart(clean(value), "bitbake computes it")
	return true
}

func readCount(l *Line, value string) (string, bool) {
	if leaveExpansion(l, value) {
		return "", false
	}
	if n, ok := number(value); ok && n > 0 {
		return value, true
	}
	l.leavePart(clean(value), "not a whole number")
	return "", false
}

var makeJobs = lazyregexp.New(`^-j\s*([0-9]+)$`)

func readJobs(l *Line, value string) (string, bool) {
	if leaveExpansion(l, value) {
		return "", false
	}
	fields := strings.Fields(value)
	for i, f := range fields {
		if f == "-j" && i+1 < len(fields) {
			f += fields[i+1]
		}
		if m := makeJobs.FindStringSubmatch(f); m != nil {
			if len(fields) > 2 || len(fields) == 2 && f == fields[i] {
				l.leavePart("the rest", "yoctune sets the number of jobs only")
			}
			return m[1], true
		}
	}
	l.leavePart(clean(value), "-j N is missing")
	return "", false
}

func readFolder(l *Line, value string) (string, bool) {
	if leaveExpansion(l, value) {
		return "", false
	}
	if !strings.HasPrefix(value, "/") {
		l.leavePart(clean(value), "not an absolute path")
		return "", false
	}
	return quoteCUE(strings.TrimSuffix(value, "/")), true
}

func readText(l *Line, value string) (string, bool) {
	if leaveExpansion(l, value) {
		return "", false
	}
	return quoteCUE(value), true
}

// readMirrors reads pairs of a pattern and a URL.
func (r *recipe) readMirrors(l *Line, a assignment, standard string, names ...string) {
	tokens := strings.Fields(strings.ReplaceAll(a.Value, `\n`, " "))
	if len(tokens)%2 != 0 {
		l.addTrap(mirrorURL)
		l.leavef("mirrors are pairs of a pattern and a URL, and these are %d words", len(tokens))
		return
	}
	for i := 0; i < len(tokens); i += 2 {
		pattern, address := tokens[i], tokens[i+1]
		if leaveExpansion(l, address) {
			continue
		}
		address, options, _ := strings.Cut(address, ";")
		if options != "" && options != "downloadfilename=PATH" {
			l.leavePart(clean(options), "yoctune writes the options of a mirror itself")
		}
		if options == "" && a.base == "SSTATE_MIRRORS" && strings.HasPrefix(address, "http") {
			l.markAdjusted("yoctune adds ;downloadfilename=PATH, which keeps the folders of the mirror")
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme == "" {
			l.addTrap(mirrorURL)
			hint := ""
			if strings.HasPrefix(address, "/") {
				hint = "; did you mean file://" + clean(address) + "?"
			}
			l.leavePart(clean(address), "not a URL%s", hint)
			continue
		}
		address = strings.TrimSuffix(strings.TrimSuffix(address, "PATH"), "/")
		name := mirrorName(u)
		for n := 2; r.im.config.hasField(slices.Concat(names, []string{name})...); n++ {
			name = fmt.Sprintf("%s-%d", mirrorName(u), n)
		}
		at := func(field string) []string { return slices.Concat(names, []string{name, field}) }
		r.im.setField(l, quoteCUE(address), at("url")...)
		if pattern != standard {
			r.im.setField(l, quoteCUE(pattern), at("pattern")...)
		}
		if len(tokens) > 2 {
			r.im.setField(l, fmt.Sprint(i/2*10), at("order")...)
		}
	}
}

func mirrorName(u *url.URL) string {
	if u.Host == "" {
		return "local"
	}
	return LayerName(u.Hostname())
}

func (r *recipe) inheritAll(l *Line, a assignment) {
	for _, w := range strings.Fields(a.Value) {
		if w == "rm_work" {
			r.im.setField(l, fmt.Sprint(!a.isRemove()), "build", "rmWork")
			continue
		}
		if w == "own-mirrors" {
			l.addNote("own-mirrors comes with build.downloads.own")
			continue
		}
		l.leavePart(clean(w), "a class of the build")
	}
}

func (r *recipe) readPackages(l *Line, a assignment, action string) {
	if a.isRemove() {
		l.leave(`removing it from a list does not exclude it; packages: NAME: "exclude" does`)
		return
	}
	for _, w := range strings.Fields(a.Value) {
		switch {
		case leaveExpansion(l, w):
		case !isWord(w):
			l.leavePart(clean(w), "not a package")
		case strings.HasPrefix(w, "packagegroup-core-boot") || w == "packagegroup-base":
			l.leavePart(w, "the image already has it")
		default:
			r.im.setField(l, quoteCUE(action), "packages", w)
		}
	}
}

func (r *recipe) readAutoload(l *Line, a assignment) {
	for _, w := range strings.Fields(a.Value) {
		if leaveExpansion(l, w) {
			continue
		}
		if a.isRemove() || !isWord(w) {
			l.leavePart(clean(w), "yoctune adds modules to load and does not remove any")
			continue
		}
		r.im.setField(l, quoteCUE("load"), "modules", w)
	}
}

func (r *recipe) readKernelArgs(l *Line, a assignment) {
	if a.isRemove() {
		r.im.removeArguments(l, a.Value)
		return
	}
	r.im.addArguments(l, a.Value)
	if !a.edits() && !strings.Contains(a.Value, "${") {
		r.im.dropStockArguments(l, a.Value)
	}
}

// readPowerDefault turns the id of a stock mode into its name.
func (r *recipe) readPowerDefault(l *Line, a assignment) {
	im := r.im
	value := strings.TrimSpace(a.Value)
	if value == "" {
		l.markUnderstood("it is the default of the BSP")
		return
	}
	if !leaveExpansion(l, value) {
		im.setPowerDefault(l, value)
	}
}

// setPowerDefault sets the mode by the id that the release's table gives it.
func (im *importer) setPowerDefault(l *Line, value string) {
	id, ok := number(value)
	if !ok {
		l.addTrap(danglingDefault)
		l.leavef("%s is not the id of a mode", clean(value))
		return
	}
	t, _, err := im.board.StockTable(im.release.Name)
	if err != nil {
		l.leavef("the ids of the modes of %s on %s are unknown", im.board.ID, im.release.Name)
		return
	}
	for _, m := range t.Modes {
		if int64(m.ID) == id {
			im.setField(l, quoteCUE(m.Name), "power", "default")
			return
		}
	}
	l.addTrap(danglingDefault)
	l.leavef("%s on %s has no mode %d; it has %s", im.board.ID, im.release.Name, id, modeNames(t))
}

func modeNames(t board.Table) string {
	var out []string
	for _, m := range t.Modes {
		out = append(out, fmt.Sprintf("%d %s", m.ID, m.Name))
	}
	return strings.Join(out, ", ")
}

func (r *recipe) readKernelProvider(l *Line, a assignment) {
	rel := r.im.release
	switch value := strings.TrimSpace(a.Value); value {
	case rel.Provider:
		l.markUnderstood("it is the default of the release")
	case rel.RTProvider:
		r.im.setField(l, quoteCUE("rt"), "kernel", "preempt")
	default:
		l.leavef("yoctune chooses the release's kernel, %s, or its real-time variant", rel.Provider)
	}
}

// readSwitchAs returns a reader of a switch of bitbake: the field gets the word if the switch is
// 1, and nothing if it is 0, the default.
func readSwitchAs(word string) func(*Line, string) (string, bool) {
	return func(l *Line, value string) (string, bool) {
		switch value {
		case "1":
			return scalarOrSwitch(word), true
		case "0", "":
			l.markUnderstood("off is the default")
		default:
			l.leavePart(clean(value), "not a switch")
		}
		return "", false
	}
}

// addToList adds the words of a variable to a list of the configuration.
func (r *recipe) addToList(l *Line, a assignment, names ...string) {
	if a.isRemove() {
		l.leave("yoctune adds to the list and does not remove anything")
		return
	}
	var words []string
	for _, w := range strings.Fields(a.Value) {
		if !leaveExpansion(l, w) {
			words = append(words, w)
		}
	}
	r.im.noteReplaced(l, a)
	r.im.extendList(l, words, names...)
}

func (r *recipe) readSignatureHandler(l *Line, a assignment) {
	switch a.Value {
	case "OEBasicHash":
		r.im.setField(l, "true", "build", "hashserve", "off")
	case "OEEquivHash":
		l.markUnderstood("it comes with a hash server")
	default:
		l.leavef("yoctune supports OEBasicHash and OEEquivHash")
	}
}

func (r *recipe) readPackageClasses(l *Line, a assignment) {
	for i, w := range strings.Fields(a.Value) {
		format, ok := strings.CutPrefix(w, "package_")
		if i > 0 || !ok {
			l.leavePart(clean(w), "a configuration can have only one package format")
			continue
		}
		r.im.setField(l, quoteCUE(format), "build", "format")
	}
}

// assignForRecipe reads PARALLEL_MAKE:pn-NAME and PACKAGECONFIG:append:pn-NAME, and reports
// whether it was one.
func (r *recipe) assignForRecipe(l *Line, a assignment) bool {
	if len(a.overrides) != 1 {
		return false
	}
	name, ok := strings.CutPrefix(a.overrides[0], "pn-")
	if !ok || !isWord(name) {
		return false
	}
	switch a.base {
	case "PARALLEL_MAKE":
		r.setRecipeJobs(l, a, name)
	case "PACKAGECONFIG":
		r.changeWords(l, a, strings.Fields(a.Value), "build", "packageConfig", name)
	default:
		return false
	}
	return true
}

func (r *recipe) readImageFeatures(l *Line, a assignment) {
	if a.isRemove() {
		if a.base == "IMAGE_FEATURES" && !leaveExpansion(l, a.Value) {
			r.im.extendList(l, strings.Fields(a.Value), "build", "image", "removeFeatures")
		} else if l.Verdict == "" && !l.partial {
			l.leave("image.removeFeatures removes from IMAGE_FEATURES")
		}
		return
	}
	for _, w := range strings.Fields(a.Value) {
		if w == "debug-tweaks" && !r.im.release.DebugTweaks {
			l.addTrap(refusedFeature)
			l.leavePart(w, "%s refuses it; write %s", r.im.release.Name, debugTweaksFix())
			continue
		}
		switch {
		case leaveExpansion(l, w):
		case w == "read-only-rootfs":
			r.im.setField(l, "true", "build", "image", "readOnly")
		default:
			r.im.extendList(l, []string{w}, "build", "image", "features")
		}
	}
}

func (r *recipe) readDistroFeatures(l *Line, a assignment) {
	var words []string
	for _, w := range strings.Fields(a.Value) {
		if (w == "systemd" || w == "usrmerge") && !a.isRemove() {
			l.addNote("%s comes with the layer: it sets INIT_MANAGER", w)
			continue
		}
		words = append(words, w)
	}
	if len(words) > 0 {
		r.changeWords(l, a, words, "build", "distroFeatures")
	}
}

func (r *recipe) readInitManager(l *Line, a assignment) {
	if a.Value == "systemd" {
		l.markUnderstood("the layer sets it")
		return
	}
	l.leave("yoctune's layers need systemd")
}

func debugTweaksFix() string {
	rules := release.SyntaxRules()
	return rules[slices.IndexFunc(rules, func(s release.Syntax) bool { return s.ID == "debug-tweaks" })].Fix
}

func (r *recipe) readSourceURI(l *Line, a assignment) {
	for _, w := range strings.Fields(a.Value) {
		name, ok := strings.CutPrefix(w, "file://")
		name, _, _ = strings.Cut(name, ";")
		if !ok {
			l.leavePart(clean(w), "sources of a recipe")
			continue
		}
		s, why := r.importedFile(path.Base(name))
		if why == "" {
			l.addNote("%s is imported as well", s)
			continue
		}
		l.leavePart(clean(name), "%s", why)
	}
}

// importedFile returns the source that a recipe names, or why it is not imported.
func (r *recipe) importedFile(base string) (name, why string) {
	why = "a file of a recipe that was not read"
	dir := path.Dir(r.source.Name)
	near := slices.ContainsFunc(r.im.sources, func(s Source) bool { return path.Base(s.Name) == base && isBelow(dir, s.Name) })
	for _, s := range r.im.sources {
		if path.Base(s.Name) != base || s.Unread != "" || near && !isBelow(dir, s.Name) {
			continue
		}
		if s.Kind == Other || s.Kind == BitBake {
			why = "yoctune has no setting for files of this kind"
			continue
		}
		if _, why, _ = r.im.fileScope(s); why == "" {
			return s.Name, ""
		}
	}
	return "", why
}

func (r *recipe) readDependencies(l *Line, a assignment) {
	l.leave("a dependency of a recipe; packages of an image go under packages")
	if r.allarch != nil && (strings.Contains(a.Value, "tegra") || strings.Contains(a.Value, "jetson") || strings.Contains(a.Value, "kernel-module")) {
		l.addTrap(packageArch)
		l.addNote("%s inherits allarch", positionOf(r.allarch))
	}
}
