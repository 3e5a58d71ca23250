package powerloss

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// The state of yoctuned on a real ext4, on a loop device whose file is recorded: what the kernel
// wrote, and where it waited until the disk had it.

// recorder is the file below a loop device.
type recorder struct {
	fs.Inode
	mu    sync.Mutex
	data  []byte
	log   []written
	nodes func() map[string]string // nil: writes are not recorded
}

// written is a write to the disk, or a flush, with the nodes of the device at that time.
type written struct {
	at    int64
	data  []byte
	nodes map[string]string // of a flush
}

var _ = interface {
	fs.NodeGetattrer
	fs.NodeSetattrer
	fs.NodeOpener
	fs.NodeReader
	fs.NodeWriter
	fs.NodeFsyncer
}((*recorder)(nil))

func (r *recorder) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(len(r.data))
	return 0
}

func (r *recorder) Setattr(ctx context.Context, f fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return r.Getattr(ctx, f, out)
}

func (*recorder) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (r *recorder) Read(_ context.Context, _ fs.FileHandle, into []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at >= int64(len(r.data)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(into[:copy(into, r.data[at:])]), 0
}

func (r *recorder) Write(_ context.Context, _ fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at+int64(len(data)) > int64(len(r.data)) {
		return 0, syscall.ENOSPC
	}
	copy(r.data[at:], data)
	if r.nodes != nil {
		r.log = append(r.log, written{at: at, data: append([]byte(nil), data...)})
	}
	return uint32(len(data)), 0
}

func (r *recorder) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes != nil {
		r.log = append(r.log, written{nodes: r.nodes()})
	}
	return 0
}

// folder is the folder of the recorder's file.
type folder struct {
	fs.Inode
	file *recorder
}

func (f *folder) OnAdd(ctx context.Context) {
	f.AddChild("disk", f.NewPersistentInode(ctx, f.file, fs.StableAttr{Mode: syscall.S_IFREG}), false)
}

// diskBytes is the size of the disk: small, because each state of it is mounted.
const diskBytes = 16 << 20

func command(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// mount mounts a file with ext4 until the test ends, or the returned function is called.
func mount(t *testing.T, file, at string) (unmount func()) {
	t.Helper()
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", "-t", "ext4", "-o", "loop", file, at)
	mounted := true
	unmount = func() {
		if mounted {
			mounted = false
			command(t, "umount", at)
		}
	}
	t.Cleanup(unmount)
	return unmount
}

// recordDisk runs a scenario on a disk. It returns the disk before the last command, what
// was written since, and the nodes after it.
func (b *bench) recordDisk(t *testing.T, s scenario) (before []byte, log []written) {
	t.Helper()
	disk := &recorder{data: make([]byte, diskBytes)}
	at := t.TempDir()
	server, err := fs.Mount(at, &folder{file: disk}, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "recorded"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Unmount() })
	file := filepath.Join(at, "disk")
	command(t, "mkfs.ext4", "-q", "-F", "-b", "1024", "-E", "lazy_itable_init=0,lazy_journal_init=0", file)
	root := filepath.Join(b.dir, "disk")
	unmount := mount(t, file, root)
	for name, text := range pristine {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range s.commands {
		if i == len(s.commands)-1 {
			syscall.Sync()
			disk.mu.Lock()
			before = append([]byte(nil), disk.data...)
			disk.nodes = func() map[string]string { return nodesOf(root) }
			disk.mu.Unlock()
		}
		if strings.Contains(c, "--try 20s") {
			b.background(t, root, c, "proc/sys/vm/swappiness", "10")
			continue
		}
		if out, code := b.run(t, root, c); code != 0 && !strings.Contains(c, "--try") {
			t.Fatalf("%s: exit %d\n%s", c, code, out)
		}
	}
	disk.mu.Lock()
	log = append(disk.log, written{nodes: nodesOf(root)})
	disk.nodes = nil
	disk.mu.Unlock()
	unmount()
	return before, log
}

// nodesOf reads the nodes of a tree.
func nodesOf(root string) map[string]string {
	nodes := map[string]string{}
	for name := range pristine {
		if b, err := os.ReadFile(filepath.Join(root, name)); err == nil {
			nodes[name] = string(b)
		}
	}
	return nodes
}

// filesOf returns the files of a state of the disk, as ext4 has them after it replayed its journal.
func filesOf(t *testing.T, disk []byte) map[string]string {
	t.Helper()
	image, at := filepath.Join(t.TempDir(), "disk"), filepath.Join(t.TempDir(), "mounted")
	if err := os.WriteFile(image, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	unmount := mount(t, image, at)
	found := read(t, at)
	unmount()
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEveryFlushOfARealDiskCanBeRolledBack cuts the power after each flush of the disk, and between
// two of them with some of the writes lost.
func TestEveryFlushOfARealDiskCanBeRolledBack(t *testing.T) {
	if os.Getenv("YOCTUNE_KILLS") == "" || os.Geteuid() != 0 {
		t.Skip("needs root and YOCTUNE_KILLS, which scripts/prove.sh kills sets: it mounts file systems")
	}
	b := newBench(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			before, log := b.recordDisk(t, s)
			seen, flushes, writes, cuts := map[string]bool{}, 0, 0, 0
			cut := func(disk []byte, nodes map[string]string, at string) {
				cuts++
				all := filesOf(t, disk)
				maps.Copy(all, nodes)
				if k := key(all); !seen[k] && !t.Failed() {
					seen[k] = true
					b.check(t, s.name+": "+at, all)
				}
			}
			disk, pending := append([]byte(nil), before...), []written(nil)
			for _, w := range log {
				if w.nodes == nil {
					pending = append(pending, w)
					writes++
					continue
				}
				// The disk may have none of the writes since the last flush, or any.
				cut(disk, w.nodes, fmt.Sprintf("nothing written since flush %d", flushes))
				for range min(3, len(pending)) {
					torn := append([]byte(nil), disk...)
					for _, p := range pending {
						if random.IntN(2) == 0 {
							copy(torn[p.at:], p.data)
						}
					}
					cut(torn, w.nodes, fmt.Sprintf("power lost before flush %d", flushes+1))
				}
				for _, p := range pending {
					copy(disk[p.at:], p.data)
				}
				pending = nil
				flushes++
				cut(disk, w.nodes, fmt.Sprintf("power lost after flush %d", flushes))
			}
			if flushes < 3 || len(seen) < 3 {
				t.Errorf("only %d flushes and %d states", flushes, len(seen))
			}
			t.Logf("saw: %d writes to the disk and %d flushes; the power lost %d times, %d different states of the files", writes, flushes, cuts, len(seen))
		})
	}
}
