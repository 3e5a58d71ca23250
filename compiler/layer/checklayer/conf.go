package checklayer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// conf is a build folder's configuration.
type conf struct {
	Layers []string
	Lines  []string // local.conf, complete lines
}

// set returns `name = "value"`. A value that bitbake would read as something
// else than itself is refused: nothing here needs one.
func set(name, op, value string) (string, error) {
	if strings.ContainsAny(value, "\"\n\r") || strings.Contains(value, "${") || strings.HasSuffix(value, `\`) {
		return "", fmt.Errorf("%s: %q cannot be written into a configuration file", name, value)
	}
	return fmt.Sprintf("%s %s \"%s\"", name, op, value), nil
}

// badInPath are the characters that bitbake, oe-core's sanity check or the
// patterns layers build from their own path cannot bear.
var badInPath = lazyregexp.New(`[^A-Za-z0-9/._~-]`)

// usablePath explains why bitbake could not work with a path.
func usablePath(what, path string) error {
	if c := badInPath.FindString(path); c != "" {
		return fmt.Errorf("%s %q: bitbake does not support %q in a path; use a path of letters, digits, '.', '_' and '-'", what, path, c)
	}
	return nil
}

// blayers is the text of bblayers.conf.
func (c conf) bblayers() (string, error) {
	for _, dir := range c.Layers {
		if err := usablePath("layer", dir); err != nil {
			return "", err
		}
	}
	return "BBPATH = \"${TOPDIR}\"\nBBFILES ?= \"\"\nBBLAYERS ?= \" \\\n " + strings.Join(c.Layers, " \\\n ") + " \\\n \"\n", nil
}

// write makes the build folder.
func (c conf) write(dir string) error {
	layers, err := c.bblayers()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "conf"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "conf", "bblayers.conf"), []byte(layers), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "conf", "local.conf"), []byte(strings.Join(c.Lines, "\n")+"\n"), 0o644)
}

// masks returns BBMASK expressions that leave, of the layers in dirs, only the
// recipes named in keep and their appends: a layer of a machine makes a kernel its own by one. bitbake searches each expression in the
// absolute path of a recipe, with Python's re, hence the look-ahead.
func masks(dirs, keep []string) []string {
	if len(keep) == 0 {
		keep = []string{"-none-"}
	}
	var names []string
	for _, k := range keep {
		names = append(names, regexp.QuoteMeta(k))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var out []string
	for _, dir := range dirs {
		others := "^" + regexp.QuoteMeta(dir) + `/(.*/)?(?!(` + strings.Join(names, "|") + `)(_[^/]*)?\.`
		out = append(out, others+`bb$)[^/]*\.bb$`, others+`bbappend$)[^/]*\.bbappend$`)
	}
	return out
}

// assign is [set] for a value that was checked before. Its error stops the next
// configuration from being written.
func (g *rig) assign(name, op, value string) string {
	line, err := set(name, op, value)
	g.badValue = errors.Join(g.badValue, err)
	return line
}

// localConf returns the lines that every build folder of this package has in common.
func (g *rig) localConf() []string {
	return []string{
		`DISTRO ?= "nodistro"`,
		`INIT_MANAGER = "systemd"`,
		`BB_NO_NETWORK = "1"`,
		`CONNECTIVITY_CHECK_URIS = ""`,
		`BB_DISKMON_DIRS = ""`,
		`LICENSE_FLAGS_ACCEPTED += "commercial"`,
		g.assign("MACHINE", "=", g.opt.Machine),
		g.assign("CONF_VERSION", "=", g.src.LocalConfVersion),
		g.assign("BB_NUMBER_PARSE_THREADS", "=", fmt.Sprint(g.opt.Threads)),
	}
}

// rigLines returns settings that let tasks run on this machine: Debian's pseudo instead of a
// built one, no cross tools, and no directories or servers of the user's build machine.
// forcevariable overrides any plain assignment.
func (g *rig) rigLines() []string {
	lines := []string{
		`SKIP_FILEDEPS = "1"`,
		`INHIBIT_PACKAGE_STRIP = "1"`,
		`INHIBIT_PACKAGE_DEBUG_SPLIT = "1"`,
		`INHERIT:remove = "create-spdx"`,
		// useradd.bbclass runs and depends on shadow, which is a stand-in here.
		`SYSROOTFUNC:forcevariable = ""`,
		`WARN_QA:remove = "build-deps"`,
		`ERROR_QA:remove = "build-deps"`,
		`HOSTTOOLS_NONFATAL += "unzip xz zstd unxz dpkg-deb"`,
		`BB_SIGNATURE_HANDLER:forcevariable = "OEBasicHash"`,
	}
	for _, empty := range []string{"SSTATE_MIRRORS", "PREMIRRORS", "BB_HASHSERVE", "BB_HASHSERVE_UPSTREAM", "BB_PRESSURE_MAX_CPU", "BB_PRESSURE_MAX_IO", "BB_PRESSURE_MAX_MEMORY"} {
		lines = append(lines, empty+`:forcevariable = ""`)
	}
	var own []string
	for _, r := range g.layer.Recipes {
		own = append(own, r.Name)
	}
	for _, v := range [][2]string{
		{"DL_DIR:forcevariable", filepath.Join(g.work, "downloads")},
		{"SSTATE_DIR:forcevariable", filepath.Join(g.work, "sstate")},
		{"PSEUDO_SYSROOT", g.pseudo},
		{"BB_NUMBER_THREADS:forcevariable", fmt.Sprint(g.opt.Threads)},
		{"RM_WORK_EXCLUDE", strings.Join(own, " ")},
	} {
		if v[1] != "" {
			lines = append(lines, g.assign(v[0], "=", v[1]))
		}
	}
	return lines
}

// maskLines returns the masks as lines of local.conf.
func (g *rig) maskLines(keep []string) []string {
	var lines []string
	for _, m := range masks(g.src.layers(), keep) {
		lines = append(lines, g.assign("BBMASK", "+=", m))
	}
	return lines
}
