package checklayer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestPromisesOfASettingsFile(t *testing.T) {
	const conf = "conf/yoctune/edge.conf"
	text := `# comment
DISTRO_FEATURES:append = " yoctune-edge"
BB_NUMBER_THREADS = "8"
NVPMODEL_CONFIG_DEFAULT:jetson-a = "1"
NVPMODEL_CONFIG_DEFAULT:jetson-b = "2"
KERNEL_ARGS:append:jetson-a = " isolcpus=4-5 \
    nohz_full=4-5"
KERNEL_ARGS:remove:jetson-a = "quiet"
PARALLEL_MAKE ?= "-j 4"
TMPDIR = "${TOPDIR}/tmp"
GLUED:append = "x"
do_fetch[number_threads] = "4"
do_install() {
    X = "not an assignment of the file"
}
`
	got := collectPromises(linesOf(emitters.File{Path: conf, Means: emitters.ReadBitBake(conf, []byte(text), nil)}), []string{"linux", "jetson-a"})
	for _, tc := range []struct {
		name  string
		value map[string]string
		want  string // part of the complaint, "" when all is kept
	}{
		{"kept", map[string]string{"DISTRO_FEATURES": "a yoctune-edge", "BB_NUMBER_THREADS": "8", "NVPMODEL_CONFIG_DEFAULT": "1", "KERNEL_ARGS": "console=x isolcpus=4-5 nohz_full=4-5"}, ""},
		{"an argument lost", map[string]string{"DISTRO_FEATURES": "yoctune-edge", "BB_NUMBER_THREADS": "8", "NVPMODEL_CONFIG_DEFAULT": "1", "KERNEL_ARGS": "isolcpus=4-5"}, `lacks "nohz_full=4-5", which conf/yoctune/edge.conf:6 sets`},
		{"an argument not removed", map[string]string{"DISTRO_FEATURES": "yoctune-edge", "BB_NUMBER_THREADS": "8", "NVPMODEL_CONFIG_DEFAULT": "1", "KERNEL_ARGS": "quiet isolcpus=4-5 nohz_full=4-5"}, `still has "quiet"`},
		{"a value from elsewhere", map[string]string{"DISTRO_FEATURES": "yoctune-edge", "BB_NUMBER_THREADS": "8", "NVPMODEL_CONFIG_DEFAULT": "2", "KERNEL_ARGS": "isolcpus=4-5 nohz_full=4-5"}, `NVPMODEL_CONFIG_DEFAULT is "2"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o outcome
			o.comparePromises(got, tc.value, "configuration")
			text := strings.Join(o.errors, "\n")
			if (tc.want == "") != (text == "") || !strings.Contains(text, tc.want) {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
	for _, p := range got {
		if slices.Contains([]string{"PARALLEL_MAKE", "TMPDIR", "GLUED", "X"}, p.Variable) {
			t.Errorf("%+v must not be a promise", p)
		}
	}
}

// The kernel uses the last of two equal arguments and ignores those after --.
func TestOverruledArgumentsAreFound(t *testing.T) {
	p := &plan.Plan{Layer: "edge", Target: "one", Board: "orin-nano-8gb", Release: "scarthgap", Settings: []plan.Setting{
		{ID: "kernel.args.log_buf_len", Domain: plan.DomainKernel, Select: plan.Select{Class: "cmdline", Name: "log_buf_len"}, Type: plan.TypeString, Want: "1M"},
	}}
	for _, c := range []struct{ value, want string }{
		{"console=x log_buf_len=1M", ""},
		{"log_buf_len=4M log_buf_len=1M", ""},
		{"log_buf_len=1M quiet -- log_buf_len=2M", ""},
		{"log_buf_len=1M log_buf_len=1M", ""},
		{"log_buf_len=1M quiet log-buf-len=4M", `has "log-buf-len=4M" after "log_buf_len=1M"`},
		{"quiet -- log_buf_len=1M", `after --`},
		{"quiet", `lacks "log_buf_len=1M"`},
	} {
		var o outcome
		// KERNEL_ARGS alone is not what extlinux.conf gets.
		o.comparePromises(planPromises([]*plan.Plan{p}), map[string]string{"DISTRO_FEATURES": "yoctune-edge", "KERNEL_ARGS": "log_buf_len=1M", "UBOOT_EXTLINUX_KERNEL_ARGS": c.value}, "configuration")
		if text := strings.Join(o.errors, "\n"); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%q: got %q, want %q", c.value, text, c.want)
		}
	}
}

// A machine of a product may choose a kernel to which the layer does not append.
func TestOptionsNeedTheKernelOfTheMachine(t *testing.T) {
	l := &layer{Appends: []bbappend{{Name: "linux-jammy-nvidia-tegra"}}, Plans: []*plan.Plan{{Settings: []plan.Setting{
		{ID: "kernel.config.HZ_1000", Domain: plan.DomainKernel, Select: plan.Select{Class: "config", Name: "HZ_1000"}, Want: "y"},
	}}}}
	for kernel, wrong := range map[string]bool{"linux-jammy-nvidia-tegra": false, "linux-yocto": true, "": false} {
		got := l.explainMissedKernel(map[string]string{"PREFERRED_PROVIDER_virtual/kernel": kernel})
		if (got != "") != wrong || wrong && (!strings.Contains(got, kernel) || !strings.Contains(got, "kernel.config.HZ_1000")) {
			t.Errorf("%q: %q", kernel, got)
		}
	}
	l.Plans[0].Settings = nil
	if got := l.explainMissedKernel(map[string]string{"PREFERRED_PROVIDER_virtual/kernel": "linux-yocto"}); got != "" {
		t.Errorf("without options: %q", got)
	}
}

func TestPlanListsItsKernelArguments(t *testing.T) {
	p := &plan.Plan{Layer: "edge", Target: "one", Settings: []plan.Setting{
		{ID: "kernel.args.isolcpus", Domain: plan.DomainKernel, Select: plan.Select{Class: "cmdline", Name: "isolcpus"}, Type: plan.TypeCPUList, Want: "4-5"},
		{ID: "kernel.args.nosmt", Domain: plan.DomainKernel, Select: plan.Select{Class: "cmdline", Name: "nosmt"}, Type: plan.TypePresent, Want: "1"},
		{ID: "sysctl.vm.swappiness", Domain: plan.DomainSysctl, Select: plan.Select{Path: "/proc/sys/vm/swappiness"}, Type: plan.TypeInt, Want: "10"},
	}}
	var o outcome
	o.comparePromises(planPromises([]*plan.Plan{p}), map[string]string{"DISTRO_FEATURES": "yoctune-edge", "KERNEL_ARGS": "isolcpus=4"}, "configuration")
	text := strings.Join(o.errors, "\n")
	for _, want := range []string{`"isolcpus=4-5", which setting kernel.args.isolcpus of plan.json sets`, `"nosmt"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no complaint has %q:\n%s", want, text)
		}
	}
	if len(o.errors) != 2 {
		t.Errorf("%d complaints, want 2:\n%s", len(o.errors), text)
	}
}

