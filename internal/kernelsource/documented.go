package kernelsource

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Documented is an entry of kernel-parameters.txt.
type Documented struct {
	Name string
	Arch string // architectures other than arm64, if the entry is for those alone
}

var (
	entry = regexp.MustCompile(`^\t([A-Za-z0-9_][\w.\-]*)(=?\S*)[ \t]*(\[.*)?$`)
	tags  = regexp.MustCompile(`\[([A-Za-z0-9_\-,/ +&]+)\]`)
)

// Documented lists the entries of the documentation of kernel arguments.
func (t *Tree) Documented() []Documented {
	var all []Documented
	for _, name := range []string{"Documentation/admin-guide/kernel-parameters.txt", "Documentation/kernel-parameters.txt"} {
		lines := strings.Split(string(t.files[path.Join(t.roots[0], name)]), "\n")
		for i, line := range lines {
			m := entry.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			text := line
			if m[3] == "" && i+1 < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i+1]), "[") {
				text += lines[i+1]
			}
			if m[2] == "" && !strings.Contains(text, "[") {
				continue // prose
			}
			all = append(all, Documented{m[1], foreign(text)})
		}
	}
	slices.SortFunc(all, func(a, b Documented) int { return strings.Compare(a.Name+" "+a.Arch, b.Name+" "+b.Arch) })
	return slices.Compact(all)
}

var commandLineSize = regexp.MustCompile(`(?m)^#define\s+COMMAND_LINE_SIZE\s+(\d+)\s*$`)

// CommandLineSize returns the bytes that an arm64 kernel keeps of its command line, with the zero at its
// end; "" if the source does not have the number.
func (t *Tree) CommandLineSize() string {
	for _, name := range []string{"arch/arm64/include/uapi/asm/setup.h", "arch/arm64/include/asm/setup.h", "include/uapi/asm-generic/setup.h"} {
		if m := commandLineSize.FindSubmatch(t.files[path.Join(t.roots[0], name)]); m != nil {
			return string(m[1])
		}
	}
	return ""
}

// foreign returns the architectures of an entry's tags, unless arm64 or none is among them.
func foreign(text string) string {
	var all []string
	for _, m := range tags.FindAllStringSubmatch(text, -1) {
		for _, tag := range strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune(", /+&", r) }) {
			switch tag {
			case "X86", "X86-32", "X86-64", "X86_32", "X86_64", "i386", "IX86":
				all = append(all, "x86")
			case "PPC", "POWERPC", "PPC64", "PPC_PSERIES", "S390", "MIPS", "PARISC", "SPARC", "SH", "M68K", "M68k", "RISCV", "LOONGARCH", "XTENSA", "ALPHA", "HPPA", "AVR32", "IA-64", "IA64":
				all = append(all, strings.ToLower(tag))
			case "ARM", "ARM64", "KNL":
				return ""
			}
		}
	}
	return strings.Join(union(all), ",")
}

var moduleAlias = regexp.MustCompile(`\bMODULE_ALIAS\s*\(\s*"([A-Za-z0-9_\-]+)"\s*\)`)

// Aliases returns the other names of modules, as MODULE_ALIAS gives them, by module.
func (t *Tree) Aliases(objects []Object) map[string][]string {
	all := map[string][]string{}
	for _, o := range objects {
		if !o.Loadable || !strings.Contains(string(t.files[o.Source]), "MODULE_ALIAS") {
			continue
		}
		for _, m := range moduleAlias.FindAllStringSubmatch(string(t.files[o.Source]), -1) {
			all[m[1]] = union(all[m[1]], []string{o.Module})
		}
	}
	return all
}
