package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// gperfTables are the tables of directives in systemd's sources, by the kind of file.
func gperfTables() map[string]string {
	return map[string]string{
		"unit":      "src/core/load-fragment-gperf.gperf.in",
		"network":   "src/network/networkd-network-gperf.gperf",
		"netdev":    "src/network/netdev/netdev-gperf.gperf",
		"link":      "src/udev/net/link-config-gperf.gperf",
		"networkd":  "src/network/networkd-gperf.gperf",
		"journald":  "src/journal/journald-gperf.gperf",
		"logind":    "src/login/logind-gperf.gperf",
		"resolved":  "src/resolve/resolved-gperf.gperf",
		"timesyncd": "src/timesync/timesyncd-gperf.gperf",
	}
}

var (
	gperfRow   = regexp.MustCompile(`^((?:\{\{type\}\}|[A-Za-z0-9-]+)\.[A-Za-z0-9-]+)\s*,\s*(\w+)\s*,\s*([^,]+),`)
	macroStart = regexp.MustCompile(`^\{%-? *macro (\w+)\(type\)`)
	macroCall  = regexp.MustCompile(`^\{\{ *(\w+)\('(\w+)'\) *\}\}`)
	parserOf   = regexp.MustCompile(`DEFINE_CONFIG_PARSE\w*\(\s*config_parse_(\w+),\s*(\w+?)(?:_from_string)?,`)
	tableOf    = regexp.MustCompile(`(?s)char\s*\*\s*const\s+(?:static_)?(\w+)_table\[[^\]]*\]\s*=\s*\{(.*?)\};`)
	wordOf     = regexp.MustCompile(`\]\s*=\s*"([^"]*)"`)
	withSwitch = regexp.MustCompile(`LOOKUP\w*_WITH_BOOLEAN\(\s*(\w+),`)
	withNumber = regexp.MustCompile(`LOOKUP\w*_WITH_FALLBACK\(\s*(\w+),`)
	udevKey    = regexp.MustCompile(`streq\(key, "([A-Z_]+)"\)`)
	tmpfilesOf = regexp.MustCompile(`(?m)^\s+[A-Z_]+\s*= '(\w)',(?:.*/\* (deprecated|legacy))?`)
	modprobeOf = regexp.MustCompile(`streq\(cmd, "(\w+)"\)`)
	familyOf   = regexp.MustCompile(`(?m)^#define\s+(AF_\w+)\s+[AP]F_`) // as in generate-af-list.sh
	capability = regexp.MustCompile(`(?m)^#\s*define\s+(CAP_[A-Z_]+)\s+([0-9]+)$`)
)

// wordLists are the places in systemd's sources with names that a directive takes several of, or with
// other forms beside them, by the list. A function is read to its end. The first place that has names counts.
func wordLists() map[string][]wordList {
	stream := func(which string) []wordList {
		return []wordList{{"src/core/load-fragment.c", "int config_parse_exec_" + which + "(", `\(rvalue, "([a-z+]+:?)"\)`}}
	}
	return map[string][]wordList{
		"exec_input":     stream("input"),
		"exec_output":    stream("output"),
		"namespaces":     {{"src/shared/nsflags.c", "", `\{ CLONE_NEW\w+,\s*"(\w+)"`}, {"src/basic/namespace-util.c", "", `\{ "(\w+)",\s*"ns/`}},
		"syscall_archs":  {{"src/shared/seccomp-util.c", "int seccomp_arch_from_string(", `streq\(n, "([^"]+)"\)`}},
		"syscall_groups": {{"src/shared/seccomp-util.c", "", `\.name = "(@[^"]+)"`}},
	}
}

type wordList struct{ file, function, pattern string }

// read returns the names in a source tree.
func (l wordList) read(folder string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(folder, l.file))
	if err != nil {
		return nil, err
	}
	text := string(data)
	if l.function != "" {
		_, text, _ = strings.Cut(text, "\n"+l.function)
		text, _, _ = strings.Cut(text, "\n}\n")
	}
	var words []string
	for _, m := range regexp.MustCompile(l.pattern).FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words, nil
}

// readLists returns the names of each list in a source tree. The words of streams are those of the
// table of strings and of the function that reads them; there "file:" stands for a form with more to it.
func readLists(folder string, tables map[string][]string) (map[string][]string, error) {
	lists := map[string][]string{}
	for name, places := range wordLists() {
		words := slices.Clone(tables[name])
		for _, place := range places {
			more, err := place.read(folder)
			if err != nil {
				return nil, err
			}
			if words = append(words, more...); len(more) > 0 {
				break
			}
		}
		if len(words) == len(tables[name]) {
			return nil, fmt.Errorf("%s has no words for %s: has it changed its form?", folder, name)
		}
		lists[name] = words
	}
	return lists, nil
}

