package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/cli"
)

// wrapInTarget puts lines into an otherwise sound target.
func wrapInTarget(lines string) string {
	return `package box
import "github.com/yoctune/yoctune/schema"
schema.#Config & {
layer: {name: "box", maintainer: "Team <team@example.com>"}
targets: cam: {board: "orin-nano-8gb", release: "scarthgap"
` + lines + `
}
}
`
}

// Each of these is refused with exit code 1, the diagnostic named, at the place
// named, and nothing is written.
func TestBadInputIsRefusedAndNothingIsWritten(t *testing.T) {
	for _, c := range []struct{ name, config, id, place string }{
		// Not CUE, or not one configuration.
		{"syntax", "package a\nlayer: {name: ", "YT0001", "config.cue:2:"},
		{"binary", "package a\nx: \"\x00\x01\"\n", "YT0001", "config.cue:2:"},
		{"invalid utf-8", "package a\nx: \"\xff\xfe\"\n", "YT0001", "config.cue:2:"},
		{"import that runs programs", "package a\nimport \"tool/exec\"\nx: exec.Run\n", "YT0003", "config.cue:2:8"},
		{"import that reads files", "package a\nimport \"tool/file\"\nx: file.Read\n", "YT0003", "config.cue:2:8"},
		{"import from a registry", "package a\nimport \"example.com/x@v0\"\ny: x.z\n", "YT0003", "config.cue:2:8"},
		{"embedding", "@extern(embed)\npackage a\nx: _ @embed(file=\"/etc/passwd\")\n", "YT0004", "config.cue:3:6"},
		{"reference to nothing", wrapInTarget(`cpu: governor: schedutil`), "YT0005", "config.cue:6:16"},
		{"nesting without end", "package a\nx: " + strings.Repeat("[", 100_000), "YT0006", "config.cue:2:"},
		{"cycle", "package a\na: b + 1\nb: a\n", "YT010", "config.cue:"},
		{"structural cycle", "package a\na: b: a\n", "YT0108", "config.cue:2:"},
		{"conflict", "package a\na: 1\na: 2\n", "YT0105", "config.cue:"},
		{"undecided", wrapInTarget(`cpu: governor: string`), "YT0107", "config.cue:6:16"},
		{"division by zero", wrapInTarget(`services: "a.service": nice: div(1, 0)`), "YT0100", "config.cue:6:"},

		// Not the language.
		{"no layer", "package a\ntargets: {}\n", "YT0104", "config.cue:"},
		{"wrong type", wrapInTarget(`cpu: isolate: "4-5"`), "YT0101", "config.cue:6:15"},
		{"wrong type deep in a list", wrapInTarget(`services: "a.service": exec: ["/bin/x", 5]`), "YT0101", "config.cue:6:41"},
		{"targets is a number", "package a\ntargets: 5\nlayer: {name: \"a\", maintainer: \"x\"}\n", "YT0101", "config.cue:2:10"},
		{"unknown field", wrapInTarget(`cpu: govenor: "schedutil"`), "YT0102", "config.cue:6:6"},
		{"unknown value", wrapInTarget(`memory: thp: "madvice"`), "YT0103", "config.cue:6:14"},
		{"missing field", wrapInTarget(`pipelines: p: source: {kind: "file", format: "y4m", path: "a"}`), "YT0104", "config.cue:6:"},
		{"out of bounds", wrapInTarget(`services: "a.service": nice: 40`), "YT0106", "config.cue:6:30"},
		{"number beyond 64 bits", wrapInTarget(`sysctl: "vm.swappiness": 10, memory: hugepages: "2MiB": 99999999999999999999`), "YT0106", "config.cue:6:57"},
		{"quantity without unit", wrapInTarget(`storage: "nvme*": readahead: "512"`), "YT0109", "config.cue:6:30"},
		{"quantity not whole", wrapInTarget(`storage: "nvme*": readahead: "0.3KiB"`), "YT0204", "config.cue:6:30"},
		{"quantity too large", wrapInTarget(`memory: zram: "99999999999TiB"`), "YT0204", "config.cue:6:15"},

		// Not what there is.
		{"unknown board", strings.Replace(wrapInTarget(""), "orin-nano-8gb", "orin-nano-8g", 1), "YT0201", "config.cue:5:23"},
		{"board by path", strings.Replace(wrapInTarget(""), "orin-nano-8gb", "../board", 1), "YT0", "config.cue:5:23"},
		{"unknown release", strings.Replace(wrapInTarget(""), "scarthgap", "scarthgapp", 1), "YT0202", "config.cue:5:49"},
		{"board not on the release", strings.Replace(wrapInTarget(""), "orin-nano-8gb", "tx2", 1), "board-release", "config.cue:5:"},
		{"machine of another board", wrapInTarget(`machine: "jetson-agx-orin-devkit"`), "board-machine", "config.cue:6:10"},
		{"unknown profile", wrapInTarget(`use: ["nope"]`), "YT0203", "config.cue:6:7"},
		{"manifest that is missing", wrapInTarget(`runtime: manifest: "missing.json"`), "YT0206", "config.cue:6:20"},
		{"manifest outside the folder", wrapInTarget(`runtime: manifest: "../../../../etc/passwd"`), "YT0206", "config.cue:6:20"},
		{"stages in a circle", wrapInTarget(`pipelines: p: {source: {kind: "file", format: "y4m", path: "a"}
stages: {a: {kind: "model", input: "b", path: "m"}, b: {kind: "model", input: "a", path: "m"}}}`), "YT0205", "config.cue:7:"},

		// Hostile text. Each would act on a build host or a device if it were
		// written as it is.
		{"bitbake runs python", wrapInTarget(`services: "a.service": {exec: ["/bin/x"], environment: A: "${@os.system('id')}"}`), "", ""},
		{"layer maintainer with a line break", strings.Replace(wrapInTarget(""), "Team <", "Team\\nX = \\\"1", 1), "YT0109", "config.cue:4:"},
		{"layer name leaves the folder", strings.Replace(wrapInTarget(""), `name: "box"`, `name: "../../etc/x"`, 1), "YT0109", "config.cue:4:"},
		{"machine is a bitbake override", wrapInTarget(`machine: "x:append"`), "YT0109", "config.cue:6:10"},
		{"target name with a slash", strings.Replace(wrapInTarget(""), "targets: cam", `targets: "../x"`, 1), "YT0109", "config.cue:5:"},
		{"second unit line", wrapInTarget(`services: "a.service": exec: ["/bin/x", "a\nExecStartPost=/bin/y"]`), "YT0109", "config.cue:6:41"},
		{"root prefix", wrapInTarget(`services: "a.service": exec: ["+/bin/sh"]`), "service-exec", "config.cue:6:31"},
		{"relative program", wrapInTarget(`services: "a.service": exec: ["/a/../bin/sh"]`), "service-exec", "config.cue:6:31"},
		{"unit of the system", wrapInTarget(`services: "dbus.service": exec: ["/bin/sh"]`), "service-reserved", "config.cue:6:"},
		{"template without a name", wrapInTarget(`services: "@.service": exec: ["/bin/sh"]`), "YT0109", "config.cue:6:11"},
		{"unit by path", wrapInTarget(`services: "a/b.service": exec: ["/bin/sh"]`), "YT0109", "config.cue:6:11"},
		{"sysctl key with a sign", wrapInTarget(`sysctl: "-kernel.x": 1`), "YT0109", "config.cue:6:9"},
		{"sysctl key with a second line", wrapInTarget(`sysctl: "a.b = 1\nc": 1`), "YT0109", "config.cue:6:9"},
		{"sysctl value that would be trimmed", wrapInTarget(`sysctl: "kernel.x": " 1 "`), "sysctl-text", "config.cue:6:21"},
		{"sysctl value that is empty", wrapInTarget(`sysctl: "kernel.x": ""`), "sysctl-text", "config.cue:6:21"},
		{"sysctl that runs a program", wrapInTarget(`sysctl: "kernel.core_pattern": "|/tmp/x"`), "sysctl-executes", "config.cue:6:32"},
		{"sysctl that acts once", wrapInTarget(`sysctl: "vm.compact_memory": 1`), "sysctl-oneshot", "config.cue:6:30"},
		{"udev rule in a glob", wrapInTarget(`storage: "x\", RUN+=\"/bin/sh": scheduler: "none"`), "YT0109", "config.cue:6:10"},
		{"glob of everything", wrapInTarget(`storage: "*": scheduler: "none"`), "udev-glob", "config.cue:6:"},
		{"second power mode in a name", wrapInTarget(`power: modes: "MAX >\n< POWER_MODEL ID=9 NAME=X": from: "25W"`), "YT0109", "config.cue:6:15"},
		{"second kernel option in a value", wrapInTarget(`kernel: config: LOCALVERSION: "y\"\nCONFIG_MODULE_SIG=n"`), "YT0109", "config.cue:6:31"},
		{"first program", wrapInTarget(`kernel: args: init: "/bin/sh"`), "kernel-arg-unsafe", "config.cue:6:21"},
		{"arguments of the first program", wrapInTarget(`kernel: args: "--": true`), "YT0109", "config.cue:6:15"},
		{"quote in a kernel argument", wrapInTarget(`kernel: args: a: "\" b"`), "kernel-arg-text", "config.cue:6:18"},
		{"mirror with parameters", wrapInTarget("") + "build: sstate: mirrors: m: url: \"https://h/x;protocol=ssh\"\n", "mirror-pattern", "config.cue:9:33"},
		{"mirror with a password", wrapInTarget("") + "build: sstate: mirrors: m: url: \"https://u:tok@h/x\"\n", "YT0", "config.cue:9:33"},
		{"mirror that is a command", wrapInTarget("") + "build: sstate: mirrors: m: url: \"ext::sh -c id\"\n", "YT0109", "config.cue:9:33"},
		{"folder with python", wrapInTarget("") + "build: sstate: dir: \"/${@x}\"\n", "YT0109", "config.cue:9:21"},
		{"text that hides", wrapInTarget(`services: "a.service": {exec: ["/bin/x"], description: "a` + "\u202e" + `b"}`), "YT0601", "config.cue:6:"},
		{"line separator", wrapInTarget(`services: "a.service": {exec: ["/bin/x"], environment: A: "a` + "\u2028" + `b"}`), "YT0601", "config.cue:6:"},
		{"model outside its folder", wrapInTarget(`pipelines: p: {source: {kind: "file", format: "y4m", path: "../../x"}, stages: a: {kind: "preprocess", input: "source", width: 4, height: 4}}`), "pipeline-path", "config.cue:6:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.cue"), []byte(c.config), 0o644); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "out")
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), []string{"build", dir, "-o", out, "--runtime", runtimeFolder}, &stdout, &stderr)
			if c.id == "" {
				// Accepted, because the file it goes to does not act on it.
				if code != cli.ExitDone {
					t.Fatalf("exit code %d\n%s", code, stderr.String())
				}
				return
			}
			if code != cli.ExitFailed {
				t.Errorf("exit code %d, want %d\n%s", code, cli.ExitFailed, stderr.String())
			}
			if !strings.Contains(stderr.String(), "error["+c.id) {
				t.Errorf("no %s in\n%s", c.id, stderr.String())
			}
			if !strings.Contains(stderr.String(), c.place) {
				t.Errorf("no place %s in\n%s", c.place, stderr.String())
			}
			assertNothingWritten(t, dir)
		})
	}
}

func assertNothingWritten(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "config.cue" {
			t.Errorf("%s was written", e.Name())
		}
	}
}

// An output that cannot be a folder is refused before anything is written.
func TestUnusableOutputIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.cue"), []byte(wrapInTarget("")), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{
		"a file":              file,
		"below a file":        filepath.Join(file, "out"),
		"a folder of no one":  "/proc/yoctune/out",
		"a read-only folder":  closed,
		"below a closed path": filepath.Join(closed, "out"),
	} {
		if os.Geteuid() == 0 && strings.HasPrefix(out, closed) {
			continue // root writes anywhere
		}
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), []string{"build", dir, "-o", out, "--runtime", runtimeFolder}, &stdout, &stderr); code != cli.ExitFailed {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr.String())
		}
		if !strings.Contains(stderr.String(), "the output folder cannot be used") {
			t.Errorf("%s: %s", name, stderr.String())
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Error("the file in the way was changed")
	}
	assertNothingWritten(t, dir)
}
