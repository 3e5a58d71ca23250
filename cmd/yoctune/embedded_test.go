package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A yoctune that was built with the tag bundled brings the programs itself. The overlay
// stands in for the folder that internal/cmd/dist would write into the sources.
func TestEmbeddedProgramsAreInTheLayer(t *testing.T) {
	entries, err := os.ReadDir(runtimeFolder)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, e := range entries {
		replace[filepath.Join(root, "compiler", "programs", "embedded", e.Name())] = filepath.Join(root, "golden", "runtime", e.Name())
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay, program, layer := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "bin", "yoctune"), filepath.Join(dir, "layer")
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-tags", "bundled", "-overlay", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := `package box
layer: {name: "box", maintainer: "M <m@example.com>"}
targets: cam: {board: "orin-nano-8gb", release: "scarthgap", sysctl: "kernel.panic": 10}
`
	if err := os.WriteFile(filepath.Join(dir, "config.cue"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "build", dir, "-o", layer).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const name = "yoctuned-0.2.0-linux-arm64.gz"
	got, err := os.ReadFile(filepath.Join(layer, "recipes-yoctune", "yoctuned", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(runtimeFolder, name))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the layer has other bytes: %v", err)
	}
}