// readCapabilities returns the capabilities that each tree was built with, by the tree's place. systemd has
// the kernel's header from 258 on. Before, it names the last capability that it knows, and has the earlier
// ones from the header of the system that builds it; numbers never change.
func readCapabilities(folders []string) ([][]string, error) {
	const own, missing = "src/include/uapi/linux/capability.h", "src/basic/missing_capability.h"
	var all [][]string // names and numbers of the kernel's header
	last := make([]int, len(folders))
	for i, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, own))
		isOwn := err == nil
		if !isOwn {
			text, err = os.ReadFile(filepath.Join(folder, missing))
		}
		if err != nil {
			return nil, err
		}
		found := capability.FindAllStringSubmatch(string(text), -1)
		for _, m := range found {
			n, _ := strconv.Atoi(m[2])
			last[i] = max(last[i], n)
		}
		if isOwn && len(found) > len(all) {
			all = found
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no version has %s: has it moved?", own)
	}
	lists := make([][]string, len(folders))
	for i := range folders {
		for _, m := range all {
			if n, _ := strconv.Atoi(m[2]); n <= last[i] {
				lists[i] = append(lists[i], m[1])
			}
		}
	}
	return lists, nil
}

// readFamilies returns the address families of glibc, which systemd's generate-af-list.sh reads when
// systemd is built. Versions that differ would need a list for each.
func readFamilies(glibc repository, tags []string) ([]string, error) {
	var families []string
	for i, tag := range tags {
		text, err := glibc.show(tag, "sysdeps/unix/sysv/linux/bits/socket.h")
		if err != nil {
			return nil, err
		}
		var found []string
		for _, m := range familyOf.FindAllStringSubmatch(text, -1) {
			if m[1] != "AF_UNSPEC" && m[1] != "AF_MAX" {
				found = append(found, m[1])
			}
		}
		if i > 0 && !slices.Equal(found, families) {
			return nil, fmt.Errorf("%s and %s of glibc have other address families", tags[i-1], tag)
		}
		families = found
	}
	if len(families) == 0 {
		return nil, errors.New("no address family: want -glibc and -glibc-tag")
	}
	return families, nil
}

// readGperf returns the type of each "Section.Name" of a table. Of a condition at compile
// time it takes the first branch: the others only accept the name.
func readGperf(text string) map[string]string {
	rows, macros := map[string]string{}, map[string][]string{}
	macro, otherwise := "", false
	add := func(line, section string) {
		if m := gperfRow.FindStringSubmatch(line); m != nil {
			kind := strings.TrimPrefix(m[2], "config_parse_")
			if strings.HasPrefix(strings.TrimSpace(m[3]), "DISABLED_") {
				kind = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(m[3]), "DISABLED_"))
			}
			rows[strings.Replace(m[1], "{{type}}", section, 1)] = kind
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch start, call := macroStart.FindStringSubmatch(line), macroCall.FindStringSubmatch(line); {
		case start != nil:
			macro = start[1]
		case strings.Contains(line, "endmacro"):
			macro = ""
		case strings.HasPrefix(line, "{% else") || strings.HasPrefix(line, "{%- else"):
			otherwise = true
		case strings.Contains(line, "endif"):
			otherwise = false
		case otherwise:
		case call != nil:
			for _, row := range macros[call[1]] {
				add(row, call[2])
			}
		case macro != "":
			macros[macro] = append(macros[macro], line)
		default:
			add(line, "")
		}
	}
	return rows
}

// readSystemd returns the type of each directive in an unpacked source tree, by "kind name".
func readSystemd(folder string) (map[string]string, error) {
	all := map[string]string{}
	for kind, file := range gperfTables() {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, err
		}
		rows := readGperf(string(text))
		if len(rows) == 0 {
			return nil, fmt.Errorf("%s has no directive: has it changed its form?", file)
		}
		for name, value := range rows {
			all[kind+" "+name] = value
		}
	}
	for kind, from := range map[string]struct {
		file string
		re   *regexp.Regexp
	}{"udev": {"src/udev/udev-rules.c", udevKey}, "tmpfiles": {"src/tmpfiles/tmpfiles.c", tmpfilesOf}} {
		text, err := os.ReadFile(filepath.Join(folder, from.file))
		if err != nil {
			return nil, err
		}
		for _, m := range from.re.FindAllStringSubmatch(string(text), -1) {
			value := "key"
			if len(m) > 2 && m[2] != "" {
				value = "legacy"
			}
			all[kind+" "+m[1]] = value
		}
	}
	return all, nil
}

