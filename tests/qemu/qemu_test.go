// Package qemu boots a distribution's kernel in software emulation and runs
// yoctuned on it, with a real /proc and /sys, real refusals and real SIGKILL.
//
// YOCTUNE_QEMU names the folder into which fetch-kernel.sh puts a kernel;
// `scripts/setup.sh kernel` fills build/cache/qemu.
package qemu

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/schema/formats/boardfile"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed init.sh
var initScript []byte

func TestYoctunedOnARealKernel(t *testing.T) {
	cache := guestKernel(t)
	archive := newGuest(t, cache, initScript)
	for name, host := range buildBinary(t, t.TempDir()) {
		archive.addHostFile(name, host)
	}
	for _, tool := range []string{"ethtool", "irqbalance"} {
		host := findTool(t, tool)
		archive.addHostFile("bin/"+tool, host)
		for _, l := range libraries(host) {
			archive.addHostFile(strings.TrimPrefix(l, "/"), l)
		}
	}
	for name, data := range buildPlans(t) {
		archive.addFile(name, 0o644, data)
	}
	report(t, archive.boot(t, cache, "yoctune_test=4-5"), 80)
}

// TestYoctunedOnARealARM64Kernel runs the same checks on arm64, the architecture of the devices,
// with Debian's kernel. It takes minutes; `make prove` runs it.
func TestYoctunedOnARealARM64Kernel(t *testing.T) {
	cache := os.Getenv("YOCTUNE_QEMU_ARM64")
	if cache == "" {
		t.Skip("YOCTUNE_QEMU_ARM64 is not set; `scripts/prove.sh arm64` fetches a kernel and sets it")
	}
	archive := newGuest(t, cache, initScript)
	exe := filepath.Join(t.TempDir(), "yoctuned")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, "github.com/yoctune/yoctune/cmd/yoctuned")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0") // yoctuned without the engine needs no cgo
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive.addHostFile("bin/yoctuned", exe)
	for name, data := range buildPlans(t) {
		archive.addFile(name, 0o644, data)
	}
	report(t, archive.boot(t, cache, "yoctune_test=4-5"), 65)
}

// isARM64 reports whether the kernel in cache is for arm64.
func isARM64(cache string) bool {
	b, err := os.ReadFile(filepath.Join(cache, "architecture"))
	return err == nil && strings.TrimSpace(string(b)) == "arm64"
}

// guestKernel returns the folder of the kernel to boot, or skips the test.
func guestKernel(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("YOCTUNE_QEMU")
	if cache == "" {
		t.Skip("YOCTUNE_QEMU is not set; scripts/setup.sh kernel puts a kernel into build/cache/qemu")
	}
	return cache
}

// newGuest returns an initramfs with a shell, the kernel's modules, and init.
func newGuest(t *testing.T, cache string, init []byte) *cpio {
	t.Helper()
	release, err := os.ReadFile(filepath.Join(cache, "ready"))
	if err != nil {
		t.Fatal(err)
	}
	archive := newCPIO()
	archive.addFile("init", 0o755, init)
	if isARM64(cache) {
		archive.addHostFile("bin/busybox", filepath.Join(cache, "busybox"))
	} else {
		archive.addHostFile("bin/busybox", findTool(t, "busybox"))
	}
	for _, applet := range []string{"sh", "mount", "mkdir", "modprobe", "usleep", "cat", "grep", "cmp", "diff", "tr", "su", "tail", "head", "wc", "uname", "poweroff", "kill", "readlink", "sed", "ip", "test", "umount"} {
		archive.addSymlink("bin/"+applet, "busybox")
	}
	archive.addTree("lib/modules/"+strings.TrimSpace(string(release)), filepath.Join(cache, "lib/modules"))
	return archive
}

