// Package image makes images from the layers of the examples and boots them: the real bitbake
// builds the layer's own recipes, their packages go into a Debian root for arm64, a kernel is
// built with the layer's fragment, and qemu boots both on a machine whose device tree names the
// board. The guest's own tools then compare what was declared with what is in force.
//
// It needs root, Debian's debootstrap, qemu-system-arm, device-tree-compiler and pseudo, and
// YOCTUNE_CHECKOUTS, a folder with RELEASE/{bitbake,openembedded-core,meta-tegra};
// `scripts/prove.sh image` sets the other variables.
package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/upstream"
	"github.com/yoctune/yoctune/schema/plan"
)

// example is an example of the repository and the machine it runs on.
type example struct {
	name     string
	plain    bool     // without yoctuned: runtime.form is "none"
	kernel   string   // version of the guest's kernel, one that Debian has
	base     []string // configuration that the fragment is added to
	devices  []string // of qemu
	standIns map[string]string
}

func examples() []example {
	disks := []string{"-device", "sdhci-pci", "-drive", "file=mmc.img,format=raw,if=none,id=m", "-device", "sd-card,drive=m"}
	return []example{
		{name: "video-analytics", kernel: "6.1", base: []string{"virt.cfg"}, devices: disks},
		{name: "plain-files", plain: true, kernel: "6.1", base: []string{"virt.cfg"}, devices: disks},
		{name: "low-power-edge", kernel: "6.1", base: []string{"virt.cfg"}},
		{
			name: "realtime-control", kernel: "6.12", base: []string{"virt.cfg", "rt.cfg"},
			devices: []string{"-device", "e1000", "-object", "can-bus,id=can", "-device", "kvaser_pci,canbus=can"},
			// On a board systemd-networkd brings the interfaces up, which requests their interrupts.
			standIns: map[string]string{"usr/lib/systemd/system/interfaces.service": "[Unit]\nAfter=yoctuned.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/sbin/ip link set eth0 up\nExecStart=/sbin/ip link set can0 up type can bitrate 500000\n[Install]\nWantedBy=multi-user.target\n"},
		},
	}
}

// pipelineFrames is the number of frames that a pipeline has to read in emulation.
const pipelineFrames = 3

func TestImagesOfTheExamples(t *testing.T) {
	checkouts, cache := os.Getenv("YOCTUNE_CHECKOUTS"), os.Getenv("YOCTUNE_IMAGE")
	if checkouts == "" || cache == "" {
		t.Skip("YOCTUNE_CHECKOUTS and YOCTUNE_IMAGE are not set; `scripts/prove.sh image` makes images and boots them")
	}
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			r := &rig{T: t, example: e, cache: cache, root: repository(t), dir: filepath.Join(cache, "work", e.name)}
			if err := os.RemoveAll(r.dir); err != nil {
				t.Fatal(err)
			}
			r.makeDir(r.dir)
			r.prove(checkouts)
		})
	}
}

// rig makes and boots the image of one example.
type rig struct {
	*testing.T
	example
	cache, root, dir string // root: of the repository
	plan             *plan.Plan
	held             map[string]bool // settings that a plain file of the layer holds, by its manifest
	sources          string          // checkouts of the release
	arguments        string          // kernel arguments of the layer
}

func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (r *rig) path(name ...string) string { return filepath.Join(append([]string{r.dir}, name...)...) }

func (r *rig) makeDir(dir string) {
	r.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) write(name, text string, mode fs.FileMode) {
	r.Helper()
	r.makeDir(filepath.Dir(name))
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) read(name string) string {
	r.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		r.Fatal(err)
	}
	return string(b)
}

// run runs a program and returns its output.
func (r *rig) run(dir string, argv ...string) string {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		r.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, out.String(), errs.String())
	}
	return out.String()
}

func (r *rig) yoctune(args ...string) string {
	r.Helper()
	return r.run(r.root, append([]string{filepath.Join(r.root, "build/bin/yoctune")}, args...)...)
}

