package processes

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func writeStat(t *testing.T, tree string, pid int, name string, parent, ticks, start, pages int) {
	t.Helper()
	dir := filepath.Join(tree, "proc", fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 9 0 0 0 %d %d 0 0 20 0 3 0 %d 99999 %d 184\n", pid, name, parent, ticks/2, ticks-ticks/2, start, pages)
	if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCPUIsOfTheTimeSinceTheListBefore(t *testing.T) {
	tree := t.TempDir()
	writeStat(t, tree, 7, "a) b (c", 1, 100, 5, 10)
	writeStat(t, tree, 8, "kthread", 2, 100, 5, 0)
	writeStat(t, tree, 9, "old", 1, 500, 5, 10)
	dev, err := rootfs.Open(tree)
	if err != nil {
		t.Fatal(err)
	}
	s, now := New(dev), time.Second
	s.clock = func() time.Duration { return now }
	first := s.Take()
	if len(first) != 2 || first[0].CPU != nil || first[0].Name != "a) b (c" || first[0].Resident != 10*int64(os.Getpagesize()) || first[0].Threads != 3 {
		t.Fatalf("%+v", first)
	}
	now += 2 * time.Second
	writeStat(t, tree, 7, "a) b (c", 1, 150, 5, 10) // half a second in two
	writeStat(t, tree, 9, "new", 1, 10, 77, 10)     // the PID was used again
	second := s.Take()
	if len(second) != 2 || second[0].CPU == nil || *second[0].CPU != 250 || second[1].CPU != nil {
		t.Fatalf("%+v", second)
	}
}

// The process that answers on a pipeline's socket is marked, and the processes it has started.
func TestProcessesOfAPipelineAreMarked(t *testing.T) {
	tree, err := os.MkdirTemp("", "yt") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tree) })
	writeStat(t, tree, 7, "yoctuned", 1, 100, 5, 10)
	writeStat(t, tree, 8, "yoctuned", 7, 100, 5, 10)
	writeStat(t, tree, 9, "vision", 1, 100, 5, 10)
	socket := pipelines.Path(filepath.Join(tree, pipelines.Dir), "door")
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan bool, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked <- true
			_, _ = c.Write([]byte(`{"type":"pipeline","pipeline":"door","pid":7}`))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	dev, err := rootfs.Open(tree)
	if err != nil {
		t.Fatal(err)
	}
	s := New(dev)
	for range 3 {
		list := s.Take()
		if len(list) != 3 || list[0].Pipeline != "door" || list[1].Pipeline != "door" || list[2].Pipeline != "" {
			t.Errorf("%+v", list)
		}
	}
	if len(asked) != 1 {
		t.Errorf("the pipeline was asked %d times while no process came or went", len(asked))
	}
}

func TestMachineHasThisProcess(t *testing.T) {
	dev, err := rootfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range New(dev).Take() {
		if p.PID == os.Getpid() {
			if p.Resident < 1<<20 || p.Parent != os.Getppid() {
				t.Errorf("%+v", p)
			}
			return
		}
	}
	t.Error("this process is missing")
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (a) S 1 1 1 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 3 0 5 99999 10 184")
	f.Add("7 (a) b)")
	f.Fuzz(func(t *testing.T, text string) {
		if p, _, used, ok := parseStat(text); ok && (used < 0 || p.Resident < 0) {
			t.Errorf("%+v %d", p, used)
		}
	})
}
