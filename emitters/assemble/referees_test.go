package assemble_test

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/hashserv"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
	"github.com/yoctune/yoctune/tests/oelint"
)

func emit(t *testing.T, l *plan.Layer) []emitters.File {
	t.Helper()
	files, err := assemble.Emit(l)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// tool finds a program whose judgement a test needs.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%v: its judgement of the generated files is missing", err)
	}
	return path
}

// installed writes the files of one machine where the image has them, below dir.
func installed(t *testing.T, dir, machine string, files []emitters.File) {
	t.Helper()
	vars := strings.NewReplacer(
		"${sysconfdir}", "etc", "${nonarch_libdir}", "usr/lib", "${nonarch_base_libdir}", "usr/lib",
		"${systemd_system_unitdir}", "usr/lib/systemd/system")
	for _, f := range files {
		switch {
		case f.Install != nil && f.Machine == machine:
			f.Path = vars.Replace(f.Install.Dest)
		case strings.HasPrefix(f.Path, "recipes-yoctune/yoctuned/files/") && filepath.Ext(f.Path) == ".service":
			f.Path = "usr/lib/systemd/system/" + filepath.Base(f.Path)
		case strings.HasPrefix(f.Path, hashserv.Dir): // of another machine, but units all the same
			f.Path = "usr/lib/systemd/system/" + filepath.Base(f.Path)
		default:
			continue
		}
		emittest.Write(t, dir, []emitters.File{f})
	}
}

// withRareUnits adds a template, drop-ins of templates, and a path that systemd escapes.
func withRareUnits(l *plan.Layer) *plan.Layer {
	nice := 5
	for _, target := range l.Targets {
		target.Services = append(target.Services,
			plan.Service{Name: "door-getty@.service", Nice: &nice}, plan.Service{Name: "door-getty@ttyTCU0.service", Nice: &nice},
			plan.Service{Name: "worker@.service", Exec: []string{"/usr/bin/worker"}, Type: "simple", Restart: "no"})
		target.Tmpfs = append(target.Tmpfs, plan.Tmpfs{Path: "/var/cache/my-frames.d", Bytes: 1 << 20, Mode: "0755"})
	}
	return l
}

// systemd reads every unit without a word. It exits with 0 also after warnings,
// so that any output is a failure.
func TestSystemdAcceptsTheUnits(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	for _, l := range []*plan.Layer{withRareUnits(emittest.Vision(t)), emittest.Control(t)} {
		files := emit(t, l)
		for _, target := range l.Targets {
			root := t.TempDir()
			installed(t, root, target.Machine, files)
			dir := filepath.Join(root, "usr/lib/systemd/system")
			// Their programs are not on this machine.
			program := regexp.MustCompile(`(?m)^(Exec\w+=)/(usr/bin|usr/lib|srv/bitbake)/[\w/-]+`)
			var units []string
			err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				raw, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				if filepath.Dir(p) == dir {
					units = append(units, strings.Replace(p, "@.service", "@door.service", 1))
				}
				return os.WriteFile(p, program.ReplaceAll(raw, []byte("$1/bin/true")), 0o644)
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range target.Services {
				if len(s.Exec) == 0 {
					stub := filepath.Join(dir, s.Name)
					if err := os.WriteFile(stub, []byte("[Service]\nExecStart=/bin/true\n"), 0o644); err != nil {
						t.Fatal(err)
					}
					units = append(units, stub)
				}
			}
			cmd := exec.Command(analyze, append([]string{"verify", "--man=no"}, units...)...)
			cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
			out, err := cmd.CombinedOutput()
			if err != nil || len(bytes.TrimSpace(out)) > 0 {
				t.Errorf("%s: %v\n%s", target.Machine, err, out)
			}
		}
	}
}

func TestShellcheckAcceptsTheScript(t *testing.T) {
	check := tool(t, "shellcheck")
	found := 0
	for _, f := range emit(t, emittest.Vision(t)) {
		if !strings.HasSuffix(f.Path, ".sh") {
			continue
		}
		found++
		cmd := exec.Command(check, "--shell=sh", "-")
		cmd.Stdin = bytes.NewReader(f.Data)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", f.Path, err, out)
		}
	}
	if found != 1 {
		t.Errorf("%d scripts, want 1", found)
	}
}