// step logs the time that a step took.
func (r *rig) step(name string, do func()) {
	r.Helper()
	began := time.Now()
	do()
	r.Logf("RECORD %s: %.0f s", name, time.Since(began).Seconds())
}

func (r *rig) prove(checkouts string) {
	unsupported := readUnsupported(r.T, r.name+".unsupported")
	var packages, newer []string
	r.step("layer built, checked and packaged by the real bitbake", func() {
		r.build("layer", 1)
		r.sources = filepath.Join(checkouts, r.plan.Release)
		r.checkLayer("layer")
		packages = r.packages("layer")
	})
	runs := []string{"boot1-settled", "boot1-killed", "boot2-settled", "boot2-upgraded"}
	if r.plain {
		runs = nil
	} else {
		r.step("the same layer with a new serial, packaged", func() {
			r.build("layer-2", 2)
			newer = r.changed(packages, r.packages("layer-2"))
		})
	}
	r.step("kernel with the layer's fragment", r.kernelConfig)

	expect := r.expectations(unsupported)
	r.Run("declared", func(t *testing.T) {
		r := r.at(t)
		r.image("image", packages, newer, expect)
		console := r.boot("image")
		if !r.plain {
			console += r.boot("image")
		}
		r.judge(console, unsupported, runs)
	})
	// The judges find what is wrong: the same image without what the layer's files do.
	r.Run("broken", func(t *testing.T) {
		r := r.at(t)
		r.image("broken", packages, nil, expect)
		r.breakImage("broken")
		r.arguments = ""
		r.expectFaults(r.boot("broken"), unsupported)
	})
}

// at returns the rig for a subtest.
func (r *rig) at(t *testing.T) *rig {
	other := *r
	other.T = t
	return &other
}

// build writes a layer of the example with a serial.
func (r *rig) build(name string, serial int) {
	r.Helper()
	project := r.path(name + ".project")
	if r.plain {
		r.write(filepath.Join(project, "config.cue"), r.read("none.cue"), 0o644)
	} else {
		r.run(r.root, "cp", "-r", filepath.Join(r.root, "examples", r.name), project)
	}
	config := filepath.Join(project, "config.cue")
	text := strings.Replace(r.read(config), "serial:      1", fmt.Sprintf("serial:      %d", serial), 1)
	r.write(config, text, 0o644)
	r.yoctune("build", project, "-o", r.path(name), "--runtime", filepath.Join(r.root, "build/lib/yoctune"))
	found, err := filepath.Glob(r.path(name, "recipes-yoctune/yoctune-*-config/files/*/plan/plan.json"))
	if err != nil || len(found) != 1 {
		r.Fatalf("plans in %s: %v %v", name, found, err)
	}
	p := &plan.Plan{}
	if err := json.Unmarshal([]byte(r.read(found[0])), p); err != nil {
		r.Fatal(err)
	}
	r.plan, r.held = p, map[string]bool{}
	m, err := manifest.Decode([]byte(r.read(r.path(name, manifest.Name))))
	if err != nil {
		r.Fatal(err)
	}
	for file, f := range m.Files {
		for _, means := range f.Means {
			if means.Kind == emitters.Setting && filepath.Base(filepath.Dir(file)) != "plan" {
				r.held[means.Name] = true
			}
		}
	}
}

// checkLayer checks a layer with the release's bitbake. Its work folder, with stand-ins for the
// recipes that the layer depends on, then builds packages.
func (r *rig) checkLayer(layer string) {
	r.Helper()
	r.makeDir(r.path("check"))
	out := r.yoctune("check-layer", r.path(layer), "--release", r.plan.Release, "--machine", r.plan.Machine, "--workdir", r.path("check"),
		"--bitbake", filepath.Join(r.sources, "bitbake"), "--oe-core", filepath.Join(r.sources, "openembedded-core"), "--meta-tegra", filepath.Join(r.sources, "meta-tegra"))
	r.Logf("RECORD check-layer: %s", regexp.MustCompile(`\d+ passed, .* in .* s`).FindString(out))
	r.write(r.path("check/build/quick/conf/auto.conf"), autoConf, 0o644)
	r.fillDownloads(r.path("check/downloads"))
}

