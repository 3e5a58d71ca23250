package quote

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// BitBake writes a value with its quotes for a .conf, .bb or .inc line.
//
// BitBake has no escape character (lib/bb/parse/parse_py/ConfHandler.py): a
// value containing one kind of quote goes into the other kind, ${…} is expanded
// however it is dressed up, and a backslash before the closing quote is where a
// line would be joined.
func BitBake(v string) (string, error) {
	const sink = "bitbake value"
	if err := checkText(sink, v, ""); err != nil {
		return "", err
	}
	switch {
	case strings.Contains(v, "${@"):
		return "", refuse(sink, v, "${@…} would run as Python during the build", "install a file instead of setting a variable")
	case strings.Contains(v, "${"):
		return "", refuse(sink, v, "${ starts a variable, and bitbake cannot escape it", "write the value out")
	case strings.HasPrefix(v, "{"):
		return "", refuse(sink, v, "behind a dollar sign in another value, the brace would start a variable or code", "")
	case strings.HasSuffix(v, `\`):
		return "", refuse(sink, v, "a backslash at the end joins lines", "")
	case strings.Contains(v, `"`) && strings.Contains(v, `'`):
		return "", refuse(sink, v, "it holds both kinds of quote, and bitbake cannot escape either", "use one kind only")
	case strings.Contains(v, `"`):
		return `'` + v + `'`, nil
	default:
		return `"` + v + `"`, nil
	}
}

// reference is a variable whose value bitbake puts in. Code, as in ${@…}, is none.
var reference = lazyregexp.New(`\$\{[A-Z][A-Z0-9_]*\}`)

// BitBakeExpanding is BitBake for a value that may refer to variables, such as ${DEPLOY_DIR}.
//
// BitBake expands until nothing changes (lib/bb/data_smart.py), so text and the values of
// variables together must not make a new reference, which may be code. A reference starts with
// a dollar sign and a brace: no brace may follow a variable or begin the value, and no
// dollar sign may precede a variable.
func BitBakeExpanding(v string) (string, error) {
	parts := reference.Split(v, -1)
	for i, part := range parts {
		if strings.HasPrefix(part, "{") || i < len(parts)-1 && strings.HasSuffix(part, "$") {
			return "", refuse("bitbake value", v, "with the value of a variable beside it, a dollar sign and a brace could start a variable or code", "write the value out")
		}
	}
	quoted, err := BitBake(strings.Join(parts, ""))
	if err != nil {
		return "", asGiven(err, v)
	}
	return quoted[:1] + v + quoted[:1], nil
}

// asGiven is an error about a part of a value as one about the value.
func asGiven(err error, v string) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Value = v
	}
	return err
}

// BitBakeVariable writes the name of a variable. An operator such as :append
// or a [flag] in a name would change what the assignment does.
func BitBakeVariable(v string) (string, error) {
	return checkWord("bitbake variable", v, "write capitals, digits and underscores", func(i int, r rune) bool {
		return isUpper(r) || i > 0 && (isDigit(r) || r == '_')
	})
}

// OverridePrefix starts the override that stands for one machine and no other.
// A machine's own name does not suffice: machines of meta-tegra put the names of
// related machines into MACHINEOVERRIDES. The layer's settings file defines it.
const OverridePrefix = "yoctune-on-"

// BitBakeOverride writes the override of a machine.
func BitBakeOverride(v string) (string, error) {
	v, err := BitBakeMachine(v)
	if err != nil {
		return "", err
	}
	return OverridePrefix + v, nil
}

// BitBakeMachine writes a machine name, which is an override too: bitbake takes
// overrides without capitals only, and a colon would start another.
func BitBakeMachine(v string) (string, error) {
	return checkWord("machine name", v, "write lower-case letters, digits, '-' and '.'", func(i int, r rune) bool {
		return isLower(r) || isDigit(r) || i > 0 && (r == '-' || r == '.')
	})
}

// BitBakeRegex writes a machine name into COMPATIBLE_MACHINE, which is a
// regular expression.
func BitBakeRegex(v string) (string, error) {
	v, err := BitBakeMachine(v)
	return strings.ReplaceAll(v, ".", `[.]`), err
}

// LayerName writes the name of a layer, which becomes part of variable names,
// file names and a Python expression.
func LayerName(v string) (string, error) {
	if len(v) > 64 {
		return "", refuse("layer name", v, "it is longer than 64 characters", "")
	}
	return checkWord("layer name", v, "write a lower-case letter, then letters, digits and '-'", func(i int, r rune) bool {
		return isLower(r) || i > 0 && (isDigit(r) || r == '-')
	})
}

// ClassName writes the name of the bitbake class of the layer with the given name. Names of
// classes have no '-': a class that exports functions makes it part of theirs.
func ClassName(layer string) (string, error) {
	name, err := LayerName(layer)
	return "yoctune_" + strings.ReplaceAll(name, "-", "_"), err
}

// Collection writes the name of a foreign layer (BBFILE_COLLECTIONS), which
// becomes part of a path and of BBFILES_DYNAMIC, where a colon would end it.
func Collection(v string) (string, error) {
	return checkWord("collection", v, "write letters, digits, '_' and '-'", func(i int, r rune) bool {
		return isAlnum(r) || i > 0 && isAmong("_-", r)
	})
}