// The manifest states what bitbake is held to, with the line of the file.
func TestManifestDefinesExpectations(t *testing.T) {
	dir := t.TempDir()
	files := []emitters.File{
		{Path: "conf/layer.conf", Data: []byte("\n"), Means: []emitters.Meaning{{Kind: emitters.Variable, Name: "BBFILE_COLLECTIONS", Op: "+=", Value: "edge"}}},
		{Path: "conf/yoctune/edge.conf", Data: []byte("A = \"text\"\n"), Means: []emitters.Meaning{
			{Kind: emitters.Variable, Name: "A:append:jetson-a", Value: " stated", Line: 7},
		}},
		{Path: "recipes-x/x/y_1.0.bb", Data: []byte("\n"), Means: []emitters.Meaning{{Kind: emitters.Recipe, Name: "y", Value: "cuda systemd"}}},
	}
	listing, err := manifest.Of(files).Encode()
	if err != nil {
		t.Fatal(err)
	}
	emittest.Write(t, dir, append(files, emitters.File{Path: manifest.Name, Data: listing, Mode: 0o644}))
	l, err := readLayer(dir, dir, "jetson-a")
	if err != nil {
		t.Fatal(err)
	}
	got := collectPromises(l.SettingLines["edge"], []string{"jetson-a"})
	if len(got) != 1 || got[0].Variable != "A" || got[0].Words[0] != "stated" || got[0].Source != "conf/yoctune/edge.conf:7" {
		t.Errorf("promises %+v", got)
	}
	if len(l.Recipes) != 1 || !slices.Equal(l.Recipes[0].Classes, []string{"cuda", "systemd"}) {
		t.Errorf("recipes %+v", l.Recipes)
	}
	emittest.Write(t, dir, []emitters.File{{Path: manifest.Name, Data: []byte(`{"$schema":"yoctune.manifest/9"}`), Mode: 0o644}})
	if _, err := readLayer(dir, dir, "jetson-a"); !errors.Is(err, manifest.ErrFormat) {
		t.Errorf("an unknown version: %v", err)
	}
}
