package importer

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// findActive finds the configuration files that take part in a build of the machine: those
// that bitbake reads by itself, those that the user named, and what they include.
func (im *importer) findActive() {
	im.active = map[string]bool{}
	locals, distros := im.listConf(localRank), im.listConf(distroRank)
	if len(locals) > 1 {
		locals = im.chooseLocal(locals)
	}
	if len(distros) > 1 {
		distros = slices.DeleteFunc(distros, func(s Source) bool {
			return im.distro == "" || strings.TrimSuffix(path.Base(s.Name), ".conf") != im.distro
		})
	}
	open := slices.Concat(im.listConf(layerRank), locals, distros)
	for _, s := range im.sources {
		isMachine := parseRank(s) == machineRank && strings.TrimSuffix(path.Base(s.Name), ".conf") == im.machine
		if s.Kind == BitBake && (s.Given || isMachine) {
			open = append(open, s)
		}
	}
	for len(open) > 0 {
		s := open[0]
		open = open[1:]
		if im.active[s.Name] {
			continue
		}
		im.active[s.Name] = true
		for line := range strings.Lines(string(s.Text)) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "require" && words[0] != "include" && words[0] != "include_all" {
				continue
			}
			for _, w := range words[1:] {
				w = strings.NewReplacer("${MACHINE}", im.machine, "${DISTRO}", im.distro, "${LAYERDIR}/", "", "${TOPDIR}/", "").Replace(w)
				for _, other := range im.sources {
					if other.Kind == BitBake && strings.HasSuffix("/"+other.Name, "/"+strings.TrimPrefix(w, "./")) {
						open = append(open, other)
					}
				}
			}
		}
	}
}

// listConf lists the configuration files of a rank.
func (im *importer) listConf(rank int) []Source {
	var out []Source
	for _, s := range im.sources {
		if s.Kind == BitBake && s.Unread == "" && parseRank(s) == rank && isConf(s) {
			out = append(out, s)
		}
	}
	return out
}

// isConf reports whether a file is configuration that bitbake reads by itself, or by the name
// of the machine or distribution.
func isConf(s Source) bool {
	_, isRecipe := recipeFile(s.Name)
	ext := path.Ext(s.Name)
	return !isRecipe && ext != ".inc" && ext != ".bbclass" && !slices.Contains(strings.Split(path.Dir(s.Name), "/"), "multiconfig")
}

// chooseLocal chooses among several local.conf and their samples: a real one, those for the
// machine, or none.
func (im *importer) chooseLocal(all []Source) []Source {
	isLocal := func(s Source) bool { return strings.Contains(path.Base(s.Name), "local.conf") }
	n := 0
	for _, s := range all {
		if isLocal(s) {
			n++
		}
	}
	if n < 2 {
		return all
	}
	var chosen []Source
	for _, s := range all {
		switch {
		case !isLocal(s), path.Base(s.Name) == "local.conf" && path.Base(path.Dir(s.Name)) == "conf":
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// inactive returns why a configuration file takes no part in the build; "" for one that does,
// and for a recipe.
func (im *importer) inactive(s Source) string {
	if _, isRecipe := recipeFile(s.Name); isRecipe || s.Kind != BitBake || im.active == nil || im.active[s.Name] || path.Ext(s.Name) == ".bbclass" {
		return ""
	}
	switch rank := parseRank(s); {
	case slices.Contains(strings.Split(path.Dir(s.Name), "/"), "multiconfig"):
		return "for one configuration of several (multiconfig)"
	case rank == machineRank:
		return "the file is for another machine than " + im.machine
	case rank == machineIncludeRank:
		return "the machine " + im.machine + " does not require it"
	case rank == distroRank && im.distro != "":
		return "the distribution is " + im.distro
	case rank == distroRank, rank == localRank && path.Ext(s.Name) != ".inc":
		return "one of several such files takes part in a build; give it by name to import it"
	case rank == distroIncludeRank:
		return "no distribution that takes part requires it"
	}
	return "no file that takes part requires it"
}

// chosenDistro is the distribution that a local.conf or a file of kas names.
func (c clues) chosenDistro() string { return cmp.Or(c.distros...) }