// boot runs the guest until it powers off and returns what it printed.
func (c *cpio) boot(t *testing.T, cache, arguments string) string {
	t.Helper()
	// no_timer_check: on a busy host the emulated timer fails the kernel's own test of
	// it, which is a panic.
	qemu, machine, console := "qemu-system-x86_64", "q35", "ttyS0 mitigations=off no_timer_check"
	if isARM64(cache) {
		qemu, machine, console = "qemu-system-aarch64", "virt", "ttyAMA0"
	}
	// Not by default: a machine may have a /dev/kvm that runs no kernel.
	accelerator := "tcg,thread=multi"
	if os.Getenv("YOCTUNE_QEMU_KVM") != "" {
		accelerator = "kvm"
	}
	qemu = findTool(t, qemu)
	dir := t.TempDir()
	initrd := filepath.Join(dir, "initrd")
	if err := c.write(initrd); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(dir, "disk.img")
	if err := os.WriteFile(disk, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 16<<20); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(c.limit, 20*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, "-M", machine, "-accel", accelerator, "-cpu", "max", "-smp", "2", "-m", strconv.Itoa(cmp.Or(c.memory, 768)),
		"-nographic", "-no-reboot", "-net", "none",
		"-kernel", filepath.Join(cache, "vmlinuz"), "-initrd", initrd,
		"-drive", "file="+disk+",format=raw,if=virtio",
		"-append", "console="+console+" quiet panic=-1 "+arguments)
	log, err := os.Create(filepath.Join(dir, "console")) // can be read while the guest runs
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	start := time.Now()
	err = cmd.Run()
	t.Logf("guest ran for %.1f s, and took %.1f s of processor time", time.Since(start).Seconds(), cmd.ProcessState.UserTime().Seconds())
	out, readErr := os.ReadFile(log.Name())
	if err != nil || readErr != nil {
		t.Fatalf("qemu: %v\n%s", errors.Join(err, readErr), out)
	}
	return string(out)
}

// report turns the guest's CHECK lines into subtests and fails when there are fewer
// than least.
func report(t *testing.T, console string, least int) {
	done := false
	checks := 0
	for line := range strings.Lines(console) {
		line = strings.TrimSpace(line)
		switch {
		case line == "DONE":
			done = true
		case slices.Contains([]string{"KERNEL", "KILLED", "REPAIRED", "IDLE", "STATUS", "EXPOSURE", "STOP", "LOG"}, strings.SplitN(line, " ", 2)[0]):
			t.Log(line)
		case strings.HasPrefix(line, "CHECK "):
			f := strings.SplitN(line, " ", 4)
			checks++
			t.Run(f[1], func(t *testing.T) {
				if len(f) != 3 || f[2] != "ok" {
					t.Error(line)
				}
			})
		}
	}
	if !done || checks < least {
		t.Errorf("the guest did not finish (%d checks):\n%s", checks, console)
	}
}

func findTool(t *testing.T, tool string) string {
	t.Helper()
	p, err := exec.LookPath(tool)
	if err != nil {
		t.Fatalf("%v; `make setup` installs it", err)
	}
	return p
}

// buildBinary builds yoctuned as released and returns it with its shared libraries, by
// their names in the guest.
func buildBinary(t *testing.T, dir string) map[string]string {
	t.Helper()
	exe := filepath.Join(dir, "yoctuned")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, "github.com/yoctune/yoctune/cmd/yoctuned")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := map[string]string{"bin/yoctuned": exe}
	for _, l := range libraries(exe) {
		files[strings.TrimPrefix(l, "/")] = l
	}
	return files
}

// libraries lists the shared libraries of a program; none for a static one, on which ldd fails.
func libraries(exe string) []string {
	out, _ := exec.Command("ldd", exe).Output()
	return slices.DeleteFunc(strings.Fields(string(out)), func(word string) bool { return !strings.HasPrefix(word, "/") })
}

