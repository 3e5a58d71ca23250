package quote_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/quote"
)

type sink func(string) (string, error)

func execArg(v string) (string, error)     { return quote.SystemdExec([]string{"/usr/bin/x", v}) }
func execPath(v string) (string, error)    { return quote.SystemdExec([]string{v}) }
func execCommand(v string) (string, error) { return quote.SystemdCommand([]string{v}) }
func env(v string) (string, error)         { return quote.SystemdEnvironment("A", v) }
func envName(v string) (string, error)     { return quote.SystemdEnvironment(v, "x") }
func sysctlKey(v string) (string, error)   { return quote.Sysctl(v, "1") }
func sysctl(v string) (string, error)      { return quote.Sysctl("vm/swappiness", v) }
func kconfig(v string) (string, error)     { return quote.Kconfig("X", v, true) }
func kbare(v string) (string, error)       { return quote.Kconfig("X", v, false) }
func ksymbol(v string) (string, error)     { return quote.Kconfig(v, "y", false) }
func karg(v string) (string, error)        { return quote.KernelArg("a", v, false) }
func kargName(v string) (string, error)    { return quote.KernelArg(v, "", true) }
func power(v string) (string, error)       { return quote.PowerParam("GPU", "MAX_FREQ", v) }
func powerName(v string) (string, error)   { return quote.PowerParam(v, "MAX_FREQ", "1") }

