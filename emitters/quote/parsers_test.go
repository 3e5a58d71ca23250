package quote_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
)

// Here each format's own program reads what a sink wrote. What it reads must be
// the value that was given, and nothing in a value may have run.

// hostileValues returns values that try to escape their context, in every format at
// once. Those that run something make the file canary.
func hostileValues(canary string) []string {
	return append([]string{
		"${@open('" + canary + "', 'w')}", "$${X}", `\${X}`, "$(touch " + canary + ")", "`touch " + canary + "`",
		"x; touch " + canary, "x && touch " + canary, "| touch " + canary, "'; touch " + canary + "; '", `"; touch ` + canary + `; "`,
		"x\nExecStartPost=/usr/bin/touch " + canary, "x\nPWNED = \"1\"", "x\" \nPWNED = \"1", "x\r\nPWNED = \"1\"",
		`x", RUN+="/usr/bin/touch ` + canary, `x", PROGRAM="/usr/bin/touch ` + canary + `", ENV{A}="`, `a", IMPORT{program}="x`,
		"%n %i %H %%", "%p %k $kernel $env{PATH} %c{1}", "$HOME ${HOME} $$", "+/bin/sh", "-x", "@x y", "!x", ":x",
		"kernel.core_pattern = |/usr/bin/touch " + canary, "1 # comment", "1 ; comment", "a = b = c", "install x /bin/sh", "x options=1",
		"*", "?", "[a-z]", "{a,b}", "~", "~root", "!!python/object/apply:os.system ['touch " + canary + "']", "&a", "*a", "- x", "x: y", "yes", "null", "0x10", "1e3",
		"# x", "x # y", " leading", "trailing ", "tab\there", "it's", `say "x"`, `it's "x"`, `\`, `x\`, `\n`, `\x41`, `a\tb`, "",
		"ü 日本 🙂", "a\u202eb", "a\u2028b", "a\x00b", "a\x1bb", "a\xffb",
	}, seeds...)
}

// assertUnharmed fails the test when a value has run.
func assertUnharmed(t *testing.T) (canary string) {
	t.Helper()
	dir := t.TempDir()
	canary = filepath.Join(dir, "canary")
	t.Cleanup(func() {
		if _, err := os.Lstat(canary); err == nil {
			t.Error("a value was run: " + canary + " is there")
		}
	})
	return canary
}

// acceptedValues returns the values that the sink accepts, with what it writes. At least
// some must be taken and some refused, or the test proves nothing.
func acceptedValues(t *testing.T, values []string, sink func(string) (string, error)) (kept, written []string) {
	t.Helper()
	for _, v := range values {
		if w, err := sink(v); err == nil {
			kept, written = append(kept, v), append(written, w)
		}
	}
	if len(kept) == 0 || len(kept) == len(values) {
		t.Fatalf("%d of %d values are taken", len(kept), len(values))
	}
	t.Logf("%d of %d values are written, the others refused", len(kept), len(values))
	return kept, written
}

func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	t.Skipf("%s is not installed: its reading of hostile values is not compared", names[0])
	return ""
}

func TestBitBakeReadsHostileValuesUnchanged(t *testing.T) {
	values, written := acceptedValues(t, hostileValues(assertUnharmed(t)), quote.BitBake)
	var texts []string
	for _, w := range written {
		texts = append(texts, "V = "+w+"\n")
	}
	for i, r := range bbref.EvalAll(t, texts...) {
		if len(r.Problems) > 0 || len(r.Values) != 1 || r.Values["V"] != values[i] {
			t.Errorf("%q is written %s and read as %q, %v", values[i], written[i], r.Values, r.Problems)
		}
	}
}

// unquoted undoes the shell quoting of systemd's dump, and then $$, which
// systemd makes $ when it starts the program.
func unquoted(word string) string {
	body, ok := strings.CutPrefix(word, `"`)
	if !ok {
		return strings.ReplaceAll(word, "$$", "$")
	}
	body = strings.TrimSuffix(body, `"`)
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' || i+1 == len(body) {
			b.WriteByte(body[i])
			continue
		}
		i++
		switch body[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		default:
			b.WriteByte(body[i])
		}
	}
	return strings.ReplaceAll(b.String(), "$$", "$")
}

