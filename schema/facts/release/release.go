// Package release holds what is known of the meta-tegra branches a layer can be
// made for: bitbake and L4T versions, kernel recipes, and which spellings and
// files the series accepts. Sources: the branches of openembedded/bitbake,
// openembedded/openembedded-core and OE4T/meta-tegra, read at the files named.
package release

import "sort"

// Release is one meta-tegra branch.
type Release struct {
	Name    string // branch
	Series  string // LAYERSERIES_CORENAMES entry, e.g. "scarthgap"
	BitBake string // branch of bitbake
	L4T     string // meta-tegra conf/machine/include/tegra-common.inc and the recipes' versions

	Kernel       string   // version line of the kernel, e.g. "5.15"
	Provider     string   // PREFERRED_PROVIDER_virtual/kernel of tegra-common.inc
	KernelPNs    []string // recipes a fragment must be appended to (the RT twin too, where there is one)
	RTProvider   string   // recipe to choose for kernel.preempt: "rt"; "" where there is none
	RTByConfig   bool     // PREEMPT_RT is selectable by configuration on Provider (EXPERT=y, KVM off)
	Facts        string   // how exact the Kconfig facts are for this kernel
	CUDA         string
	Go           string // version of oe-core's go
	UnpackDir    bool   // UNPACKDIR exists (bitbake.conf)
	Fragments    bool   // conf/fragments/*.conf (bitbake-config-build)
	SecurityFile bool   // yocto-check-layer wants SECURITY.md
	NVStartup    bool   // nvstartup.service exists
	GoSource     bool   // the runtime's Go version can be built by the series itself
}

// The table. bitbake: bin/bitbake __version__; UNPACKDIR: meta/conf/bitbake.conf;
// fragments: addfragments in bitbake.conf; SECURITY: lib/checklayer/cases/common.py;
// kernels: meta-tegra recipes-kernel/linux; RT by configuration: arch/arm64/Kconfig
// of NVIDIA's 5.15 selects ARCH_SUPPORTS_RT when KVM is off.
var table = map[string]Release{
	"scarthgap": {
		Name: "scarthgap", Series: "scarthgap", BitBake: "2.8", L4T: "36.5.0",
		Kernel: "5.15", Provider: "linux-jammy-nvidia-tegra",
		KernelPNs:  []string{"linux-jammy-nvidia-tegra"},
		RTByConfig: true, Facts: "NVIDIA's own 5.15 tree",
		CUDA: "12.6", Go: "1.22", NVStartup: true,
	},
	"wrynose": {
		Name: "wrynose", Series: "wrynose", BitBake: "2.18", L4T: "39.2.0",
		Kernel: "6.8", Provider: "linux-noble-nvidia-tegra",
		KernelPNs:  []string{"linux-noble-nvidia-tegra", "linux-noble-nvidia-tegra-rt"},
		RTProvider: "linux-noble-nvidia-tegra-rt", Facts: "generic 6.8, not NVIDIA's own tree",
		CUDA: "13.2", Go: "1.26", UnpackDir: true, Fragments: true, SecurityFile: true, GoSource: true,
	},
}

// Lookup finds a release by its branch name.
func Lookup(name string) (Release, bool) {
	r, ok := table[name]
	return r, ok
}

// Names lists the releases, sorted.
func Names() []string {
	names := make([]string, 0, len(table))
	for n := range table {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
