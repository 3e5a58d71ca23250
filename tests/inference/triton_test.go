package inference

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
)

// requireVariable set to 1 makes a test without the client fail instead of skipping, as in CI.
const requireVariable = "YOCTUNE_REQUIRE_TRITON"

// NVIDIA's client, which knows nothing of this server, reads its metadata and statistics, and gets its answers in
// every form of data and compression.
func TestTritonClient(t *testing.T) {
	python, err := filepath.Abs("../../build/grpc-venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		if os.Getenv(requireVariable) == "1" {
			t.Fatal(err)
		}
		t.Skipf("%v: run scripts/setup.sh python", err)
	}
	p := id4(1, 2, 4, 8)
	p.Source.Request = &plan.Request{Address: "127.0.0.1:0", Plain: true}
	s := serve(t, p, map[string][]byte{"m.onnx": identity(4, true)})
	url := s.url()
	out, err := exec.Command(python, "client.py", strings.TrimPrefix(url, "http://")).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("%v: %s\n%s", err, out, s.log)
	}
}