// Each value tries to break out of its format. want is the expected text, or "" where
// the sink must refuse with a message that contains reason.
func TestHostileValuesAreWrittenExactlyOrRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		sink   sink
		value  string
		want   string
		reason string
	}{
		// bitbake
		{"python in a value", quote.BitBake, `${@os.system('id')}`, "", "Python"},
		{"a variable in a value", quote.BitBake, `${TOPDIR}`, "", "variable"},
		{"a dollar before a variable", quote.BitBake, `$${A}`, "", "variable"},
		{"a backslash before a variable", quote.BitBake, `\${A}`, "", "variable"},
		{"a second assignment by line feed", quote.BitBake, "a\"\nPWNED = \"1", "", "U+000A"},
		{"a second assignment by carriage return", quote.BitBake, "a\"\rPWNED = \"1", "", "U+000D"},
		{"both quotes", quote.BitBake, `it's "x"`, "", "both kinds"},
		{"one kind of quote", quote.BitBake, `a"b`, `'a"b'`, ""},
		{"the other kind of quote", quote.BitBake, `it's`, `"it's"`, ""},
		{"a trailing backslash", quote.BitBake, `C:\`, "", "backslash"},
		{"an operator in a value", quote.BitBake, `x :append y`, `"x :append y"`, ""},
		{"a command substitution is inert in a value", quote.BitBake, "$(id) `id` $x #", "\"$(id) `id` $x #\"", ""},
		{"a variable in a value that is expanded", quote.BitBakeExpanding, "${DEPLOY_DIR}/a ${B}", `"${DEPLOY_DIR}/a ${B}"`, ""},
		{"code in a value that is expanded", quote.BitBakeExpanding, "${A}${@os.system('id')}", "", "Python"},
		{"code made of two", quote.BitBakeExpanding, "$${A}{@os.system('id')}", "", "code"},
		{"code behind a dollar sign in a variable", quote.BitBakeExpanding, "${A}{@os.system('id')}", "", "code"},
		{"code that a dollar sign elsewhere starts", quote.BitBakeExpanding, "{@os.system('id')}", "", "code"},
		{"code that a dollar sign elsewhere starts, plain", quote.BitBake, "{@os.system('id')}", "", "code"},
		{"a dollar sign before a variable", quote.BitBakeExpanding, "a$${A}", "", "code"},
		{"a dollar sign at the end", quote.BitBakeExpanding, "foo$", `"foo$"`, ""},
		{"a brace in text", quote.BitBakeExpanding, "a{b}${A}c", `"a{b}${A}c"`, ""},
		{"a variable of a variable", quote.BitBakeExpanding, "${${A}}", "", "starts a variable"},
		{"both quotes around a variable", quote.BitBakeExpanding, `"${A}'`, "", "both kinds"},
		{"a path below a variable", quote.BuildPath, "${TOPDIR}/sstate", "${TOPDIR}/sstate", ""},
		{"a path below code", quote.BuildPath, "${@1}/x", "", "'$'"},
		{"a path that climbs out of a variable", quote.BuildPath, "${TOPDIR}/../x", "", "clean"},
		{"an operator in a name", quote.BitBakeVariable, "FOO:append", "", "':'"},
		{"a flag in a name", quote.BitBakeVariable, "FOO[noexec]", "", "'['"},
		{"a variable in a name", quote.BitBakeVariable, "${X}", "", "'$'"},
		{"an override in a machine name", quote.BitBakeOverride, "a:append", "", "':'"},
		{"a capital in a machine name", quote.BitBakeOverride, "Jetson", "", "'J'"},
		{"a path as a package", quote.Package, "../../etc/x", "", "'.'"},
		{"parameters in a package", quote.Package, "a_b;c", "", "'_'"},
		{"a layer name that leaves its string", quote.LayerName, "a', d)}", "", `'\''`},
		{"parameters in a URL", quote.SourceURL, "https://h/x;protocol=ssh;branch=y", "", "';'"},
		{"a query in a URL", quote.SourceURL, "https://h/m.onnx?download=true&v=1%20a", "https://h/m.onnx?download=true&v=1%20a", ""},
		{"a quote in a query", quote.SourceURL, "https://h/x?a=b'c", "", `'\''`},
		{"parameters after a query", quote.SourceURL, "https://h/x?a=b;unpack=1", "", "';'"},
		{"a variable in a query", quote.SourceURL, "https://h/x?a=${@1}", "", "'$'"},
		{"a query of a file", quote.SourceURL, "file:///x?a=b", "", "query"},
		{"credentials in a URL", quote.SourceURL, "https://u:tok@h/x", "", "credentials"},
		{"a scheme that runs a program", quote.SourceURL, "ext::sh -c id", "", "' '"},
		{"an option as a URL", quote.SourceURL, "-oProxyCommand=x", "", "'='"},
		{"an unknown scheme", quote.SourceURL, "ssh://h/x", "", "scheme"},
		{"a relative file URL", quote.SourceURL, "file://x/y", "", "absolute"},
		{"a climbing URL", quote.SourceURL, "https://h/a/../b", "", "climbs"},
		{"a mirror pattern with a separator", quote.MirrorPattern, `file://.*\n.*`, "", "end of the mirror"},
		{"a mirror pattern with two words", quote.MirrorPattern, `.* http://evil/`, "", "' '"},
		{"a file name with a parameter", quote.FileName, "a;name=b", "", "';'"},
		{"a file name that climbs", quote.FileName, "../x", "", "'.'"},
		{"a file name for a shell", quote.FileName, "a$(id)", "", "'$'"},
		{"a path with every mark", quote.InstallDest, "${datadir}/.m/_a/b=c,d:e@f+g-h", "${datadir}/.m/_a/b=c,d:e@f+g-h", ""},
		{"an installed path that climbs", quote.InstallDest, "${datadir}/../x", "", "plain file names"},
		{"an installed path that is its folder", quote.InstallDest, "${datadir}/x/", "", "plain file names"},
		{"an installed path for a shell", quote.InstallDest, "${datadir}/$(id)", "", "plain file names"},
		{"a path of the build machine with marks", quote.HostPath, "/a=b,c:d~e", "/a=b,c:d~e", ""},
		{"a path of the build machine for a shell", quote.HostPath, "/a;id", "", "';'"},

		// systemd
		{"specifiers in a description", quote.SystemdText, "100% %n $HOME", "100%% %%n $HOME", ""},
		{"specifiers in a directive", quote.SystemdValue, "%h $HOME 'a b'", "%h $HOME 'a b'", ""},
		{"a second line in a directive", quote.SystemdValue, "a\nExecStart=/bin/sh", "", "U+000A"},
		{"a directive that joins lines", quote.SystemdValue, `a\`, "", "backslash"},
		{"a blank before a directive's value", quote.SystemdValue, " a", "", "blank"},
		{"a section as a directive", quote.SystemdDirective, "A]\n[Service", "", "U+000A"},
		{"an assignment as a directive", quote.SystemdDirective, "A=b", "", "'='"},
		{"prefixes of a command", execCommand, "-+/bin/x", "-+/bin/x", ""},
		{"a prefix that a command may not have", execCommand, "@/bin/x", "", "absolute path"},
		{"a path that may be absent", quote.SystemdOptionalPath, "-/etc/x", "-/etc/x", ""},
		{"a glob of paths", quote.SystemdOptionalPath, "/etc/*", "", "'*'"},
		{"a number as a user", quote.SystemdUser, "1000", "1000", ""},
		{"a number outside of the users", quote.SystemdUser, "4294967295", "", "number of a user"},
		{"a second line in a description", quote.SystemdText, "a\nExecStart=/bin/sh", "", "U+000A"},
		{"a description that joins lines", quote.SystemdText, `a\`, "", "backslash"},
		{"a second assignment in a variable", env, `x" B="y`, `"A=x\" B=\"y"`, ""},
		{"a variable's name with an assignment", envName, "A=1 B", "", "'='"},
		{"a lone semicolon", execArg, ";", `/usr/bin/x ";"`, ""},
		{"a specifier in an argument", execArg, "%i", `/usr/bin/x "%%i"`, ""},
		{"a variable in an argument", execArg, "$X", `/usr/bin/x "$$X"`, ""},
		{"an empty argument", execArg, "", `/usr/bin/x ""`, ""},
		{"a second line in an argument", execArg, "\nExecStartPost=/bin/sh", `/usr/bin/x "\nExecStartPost=/bin/sh"`, ""},
		{"a path with a prefix that drops the sandbox", execPath, "+/bin/sh", "", "absolute path"},
		{"a relative path", execPath, "bin/x", "", "absolute path"},
		{"a path that climbs", execPath, "/a/../b", "", "absolute path"},
		{"a template as a unit", quote.SystemdUnit, "x@.service", "", "template"},
		{"a path as a unit", quote.SystemdUnit, "a/b.service", "", "'/'"},
		{"a unit without a type", quote.SystemdUnit, "dbus", "", "unit type"},
		{"two paths as one", quote.DevicePath, "/data /etc", "", "' '"},
		{"a second line in a slice's cores", quote.CPUList, "0-3\nExecStart=/bin/sh", "", "U+000A"},
		{"a backward range", quote.CPUList, "5-4", "", "not a list of CPUs"},
		{"a hanging range", quote.CPUList, "4-", "", "not a list of CPUs"},
		{"a specifier in a tmpfiles path", quote.Tmpfiles, "/run/%m", `"/run/%%m"`, ""},

		// sysctl.d
		{"a key that ignores errors", sysctlKey, "-kernel/x", "", "'-'"},
		{"a key with a second line", sysctlKey, "a/b = 1\nb", "", "U+000A"},
		{"a key with a glob", sysctlKey, "net/ipv4/conf/*/rp_filter", "", "'*'"},
		{"a key that climbs", sysctlKey, "vm/../../sys/x", "", "'.'"},
		{"a key with an interface that has a dot", sysctlKey, "net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter = 1", ""},
		{"a value with blanks around it", sysctl, " 1 ", "", "blank"},
		{"an empty value", sysctl, "", "", "empty"},

		// udev
		{"a match on everything", quote.UdevMatch, "*", "", "'*'"},
		{"a match on alternatives", quote.UdevMatch, "a|b", "", "'|'"},
		{"a match that runs a program", quote.UdevMatch, `x", RUN+="/bin/sh`, "", `'"'`},
		{"a pattern with alternatives", quote.UdevGlob, "sd*|nvme*", "", "'|'"},
		{"a pattern with an open set", quote.UdevGlob, "sd[a-z", "", "pair"},
		{"a value with a substitution", quote.UdevValue, `%p $env{X} "`, `"%%p $$env{X} \""`, ""},
		{"a value that eats its quote", quote.UdevValue, `a\`, "", "backslash"},

		// nvpmodel
		{"a mode name that ends its line", quote.PowerMode, "MAX >\n< POWER_MODEL ID=9 NAME=X", "", "U+000A"},
		{"a mode name with a bracket", quote.PowerMode, "A>", "", "'>'"},
		{"a parameter with a second line", powerName, "GPU\nEMC", "", "U+000A"},
		{"a hexadecimal mask", power, "0xf0", "", "decimal"},
		{"words as a value", power, "1 > x", "", "decimal"},

		// kernel
		{"a text option that ends its string", kconfig, "y\"\nCONFIG_MODULE_SIG=n", "", "U+000A"},
		{"a quote in a text option", kconfig, `a"b\c`, `CONFIG_X="a\"b\\c"`, ""},
		{"text as a bare value", kbare, "y # x", "", "number"},
		{"an option that is off", kbare, "n", "# CONFIG_X is not set", ""},
		{"a symbol with an assignment", ksymbol, "X=y", "", "'='"},
		{"a symbol with its prefix", ksymbol, "CONFIG_X", "", "CONFIG_"},
		{"a quote in an argument", karg, `" b`, "", `'"'`},
		{"a second argument", karg, "1 init=/bin/sh", "", "' '"},
		{"a shell in an argument", karg, "a;id", "", "';'"},
		{"the end of the kernel's arguments", kargName, "--", "", "'-'"},
		{"a module with options", quote.Module, "x options=1", "", "' '"},

		// documents and shell
		{"a shell word that ends its quotes", quote.Shell, `a'; id; '`, `'a'\''; id; '\'''`, ""},
		{"markup in text", quote.Markdown, "[x](y) <b> a|b *c*", `\[x\](y) &lt;b> a\|b \*c\*`, ""},
		{"a code span that ends itself", quote.MarkdownCode, "a`b|c", "`` a`b\\|c ``", ""},
		{"the word that skips the check of a layer", quote.Markdown, "see ReadMe", "see R&#101;adMe", ""},
		{"a comment that swallows the next line", quote.Comment, `a\`, "", "backslash"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.sink(tc.value)
			if tc.want != "" || tc.reason == "" {
				if err != nil || got != tc.want {
					t.Errorf("%q gives %q, %v; want %q", tc.value, got, err, tc.want)
				}
				return
			}
			var refused *quote.Error
			if !errors.As(err, &refused) {
				t.Fatalf("%q gives %q, %v; want a refusal", tc.value, got, err)
			}
			if got != "" {
				t.Errorf("a refusal still gives %q", got)
			}
			if !strings.Contains(refused.Reason, tc.reason) {
				t.Errorf("the reason is %q; want one with %q", refused.Reason, tc.reason)
			}
		})
	}
}

// Text that no sink may take: it reads as something else, or breaks readers.
func TestSinksRefuseInvisibleAndInvalidText(t *testing.T) {
	sinks := map[string]sink{
		"BitBake": quote.BitBake, "BitBakeMachine": quote.BitBakeMachine, "LayerName": quote.LayerName,
		"Package": quote.Package, "FileName": quote.FileName, "SourceURL": quote.SourceURL, "MirrorURL": quote.MirrorURL,
		"SystemdText": quote.SystemdText, "SystemdValue": quote.SystemdValue, "SystemdDirective": quote.SystemdDirective, "SystemdOptionalPath": quote.SystemdOptionalPath, "SystemdWord": quote.SystemdWord, "exec": execArg, "env": env, "SystemdUnit": quote.SystemdUnit,
		"UdevValue": quote.UdevValue, "UdevGlob": quote.UdevGlob, "sysctl": sysctl, "sysctl key": sysctlKey, "Module": quote.Module,
		"kconfig": kconfig, "kernel arg": karg, "PowerMode": quote.PowerMode, "Shell": quote.Shell,
		"Markdown": quote.Markdown, "MarkdownCode": quote.MarkdownCode, "Comment": quote.Comment, "Tmpfiles": quote.Tmpfiles,
	}
	for name, sink := range sinks {
		for _, bad := range []string{"a\u202eb", "a\u2028b", "a\u2029b", "a\x00b", "a\x7fb", "a\u0085b", "a\u200bb", "a\xffb", "a\vb", strings.Repeat("a", 10<<20)} {
			if got, err := sink(bad); err == nil {
				t.Errorf("%s takes %.20q and gives %.40q", name, bad, got)
			} else if len(err.Error()) > 400 {
				t.Errorf("%s: the message has %d bytes", name, len(err.Error()))
			}
		}
	}
}
