package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/schema/plan"
)

const (
	patience = 60 * time.Second
	governor = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
)

// enforcing runs the real program on a device tree, and returns the tree.
func enforcing(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "yt") // a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tree := filepath.Join(dir, "t")
	if err := devicetest.Build(tree, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "yoctuned")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/yoctune/yoctune/cmd/yoctuned").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := &plan.Plan{Layer: "vision", Target: "a", Board: "orin-nano-8gb", Settings: []plan.Setting{{
		ID: "cpu.governor", Domain: plan.DomainCPU, Type: plan.TypeString, Want: "schedutil",
		Select:  plan.Select{Class: "cpufreq", Attr: "scaling_governor"},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}}}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	daemon := exec.CommandContext(ctx, program, "enforce", "--root", tree, file)
	daemon.Cancel = func() error { return daemon.Process.Signal(os.Interrupt) }
	var log bytes.Buffer
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = daemon.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	// yoctuned creates its socket when it starts watching, without a notification.
	for late := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		c, err := api.Dial(filepath.Join(tree, api.Socket))
		if err == nil {
			_ = c.Close()
			return tree
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

func eventually(t *testing.T, tree, want string) {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(tree, governor))
		if strings.TrimSpace(string(b)) == want {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("the governor is %q, want %s: %v", b, want, err)
		}
	}
}

// The three examples do the same: hold a lease until their input ends.
func TestALeaseIsHeldFromEveryLanguage(t *testing.T) {
	tree := enforcing(t)
	dir := t.TempDir()
	build := func(name string, args ...string) string {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return filepath.Join(dir, name)
	}
	c := build("c", "cc", "-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", filepath.Join(dir, "c"), "c/lease.c")
	cxx := build("cxx", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-o", filepath.Join(dir, "cxx"), "c/lease.c")
	golang := build("go", "go", "build", "-o", filepath.Join(dir, "go"), ".")
	for name, command := range map[string][]string{"C": {c}, "C++": {cxx}, "Go": {golang}, "Python": {"python3", "python/lease.py"}} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []string{"its input ends", "it is killed"} {
				cmd := exec.Command(command[0], append(command[1:], filepath.Join(tree, api.Socket))...)
				in, out := pipes(t, cmd)
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if line, err := out.ReadString('\n'); err != nil || line != "granted\n" {
					t.Fatalf("%q %v", line, err)
				}
				eventually(t, tree, "performance")
				if end == "it is killed" {
					if err := cmd.Process.Kill(); err != nil {
						t.Fatal(err)
					}
				} else {
					if _, err := io.WriteString(in, "renew\n"); err != nil {
						t.Fatal(err)
					}
					if err := in.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := cmd.Wait(); (err != nil) != (end == "it is killed") {
					t.Errorf("%s: %v", end, err)
				}
				eventually(t, tree, "schedutil")
			}
		})
	}
}

func pipes(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, *bufio.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, bufio.NewReader(out)
}

func TestWithoutYoctunedItIsSaid(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "socket")
	for _, command := range [][]string{{"python3", "python/lease.py"}, {"go", "run", "."}} {
		out, err := exec.Command(command[0], append(command[1:], nowhere)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "lease: ") || !strings.Contains(strings.ToLower(string(out)), "no such file") {
			t.Errorf("%v: %v %s", command, err, out)
		}
	}
}