// buildPlans returns the files of the guest: its plans, and "expect", the paths and values
// that init.sh compares with.
func buildPlans(t *testing.T) map[string][]byte {
	t.Helper()
	knob := func(id, path, typ, want string) plan.Setting {
		return plan.Setting{
			ID: id, Domain: plan.DomainKnob, Type: typ, Want: want, Select: plan.Select{Path: path},
			Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
		}
	}
	sysctl := func(name, want string) plan.Setting {
		return knob("sysctl."+name, "/proc/sys/"+strings.ReplaceAll(name, ".", "/"), plan.TypeInt, want)
	}
	disk := func(attr, typ, want string) plan.Setting {
		s := knob("storage.vd*."+attr, "", typ, want)
		s.Select = plan.Select{Class: "block", Name: "vd*", Driver: "virtio_blk", Attr: "queue/" + attr}
		return s
	}
	text := func(name, want string) plan.Setting {
		s := sysctl(name, want)
		s.Type = plan.TypeString
		return s
	}
	good := []plan.Setting{
		disk("scheduler", plan.TypeChoice, "kyber"),
		disk("nr_requests", plan.TypeInt, "64"),
		disk("read_ahead_kb", plan.TypeInt, "512"),
		disk("rq_affinity", plan.TypeInt, "2"),
		sysctl("vm.swappiness", "10"),
		// Slow settings, so that a kill can interrupt apply.
		knob("memory.hugepages", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", plan.TypeInt, "24"),
		knob("memory.thp", "/sys/kernel/mm/transparent_hugepage/enabled", plan.TypeChoice, "never"),
		knob("memory.thpDefrag", "/sys/kernel/mm/transparent_hugepage/defrag", plan.TypeChoice, "defer+madvise"),
		knob("memory.ksm", "/sys/kernel/mm/ksm/run", plan.TypeBool, "1"),
		sysctl("vm.vfs_cache_pressure", "50"),
		sysctl("vm.dirty_bytes", "67108864"),
		sysctl("vm.dirty_background_bytes", "16777216"),
		sysctl("vm.dirty_expire_centisecs", "1500"),
		sysctl("vm.min_free_kbytes", "16384"),
		sysctl("net.core.rmem_max", "8388608"),
		sysctl("net.core.somaxconn", "1024"),
		sysctl("kernel.sched_rt_runtime_us", "900000"),
		sysctl("fs.inotify.max_user_watches", "65536"),
	}
	arg := knob("kernel.args.yoctune_test", "", plan.TypeCPUList, "4,5")
	arg.Domain, arg.Select, arg.Needs = plan.DomainKernel, plan.Select{Class: "cmdline", Name: "yoctune_test"}, plan.NeedsReboot
	hard := []plan.Setting{
		disk("scheduler", plan.TypeChoice, "cfq"),
		disk("read_ahead_kb", plan.TypeInt, "130"),
		sysctl("vm.swappiness", "9999"),
		text("net.ipv4.tcp_congestion_control", "nosuch"),
		sysctl("kernel.no_such_thing", "1"),
		sysctl("net.netfilter.nf_conntrack_max", "65536"),
		knob("workqueue", "/sys/module/workqueue/parameters/power_efficient", plan.TypeBool, "Y"),
		sysctl("vm.drop_caches", "3"),
		sysctl("vm.vfs_cache_pressure", "51"),
	}
	files := map[string][]byte{}
	put := func(name, board string, settings []plan.Setting) {
		p := &plan.Plan{Layer: "qemu", Target: name, Board: board, Settings: settings}
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		b, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	// Nodes that appear later.
	late := func(s plan.Setting) plan.Setting { s.Optional = true; return s }
	left := func(attr, want string) plan.Setting {
		s := knob("network.left."+attr, "", plan.TypeInt, want)
		s.Select = plan.Select{Class: "net", Name: "left", Attr: attr}
		return late(s)
	}
	put("plan.json", "generic", slices.Concat(good, []plan.Setting{
		arg, late(sysctl("net.netfilter.nf_conntrack_max", "65536")), left("tx_queue_len", "500"), left("ethtool/channels/rx", "2"),
	}))
	interrupt := knob("irq.acpi", "", plan.TypeCPUList, "1")
	interrupt.Select = plan.Select{Class: "irq", Name: "acpi", Attr: "smp_affinity_list"}
	put("irq.json", "generic", []plan.Setting{interrupt})
	put("hard.json", "generic", hard)
	core := knob("power.modes.ONE.cpu.online.cpu1", "", plan.TypeInt, "0")
	core.Domain, core.Select = plan.DomainPower, plan.Select{Class: "cpu", Name: "cpu1", Attr: "online"}
	held := &plan.Plan{Layer: "qemu", Target: "held", Board: "own", Identities: []string{boardfile.AnyDevice},
		Power: &plan.Power{Table: plan.PowerHeld, Default: "ONE", Modes: []plan.PowerMode{{Name: "ONE", Params: []plan.PowerParam{}, Settings: []plan.Setting{core}}}}}
	if err := held.Seal(); err != nil {
		t.Fatal(err)
	}
	heldText, err := held.Encode()
	if err != nil {
		t.Fatal(err)
	}
	files["held.json"] = heldText
	put("orin.json", "orin-nano-8gb", good)
	files["edited.json"] = bytes.Replace(files["plan.json"], []byte(`"want": "10"`), []byte(`"want": "11"`), 1)
	origins, err := plan.Origins{"sysctl.vm.swappiness": {File: "config.cue", Line: 12, Column: 3}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	files["plan.origins.json"] = origins
	var expect strings.Builder
	for _, s := range good {
		path := s.Select.Path
		if path == "" {
			path = "/sys/block/vda/" + s.Select.Attr
		}
		fmt.Fprintf(&expect, "%s %s\n", path, s.Want)
	}
	files["expect"] = []byte(expect.String())
	return files
}

// cpio collects an initramfs in the "newc" format
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type cpio struct {
	buf    bytes.Buffer
	dirs   map[string]bool
	next   int
	err    error
	limit  time.Duration // of the guest; 0: 20 minutes
	memory int           // of the guest in MiB; 0: 768. Its files take half of it at most
}

func newCPIO() *cpio { return &cpio{dirs: map[string]bool{".": true}} }

func (c *cpio) addEntry(name string, mode uint32, data []byte) {
	c.next++
	// magic, inode, mode, uid, gid, links, mtime, size, four device numbers,
	// length of the name, checksum
	fmt.Fprintf(&c.buf, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", c.next, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	c.buf.WriteString(name + "\x00")
	c.pad()
	c.buf.Write(data)
	c.pad()
}

func (c *cpio) pad() {
	for c.buf.Len()%4 != 0 {
		c.buf.WriteByte(0)
	}
}

func (c *cpio) addParents(name string) {
	dir := filepath.Dir(name)
	if c.dirs[dir] {
		return
	}
	c.addParents(dir)
	c.dirs[dir] = true
	c.addEntry(dir, 0o040755, nil)
}

func (c *cpio) addFile(name string, perm uint32, data []byte) {
	c.addParents(name)
	c.addEntry(name, 0o100000|perm, data)
}

func (c *cpio) addSymlink(name, target string) {
	c.addParents(name)
	c.addEntry(name, 0o120777, []byte(target))
}

func (c *cpio) addHostFile(name, path string) {
	data, err := os.ReadFile(path)
	if c.err == nil {
		c.err = err
	}
	c.addFile(name, 0o755, data)
}

// addTree adds the files below dir/base as name/..., where base is the last part of name.
func (c *cpio) addTree(name, dir string) {
	base := filepath.Join(dir, filepath.Base(name))
	err := filepath.WalkDir(base, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(base, p)
		if err != nil {
			return err
		}
		c.addHostFile(filepath.Join(name, rel), p)
		return nil
	})
	if c.err == nil {
		c.err = err
	}
}

func (c *cpio) write(name string) error {
	if c.err != nil {
		return c.err
	}
	c.addParents("dev/x")
	c.addParents("proc/x")
	c.addParents("sys/x")
	c.addEntry("TRAILER!!!", 0, nil)
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, &c.buf); err != nil {
		return err
	}
	return f.Close()
}