// autoConf makes Debian packages, with the tools of this host.
const autoConf = `PACKAGE_CLASSES = "package_deb"
ASSUME_PROVIDED += "dpkg-native unzip-native xz-native zstd-native"
HOSTTOOLS += "dpkg-deb unzip xz zstd unxz"
`

// packages returns the packages of the layer's own recipes that need no compiler.
func (r *rig) packages(layer string) []string {
	r.Helper()
	work := r.path("check")
	build := filepath.Join(work, "build/quick")
	copies, err := filepath.Glob(filepath.Join(work, "layer/*"))
	if err != nil || len(copies) != 1 {
		r.Fatalf("check-layer's copy of the layer: %v %v", copies, err)
	}
	r.run(r.dir, "cp", "-r", r.path(layer)+"/.", copies[0])
	recipes, err := filepath.Glob(r.path(layer, "recipes-yoctune/*/*.bb"))
	if err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, file := range recipes {
		pn, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".bb"), "_")
		// A package group has no files, and the CUDA library needs nvcc.
		if strings.HasPrefix(pn, "packagegroup-") || pn == "yoctune-cuda" {
			continue
		}
		names = append(names, pn)
	}
	r.run(r.dir, "chown", "-R", "nobody", work)
	r.Logf("RECORD packages of %s: %s", layer, strings.Join(names, " "))
	// pseudo's record of files is per recipe. Where a task runs again, pseudo aborts it when a new
	// file has the inode of a removed one.
	r.bitbake(build, append([]string{"-c", "cleansstate"}, names...)...)
	r.bitbake(build, append([]string{"-c", "package_write_deb"}, names...)...)
	for line := range strings.Lines(r.bitbake(build, "-e", names[0])) {
		if value, ok := strings.CutPrefix(line, `KERNEL_ARGS="`); ok {
			r.arguments = strings.Trim(value, "\" \n")
		}
	}
	found, err := filepath.Glob(filepath.Join(build, "tmp*/deploy/deb/*/*.deb"))
	if err != nil || len(found) == 0 {
		r.Fatalf("no packages: %v", err)
	}
	var packages []string
	r.makeDir(r.path(layer + ".debs"))
	for _, name := range found {
		if regexp.MustCompile(`-(dev|dbg|src|staticdev|bench|dashboards)_`).MatchString(name) {
			continue
		}
		r.run(r.dir, "cp", name, r.path(layer+".debs"))
		packages = append(packages, r.path(layer+".debs", filepath.Base(name)))
	}
	return packages
}

// changed returns the packages whose content differs from the package of the same name before.
func (r *rig) changed(before, after []string) []string {
	r.Helper()
	return slices.DeleteFunc(after, func(name string) bool {
		return slices.ContainsFunc(before, func(old string) bool { return filepath.Base(old) == filepath.Base(name) && r.read(old) == r.read(name) })
	})
}

// fillDownloads puts the files that recipes fetch into DL_DIR: the set-up has fetched them.
func (r *rig) fillDownloads(dir string) {
	r.Helper()
	for _, f := range upstream.Files() {
		from := filepath.Join(r.root, "build/models/upstream", filepath.Base(f.URI))
		if _, err := os.Stat(from); err != nil {
			continue
		}
		recipes, err := filepath.Glob(r.path("layer", "recipes-yoctune/*/*.bb"))
		if err != nil {
			r.Fatal(err)
		}
		name := filepath.Base(f.URI)
		for _, recipe := range recipes {
			if m := regexp.MustCompile(regexp.QuoteMeta(f.URI) + `;downloadfilename=([^;" ]+)`).FindStringSubmatch(r.read(recipe)); m != nil {
				name = m[1]
			}
		}
		r.makeDir(dir)
		r.run(r.root, "cp", from, filepath.Join(dir, name))
		r.write(filepath.Join(dir, name+".done"), "", 0o644)
	}
}