// Package writes the name of a recipe or package. The characters are those that
// oe-core's package name check admits for every package manager
// (insane.bbclass, pkgname).
func Package(v string) (string, error) {
	return checkWord("package name", v, "write lower-case letters, digits, '.', '+' and '-'", func(i int, r rune) bool {
		return isLower(r) || isDigit(r) || i > 0 && isAmong(".+-", r)
	})
}

// Version writes a recipe version. An underscore would end the version in the
// recipe's file name.
func Version(v string) (string, error) {
	return checkWord("version", v, "write digits, letters, '.', '+' and '~'", func(i int, r rune) bool {
		return isDigit(r) || i > 0 && (isAlnum(r) || isAmong(".+~", r))
	})
}

// SHA256 writes a checksum of SRC_URI.
func SHA256(v string) (string, error) { return digest("sha256", v, 64) }

// MD5 writes a checksum of LIC_FILES_CHKSUM, which supports MD5 only.
func MD5(v string) (string, error) { return digest("md5", v, 32) }

func digest(sink, v string, digits int) (string, error) {
	hint := fmt.Sprintf("write %d hexadecimal digits in lower case", digits)
	if len(v) != digits {
		return "", refuse(sink, v, fmt.Sprintf("it has %d characters", len(v)), hint)
	}
	return checkWord(sink, v, hint, func(_ int, r rune) bool { return isDigit(r) || 'a' <= r && r <= 'f' })
}

// Licence writes one identifier of LICENSE (SPDX 2.3, annex D; license_pattern of
// oe/license.py).
func Licence(v string) (string, error) {
	return checkWord("licence", v, "write an SPDX identifier", func(i int, r rune) bool {
		return isAlnum(r) || i > 0 && isAmong(".+-", r)
	})
}

// FileName writes the name of a file of the layer, for SRC_URI and for the
// install commands of a task, which a shell reads.
func FileName(v string) (string, error) {
	if len(v) > 200 {
		return "", refuse("file name", v, "it is longer than 200 characters", "")
	}
	return checkWord("file name", v, "write letters, digits, '.', '_', '@', '+' and '-'", func(i int, r rune) bool {
		return isAlnum(r) || i > 0 && isAmong("._@+-", r)
	})
}

// SourceURL writes a URL of SRC_URI without parameters. A semicolon would start
// one, and schemes that start programs are not in the list. A query is part of the address that
// bitbake gives wget, in quotes.
func SourceURL(v string) (string, error) {
	const sink = "source URL"
	address, query, asks := strings.Cut(v, "?")
	u, err := plainURL(sink, address, "https, http or file", "https", "http", "file")
	if err != nil {
		return "", err
	}
	if asks && u.Scheme == "file" {
		return "", refuse(sink, v, "a file: URL has no query", "")
	}
	if err := checkCharset(sink, query, "write a query of letters, digits and . _ ~ + - = & % , : / @", func(_ int, r rune) bool {
		return isAlnum(r) || isAmong("._~+-=&%,:/@", r)
	}); asks && err != nil {
		return "", err
	}
	if u.Scheme == "file" && (u.Host != "" || !path.IsAbs(u.Path)) {
		return "", refuse(sink, v, "a file: URL must name an absolute path", "write file:///…")
	}
	return v, nil
}

// OwnMirrorURL writes SOURCE_MIRROR_URL, to which bitbake adds the names of files.
func OwnMirrorURL(v string) (string, error) {
	if _, err := plainURL("mirror of one's own", v, "https, http, ftp, s3 or file", "https", "http", "ftp", "s3", "file"); err != nil {
		return "", err
	}
	return v, nil
}

// MirrorURL writes the URL side of SSTATE_MIRRORS or PREMIRRORS: an address of one of bitbake's
// fetchers, with its parameters after semicolons. Those that log in by a key take a user.
func MirrorURL(v string) (string, error) {
	const sink = "mirror URL"
	scheme, rest, _ := strings.Cut(v, "://")
	address, parameters, _ := strings.Cut(rest, ";")
	if err := checkCharset(sink, parameters, "write parameters as NAME=VALUE", func(_ int, r rune) bool {
		return isAlnum(r) || isAmong("._+/~:;=-", r)
	}); parameters != "" && err != nil {
		return "", err
	}
	if slices.Contains([]string{"git", "gitsm", "gitannex", "ssh", "sftp", "svn", "hg", "cvs", "npm"}, scheme) {
		if user, host, ok := strings.Cut(address, "@"); ok && !strings.ContainsAny(user, ":/") {
			address = host
		}
	}
	if _, err := plainURL(sink, scheme+"://"+address, "an address of one of bitbake's fetchers", "https", "http", "ftp", "ftps", "s3", "gs", "az", "file",
		"git", "gitsm", "gitannex", "ssh", "sftp", "svn", "hg", "cvs", "npm"); err != nil {
		return "", err
	}
	return v, nil
}

