package qemu

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
)

// The boards are arm64: the program that ships for them is built with the cross
// compiler and run in user-mode emulation, on a synthetic Orin Nano.
func TestTheArm64ProgramRuns(t *testing.T) {
	compiler, err := exec.LookPath("aarch64-linux-gnu-gcc")
	if err != nil {
		t.Skip("aarch64-linux-gnu-gcc is not installed; `make setup` installs it")
	}
	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("qemu-aarch64-static is not installed; `make setup` installs it")
	}
	dir := t.TempDir()
	exe := filepath.Join(dir, "yoctuned")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, "github.com/yoctune/yoctune/cmd/yoctuned")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=1", "CC="+compiler)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root := filepath.Join(dir, "root")
	if err := devicetest.Build(root, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(file, plans(t)["nano.json"], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"version", 0, "linux/arm64"},
		{"probe", 0, "NVIDIA Jetson Orin Nano Developer Kit"},
		{"verify " + file, 3, "vm.swappiness: found 60, wanted 10"},
		{"apply " + file, 0, "apply: 2 ok"},
		{"verify " + file, 0, "verify: 2 ok"},
		{"rollback", 0, "rollback: "},
		{"verify " + file, 3, "2 differs"},
	} {
		args := append([]string{"-L", "/usr/aarch64-linux-gnu", exe}, strings.Fields(step.args)...)
		cmd := exec.Command(emulator, append(args, "--root", root)...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // the exit code says it
		if code := cmd.ProcessState.ExitCode(); code != step.code || !strings.Contains(out.String(), step.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", step.args, code, step.code, step.says, out.String())
		}
	}
}