// bitbake runs the release's bitbake as an unprivileged account, which it insists on.
func (r *rig) bitbake(build string, args ...string) string {
	r.Helper()
	env := []string{
		"PATH=" + filepath.Join(r.sources, "bitbake/bin") + ":" + filepath.Join(r.sources, "openembedded-core/scripts") + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"HOME=" + build, "USER=nobody", "LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8", "BUILDDIR=" + build, "BBPATH=" + build, "PYTHONDONTWRITEBYTECODE=1",
	}
	return r.run(build, append(append([]string{"runuser", "-u", "nobody", "--", "env", "-i"}, env...), append([]string{"bitbake"}, args...)...)...)
}

// kernelConfig builds the kernel and compares its configuration with the prediction.
func (r *rig) kernelConfig() {
	r.Helper()
	var base bytes.Buffer
	for _, name := range r.base {
		base.WriteString(r.read(name))
	}
	r.write(r.path("base.cfg"), base.String(), 0o644)
	fragments, err := filepath.Glob(r.path("layer", "recipes-kernel/linux/files/*/*.cfg"))
	if err != nil || len(fragments) != 1 {
		r.Fatalf("fragments: %v %v", fragments, err)
	}
	r.run(r.root, filepath.Join(r.root, "tests/image/fetch.sh"), r.cache, r.kernel)
	r.run(r.root, filepath.Join(r.root, "tests/image/kernel.sh"), r.cache, r.kernel, r.path("kernel"), r.path("base.cfg"), fragments[0])
	predicted := r.yoctune("kernel", "predict", "--kernel", r.kernel, "--base", r.path("kernel", "base.config"), "--format", "json", fragments[0])
	got, faults := comparePrediction(predicted, r.read(r.path("kernel", "base.config")), r.read(r.path("kernel", "config")))
	r.Logf("RECORD kernel %s: %s", strings.TrimSpace(r.read(r.path("kernel", "release"))), got)
	for _, f := range faults {
		r.Error(f)
	}
}

