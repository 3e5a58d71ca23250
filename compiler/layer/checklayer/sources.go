package checklayer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// sources are the user's checkouts.
type sources struct {
	BitBake   string   // with bin/bitbake
	OECore    string   // with meta/ and scripts/
	Meta      string   // the layer in it
	MetaTegra string   // "" where the layer does without it
	Extra     []string // further layers

	BitBakeVersion   string
	Series           []string // LAYERSERIES_CORENAMES
	LocalConfVersion string
	Fragments        bool // the series reads conf/fragments
}

var (
	versionLine   = lazyregexp.New(`(?m)^__version__\s*=\s*"([^"]+)"`)
	minVersion    = lazyregexp.New(`(?m)^BB_MIN_VERSION\s*=\s*"([^"]+)"`)
	coreNames     = lazyregexp.New(`(?m)^LAYERSERIES_CORENAMES\s*=\s*"([^"]+)"`)
	localConfLine = lazyregexp.New(`(?m)^LOCALCONF_VERSION\s*\??=\s*"(\d+)"`)
	fragmentsLine = lazyregexp.New(`(?m)^addfragments\s`)
)

// findSources finds the checkouts and reports what is wrong with them.
func findSources(o Options) (sources, error) {
	var s sources
	resolve := func(what, flag, path, probe string) (string, error) {
		if path == "" {
			return "", fmt.Errorf("%s is needed: give its folder with %s", what, flag)
		}
		dir, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		// bitbake resolves links in some places and not in others; masks must
		// match what it prints.
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		if _, err := os.Stat(filepath.Join(dir, probe)); err != nil {
			return "", fmt.Errorf("%s %s is not %s: it has no %s", flag, path, what, probe)
		}
		return dir, usablePath(flag, dir)
	}
	var errs [3]error
	s.BitBake, errs[0] = resolve("a checkout of bitbake", "--bitbake", o.BitBake, "bin/bitbake")
	core := o.OECore
	if _, err := os.Stat(filepath.Join(core, "conf", "bitbake.conf")); err == nil && core != "" {
		core = filepath.Join(core, "..") // the user named oe-core/meta itself
	}
	s.OECore, errs[1] = resolve("a checkout of openembedded-core", "--oe-core", core, "meta/conf/bitbake.conf")
	if o.MetaTegra != "" {
		s.MetaTegra, errs[2] = resolve("a checkout of meta-tegra", "--meta-tegra", o.MetaTegra, "conf/layer.conf")
	}
	if err := errors.Join(errs[:]...); err != nil {
		return s, err
	}
	s.Meta = filepath.Join(s.OECore, "meta")
	for _, dir := range o.Extra {
		dir, err := resolve("a layer", "--extra-layer", dir, "conf/layer.conf")
		if err != nil {
			return s, err
		}
		s.Extra = append(s.Extra, dir)
	}

	read := func(re *lazyregexp.Regexp, parts ...string) (string, error) {
		file := filepath.Join(parts...)
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		m := re.FindSubmatch(b)
		if m == nil {
			return "", fmt.Errorf("%s: no line %s", file, re)
		}
		return string(m[len(m)-1]), nil
	}
	var err error
	if s.BitBakeVersion, err = read(versionLine, s.BitBake, "lib", "bb", "__init__.py"); err != nil {
		return s, err
	}
	names, err := read(coreNames, s.Meta, "conf", "layer.conf")
	if err != nil {
		return s, err
	}
	s.Series = strings.Fields(names)
	if s.LocalConfVersion, err = read(localConfLine, s.Meta, "conf", "sanity.conf"); err != nil {
		return s, err
	}
	least, err := read(minVersion, s.Meta, "conf", "sanity.conf")
	if err != nil {
		return s, err
	}
	if isOlder(s.BitBakeVersion, least) {
		return s, fmt.Errorf("bitbake in %s is %s, but openembedded-core in %s needs %s: check out the matching branch of bitbake", s.BitBake, s.BitBakeVersion, s.OECore, least)
	}
	_, err = read(fragmentsLine, s.Meta, "conf", "bitbake.conf")
	s.Fragments = err == nil
	return s, s.checkTarget(o.Release, o.Machine)
}

// checkTarget checks release and machine against the checkouts.
func (s sources) checkTarget(release, machine string) error {
	if !word.MatchString(release) {
		return fmt.Errorf("release %q: give the meta-tegra branch, for example --release scarthgap", release)
	}
	series, _, _ := strings.Cut(release, "-l4t-")
	if series != "master" && !slices.Contains(s.Series, series) {
		return fmt.Errorf("openembedded-core in %s is the series %s, not %s as --release %s needs", s.OECore, strings.Join(s.Series, ", "), series, release)
	}
	if !word.MatchString(machine) {
		return fmt.Errorf("machine %q: give the name of a machine, for example --machine jetson-orin-nano-devkit", machine)
	}
	if _, err := os.Stat(s.machineFile(machine)); err != nil {
		name, _ := s.bsp()
		return fmt.Errorf("machine %q is unknown to %s (it has: %s); give the layer of another machine with --extra-layer", machine, name, strings.Join(s.machines(), ", "))
	}
	return nil
}

// bsp returns the name and the folder of the layer whose machines a layer is for:
// openembedded-core where it does without meta-tegra.
func (s sources) bsp() (name, dir string) {
	if s.MetaTegra == "" {
		return "openembedded-core in " + s.OECore, s.Meta
	}
	return "meta-tegra in " + s.MetaTegra, s.MetaTegra
}

