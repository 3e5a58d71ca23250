package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// -update rewrites the expected output inside the scripts.
var update = flag.Bool("update", false, "rewrite expected output in testdata/script")

func TestMain(m *testing.M) {
	testscript.Main(withRuntime{m}, map[string]func(){
		"yoctune": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// withRuntime runs tests with the golden runtime folder beside the installed program.
type withRuntime struct{ *testing.M }

func (m withRuntime) Run() int {
	bin, _, _ := strings.Cut(os.Getenv("PATH"), string(filepath.ListSeparator))
	lib := filepath.Join(bin, "..", "lib", "yoctune")
	if err := os.CopyFS(lib, os.DirFS(runtimeFolder)); err != nil {
		log.Fatal(err)
	}
	return m.M.Run()
}

// runtimeFolder has stand-ins of the programs that layers contain.
const runtimeFolder = "../../golden/runtime"

// The command line as people type it: one script a subject.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			folder, err := filepath.Abs(runtimeFolder)
			e.Setenv("RUNTIME", folder)
			return err
		},
		Condition: hasTool,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":   assertExitCode,
			"registry": serveRegistry,
		},
	})
}

// hasTool reports whether cue is on the path; it must be where YOCTUNE_REQUIRE_CUE is set.
func hasTool(name string) (bool, error) {
	if name != "cue" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	_, err := exec.LookPath(name)
	if err != nil && os.Getenv("YOCTUNE_REQUIRE_CUE") != "" {
		return false, errors.New("the cue command is not on the path, and YOCTUNE_REQUIRE_CUE is set")
	}
	return err == nil, nil
}

// assertExitCode runs a command and asserts its exit code: `status 3 yoctune build …`.
func assertExitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		code, ok := exitCode(err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = code
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// serveRegistry starts an OCI registry on this machine; its address is $REGISTRY.
func serveRegistry(ts *testscript.TestScript, _ bool, _ []string) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	ts.Defer(s.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(s.URL, "http://"))
	ts.Setenv("DOCKER_CONFIG", ts.Getenv("WORK"))
}

func exitCode(err error) (string, bool) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "", false
	}
	return strconv.Itoa(exit.ExitCode()), true
}
