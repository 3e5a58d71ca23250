// Package walls tests which packages may reach which others.
package walls

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/yoctune/yoctune"

// Go packages that load or run foreign code, or belong to one side of a wall.
var (
	compilers = []string{
		module + "/compiler", module + "/emitters",
		"cuelang.org", "github.com/hashicorp/hcl", "github.com/google/go-jsonnet", "github.com/zclconf/go-cty",
	}
	// Reading or writing anything outside the arguments needs one of these.
	inputOutput = []string{"os", "net", "syscall", "os/exec", "os/signal", "os/user", "net/http", "runtime/cgo", "plugin", "C", "unsafe"}
	servers     = []string{"net/http", "crypto/tls", "google.golang.org/grpc", "github.com/nats-io", "modernc.org/sqlite"}
)

// dependencies returns the packages that some packages of the module are built from,
// those themselves included.
func dependencies(t *testing.T, cgo bool, patterns ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps"}, patterns...)...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if cgo {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%v: %s", err, failed.Stderr)
		}
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// forbid reports the dependencies that are in or below one of some paths.
func forbid(t *testing.T, what string, deps, paths []string) {
	t.Helper()
	for _, dep := range deps {
		for _, p := range paths {
			if dep == p || strings.HasPrefix(dep, p+"/") {
				t.Errorf("%s reaches %s", what, dep)
			}
		}
	}
}

// The enforcer runs as root on every device: no foreign code belongs in its process.
func TestDeviceReachesNoEngineAndNoCgo(t *testing.T) {
	deps := dependencies(t, true, "./runtime/device/...")
	// Package net uses cgo where it may; it is the only one.
	forbid(t, "runtime/device", deps, []string{module + "/runtime/engine", module + "/runtime/serve"})
	forbid(t, "runtime/device", deps, compilers)
	forbid(t, "runtime/device", deps, servers)
	for _, dep := range dependencies(t, true, "-f", `{{if .CgoFiles}}{{.ImportPath}}{{end}}`, "./runtime/device/...") {
		if strings.Contains(dep, ".") { // not of the standard library
			t.Errorf("runtime/device reaches cgo in %s", dep)
		}
	}
	build := exec.Command("go", "build", "./runtime/device/...")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("without cgo: %v\n%s", err, out)
	}
}

func TestEngineReachesNoServer(t *testing.T) {
	forbid(t, "runtime/engine", dependencies(t, true, "./runtime/engine/..."), append([]string{module + "/runtime/serve"}, compilers...))
}

func TestEmittersReachNoCompiler(t *testing.T) {
	forbid(t, "emitters", dependencies(t, true, "./emitters/..."), []string{module + "/compiler", module + "/runtime"})
}

func TestCompilerReachesNoRuntime(t *testing.T) {
	forbid(t, "compiler", dependencies(t, true, "./compiler/..."), []string{module + "/runtime"})
}

// The compiler would cost the device memory and start-up time, and bring parsers of
// hostile text into a process of root.
func TestDeviceProgramLinksNoCompilerAndNoServer(t *testing.T) {
	deps := dependencies(t, true, "./cmd/yoctuned")
	forbid(t, "yoctuned", deps, compilers)
	forbid(t, "yoctuned", deps, servers)
	for _, dep := range deps {
		if dep == module+"/schema" { // embeds the CUE schema
			t.Errorf("yoctuned reaches %s", dep)
		}
	}
}

// Both sides import the shared knowledge, so that it may import nothing but the
// standard library and itself, and does no I/O.
func TestSharedSchemaUsesTheStandardLibraryOnly(t *testing.T) {
	const imports = `{{if not .Standard}}{{.ImportPath}}{{range .Imports}} {{$.ImportPath}}>{{.}}{{end}}{{end}}`
	for _, name := range []string{"plan", "facts", "knob", "formats", "pipeline", "fuse", "spelling", "units"} {
		t.Run(name, func(t *testing.T) {
			listed := dependencies(t, true, "-f", imports, "./schema/"+name+"/...")
			if len(listed) == 0 {
				t.Fatalf("schema/%s has no packages", name)
			}
			for _, l := range listed {
				importer, dep, _ := strings.Cut(l, ">")
				first, _, _ := strings.Cut(dep, "/")
				switch {
				case slices.Contains(inputOutput, dep):
					t.Errorf("%s imports %s, which does I/O", importer, dep)
				case strings.Contains(first, ".") && !strings.HasPrefix(dep, module+"/schema/") && !strings.HasPrefix(dep, module+"/internal/"):
					t.Errorf("%s imports %s", importer, dep)
				}
			}
		})
	}
}