// machineFile is the configuration of a machine: that of the BSP, or of a further
// layer that has it.
func (s sources) machineFile(machine string) string {
	name := filepath.Join("conf", "machine", machine+".conf")
	if file := s.extraFile(name); file != "" {
		return file
	}
	_, dir := s.bsp()
	return filepath.Join(dir, name)
}

// extraFile returns a file of the first extra layer that has it, or "".
func (s sources) extraFile(name string) string {
	for _, dir := range s.Extra {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

func (s sources) machines() []string {
	_, dir := s.bsp()
	files, err := filepath.Glob(filepath.Join(dir, "conf", "machine", "*.conf"))
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".conf"))
	}
	return names
}

// isOlder compares dotted versions by number.
func isOlder(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(x) && i < len(y); i++ {
		var m, n int
		if _, err := fmt.Sscan(x[i], &m); err != nil {
			return false
		}
		if _, err := fmt.Sscan(y[i], &n); err != nil {
			return false
		}
		if m != n {
			return m < n
		}
	}
	return len(x) < len(y)
}

var hostToolsLine = lazyregexp.New(`(?s)\nHOSTTOOLS \+= " \\\n(.*?)"\n`)

// debianPackages names the package of a host tool where it is not the tool's own
// name; other distributions mostly agree.
func debianPackages() map[string]string {
	return map[string]string{
		"makeinfo": "texinfo", "lz4c": "lz4", "pzstd": "zstd", "unzstd": "zstd", "rpcgen": "rpcsvc-proto", "g++": "g++", "xz": "xz-utils",
		"ar": "binutils", "as": "binutils", "ld": "binutils", "nm": "binutils", "objcopy": "binutils", "objdump": "binutils",
		"ranlib": "binutils", "readelf": "binutils", "strings": "binutils", "strip": "binutils", "pr": "coreutils",
		"awk": "gawk", "iconv": "libc-bin", "getconf": "libc-bin", "ldd": "libc-bin", "cmp": "diffutils", "diff": "diffutils",
		"find": "findutils", "xargs": "findutils", "which": "debianutils", "gunzip": "gzip", "bunzip2": "bzip2", "cpp": "cpp",
		"flock": "util-linux", "getopt": "util-linux", "pseudo": "pseudo", "git": "git",
	}
}

// missingTools lists the host tools that openembedded-core demands and PATH
// lacks, with how to get them.
func (s sources) missingTools() error {
	b, err := os.ReadFile(filepath.Join(s.Meta, "conf", "bitbake.conf"))
	if err != nil {
		return err
	}
	var missing, packages []string
	names := debianPackages()
	for _, m := range hostToolsLine.FindAllSubmatch(b, -1) {
		for _, tool := range strings.Fields(strings.ReplaceAll(string(m[1]), `\`, "")) {
			if strings.ContainsAny(tool, "${}@'") {
				continue
			}
			if _, err := exec.LookPath(tool); err == nil {
				continue
			}
			missing = append(missing, tool)
			pkg := cmp.Or(names[tool], tool)
			if !slices.Contains(packages, pkg) {
				packages = append(packages, pkg)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("openembedded-core needs host tools that are not in PATH: %s (on Debian and Ubuntu: apt-get install %s)",
			strings.Join(missing, " "), strings.Join(packages, " "))
	}
	return nil
}

// locale checks for what bitbake refuses to start without.
func locale() error {
	out, err := exec.Command("locale", "-a").Output()
	if err != nil {
		return nil // no way to tell: bitbake will
	}
	for _, l := range strings.Fields(strings.ToLower(string(out))) {
		if l == "en_us.utf8" || l == "en_us.utf-8" {
			return nil
		}
	}
	return errors.New("the locale en_US.UTF-8, which bitbake requires, is missing (on Debian: apt-get install locales, uncomment it in /etc/locale.gen, run locale-gen)")
}

// traces of a name in the checkouts.
const (
	untraced  = iota
	byRecipe  // a recipe or package of that name is written there
	byPattern // only a recipe that makes packages whose names begin like this
)

// trace looks for a recipe or package name in the checkouts. The names of kernel modules
// and split packages exist only after packaging, so that only their beginning is checked.
func (s sources) trace(name string) (int, error) {
	spelt := regexp.MustCompile(`(^|[\s"':=/])` + regexp.QuoteMeta(name) + `($|[\s"';:])`)
	recipes, text := map[string]bool{}, false
	for _, dir := range s.layers() {
		err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			ext := filepath.Ext(p)
			if !slices.Contains([]string{".bb", ".inc", ".bbclass", ".conf"}, ext) {
				return nil
			}
			if ext == ".bb" {
				pn, _, _ := strings.Cut(strings.TrimSuffix(d.Name(), ext), "_")
				recipes[pn] = true
			}
			if text {
				return nil
			}
			b, err := os.ReadFile(p)
			text = err == nil && spelt.Match(b)
			return err
		})
		if err != nil {
			return untraced, fmt.Errorf("looking for %q: %w", name, err)
		}
	}
	if text || recipes[strings.TrimSuffix(name, "-native")] {
		return byRecipe, nil
	}
	if strings.HasPrefix(name, "kernel-module-") {
		return byPattern, nil
	}
	for stem := name; strings.Contains(stem, "-"); {
		stem = stem[:strings.LastIndex(stem, "-")]
		if recipes[stem] {
			return byPattern, nil
		}
	}
	return untraced, nil
}

// layers are the checkouts' layers, openembedded-core first.
func (s sources) layers() []string {
	dirs := []string{s.Meta}
	if s.MetaTegra != "" {
		dirs = append(dirs, s.MetaTegra)
	}
	return append(dirs, s.Extra...)
}
