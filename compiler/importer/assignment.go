package importer

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/variable"
)

// edits reports whether an assignment changes a value that is set elsewhere.
func (a assignment) edits() bool {
	return !slices.Contains([]string{"=", ":=", "?=", "??="}, a.op)
}

// assigned is the assignment that gives a variable its value so far.
type assigned struct {
	line      *Line
	op        string
	overrides int
}

// beaten returns why an assignment has no effect: one that was read before it is stronger.
func (r *recipe) beaten(l *Line, a assignment) string {
	im := r.im
	if a.edits() {
		return ""
	}
	if im.assigned == nil {
		im.assigned = map[string]assigned{}
	}
	old, before := im.assigned[a.base]
	switch {
	case before && old.overrides > len(a.overrides):
		return positionOf(old.line) + " sets it for an override, which wins"
	case before && old.overrides == len(a.overrides) && (a.op == "?=" && old.op != "??=" || a.op == "??=" && old.op != "??="):
		l.addTrap(weakVariable)
		return positionOf(old.line) + " assigns it already, and " + a.op + " has no effect then"
	}
	im.assigned[a.base] = assigned{l, a.op, len(a.overrides)}
	return ""
}

// dropReplaced drops what an earlier line set, where a line replaces it with a value that is
// left: neither value is in force with the other's.
func (im *importer) dropReplaced(earlier, l *Line, a assignment) {
	if earlier == nil || earlier == l || a.edits() || len(l.paths) > 0 || l.Verdict == Understood {
		return
	}
	for _, e := range slices.Clone(im.config.entries) {
		if !slices.Contains(e.lines, earlier) {
			continue
		}
		for _, of := range e.lines {
			of.addTrap(setTwice)
			of.dropField(showPath(e.names), positionOf(l)+" sets it again, and the last one wins")
		}
		im.config.remove(e)
	}
}

// readForRecipe reads a line of a recipe that does not set the build, because it acts on
// that recipe only, and reports whether it was one. Jobs of one recipe have a field.
func (r *recipe) readForRecipe(l *Line, a assignment) bool {
	if path.Ext(r.source.Name) == ".bbclass" {
		l.leave("in a class it acts where the class is inherited")
		return true
	}
	name, ok := recipeFile(r.source.Name)
	if !ok {
		return false
	}
	switch a.base {
	case "SRC_URI", "RDEPENDS":
		return false
	case "NVPMODEL_CONFIG_DEFAULT":
		if strings.Contains(name, "nvpmodel") {
			return false
		}
	case "KERNEL_MODULE_AUTOLOAD":
		if name == r.im.release.Provider || name == r.im.release.RTProvider {
			return false
		}
	case "IMAGE_INSTALL", "IMAGE_FEATURES", "BAD_RECOMMENDATIONS", "PACKAGE_EXCLUDE":
		if n := r.im.countImages(); n > 1 {
			l.leavef("it is for one of %d images; yoctune's settings are for all", n)
			return true
		}
		l.markAdjusted("for every image of the build, not only for %s", clean(name))
		return false
	case "PARALLEL_MAKE":
		if len(a.overrides) == 0 && isWord(name) && path.Ext(r.source.Name) != ".inc" {
			r.setRecipeJobs(l, a, name)
			return true
		}
	}
	l.leave("in a recipe it acts on that recipe only")
	return true
}

// countImages counts the recipes that set what an image contains.
func (im *importer) countImages() int {
	if im.images > 0 {
		return im.images
	}
	names := map[string]bool{}
	for _, s := range im.sources {
		if name, ok := recipeFile(s.Name); ok && s.Kind == BitBake && (strings.Contains(string(s.Text), "IMAGE_INSTALL") || strings.Contains(string(s.Text), "IMAGE_FEATURES")) {
			names[name] = true
		}
	}
	im.images = len(names)
	return im.images
}

// setRecipeJobs sets the parallel jobs of one recipe.
func (r *recipe) setRecipeJobs(l *Line, a assignment, name string) {
	if a.edits() {
		l.leave("the operator joins it with a value that is set elsewhere")
		return
	}
	if v, ok := readJobs(l, strings.TrimSpace(a.Value)); ok {
		r.im.setField(l, v, "build", "parallel", "recipes", name)
	}
}

