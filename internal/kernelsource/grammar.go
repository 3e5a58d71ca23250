package kernelsource

import (
	"regexp"
	"slices"
	"strings"
)

// Values that [Param.Value] holds beside the types of module parameters. An empty one is
// not known: whatever the argument takes is accepted.
const (
	valueSize    = "size"   // memparse alone
	valueRange   = "size@"  // memparse, and @ or - between two sizes
	valueCores   = "cores"  // a list of processors
	valueFlags   = "cores," // words before a list of processors
	valueBool    = "bool"   // kstrtobool
	valueNumber  = "number" // a number and nothing else
	valueDigits  = "digits" // what begins with a number
	valueList    = "list"   // words or numbers, joined by commas
	valueOneWord = "words:" // one of the words that follow, separated by |
)

var (
	parser = regexp.MustCompile(`\b(get_options?|memparse|kstrto\w+|strtobool|simple_strto\w+|strict_strto\w+|cpulist_parse|cpumask_parse|bitmap_\w+|sscanf|strsep|strchr|strrchr|strstr|strpbrk|` +
		`strcmp|strncmp|strcasecmp|strncasecmp|sysfs_streq|match_string|match_\w+|parse_option_str|strlcpy|strscpy|strncpy|strcpy|kstrdup|memcpy|next_arg|parse_args|str_has_prefix|sysfs_match_string|__sysfs_match_string|cmdline_find_option\w*|memblock_\w+)\s*\(`)
	compared = regexp.MustCompile(`\bstrcmp\s*\(\s*(\w+)\s*,\s*"([^"]*)"\s*\)`)
)

// grammar reads what the handler of an argument does with the value.
func (f *unit) grammar(handler string) string {
	name := strings.Trim(handler, "& ")
	body, value := f.body(name)
	if body == "" {
		return ""
	}
	// One level of functions of the same file that get the value.
	calls := regexp.MustCompile(`\b(\w+)\s*\(\s*` + regexp.QuoteMeta(value) + `\s*[,)]`)
	for _, c := range calls.FindAllStringSubmatch(body, 4) {
		if inner, _ := f.body(c[1]); inner != "" && c[1] != name {
			body += inner
		}
	}
	var used []string
	for _, m := range parser.FindAllStringSubmatch(body, -1) {
		used = append(used, m[1])
	}
	slices.Sort(used)
	used = slices.Compact(used)
	only := func(names ...string) bool {
		return len(used) > 0 && !slices.ContainsFunc(used, func(u string) bool { return !slices.Contains(names, u) })
	}
	switch {
	case slices.Contains(used, "cpulist_parse"):
		if slices.Contains(used, "strncmp") || slices.Contains(used, "strchr") {
			return valueFlags
		}
		return valueCores
	case only("memparse"):
		if strings.Contains(body, `'@'`) || strings.Contains(body, `'-'`) {
			return valueRange
		}
		if strings.Contains(body, `','`) || strings.Contains(body, `':'`) || strings.Contains(body, `'%'`) || strings.Contains(body, "!=") {
			return ""
		}
		return valueSize
	case only("kstrtobool", "strtobool"):
		return valueBool
	case only("kstrtoint", "kstrtouint", "kstrtoul", "kstrtoull", "kstrtol", "kstrtou8", "kstrtou16", "kstrtou32"):
		return valueNumber
	case only("get_option", "simple_strtoul", "simple_strtol", "simple_strtoull") && !strings.Contains(body, `','`):
		return valueDigits
	case strings.Contains(body, "while") && (strings.Contains(body, `','`) || strings.Contains(body, `","`)) && (slices.Contains(used, "strsep") || slices.Contains(used, "strchr")):
		return valueList // it goes on after each comma
	case only("strcmp"):
		return wordsOf(body, value)
	}
	return ""
}

// wordsOf returns the words that a handler compares the value with, if it does nothing else
// with it.
func wordsOf(body, value string) string {
	if value == "" {
		return ""
	}
	var words []string
	for _, m := range compared.FindAllStringSubmatch(body, -1) {
		if m[1] == value && m[2] != "" && m[2][0] != '=' {
			words = append(words, m[2])
		}
	}
	rest := compared.ReplaceAllString(body, "")
	rest = regexp.MustCompile(`(if\s*\(\s*!|&&\s*!|\|\|\s*!|if\s*\(\s*)`+regexp.QuoteMeta(value)+`\s*(\)|\|\||&&)`).ReplaceAllString(rest, "")
	rest = regexp.MustCompile(`\b(pr_\w+|printk)\s*\([^;]*;`).ReplaceAllString(rest, "")
	if len(words) < 2 || regexp.MustCompile(`\b`+regexp.QuoteMeta(value)+`\b`).MatchString(rest) {
		return ""
	}
	slices.Sort(words)
	return valueOneWord + strings.Join(slices.Compact(words), "|")
}

// body returns the body of a function of the source, and the name of its first argument.
func (f *unit) body(name string) (body, argument string) {
	if name == "" || !goodName.MatchString(name) {
		return "", ""
	}
	head := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\s*\(\s*(?:const\s+)?char\s*\*\s*(?:const\s+)?(\w+)[^;{]*\)\s*(?:__init\s*)?\{`)
	at := head.FindStringSubmatchIndex(f.text)
	if at == nil {
		return "", ""
	}
	depth := 1
	for i := at[1]; i < len(f.text); i++ {
		switch f.text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return f.text[at[1]:i], f.text[at[2]:at[3]]
			}
		}
	}
	return "", ""
}
