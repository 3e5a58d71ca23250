package browser

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
)

// serving starts the built enforcer and server on a synthetic board. It returns the address of
// the page, and the processes.
func serving(t *testing.T) (url string, enforcer, server *exec.Cmd) {
	t.Helper()
	tree, err := os.MkdirTemp("", "yt") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tree) })
	if err := devicetest.Build(tree, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	bin, table := t.TempDir(), filepath.Join(tree, "plan.tsv")
	for file, text := range map[string]string{table: "/proc/sys/vm/swappiness\t11\n", filepath.Join(tree, "proc/sys/kernel/hostname"): "bench-7\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plan := filepath.Join(tree, "plan.json")
	for _, args := range [][]string{
		{"go", "build", "-o", bin + "/", "../../cmd/yoctune"},
		{"go", "build", "-tags", "serve", "-o", filepath.Join(bin, "yoctuned-serve"), "../../cmd/yoctuned"},
		{filepath.Join(bin, "yoctune"), "plan", "--knobs", table, "-o", plan},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	start := func(until string, args ...string) (*exec.Cmd, string) {
		cmd := exec.Command(filepath.Join(bin, "yoctuned-serve"), append(args, "--root", tree)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), until) {
				return cmd, lines.Text()
			}
		}
		t.Fatalf("%v: it ended before it printed %q", args, until)
		return nil, ""
	}
	enforcer, _ = start("watching", "enforce", plan)
	server, line := start("serving on ", "serve", "--listen", "127.0.0.1:0", "--metrics")
	return strings.TrimPrefix(line, "serving on "), enforcer, server
}

// The page of the built program follows its enforcer and its own end, and so do health and
// metrics.
func TestPageOfTheBuiltProgram(t *testing.T) {
	browserTools(t)
	url, enforcer, server := serving(t)
	control := http.NewServeMux()
	for name, cmd := range map[string]*exec.Cmd{"enforcer": enforcer, "serve": server} {
		control.HandleFunc("POST /"+name, func(http.ResponseWriter, *http.Request) {
			_ = cmd.Process.Kill()
			_, _ = cmd.Process.Wait()
		})
	}
	controls := httptest.NewServer(control)
	t.Cleanup(controls.Close)
	var saw struct {
		Host, Enforcer, Killed, State, Metrics string
		Health                                 struct {
			Healthy  bool
			Problems []string
		}
	}
	runBrowserScript(t, &saw, "built.cjs", url, controls.URL+"/", screenshots(t))
	if saw.Host != "bench-7" || saw.Enforcer != fmt.Sprintf("yoctuned enforces the plan (pid %d)", enforcer.Process.Pid) {
		t.Errorf("host %q, enforcer %q", saw.Host, saw.Enforcer)
	}
	gone := fmt.Sprintf("nobody enforces the plan: yoctuned.service is not running; pid %d ended unexpectedly; its last state is ", enforcer.Process.Pid)
	if !strings.HasPrefix(saw.Killed, gone) || saw.Health.Healthy || len(saw.Health.Problems) != 1 || !strings.HasPrefix(saw.Health.Problems[0], gone) {
		t.Errorf("after a kill the page shows %q, /healthz %+v", saw.Killed, saw.Health)
	}
	if !strings.Contains(saw.Metrics, "\nyoctuned_enforcer_up 0\n") || strings.Contains(saw.Metrics, "\nyoctuned_contested_nodes ") {
		t.Errorf("after a kill /metrics has\n%s", saw.Metrics)
	}
	if ok, _ := regexp.MatchString(`^disconnected: values of \d\d:\d\d:\d\d, \d+ s old$`, saw.State); !ok {
		t.Errorf("after its own end: %q", saw.State)
	}
}
