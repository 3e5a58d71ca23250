package rootfs_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
	"golang.org/x/sys/unix"
)

func openNano(t *testing.T) (*rootfs.Root, string) {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dev, dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyListedPathsAreAllowed(t *testing.T) {
	dev, dir := openNano(t)
	write(t, dir+"/etc/shadow", "secret")
	for _, name := range []string{
		"/etc/shadow", "/proc/sys/../../etc/shadow", "/proc/sys/vm/../../../etc/shadow", "etc/shadow", "",
		"/", "/proc", "/proc/sysrq-trigger", "/proc/kmsg", "/proc/sys/vm/swappiness/", "/proc//sys/vm/swappiness",
		"/proc/sys/vm/./swappiness", "/proc/sys\x00/x", "/sysX/kernel", "/dev/mem", "/proc/1/environ",
	} {
		if c, err := dev.Read(name); !errors.Is(err, rootfs.ErrPath) {
			t.Errorf("Read(%q) = %q, %v; want ErrPath", name, c.Text, err)
		}
		if err := dev.Write(name, "1"); !errors.Is(err, rootfs.ErrPath) {
			t.Errorf("Write(%q) = %v; want ErrPath", name, err)
		}
		if err := dev.WriteState(name, nil); !errors.Is(err, rootfs.ErrPath) {
			t.Errorf("WriteState(%q) = %v; want ErrPath", name, err)
		}
	}
	for _, name := range []string{"/etc/nvpmodel.conf", "/proc/cmdline", "/usr/lib/yoctune/plan.json", "/run/yoctune/journal"} {
		if err := dev.Write(name, "1"); !errors.Is(err, rootfs.ErrPath) {
			t.Errorf("Write(%q) = %v; want ErrPath", name, err)
		}
	}
}

func TestLinksStayInsideTheRoot(t *testing.T) {
	dev, dir := openNano(t)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, "outside")
	write(t, dir+"/sys/kernel/inside", "inside")
	symlink(t, outside, dir+"/sys/kernel/absolute")
	symlink(t, strings.Repeat("../", 40)+strings.TrimPrefix(outside, "/"), dir+"/sys/kernel/climbing")
	symlink(t, "/sys/kernel/inside", dir+"/sys/kernel/rooted")
	symlink(t, "../../../../../../sys/kernel/inside", dir+"/sys/kernel/clamped")
	symlink(t, "loop", dir+"/sys/kernel/loop")
	for _, name := range []string{"absolute", "climbing"} {
		if c, err := dev.Read("/sys/kernel/" + name); err == nil {
			t.Errorf("%s read %q", name, c.Text)
		}
		if err := dev.Write("/sys/kernel/"+name, "x"); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	for _, name := range []string{"rooted", "clamped"} {
		if c, err := dev.Read("/sys/kernel/" + name); err != nil || c.Text != "inside" {
			t.Errorf("%s: %q, %v", name, c.Text, err)
		}
	}
	if _, err := dev.Read("/sys/kernel/loop"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("loop: %v", err)
	}
	if b, _ := os.ReadFile(outside); string(b) != "outside" {
		t.Errorf("the file outside is now %q", b)
	}
}

func TestStateStaysInsideTheRoot(t *testing.T) {
	dev, dir := openNano(t)
	outside := t.TempDir()
	symlink(t, outside, dir+"/run")
	// An absolute link starts at the root, which has no such directory.
	if err := dev.WriteState("/run/yoctune/journal", []byte("x")); !errors.Is(err, rootfs.ErrDangling) {
		t.Errorf("%v", err)
	}
	// What cannot be read is not absent.
	if _, err := dev.ReadState("/run/yoctune/journal"); !errors.Is(err, rootfs.ErrDangling) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if names, _ := os.ReadDir(outside); len(names) != 0 {
		t.Errorf("%v appeared outside the root", names)
	}
}

func TestAStateFolderThatIsALinkInsideTheRootIsFollowed(t *testing.T) {
	dev, dir := openNano(t)
	if err := os.MkdirAll(dir+"/data/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir + "/var/lib"); err != nil {
		t.Fatal(err)
	}
	symlink(t, "/data/lib", dir+"/var/lib")
	if err := dev.WriteState("/var/lib/yoctune/serial", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dir + "/data/lib/yoctune/serial"); err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dev, dir := openNano(t)
	if err := unix.Mkfifo(dir+"/sys/kernel/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	// A reader of a pipe would block for ever.
	if _, err := dev.Read("/sys/kernel/pipe"); !errors.Is(err, rootfs.ErrNotFile) {
		t.Errorf("pipe: %v", err)
	}
	if _, err := dev.Read("/sys/kernel"); !errors.Is(err, rootfs.ErrNotFile) {
		t.Errorf("folder: %v", err)
	}
	if err := dev.Write("/sys/kernel", "1"); err == nil {
		t.Error("a directory was written")
	}
}

// A foreign file in place of a state file must not block a command.
func TestOnlyRegularFilesAreState(t *testing.T) {
	dev, dir := openNano(t)
	if err := os.MkdirAll(dir+"/run/yoctune", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(dir+"/run/yoctune/journal", 0o644); err != nil {
		t.Fatal(err)
	}
	symlink(t, "/dev/zero", dir+"/run/yoctune/watch.json")
	symlink(t, "journal", dir+rootfs.LockFile)
	if _, err := dev.ReadState("/run/yoctune/journal"); !errors.Is(err, rootfs.ErrNotFile) {
		t.Errorf("pipe: %v", err)
	}
	if err := dev.AppendState("/run/yoctune/journal", []byte("x")); err == nil {
		t.Error("a pipe was appended to")
	}
	if _, err := dev.ReadState("/run/yoctune/watch.json"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("link: %v", err)
	}
	if h := dev.Holder(); h != nil {
		t.Errorf("a pipe holds the lock: %v", h)
	}
	if _, err := dev.Lock("test"); err == nil {
		t.Error("a link was locked")
	}
	if err := os.WriteFile(dir+"/run/yoctune/huge", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dir+"/run/yoctune/huge", 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.ReadState("/run/yoctune/huge"); !errors.Is(err, rootfs.ErrTooLarge) {
		t.Errorf("a terabyte: %v", err)
	}
}

func TestReadsAreLimited(t *testing.T) {
	dev, dir := openNano(t)
	for size, truncated := range map[int]bool{0: false, 4095: false, 4096: true, 9000: true} {
		write(t, dir+"/sys/kernel/long", strings.Repeat("x", size))
		c, err := dev.Read("/sys/kernel/long")
		if err != nil || c.Truncated != truncated || len(c.Text) > 4096 {
			t.Errorf("%d bytes: %d read, truncated %t, %v", size, len(c.Text), c.Truncated, err)
		}
		b, err := dev.ReadFile("/sys/kernel/long", 8192)
		if size <= 8192 && (err != nil || len(b) != size) || size > 8192 && !errors.Is(err, rootfs.ErrTooLarge) {
			t.Errorf("%d bytes: ReadFile %d, %v", size, len(b), err)
		}
	}
}

func TestWriteReplacesTheWholeValue(t *testing.T) {
	dev, dir := openNano(t)
	if err := dev.Write("/sys/kernel/mm/transparent_hugepage/enabled", "never"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(dir + "/sys/kernel/mm/transparent_hugepage/enabled"); string(b) != "never" {
		t.Errorf("the file has %q", b)
	}
	for _, empty := range []string{"", " ", "\n"} {
		if err := dev.Write("/proc/sys/vm/swappiness", empty); !errors.Is(err, rootfs.ErrEmpty) {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestDangerousPathsAreRefused(t *testing.T) {
	dev, dir := openNano(t)
	for name, value := range map[string]string{
		"/proc/sys/kernel/core_pattern":        "|/tmp/x",
		"/proc/sys/kernel/modprobe":            "/tmp/x",
		"/proc/sys/kernel/poweroff_cmd":        "/tmp/x",
		"/proc/sys/kernel/hotplug":             "/tmp/x",
		"/proc/sys/kernel/usermodehelper/bset": "4294967295	511",
		"/proc/sys/kernel/modules_disabled":    "1",
		"/proc/sys/kernel/kexec_load_disabled": "1",
		"/proc/sys/fs/binfmt_misc/register":    ":x:M::MZ::/tmp/x:",
		"/sys/kernel/uevent_helper":            "/tmp/x",
		"/sys/power/state":                     "mem",
		"/sys/fs/cgroup/release_agent":         "/tmp/x",
		"/sys/bus/pci/drivers/r8168/unbind":    "0008:01:00.0",
		"/sys/bus/pci/drivers/r8168/new_id":    "10ec 8168",
		"/sys/firmware/efi/vars/new_var":       "x",
	} {
		write(t, dir+name, "old")
		if err := dev.Write(name, value); !errors.Is(err, rootfs.ErrForbidden) {
			t.Errorf("%s: %v; want ErrForbidden", name, err)
		}
		if b, _ := os.ReadFile(dir + name); string(b) != "old" {
			t.Errorf("%s was written", name)
		}
	}
	if err := dev.Write("/proc/sys/kernel/core_pattern", "/data/core.%p"); err != nil {
		t.Errorf("a file name is a harmless core pattern: %v", err)
	}
}

func TestStateIsReplacedAtomically(t *testing.T) {
	dev, dir := openNano(t)
	const name = "/var/lib/yoctune/serial"
	if _, err := dev.ReadState(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if err := dev.RemoveState(name); err != nil {
		t.Errorf("removing an absent file: %v", err)
	}
	for _, text := range []string{"one", "two and more"} {
		if err := dev.WriteState(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := dev.ReadState(name); err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	if names, _ := os.ReadDir(dir + "/var/lib/yoctune"); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
	if err := dev.AppendState(name, []byte("!")); err != nil {
		t.Fatal(err)
	}
	if b, _ := dev.ReadState(name); string(b) != "two and more!" {
		t.Errorf("%q", b)
	}
}

// The unit has UMask=0077, but every user may read the status.
func TestWorldReadableFilesIgnoreTheUmask(t *testing.T) {
	dev, dir := openNano(t)
	defer unix.Umask(unix.Umask(0o077))
	if err := dev.AppendState("/run/yoctune/journal", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := dev.WriteState("/run/yoctune/watch.json", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"/run/yoctune": 0o755, "/run/yoctune/journal": 0o644, "/run/yoctune/watch.json": 0o644} {
		if st, err := os.Stat(dir + name); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

func TestLockErrorNamesTheHolder(t *testing.T) {
	dev, dir := openNano(t)
	unlock, err := dev.Lock("yoctuned apply")
	if err != nil {
		t.Fatal(err)
	}
	other, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Lock("yoctuned rollback")
	var held *rootfs.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() || held.Command != "yoctuned apply" {
		t.Errorf("%v", err)
	}
	if h := other.Holder(); h == nil || h.PID != os.Getpid() {
		t.Errorf("holder %+v", h)
	}
	// Other users must not be able to lock the file and so block yoctuned.
	if st, err := os.Stat(dir + rootfs.LockFile); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if h := rootfs.LockedBy(dir + rootfs.LockFile); h == nil || h.PID != os.Getpid() || h.Command == "" {
		t.Errorf("without permission to read the file: %+v", h)
	}
	unlock()
	if h := rootfs.LockedBy(dir + rootfs.LockFile); h != nil {
		t.Errorf("still held, without permission to read the file: %+v", h)
	}
	if h := other.Holder(); h != nil {
		t.Errorf("still held: %+v", h)
	}
	unlock, err = other.Lock("yoctuned rollback")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestMissingTreeIsAnError(t *testing.T) {
	if _, err := rootfs.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, err := rootfs.Open(file); err == nil {
		t.Error("a file was accepted as a device tree")
	}
}

func TestDeviceSelectors(t *testing.T) {
	dev, _ := openNano(t)
	for _, c := range []struct {
		sel  plan.Select
		want []string
	}{
		{plan.Select{Class: "block"}, []string{"mmcblk0", "nvme0n1"}},
		{plan.Select{Class: "block", Name: "nvme*"}, []string{"nvme0n1"}},
		{plan.Select{Class: "block", Driver: "mmcblk"}, []string{"mmcblk0"}},
		{plan.Select{Class: "block", Name: "[", Driver: "nvme"}, nil},
		{plan.Select{Class: "cpufreq"}, []string{"policy0", "policy4"}},
		{plan.Select{Class: "devfreq", OFNode: "gpu"}, []string{"17000000.gpu"}},
		{plan.Select{Class: "devfreq", OFNode: "vic"}, nil},
		{plan.Select{Class: "net", Driver: "r8168"}, []string{"eth0"}},
		{plan.Select{Class: "irq", Name: "nvme0q[1-2]"}, []string{"46", "47"}},
		{plan.Select{Class: "irq", Name: "46"}, nil}, // numbers change between boots
	} {
		nodes, err := rootfs.Nodes(dev, c.sel.Class)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range nodes {
			if rootfs.Matches(c.sel, rootfs.Describe(dev, n)) {
				got = append(got, n.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v selects %q, want %q", c.sel, got, c.want)
		}
	}
	if _, err := rootfs.Nodes(dev, "toaster"); !errors.Is(err, rootfs.ErrClass) {
		t.Errorf("%v", err)
	}
}

func TestInterruptsOfOldKernels(t *testing.T) {
	dev, dir := openNano(t)
	want, err := rootfs.Nodes(dev, "irq")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir + "/sys/kernel/irq"); err != nil {
		t.Fatal(err)
	}
	got, err := rootfs.Nodes(dev, "irq")
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d of %d interrupts, %v", len(got), len(want), err)
	}
	for i := range want {
		if got[i].Name != want[i].Name || !slices.Equal(got[i].Actions, want[i].Actions) {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	write(t, dir+"/proc/interrupts", "           CPU0       CPU1\n 27:   5   0   GICv3  92 Level     eth0, eth0-tx\nIPI0:  1  2  Rescheduling interrupts\nbroken\n 99:\n")
	got, err = rootfs.Nodes(dev, "irq")
	if err != nil || len(got) != 1 || !slices.Equal(got[0].Actions, []string{"eth0", "eth0-tx"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestIdentifyMachine(t *testing.T) {
	dev, dir := openNano(t)
	id := rootfs.Identify(dev)
	if id.Model != "NVIDIA Jetson Orin Nano 8GB" || id.L4T != "36.4.0" || id.BootID != devicetest.BootID ||
		!slices.Equal(id.Compatible, []string{"nvidia,p3768-0000+p3767-0003", "nvidia,p3767-0003", "nvidia,tegra234"}) {
		t.Errorf("%+v", id)
	}
	for text, want := range map[string]string{
		"# R35 (release), REVISION: 3.1, GCID: 32827747, BOARD: t186ref\n": "35.3.1",
		"# R36 (release), REVISION: evil/../x":                             "",
		"":                                                                 "",
	} {
		write(t, dir+"/etc/nv_tegra_release", text)
		if got := rootfs.Identify(dev).L4T; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestKernelArguments(t *testing.T) {
	args := rootfs.ParseArgs("root=/dev/x quiet  isolcpus=4-5 dyndbg=\"file a +p\" a.b=\n-- init arg=1\n")
	want := []plan.Arg{{Name: "root", Value: "/dev/x"}, {Name: "quiet", Flag: true}, {Name: "isolcpus", Value: "4-5"}, {Name: "dyndbg", Value: "file a +p"}, {Name: "a.b"}}
	if !slices.Equal(args, want) {
		t.Errorf("%+v\nwant %+v", args, want)
	}
}

// The value is written in one write(2): some nodes refuse a newline in a second one.
func TestOneValueIsOneSystemCall(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	if os.Getenv("YOCTUNE_TEST_WRITE") != "" {
		dev, err := rootfs.Open(os.Getenv("YOCTUNE_TEST_WRITE"))
		if err != nil {
			t.Fatal(err)
		}
		if err := dev.Write("/proc/sys/vm/swappiness", "123"); err != nil {
			t.Fatal(err)
		}
		return
	}
	_, dir := openNano(t)
	// One file for each thread, since lines of two threads could mix.
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-ff", "-o", trace, "-y", "-e", "trace=write", os.Args[0], "-test.run=^TestOneValueIsOneSystemCall$")
	cmd.Env = append(os.Environ(), "YOCTUNE_TEST_WRITE="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("strace cannot trace here: %v: %s", err, out)
	}
	traces, err := filepath.Glob(trace + ".*")
	if err != nil || len(traces) == 0 {
		t.Fatalf("no trace: %v", err)
	}
	var calls []string
	for _, name := range traces {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "swappiness") {
				calls = append(calls, line)
			}
		}
	}
	if len(calls) != 1 || !strings.Contains(calls[0], `"123", 3)`) {
		t.Errorf("write calls: %q", calls)
	}
}

func FuzzParseArgs(f *testing.F) {
	f.Add("root=/dev/x quiet \"a b\"=c -- x")
	f.Fuzz(func(t *testing.T, line string) {
		for _, a := range rootfs.ParseArgs(line) {
			if a.Flag && a.Value != "" {
				t.Fatalf("%+v", a)
			}
		}
	})
}