// systemd itself loads units with hostile text, arguments and environment, in
// its mode that dumps them instead of starting anything.
func TestSystemdReadsHostileValuesUnchanged(t *testing.T) {
	manager := "/usr/lib/systemd/systemd"
	if _, err := os.Stat(manager); err != nil {
		t.Skipf("%v: systemd's reading of hostile values is not compared", err)
	}
	values := hostileValues(assertUnharmed(t))
	texts, textLines := acceptedValues(t, values, quote.SystemdText)
	args, argLines := acceptedValues(t, values, func(v string) (string, error) { return quote.SystemdExec([]string{"/bin/true", v, "end"}) })
	envs, envLines := acceptedValues(t, values, func(v string) (string, error) { return quote.SystemdEnvironment("A", v) })

	dir := t.TempDir()
	for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil { // for the account below
			t.Fatal(err)
		}
	}
	var wants strings.Builder
	unit := func(name, text string) {
		fmt.Fprintf(&wants, "Wants=%s\n", name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range textLines {
		unit(fmt.Sprintf("text%d.service", i), "[Unit]\nDescription="+l+"\n[Service]\nExecStart=/bin/true\n")
	}
	for i, l := range argLines {
		unit(fmt.Sprintf("exec%d.service", i), "[Service]\nExecStart="+l+"\n")
	}
	for i, l := range envLines {
		unit(fmt.Sprintf("env%d.service", i), "[Service]\nExecStart=/bin/true\nEnvironment="+l+"\n")
	}
	unit("all.target", "[Unit]\n"+strings.ReplaceAll(wants.String(), "Wants=all.target\n", ""))

	run := t.TempDir()
	cmd := exec.Command(manager, "--test", "--user", "--unit=all.target", "--log-target=console")
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "XDG_RUNTIME_DIR="+run, "SYSTEMD_LOG_COLOR=0")
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := os.Chown(run, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	blocks := map[string]string{}
	for block := range strings.SplitSeq(string(out), "-> Unit ") {
		if name, rest, ok := strings.Cut(block, ":\n"); ok {
			blocks[name] = rest
		}
	}
	if len(blocks) == 0 {
		t.Skipf("systemd does not dump units here (%v): %.300s", err, out)
	}
	field := func(unit, label string) []string {
		var found []string
		for line := range strings.SplitSeq(blocks[unit], "\n") {
			if v, ok := strings.CutPrefix(strings.TrimLeft(line, "\t"), label+": "); ok {
				found = append(found, v)
			}
		}
		return found
	}
	for i, v := range texts {
		if got := field(fmt.Sprintf("text%d.service", i), "Description"); !slices.Equal(got, []string{v}) {
			t.Errorf("text %q is read as %q", v, got)
		}
	}
	for i, v := range args {
		got := field(fmt.Sprintf("exec%d.service", i), "Command Line")
		if len(got) != 1 {
			t.Errorf("argument %q (%s): %d commands: %q", v, argLines[i], len(got), got)
			continue
		}
		middle := strings.TrimSuffix(strings.TrimPrefix(got[0], "/bin/true "), " end")
		if unquoted(middle) != v {
			t.Errorf("argument %q is read as %s", v, got[0])
		}
	}
	for i, v := range envs {
		// The dump writes a line feed as it is.
		block := blocks[fmt.Sprintf("env%d.service", i)]
		if strings.Count(block, "\tEnvironment: ") != 1 || !strings.Contains(block, "\tEnvironment: A="+v+"\n") {
			t.Errorf("environment %q is read as %q", v, field(fmt.Sprintf("env%d.service", i), "Environment"))
		}
	}
}

// udevadm applies a rules file to one device and prints the result. Its verify command,
// new in systemd 254, is also run where available.
func TestUdevReadsHostileValuesUnchanged(t *testing.T) {
	udevadm := program(t, "udevadm")
	if os.Geteuid() != 0 {
		t.Skip("udevadm reads rules from fixed folders: covering them takes root")
	}
	values, written := acceptedValues(t, hostileValues(assertUnharmed(t)), quote.UdevValue)
	globs, patterns := acceptedValues(t, []string{"nul*", "nul?", "[mn]ull", "nu|l*", "nul*\", RUN+=\"x", "[", "zero"}, quote.UdevGlob)
	var rules strings.Builder
	for i, w := range written {
		fmt.Fprintf(&rules, "SUBSYSTEM==\"mem\", ENV{YT%d}=%s\n", i, w)
	}
	for i, p := range patterns {
		fmt.Fprintf(&rules, "SUBSYSTEM==\"mem\", KERNEL==%s, ENV{YTG%d}=\"1\"\n", p, i)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "99-yoctune.rules")
	if err := os.WriteFile(file, []byte(rules.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if help, err := exec.Command(udevadm, "--help").Output(); err == nil && bytes.Contains(help, []byte("verify")) {
		if out, err := exec.Command(udevadm, "verify", "--no-style", file).CombinedOutput(); err != nil {
			t.Errorf("udevadm verify: %v\n%s", err, out)
		}
	}
	// In a mount namespace of its own the folder of the system's rules is ours, and udev
	// sets the permissions of another /dev/null than the machine's.
	cmd := exec.Command("sh", "-c", `mount --bind "$1" /etc/udev/rules.d && mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && exec "$2" test /devices/virtual/mem/null`, "sh", dir, udevadm)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	if err != nil && !strings.Contains(out, "DEVPATH=") {
		t.Skipf("udevadm test does not work here: %v: %.200s", err, out)
	}
	for line := range strings.SplitSeq(out, "\n") {
		if strings.Contains(line, "99-yoctune.rules:") {
			t.Errorf("udev: %s", line)
		}
	}
	lines := strings.Split(out, "\n")
	for i, v := range values {
		// udev drops empty properties and trims blanks.
		if v != "" && strings.TrimSpace(v) == v && !slices.Contains(lines, fmt.Sprintf("YT%d=%s", i, v)) {
			t.Errorf("%q, written %s, is read as something else", v, written[i])
		}
	}
	for i, g := range globs {
		if got, want := slices.Contains(lines, fmt.Sprintf("YTG%d=1", i)), g != "zero"; got != want {
			t.Errorf("the pattern %s matches null: %t", g, got)
		}
	}
	if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "run: ") }) {
		t.Errorf("a rule runs something:\n%s", out)
	}
}