func plainURL(sink, v, allowed string, schemes ...string) (*url.URL, error) {
	if err := checkCharset(sink, v, "write a plain URL without parameters", func(_ int, r rune) bool {
		return isAlnum(r) || isAmong("._+/~:@-", r)
	}); err != nil {
		return nil, err
	}
	u, err := url.Parse(v)
	if err != nil {
		return nil, refuse(sink, v, "it is not a URL", "")
	}
	known := false
	for _, s := range schemes {
		known = known || u.Scheme == s
	}
	switch {
	case !known || !strings.HasPrefix(v, u.Scheme+"://"):
		return nil, refuse(sink, v, "its scheme is not supported", "use "+allowed)
	case u.User != nil || strings.Contains(v, "@"):
		return nil, refuse(sink, v, "a URL with credentials ends up in logs and caches", "put them in ~/.netrc")
	case u.Scheme != "file" && u.Host == "":
		return nil, refuse(sink, v, "it names no host", "")
	case strings.Contains(u.Path, "/../") || strings.HasSuffix(u.Path, "/.."):
		return nil, refuse(sink, v, "its path climbs with ..", "")
	}
	return u, nil
}

// MirrorPattern writes the pattern side of a mirror: a regular expression
// without blanks. bitbake turns the two characters \n into a separator.
func MirrorPattern(v string) (string, error) {
	const sink = "mirror pattern"
	if err := checkCharset(sink, v, "write a regular expression over the fetch URL, e.g. file://.*", func(_ int, r rune) bool {
		return isAlnum(r) || isAmong(`._+*?/~:@()[]|^-\`, r)
	}); err != nil {
		return "", err
	}
	if strings.Contains(v, `\n`) {
		return "", refuse(sink, v, `bitbake reads \n as the end of the mirror`, "")
	}
	if strings.HasSuffix(v, `\`) {
		return "", refuse(sink, v, "a backslash at the end joins lines", "")
	}
	return v, nil
}

// HostPort writes a hash equivalence server: auto, host:port or a ws URL.
func HostPort(v string) (string, error) {
	return checkWord("hash server", v, "write auto, host:port or wss://host/path", func(i int, r rune) bool {
		return isAlnum(r) || i > 0 && isAmong(".:/-", r)
	})
}

// Host writes a host of BB_ALLOWED_NETWORKS. The only wildcard is a star for the first
// part of the name (lib/bb/fetch2/__init__.py, trusted_network).
func Host(v string) (string, error) {
	name := strings.TrimPrefix(v, "*.")
	if _, err := checkWord("host name", name, `write a host name, or "*." and a domain`, func(i int, r rune) bool {
		return isAlnum(r) || i > 0 && isAmong(".-", r)
	}); err != nil {
		return "", err
	}
	return v, nil
}

// Number writes a decimal number without a sign.
func Number(v string) (string, error) {
	whole, fraction, pointed := strings.Cut(v, ".")
	if whole == "" || pointed && fraction == "" {
		return "", refuse("number", v, "it is not a decimal number", "")
	}
	return checkWord("number", v, "write digits, and a point if need be", func(i int, r rune) bool {
		return isDigit(r) || i == len(whole)
	})
}

// HostPath writes an absolute path of the build machine.
func HostPath(v string) (string, error) {
	const sink = "path"
	if err := checkCharset(sink, v, "write an absolute path of letters, digits and . _ + , @ : = ~ -", func(_ int, r rune) bool {
		return isAlnum(r) || r == '~' || isAmong(pathMarks, r)
	}); err != nil {
		return "", err
	}
	if !path.IsAbs(v) || path.Clean(v) != v {
		return "", refuse(sink, v, "it is not a clean absolute path", "")
	}
	return v, nil
}

// BuildPath is HostPath for a path in bitbake's configuration, which may be below a variable.
func BuildPath(v string) (string, error) {
	below := v
	if i := strings.IndexByte(v, '}'); i > 0 && reference.MatchString(v[:i+1]) && strings.HasPrefix(v, "${") {
		if below = v[i+1:]; below == "" {
			return v, nil
		}
	}
	if _, err := HostPath(below); err != nil {
		return "", asGiven(err, v)
	}
	return v, nil
}

// InstallDest writes where a recipe installs a file: one of bitbake's directory
// variables and a path of plain names below it.
func InstallDest(v string) (string, error) {
	const sink = "install path"
	for _, dir := range []string{
		"${sysconfdir}", "${bindir}", "${datadir}", "${nonarch_libdir}", "${nonarch_base_libdir}", "${systemd_system_unitdir}",
	} {
		rest, ok := strings.CutPrefix(v, dir+"/")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(rest, "/") {
			if checkCharset(sink, withoutEscapes(part), "", func(_ int, r rune) bool { return isAlnum(r) || r != '/' && isAmong(pathMarks, r) }) != nil || part == "." || part == ".." {
				return "", refuse(sink, v, "it is not a path of plain file names", "")
			}
		}
		return strings.ReplaceAll(v, `\`, `\\`), nil // of a unit's name, in a shell
	}
	return "", refuse(sink, v, "it does not begin with a directory variable", "")
}