// isLayerVariable reports whether a layer.conf declares the variable.
func isLayerVariable(base string) bool {
	return base == "BBPATH" || base == "BBFILES" || slices.ContainsFunc([]string{"BBFILE_PRIORITY_", "LAYERSERIES_COMPAT_", "BBFILE_PATTERN_"}, func(prefix string) bool {
		return strings.HasPrefix(base, prefix)
	})
}

// readLayerVariable reads a line of a layer.conf; those about another layer are left.
func (im *importer) readLayerVariable(l *Line, a assignment) {
	own := im.layer
	for _, prefix := range []string{"BBFILE_PRIORITY_", "LAYERSERIES_COMPAT_", "BBFILE_PATTERN_"} {
		if name, ok := strings.CutPrefix(a.base, prefix); ok && !slices.Contains(im.collections, name) && !strings.Contains(name, "${") {
			l.addTrap(foreignLayer)
			l.leavef("%s is not the layer of these files (%s)", clean(name), cmp.Or(clean(own), "none is named"))
			return
		}
	}
	l.markUnderstood("yoctune writes the layer's own layer.conf")
}

// noteReplaced notes that the words of a list are added, where the line replaces the list.
func (im *importer) noteReplaced(l *Line, a assignment) {
	if !a.edits() {
		l.markAdjusted("as an addition to the list; %s also replaces the words of other files", a.op)
	}
}

// dropStockArguments removes the arguments of the BSP's machine that a whole list lacks.
func (im *importer) dropStockArguments(l *Line, value string) {
	var names []string
	for _, w := range argWords(value) {
		name, _, _ := strings.Cut(w, "=")
		names = append(names, name)
	}
	for w := range strings.FieldsSeq(stockArgs(im)) {
		name, _, _ := strings.Cut(w, "=")
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		l.addTrap(lostArguments)
		im.setField(l, "null", "kernel", "args", name)
		l.markAdjusted("the machine's own %s is lost, and stays so", w)
	}
}

// noteAssignment notes the traps of any assignment of bitbake.
func (r *recipe) noteAssignment(l *Line, a assignment) {
	value := a.Value
	fact, known := variable.Lookup(r.im.release.Name, a.base)
	inName := a.op == "append" || a.op == "prepend" || a.op == "remove"
	if inName && (a.Op != "=" && a.Op != ":=" || countOf(strings.Split(a.Name, ":"), a.op) > 1) {
		l.addTrap(doubledOperator)
		l.addNote("%s %s: write one of the two", clean(a.Name), a.Op)
	}
	if a.isRemove() {
		for w := range strings.FieldsSeq(value) {
			if strings.ContainsAny(w, "*?") || strings.Contains(w, "[") && !strings.Contains(w, "${") {
				l.addTrap(removePattern)
				l.addNote("%s matches no word", clean(w))
			}
		}
	}
	if strings.Contains(value, "$(") || strings.Contains(value, "`") {
		l.addTrap(shellValue)
		l.addNote("%s is text for bitbake", clean(value))
	}
	ownSpace := inName && (a.Op == "+=" || a.Op == "=+")
	front, back := a.op == "append" || a.op == ".=", a.op == "prepend" || a.op == "=."
	if value == "" || a.Flag != "" || ownSpace || !front && !back {
		return
	}
	edge := value[0]
	if back {
		edge = value[len(value)-1]
	}
	isNumber := known && !fact.List && edge >= '0' && edge <= '9'
	isList := known && fact.List && fact.Separator == " " || a.base == "KERNEL_ARGS"
	switch {
	case isNumber && (strings.HasPrefix(a.base, "BB_") || a.base == "PARALLEL_MAKE"):
		l.addTrap(appendedNumber)
		l.addNote("the digits join the number that is there")
	case isList && edge != ' ' && !strings.HasPrefix(value, "${") && !strings.HasSuffix(value, "}") && edge != '\t':
		l.addTrap(fusedAppend)
		word := "first word joins the previous one"
		if back {
			word = "last word joins the next one"
		}
		if len(l.paths) > 0 {
			l.Verdict = Adjusted
		}
		l.addNote("without a space the %s", word)
	}
}

func countOf(words []string, word string) int {
	n := 0
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}