// sysctl and systemd-sysctl read the file; neither writes anything here.
func TestSysctlReadsHostileValuesUnchanged(t *testing.T) {
	sysctl := program(t, "sysctl", "/usr/sbin/sysctl", "/sbin/sysctl")
	if help, err := exec.Command(sysctl, "--help").CombinedOutput(); err != nil || !bytes.Contains(help, []byte("--dry-run")) {
		t.Skip("this sysctl has no --dry-run (procps 4)")
	}
	values, written := acceptedValues(t, hostileValues(assertUnharmed(t)), func(v string) (string, error) { return quote.Sysctl("kernel/domainname", v) })
	file := filepath.Join(t.TempDir(), "95-yoctune.conf")
	if err := os.WriteFile(file, []byte(strings.Join(written, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(sysctl, "--dry-run", "-p", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i, v := range values {
		if i >= len(got) || got[i] != "kernel.domainname = "+v {
			t.Fatalf("%q is read as %q", v, got[min(i, len(got)-1)])
		}
	}
	if len(got) != len(values) {
		t.Errorf("%d lines became %d", len(values), len(got))
	}
	// No node is below this prefix, so it reads and writes nothing.
	const reader = "/usr/lib/systemd/systemd-sysctl"
	if _, err := os.Stat(reader); err == nil {
		if out, err := exec.Command(reader, "--prefix=/yoctune/none", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-sysctl: %v\n%s", err, out)
		}
	}
}

func TestShellReadsHostileWordsUnchanged(t *testing.T) {
	sh := program(t, "sh")
	values, written := acceptedValues(t, hostileValues(assertUnharmed(t)), quote.Shell)
	var script strings.Builder
	for _, w := range written {
		fmt.Fprintf(&script, "printf '%%s\\0' %s\n", w)
	}
	check := exec.Command(sh, "-n")
	check.Stdin = strings.NewReader(script.String())
	if out, err := check.CombinedOutput(); err != nil {
		t.Fatalf("sh -n: %v\n%s", err, out)
	}
	out, err := exec.Command(sh, "-c", script.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, values) {
		t.Errorf("got %q, want %q", got, values)
	}
}

func TestModprobeReadsOnlyBlacklistLines(t *testing.T) {
	modprobe := program(t, "modprobe", "/usr/sbin/modprobe", "/sbin/modprobe")
	values, written := acceptedValues(t, append(hostileValues(assertUnharmed(t)), "nouveau", "snd-hda_intel"), quote.Module)
	file := filepath.Join(t.TempDir(), "yoctune.conf")
	if err := os.WriteFile(file, []byte("blacklist "+strings.Join(written, "\nblacklist ")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(modprobe, "-C", file, "--showconfig").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var got []string
	for line := range strings.SplitSeq(string(out), "\n") {
		if name, ok := strings.CutPrefix(line, "blacklist "); ok {
			got = append(got, name)
		}
		if regexp.MustCompile(`^(install|remove) `).MatchString(line) {
			t.Errorf("a command: %s", line)
		}
	}
	// modprobe writes names with underscores.
	want := make([]string, len(values))
	for i, v := range values {
		want[i] = strings.ReplaceAll(v, "-", "_")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The YAML reader that kas uses gives each value back as a string.
func TestYAMLReadsHostileValuesUnchanged(t *testing.T) {
	python := kasPython(t)
	values, written := acceptedValues(t, hostileValues(assertUnharmed(t)), quote.YAML)
	var doc strings.Builder
	for _, w := range written {
		fmt.Fprintf(&doc, "- %s\n", w)
	}
	cmd := exec.Command(python, "-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin.buffer.read()), sys.stdout)")
	cmd.Stdin = strings.NewReader(doc.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("not all are strings: %v\n%s", err, out)
	}
	if !slices.Equal(got, values) {
		t.Errorf("got %q, want %q", got, values)
	}
}

// kasPython is the interpreter of the environment that kas is installed in.
func kasPython(t *testing.T) string {
	t.Helper()
	venv := os.Getenv("YOCTUNE_KAS_VENV")
	if venv == "" {
		venv = filepath.Join("..", "..", "build", "kas-venv")
	}
	python := filepath.Join(venv, "bin", "python3")
	if _, err := os.Stat(python); err != nil {
		t.Skipf("kas is not installed: %v (python3 -m venv build/kas-venv && build/kas-venv/bin/pip install -r tests/series/requirements.txt)", err)
	}
	return python
}

// The name of a mount's unit is the one that systemd expects.
func TestUnitsOfPathsAreThoseOfSystemdEscape(t *testing.T) {
	escape := program(t, "systemd-escape")
	for _, folder := range []string{"/", "/var/cache/frames", "/var/cache/my-frames", "/a--b/c-/d", "/a.b/.c", "/.hidden/x", "/x_y:z", "/a@b+c=d,e"} {
		want, err := exec.Command(escape, "--path", "--suffix=mount", folder).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := quote.UnitOfPath(folder, ".mount")
		if err != nil || got != strings.TrimSpace(string(want)) {
			t.Errorf("%s: %s, %v; systemd-escape writes %s", folder, got, err, want)
		}
	}
	for _, wrong := range []string{"", "a/b", "/a b", "/a/../b", "/a/", "/ä", "/a\nb"} {
		if got, err := quote.UnitOfPath(wrong, ".mount"); err == nil {
			t.Errorf("%q became %s", wrong, got)
		}
	}
}