// image makes the root file system and the disks of a guest.
func (r *rig) image(name string, packages, newer []string, expect []expectation) {
	r.Helper()
	root := r.path(name + ".root")
	// Scripts of packages run openembedded-core's own systemctl, or since 5.3 systemd's, which
	// openembedded-core builds for the build machine.
	systemctl := filepath.Join(r.sources, "openembedded-core/meta/recipes-core/systemd/systemd-systemctl")
	if !exists(systemctl) {
		systemctl = "/usr/bin"
	}
	r.run(r.root, append([]string{filepath.Join(r.root, "tests/image/root.sh"), root, filepath.Join(r.cache, "debs"), systemctl, r.path("kernel")}, packages...)...)
	in := func(file string) string { return filepath.Join(root, file) }
	script, err := os.ReadFile("guest.sh")
	if err != nil {
		r.Fatal(err)
	}
	var lines strings.Builder
	for _, e := range expect {
		fmt.Fprintf(&lines, "%s\t%s\t%s\t%s\t%s\n", e.when, e.kind, e.name, e.where, e.want)
	}
	r.write(in("check/expect"), lines.String(), 0o644)
	r.write(in("check/boot"), "1\n", 0o644)
	r.write(in("check/failing"), strings.Join(failing(r.T, r.name+".unsupported"), "\n"), 0o644)
	r.write(in("check/frames"), strconv.Itoa(pipelineFrames)+"\n", 0o644)
	r.write(in("check/guest.sh"), string(script), 0o755)
	const tty = "[Service]\nType=oneshot\nStandardOutput=tty\nStandardError=tty\nTTYPath=/dev/console\nTimeoutStartSec=infinity\n"
	r.write(in("usr/lib/systemd/system/image-early.service"), "[Unit]\nAfter=systemd-sysctl.service systemd-modules-load.service systemd-udev-trigger.service\nBefore=yoctuned.service\n"+tty+"ExecStart=/check/guest.sh early\n", 0o644)
	r.write(in("usr/lib/systemd/system/image-late.service"), "[Unit]\nAfter=multi-user.target\n"+tty+"ExecStart=/check/guest.sh late\n", 0o644)
	for file, text := range r.standIns {
		r.write(in(file), text, 0o644)
	}
	enable := func(unit, target string) {
		dir := in("etc/systemd/system/" + target + ".wants")
		r.makeDir(dir)
		if err := os.Symlink("/usr/lib/systemd/system/"+unit, filepath.Join(dir, unit)); err != nil && !errors.Is(err, fs.ErrExist) {
			r.Fatal(err)
		}
	}
	enable("image-early.service", "multi-user.target")
	enable("image-late.service", "graphical.target")
	for file := range r.standIns {
		enable(filepath.Base(file), "multi-user.target")
	}
	r.addPrograms(root)
	if len(r.plan.Pipelines) > 0 {
		r.addPipelines(root)
	}
	for _, p := range newer {
		r.makeDir(in("check/upgrade"))
		r.run(r.root, "cp", p, in("check/upgrade/"))
	}
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

// addPrograms makes the programs and users of the layer's services, which are the product's own
// and not part of the layer.
func (r *rig) addPrograms(root string) {
	r.Helper()
	units, err := filepath.Glob(r.path("layer", "recipes-yoctune/yoctune-*-config/files/*/*.service"))
	if err != nil {
		r.Fatal(err)
	}
	for _, file := range units {
		text := r.read(file)
		if m := regexp.MustCompile(`(?m)^ExecStart=(/\S+)`).FindStringSubmatch(text); m != nil && !exists(filepath.Join(root, m[1])) {
			r.write(filepath.Join(root, m[1]), "#!/bin/sh\nexec sleep infinity\n", 0o755)
			r.Logf("RECORD stand-in: %s of %s only sleeps", m[1], filepath.Base(file))
		}
		if m := regexp.MustCompile(`(?m)^User=(\S+)`).FindStringSubmatch(text); m != nil && !strings.Contains("\n"+r.read(filepath.Join(root, "etc/passwd")), "\n"+m[1]+":") {
			r.run(root, "sh", "-c", fmt.Sprintf("id=$((800 + $(wc -l <etc/passwd))); echo %[1]s:x:$id:$id::/:/usr/sbin/nologin >>etc/passwd; echo %[1]s:x:$id: >>etc/group", m[1]))
			r.Logf("RECORD stand-in: user %s of %s", m[1], filepath.Base(file))
		}
	}
}

// addPipelines puts the models and media that the layer does not carry beside the plan.
func (r *rig) addPipelines(root string) {
	r.Helper()
	var names []string
	for name, p := range r.plan.Pipelines {
		names = append(names, name)
		paths := []string{p.Source.Path}
		for _, s := range p.Stages {
			if s.Model != nil {
				paths = append(paths, s.Model.Path)
			}
			if s.Post != nil {
				paths = append(paths, s.Post.Labels)
			}
		}
		for _, path := range paths {
			at := filepath.Join(root, "usr/lib/yoctune", path)
			if path == "" || filepath.IsAbs(path) && exists(filepath.Join(root, path)) || exists(at) {
				continue
			}
			from := filepath.Join(r.root, "examples", r.name, path)
			if !exists(from) {
				from = filepath.Join(r.root, "build/models", filepath.Base(path))
			}
			r.makeDir(filepath.Dir(at))
			r.run(r.root, "cp", from, at)
			r.Logf("RECORD stand-in: %s was put beside the plan; the layer does not carry it", path)
		}
	}
	slices.Sort(names)
	r.write(filepath.Join(root, "check/pipelines"), strings.Join(names, "\n")+"\n", 0o644)
}

// breakImage removes what the layer's files do, a fault of each kind.
func (r *rig) breakImage(name string) {
	r.Helper()
	root := r.path(name + ".root")
	r.write(filepath.Join(root, "check/broken"), "", 0o644)
	r.run(root, "sh", "-c", `set -e
sed -i '/^[a-z]/{d;q}' etc/sysctl.d/95-yoctune.conf
rm -f usr/lib/udev/rules.d/99-yoctune.rules etc/modules-load.d/yoctune.conf usr/lib/tmpfiles.d/yoctune.conf usr/lib/yoctune/late.conf
for unit in yoctuned yoctune-zram; do rm -f etc/systemd/system/*/$unit.service; ln -sf /dev/null etc/systemd/system/$unit.service; done
for unit in usr/lib/systemd/system/*.slice usr/lib/systemd/system/*.service; do
	grep -q 'Generated by yoctune' "$unit" || continue
	sed -i '/^AllowedCPUs=/d; /^CPUAffinity=/d; /^MemoryMax=/d; /^Nice=/d' "$unit"
done`)
}

// boot boots an image until it powers off or reboots, and returns what it printed.
func (r *rig) boot(name string) string {
	r.Helper()
	disk, root := r.path(name+".ext4"), r.path(name+".root")
	if !exists(disk) {
		r.run(r.dir, "mke2fs", "-q", "-t", "ext4", "-d", root, "-F", disk, "900M")
		if err := os.RemoveAll(root); err != nil {
			r.Fatal(err)
		}
	}
	b, ok := board.Lookup(r.plan.Board)
	if !ok {
		r.Fatalf("no facts about %s", r.plan.Board)
	}
	machine := []string{"-M", "virt,gic-version=3", "-accel", "tcg,thread=multi", "-cpu", "cortex-a76", "-smp", strconv.Itoa(b.Cores), "-m", "1536", "-nographic", "-monitor", "none", "-nic", "none"}
	dump := slices.Clone(machine)
	dump[1] += ",dumpdtb=" + r.path("board.dtb")
	r.run(r.dir, append([]string{"qemu-system-aarch64"}, dump...)...)
	r.run(r.dir, append([]string{"fdtput", "-t", "s", r.path("board.dtb"), "/", "compatible"}, append(slices.Concat(b.KitCompatible, b.Compatible), "linux,dummy-virt")...)...)
	r.run(r.dir, "fdtput", "-t", "s", r.path("board.dtb"), "/", "model", b.Name)
	for _, file := range []string{"nvme.img", "mmc.img"} {
		r.write(r.path(file), "", 0o644)
		if err := os.Truncate(r.path(file), 16<<20); err != nil {
			r.Fatal(err)
		}
	}
	args := append(slices.Clone(machine), "-no-reboot", "-kernel", r.path("kernel", "Image"), "-dtb", r.path("board.dtb"),
		"-drive", "file="+disk+",format=raw,if=none,id=r", "-device", "virtio-blk-device,drive=r",
		"-drive", "file=nvme.img,format=raw,if=none,id=n", "-device", "nvme,drive=n,serial=x")
	args = append(args, r.devices...)
	args = append(args, "-append", "root=/dev/vda rw net.ifnames=0 systemd.firstboot=off quiet panic=-1 "+r.arguments+" console=ttyAMA0")
	ctx, cancel := context.WithTimeout(r.Context(), 25*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-aarch64", args...)
	cmd.Dir = r.dir
	log, err := os.OpenFile(r.path(name+".console"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	before, err := log.Seek(0, 2)
	if err != nil {
		r.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	err = cmd.Run()
	console := r.read(log.Name())[before:]
	if err != nil {
		r.Fatalf("qemu: %v\n%s", err, console)
	}
	console = strings.ReplaceAll(console, "\r", "")
	if !strings.Contains(console, "GUEST-DONE") {
		r.Fatalf("the guest did not finish:\n%s", console)
	}
	r.Logf("RECORD guest %s ran for %.0f s, %.0f s of processor time", name, time.Since(began).Seconds(), cmd.ProcessState.UserTime().Seconds())
	return console
}
