package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/sbom/sbomtest"
)

// tool returns a program that `make test` installs.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "build", "tools", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_PACKAGES") != "" && name != "cosign" {
			t.Fatal(err)
		}
		t.Skipf("%v; make build/tools/%s installs it", err, name)
	}
	return path
}

// release makes the packages for one system. The runtime folder is the fixture of the goldens,
// and /bin/true stands for the programs of the device.
func release(t *testing.T, nfpm string) string {
	t.Helper()
	t.Chdir(filepath.Join("..", "..", ".."))
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lib", "yoctune"), os.DirFS(filepath.Join("golden", "runtime"))); err != nil {
		t.Fatal(err)
	}
	standIn, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"manifest.json":                    []byte(`{"version":"0.2.0"}`),
		"yoctuned-0.2.0-linux-amd64":       standIn,
		"yoctuned-serve-0.2.0-linux-amd64": standIn,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1764000000")
	if err := run(dir, nfpm, []string{"linux/amd64"}, false); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join("internal", "cmd", "packages"))
	return dir
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestPackagesAreCompleteAndReproducible(t *testing.T) {
	nfpm := tool(t, "nfpm")
	dir := release(t, nfpm)
	for deb, want := range map[string][]string{
		"yoctune_0.2.0_amd64.deb": {
			"-rwxr-xr-x root/root ./usr/bin/yoctune", "-rw-r--r-- root/root ./usr/lib/yoctune/manifest.json",
			"-rw-r--r-- root/root ./usr/lib/yoctune/yoctuned-0.2.0-linux-arm64.gz",
			"-rw-r--r-- root/root ./usr/share/man/man1/yoctune-build.1.gz",
			"-rw-r--r-- root/root ./usr/share/bash-completion/completions/yoctune",
			"-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_yoctune",
			"-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/yoctune.fish",
			"-rw-r--r-- root/root ./usr/share/doc/yoctune/examples/video-analytics/config.cue",
			"-rw-r--r-- root/root ./usr/share/doc/yoctune/docs/guide.md", "-rw-r--r-- root/root ./usr/share/doc/yoctune/copyright",
		},
		"yoctuned_0.2.0_amd64.deb":       {"-rwxr-xr-x root/root ./usr/bin/yoctuned", "-rw-r--r-- root/root ./usr/share/man/man1/yoctuned-verify.1.gz"},
		"yoctuned-serve_0.2.0_amd64.deb": {"-rwxr-xr-x root/root ./usr/bin/yoctuned-serve"},
	} {
		var have []string
		for line := range strings.Lines(output(t, "dpkg-deb", "-c", filepath.Join(dir, deb))) {
			f := strings.Fields(line)
			have = append(have, f[0]+" "+f[1]+" "+f[5])
		}
		for _, w := range want {
			if !slices.Contains(have, w) {
				t.Errorf("%s: no %s", deb, w)
			}
		}
		for _, h := range have {
			if strings.Contains(h, "_test.go") || strings.Contains(h, "powershell") {
				t.Errorf("%s: %s", deb, h)
			}
		}
	}
	if got := output(t, "dpkg-deb", "-f", filepath.Join(dir, "yoctuned-serve_0.2.0_amd64.deb"), "Depends", "Version"); got != "Depends: libc6 (>= 2.34), yoctuned (= 0.2.0)\nVersion: 0.2.0\n" {
		t.Error(got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "yoctune_0.2.0_amd64.deb.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	sbomtest.ValidateCycloneDX(t, text)

	// The archive works where it is unpacked, with the runtime folder beside the program.
	root := t.TempDir()
	output(t, "tar", "-xzf", filepath.Join(dir, "yoctune-0.2.0-linux-amd64.tar.gz"), "-C", root, "--strip-components=1")
	program := filepath.Join(root, "bin", "yoctune")
	if got := output(t, program, "--version"); !strings.Contains(got, "0.2.0") {
		t.Error(got)
	}
	output(t, program, "init", filepath.Join(root, "p"), "--name", "p")
	output(t, program, "build", filepath.Join(root, "p"), "-o", filepath.Join(root, "layer"))

	// All that is listed is there, and twice the same commit gives the same bytes.
	check := exec.Command("sha256sum", "--check", "--quiet", sums)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	again := release(t, nfpm)
	one, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(filepath.Join(again, sums))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, two) {
		t.Errorf("two runs differ:\n%s\n%s", one, two)
	}
}

// YOCTUNE_DIST names a release that make dist wrote.
func TestBillsAreValid(t *testing.T) {
	dir := os.Getenv("YOCTUNE_DIST")
	if dir == "" {
		t.Skip("set YOCTUNE_DIST, as scripts/prove.sh dist does")
	}
	spdx, err := filepath.Abs(filepath.Join("..", "..", "..", "build", "spdx-venv", "bin", "pyspdxtools"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		switch {
		case strings.HasSuffix(name, ".spdx.json"):
			output(t, spdx, "--infile", name)
			count["SPDX"]++
		case strings.HasSuffix(name, ".cdx.json"):
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sbomtest.ValidateCycloneDX(t, text)
			count["CycloneDX"]++
		}
	}
	if count["SPDX"] < 15 || count["SPDX"] != count["CycloneDX"] {
		t.Errorf("%v", count)
	}
	t.Logf("%d bills in SPDX are valid for pyspdxtools, %d in CycloneDX for its schema", count["SPDX"], count["CycloneDX"])
}

// Signatures are verified by the programs that users verify them with, offline.
func TestDigestsAreSigned(t *testing.T) {
	for _, name := range []string{"minisign", "cosign"} {
		t.Run(name, func(t *testing.T) {
			dir, keys := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "yoctune.deb"), []byte("package"), 0o644); err != nil {
				t.Fatal(err)
			}
			var verify []string
			if name == "minisign" {
				if _, err := exec.LookPath("minisign"); err != nil {
					if os.Getenv("YOCTUNE_REQUIRE_MINISIGN") != "" {
						t.Fatal(err)
					}
					t.Skipf("%v: its judgement of the signature is missing", err)
				}
				output(t, "minisign", "-G", "-W", "-p", filepath.Join(keys, "key.pub"), "-s", filepath.Join(keys, "key"))
				t.Setenv("YOCTUNE_RELEASE_KEY", filepath.Join(keys, "key"))
				verify = []string{"minisign", "-V", "-p", filepath.Join(keys, "key.pub"), "-m", filepath.Join(dir, sums)}
			} else {
				cosign := tool(t, "cosign")
				t.Setenv("COSIGN_PASSWORD", "")
				t.Setenv("PATH", filepath.Dir(cosign)+":"+os.Getenv("PATH"))
				output(t, cosign, "generate-key-pair", "--output-key-prefix", filepath.Join(keys, "cosign"))
				t.Setenv("COSIGN_KEY", filepath.Join(keys, "cosign.key"))
				verify = []string{cosign, "verify-blob", "--key", filepath.Join(keys, "cosign.pub"), "--insecure-ignore-tlog=true", "--signature", filepath.Join(dir, sums+".sig"), filepath.Join(dir, sums)}
			}
			if err := sign(dir); err != nil {
				t.Fatal(err)
			}
			output(t, verify[0], verify[1:]...)
			if err := os.WriteFile(filepath.Join(dir, sums), []byte("other"), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(verify[0], verify[1:]...).CombinedOutput(); err == nil {
				t.Errorf("other digests are accepted: %s", out)
			}
		})
	}
}

// A key that cannot be used stops the release.
func TestBrokenKeyIsAnError(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("YOCTUNE_RELEASE_KEY", filepath.Join(dir, "absent"))
	if err := sign(dir); err == nil || !strings.Contains(err.Error(), "YOCTUNE_RELEASE_KEY") {
		t.Error(err)
	}
}