// systemd-tmpfiles makes the folders in an empty root.
func TestTmpfilesCreatesTheFolders(t *testing.T) {
	create := tool(t, "systemd-tmpfiles")
	if os.Geteuid() != 0 {
		t.Skip("systemd-tmpfiles changes owners: needs root")
	}
	root := t.TempDir()
	// A root without users cannot resolve "root".
	emittest.Write(t, root, []emitters.File{
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0::/root:/bin/sh\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\n")},
	})
	installed(t, root, "jetson-orin-nano-devkit", emit(t, emittest.Vision(t)))
	out, err := exec.Command(create, "--root="+root, "--create", filepath.Join(root, "usr/lib/tmpfiles.d/yoctune.conf")).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	for _, d := range []string{"run/yoctune", "var/lib/yoctune"} {
		if s, err := os.Stat(filepath.Join(root, d)); err != nil || !s.IsDir() {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// systemd makes the directories of a unit with the mode of the unit, 0755 by default, whatever
// tmpfiles.d has made of them before.
func TestUnitsAndTmpfilesAgreeOnModes(t *testing.T) {
	vision := emittest.Vision(t)
	vision.Targets[0].Plan.Pipelines = map[string]plan.Pipeline{
		"gate": {Stages: []plan.PipelineStage{{ID: "m", Kind: "model", Device: "gpu", Model: &plan.Model{Path: "m.onnx"}}}},
	}
	line := regexp.MustCompile(`(?m)^d (\S+) (0\d+) `)
	setting := regexp.MustCompile(`(?m)^(State|Runtime|Cache|Logs|Configuration)Directory(Mode)?=(.*)$`)
	parents := map[string]string{"State": "/var/lib/", "Runtime": "/run/", "Cache": "/var/cache/", "Logs": "/var/log/", "Configuration": "/etc/"}
	var compared []string
	for _, l := range []*plan.Layer{vision, emittest.Control(t)} {
		modes := map[string]string{}
		files := emit(t, l)
		for _, f := range files {
			if strings.HasSuffix(f.Path, "tmpfiles.conf") {
				for _, m := range line.FindAllStringSubmatch(string(f.Data), -1) {
					modes[m[1]] = m[2]
				}
			}
		}
		for _, f := range files {
			if filepath.Ext(f.Path) != ".service" {
				continue
			}
			dirs, given := map[string][]string{}, map[string]string{}
			for _, m := range setting.FindAllStringSubmatch(string(f.Data), -1) {
				if m[2] != "" {
					given[m[1]] = m[3]
					continue
				}
				dirs[m[1]] = strings.Fields(m[3])
			}
			for kind, names := range dirs {
				mode := cmp.Or(given[kind], "0755")
				for _, name := range names {
					dir := parents[kind] + name
					if want, ok := modes[dir]; ok {
						compared = append(compared, filepath.Base(f.Path)+" "+dir)
						if mode != want {
							t.Errorf("%s: %s has mode %s, and %s in tmpfiles.d", f.Path, dir, mode, want)
						}
					}
					for parent := range modes {
						if strings.HasPrefix(dir, parent+"/") {
							t.Errorf("%s: systemd may make %s for %s with the mode 0755", f.Path, parent, dir)
						}
					}
				}
			}
		}
	}
	for _, want := range []string{"yoctuned.service /var/lib/yoctune", "yoctuned.service /run/yoctune", "yoctuned-engines.service /var/lib/yoctune"} {
		if !slices.Contains(compared, want) {
			t.Errorf("%s was not compared: %q", want, compared)
		}
	}
}

// systemd-tmpfiles writes the values into the nodes of a device, and goes on where an
// optional node is missing.
func TestTmpfilesWritesTheValues(t *testing.T) {
	create := tool(t, "systemd-tmpfiles")
	l := emittest.Vision(t)
	root := t.TempDir()
	nodes := map[string]string{
		"sys/kernel/mm/transparent_hugepage/enabled":              "madvise",
		"sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "schedutil",
		"sys/devices/system/cpu/cpufreq/policy4/scaling_governor": "schedutil",
		"sys/block/nvme0n1/queue/read_ahead_kb":                   "4096",
		"sys/block/sda/queue/read_ahead_kb":                       "",
	}
	for name := range nodes {
		emittest.Write(t, root, []emitters.File{{Path: name, Mode: 0o644}})
	}
	installed(t, root, "jetson-orin-nano-devkit", emit(t, l))
	for _, file := range []string{"usr/lib/tmpfiles.d/yoctune.conf", "usr/lib/yoctune/late.conf"} {
		out, err := exec.Command(create, "--root="+root, "--create", "--prefix=/sys", filepath.Join(root, file)).CombinedOutput()
		if err != nil || len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
	for name, want := range nodes {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
}

// udev reads the rules without a complaint, writes the attributes of an interface, and
// would run ethtool for it. The interface is the loopback of a network namespace.
func TestUdevAppliesTheRules(t *testing.T) {
	tool(t, "udevadm")
	l := emittest.Vision(t)
	for i, s := range l.Targets[0].Plan.Settings {
		if s.Select.Class == "net" {
			l.Targets[0].Plan.Settings[i].Select.Name = "l[o]*"
		}
	}
	root := t.TempDir()
	installed(t, root, "jetson-orin-nano-devkit", emit(t, l))
	const script = `set -e
mount -t sysfs sysfs /sys
mkdir -p /run/udev
mount -t tmpfs tmpfs /run/udev
mkdir /run/udev/rules.d
cp "$1" /run/udev/rules.d/
udevadm test --action=add /sys/class/net/lo 2>&1
echo "mtu $(cat /sys/class/net/lo/mtu)"`
	cmd := exec.Command("unshare", "--mount", "--net", "sh", "-c", script, "sh", filepath.Join(root, "usr/lib/udev/rules.d/99-yoctune.rules"))
	out, err := cmd.CombinedOutput()
	if err != nil && (os.Geteuid() != 0 || bytes.Contains(out, []byte("ermi"))) {
		t.Skipf("udev needs a network namespace and /sys of its own: %v: %s", err, out)
	}
	for _, want := range []string{"mtu 9000\n", "run: '/usr/sbin/ethtool -C lo adaptive-rx off rx-usecs 50'\n"} {
		if err != nil || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%v: udev's output lacks %q:\n%s", err, want, out)
		}
	}
	if bytes.Contains(out, []byte("\n/run/udev/rules.d/99-yoctune.rules:")) {
		t.Errorf("udev complains:\n%s", out)
	}
}

// oelint-adv finds no fault with recipes and appends beyond what the layer means
// to do.
func TestOelintAcceptsTheRecipes(t *testing.T) {
	small := emittest.Control(t)
	small.Name = "small"
	small.Runtime = plan.Runtime{}
	for _, t := range small.Targets {
		t.Services, t.Slices, t.Packages, t.ZRAM = nil, nil, nil, nil
	}
	for _, l := range []*plan.Layer{emittest.Vision(t), emittest.Control(t), small} {
		oelint.Check(t, l.Release, emit(t, l))
	}
}

// bitbake's own parser reads every file, switched on and off, without an error
// or a warning.
func TestBitBakeParsesBothLayers(t *testing.T) {
	for _, l := range []*plan.Layer{emittest.Vision(t), emittest.Control(t)} {
		dir := t.TempDir()
		emittest.Write(t, dir, emit(t, l))
		r, err := emitters.Release(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range l.Targets {
			for _, on := range []bool{true, false} {
				layer := bbref.ParseLayer(t, bbref.Request{
					Dir: dir, Machine: target.Machine, Overrides: "cuda:tegra:aarch64:tegra234",
					UnpackDir: r.UnpackDir, Fragments: r.Fragments, Enable: on,
				})
				for _, p := range layer.Problems {
					t.Errorf("%s, switched on %t: %s", target.Machine, on, p)
				}
				if on && !strings.Contains(layer.Config["KERNEL_ARGS"], "isolcpus="+target.Kernel.Args[0].Value) {
					t.Errorf("%s: KERNEL_ARGS is %q", target.Machine, layer.Config["KERNEL_ARGS"])
				}
			}
		}
	}
}
