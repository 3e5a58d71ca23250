package checklayer

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
)

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestInstalledFilesMatchTheLayer(t *testing.T) {
	p := &plan.Plan{Layer: "edge", Target: "one", Board: "orin-nano-8gb", Machine: "jetson-a", Release: "scarthgap"}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	doc, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func(image string)
		want   string
	}{
		{"as given", func(string) {}, ""},
		{"a file the recipe makes itself", func(d string) {
			writeFile(t, filepath.Join(d, "usr/lib/systemd/system-preset/98-x.preset"), "enable x\n", 0o644)
		}, ""},
		{"a file left out", func(d string) { os.Remove(filepath.Join(d, "etc/sysctl.d/95-yoctune.conf")) }, "95-yoctune.conf is in SRC_URI of yoctune-edge-config but is not installed unchanged"},
		{"a file changed on the way", func(d string) {
			writeFile(t, filepath.Join(d, "etc/sysctl.d/95-yoctune.conf"), "vm.swappiness = 11\n", 0o644)
		}, "95-yoctune.conf is in SRC_URI"},
		{"a file anybody may write", func(d string) {
			writeFile(t, filepath.Join(d, "etc/sysctl.d/95-yoctune.conf"), "vm.swappiness = 10\n", 0o666)
		}, "/etc/sysctl.d/95-yoctune.conf is installed with mode"},
		{"a program that was unpacked differently", func(d string) {
			writeFile(t, filepath.Join(d, "usr/bin/yoctuned"), "other", 0o755)
		}, "yoctuned.gz is in SRC_URI of yoctune-edge-config but is not installed unchanged"},
		{"the plan somewhere else", func(d string) {
			if err := os.Rename(filepath.Join(d, "usr/lib/yoctune/plan.json"), filepath.Join(d, "etc/plan.json")); err != nil {
				t.Error(err)
			}
		}, "installed plan: open /usr/lib/yoctune/plan.json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			files, image := filepath.Join(root, "files"), filepath.Join(root, "image")
			// One file in the machine's own folder, one beside it.
			writeFile(t, filepath.Join(files, "95-yoctune.conf"), "vm.swappiness = 10\n", 0o644)
			writeFile(t, filepath.Join(files, "jetson-a", "plan.json"), string(doc), 0o644)
			writeFile(t, filepath.Join(image, "etc/sysctl.d/95-yoctune.conf"), "vm.swappiness = 10\n", 0o644)
			writeFile(t, filepath.Join(image, "usr/lib/yoctune/plan.json"), string(doc), 0o644)
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := z.Write([]byte("program")); err != nil || z.Close() != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(files, "yoctuned.gz"), packed.String(), 0o644)
			writeFile(t, filepath.Join(image, "usr/bin/yoctuned"), "program", 0o755)
			tc.change(image)
			writeFile(t, filepath.Join(files, "licenses.txt"), "the terms", 0o644)
			g := rig{layer: &layer{Plans: []*plan.Plan{p}}, values: map[string]map[string]string{"yoctune-edge-config": {
				"SRC_URI": " file://95-yoctune.conf  file://plan.json;subdir=x file://yoctuned.gz file://licenses.txt ", "LIC_FILES_CHKSUM": "file:///srv/licenses.txt;md5=0", "D": image, "FILESPATH": "/nonexistent:" + files, "FILESOVERRIDES": "aarch64:jetson-a",
			}}}
			got := strings.Join(g.checkInstalledFiles(t.Context(), "", recipe{Name: "yoctune-edge-config"}).errors, "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