// readWords returns the words that systemd's tables of strings give a type of value, by
// "enum TYPE", and those that more than a table gives by "list NAME". "bool" stands for the words of
// a switch, and "number" for a number.
func readWords(folder string) (map[string]string, error) {
	tables, extra := map[string][]string{}, map[string]string{}
	parsers := map[string]string{"signal": "signal", "emergency_action": "emergency_action", "kill_mode": "kill_mode", "exec_cpu_sched_policy": "sched_policy", "exec_io_class": "ioprio_class"}
	for _, part := range []string{"basic", "shared", "core"} {
		files, err := filepath.Glob(filepath.Join(folder, "src", part, "*.c"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			text := string(data)
			for _, m := range tableOf.FindAllStringSubmatch(text, -1) {
				tables[m[1]] = nil
				for _, w := range wordOf.FindAllStringSubmatch(m[2], -1) {
					tables[m[1]] = append(tables[m[1]], w[1])
				}
			}
			for _, m := range withSwitch.FindAllStringSubmatch(text, -1) {
				extra[m[1]] = "bool"
			}
			for _, m := range withNumber.FindAllStringSubmatch(text, -1) {
				extra[m[1]] = "number"
			}
			for _, m := range parserOf.FindAllStringSubmatch(text, -1) {
				parsers[m[1]] = m[2]
			}
		}
	}
	words := map[string]string{}
	for parser, name := range parsers {
		list := tables[name]
		if len(list) == 0 || slices.ContainsFunc(list, func(w string) bool { return strings.ContainsAny(w, ", \t") }) {
			continue // another form than a table
		}
		if extra[name] != "" {
			list = append(list, extra[name])
		}
		words["enum "+parser] = strings.Join(list, ",")
	}
	lists, err := readLists(folder, tables)
	for name, list := range lists {
		words["list "+name] = strings.Join(list, ",")
	}
	return words, err
}

// writeDirectives writes the directives of each version of systemd ("VERSION=FOLDER") and
// the commands of modprobe.d of each version of kmod (a tag of the repository), and the address families
// of glibc.
func writeDirectives(trees []string, kmod repository, tags []string, glibc repository, glibcTags []string, out string) error {
	var text strings.Builder
	rows := map[string]map[string]int{}
	add := func(name, value string, bit int) {
		if rows[name] == nil {
			rows[name] = map[string]int{}
		}
		rows[name][value] |= 1 << bit
	}
	var folders []string
	for i, tree := range trees {
		version, folder, _ := strings.Cut(tree, "=")
		folders = append(folders, folder)
		all, err := readSystemd(folder)
		if err != nil {
			return err
		}
		words, err := readWords(folder)
		if err != nil {
			return err
		}
		kinds := map[string]bool{}
		for name, kind := range all {
			kinds[kind] = kinds[kind] || strings.HasPrefix(name, "unit ")
		}
		for name, list := range words {
			if strings.HasPrefix(name, "list ") || kinds[strings.TrimPrefix(name, "enum ")] {
				add(name, list, i)
			}
		}
		fmt.Fprintf(&text, "systemd %s\n", version)
		for name, value := range all {
			add(name, value, i)
		}
	}
	capabilities, err := readCapabilities(folders)
	if err != nil {
		return err
	}
	families, err := readFamilies(glibc, glibcTags)
	if err != nil {
		return err
	}
	for i, list := range capabilities {
		add("list capabilities", strings.Join(list, ","), i)
		add("list address_families", strings.Join(families, ","), i)
	}
	for i, tag := range tags {
		file, err := kmod.show(tag, "libkmod/libkmod-config.c")
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "kmod %s\n", strings.TrimPrefix(tag, "v"))
		for _, m := range modprobeOf.FindAllStringSubmatch(file, -1) {
			add("modprobe "+m[1], "command", i)
		}
	}
	for _, tag := range glibcTags {
		fmt.Fprintf(&text, "glibc %s\n", strings.TrimPrefix(tag, "glibc-"))
	}
	text.WriteString("\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		text.WriteString(name)
		values := slices.SortedFunc(maps.Keys(rows[name]), func(a, b string) int { return cmp.Compare(rows[name][a], rows[name][b]) })
		for _, value := range values {
			fmt.Fprintf(&text, " %x:%s", rows[name][value], value)
		}
		text.WriteString("\n")
	}
	return writeFile(out, []byte(text.String()))
}
