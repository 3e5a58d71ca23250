package memory_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/memory"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func tree(t *testing.T, files map[string]string) *rootfs.Root {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		host := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(host, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

func TestProcessesAreSortedByPSS(t *testing.T) {
	r := memory.ReadReport(tree(t, map[string]string{
		"/proc/1/comm": "systemd\n", "/proc/1/smaps_rollup": "00400000-7fff rollup\nRss: 9000 kB\nPss: 4000 kB\nSwapPss: 0 kB\n",
		"/proc/812/comm": "vision\n", "/proc/812/smaps_rollup": "00400000-7fff rollup\nRss: 900000 kB\nPss: 800000 kB\nSwapPss: 12 kB\n",
		"/proc/2/comm": "kthreadd\n", "/proc/2/smaps_rollup": "",
	}))
	if len(r.Processes) != 2 || r.Processes[0].Name != "vision" || r.Processes[0].PSS != 800000<<10 || r.Processes[0].Swap != 12<<10 {
		t.Fatalf("%+v", r.Processes)
	}
	if g := r.Processes[0].GPU; g == nil || *g != 256<<20 {
		t.Errorf("the GPU memory of %+v", r.Processes[0])
	}
	if g := r.Processes[1].GPU; g == nil || *g != 0 {
		t.Errorf("the GPU memory of %+v", r.Processes[1])
	}
	if r.Info["CmaFree"] != 131072<<10 || len(r.Blocks) != 2 || r.Slabs[0].Name != "ext4_inode_cache" || r.Slabs[0].Bytes != 9300*1096 || len(r.Problems) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestUnreadableProcessesAreReported(t *testing.T) {
	dev, err := rootfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := memory.ReadReport(dev)
	if text := strings.Join(r.Problems, "\n"); !strings.Contains(text, "/proc/meminfo") || !strings.Contains(text, "/proc/slabinfo") {
		t.Error(text)
	}
}

// On the running machine, the sum of shares and caches must not exceed the kernel's total.
func TestSharesOfThisMachineAddUp(t *testing.T) {
	dev, err := rootfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	r := memory.ReadReport(dev)
	sum := int64(0)
	for _, p := range r.Processes {
		sum += p.PSS
	}
	if sum == 0 || sum > r.Info["MemTotal"] {
		t.Errorf("processes hold %d of %d bytes", sum, r.Info["MemTotal"])
	}
}

func FuzzSlabs(f *testing.F) {
	f.Add("dentry 50000 52000 192 21 1 : tunables 0 0 0 : slabdata 1 1 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range memory.Slabs(text) {
			if s.Bytes < 0 || s.Objects <= 0 {
				t.Fatalf("%+v", s)
			}
		}
	})
}
