// Package release holds facts about the meta-tegra branches that layers can be made
// for: bitbake and L4T versions, kernel recipes, and the syntax and files that each
// series accepts. Sources: the branches of openembedded/bitbake,
// openembedded/openembedded-core and OE4T/meta-tegra, read at the commits that
// [Release.Read] names.
package release

import (
	"slices"
	"sort"
	"strings"
)

// Release is one meta-tegra branch. Versions are written as the recipe that
// builds them writes them; an empty one is not known.
type Release struct {
	Name    string `json:"name"`    // branch
	Series  string `json:"series"`  // LAYERSERIES_CORENAMES entry, e.g. "scarthgap"
	BitBake string `json:"bitbake"` // branch of bitbake
	L4T     string `json:"l4t"`     // meta-tegra conf/machine/include/tegra-common.inc and the recipes' versions

	Kernel       string   `json:"kernel"`         // version line of the kernel, e.g. "5.15"
	Provider     string   `json:"provider"`       // PREFERRED_PROVIDER_virtual/kernel of tegra-common.inc
	KernelPNs    []string `json:"kernel_recipes"` // recipes a fragment must be appended to (the RT twin too, where there is one)
	RTProvider   string   `json:"rt_provider"`    // recipe to choose for kernel.preempt: "rt"; "" where there is none
	RTByConfig   bool     `json:"rt_by_config"`   // PREEMPT_RT is selectable by configuration on Provider (EXPERT=y, KVM off)
	Facts        string   `json:"kernel_facts"`   // how exact the Kconfig facts are for this kernel
	CUDA         string   `json:"cuda"`
	Go           string   `json:"go"`            // version of oe-core's go
	UnpackDir    bool     `json:"unpackdir"`     // UNPACKDIR exists (bitbake.conf)
	Fragments    bool     `json:"fragments"`     // conf/fragments/*.conf (bitbake-config-build)
	SecurityFile bool     `json:"security_file"` // yocto-check-layer wants SECURITY.md
	NVStartup    bool     `json:"nvstartup"`     // nvstartup.service exists
	GoSource     bool     `json:"go_source"`     // the runtime's Go version can be built by the series itself

	KernelVersion string   `json:"kernel_version"` // LINUX_VERSION of the provider's recipe, e.g. "5.15.185"
	Defconfig     string   `json:"defconfig"`      // KBUILD_DEFCONFIG of the provider's recipe
	OtherKernels  []string `json:"other_kernels"`  // other kernels meta-tegra supports, as "recipe version"
	GoVersion     string   `json:"go_version"`     // full version of oe-core's go
	GCC           string   `json:"gcc"`            // oe-core's gcc
	Glibc         string   `json:"glibc"`
	Systemd       string   `json:"systemd"`
	CMake         string   `json:"cmake"`
	TensorRT      string   `json:"tensorrt"`
	// ContainerToolkit is the version of the branch\'s nvidia-container-toolkit; from
	// 1.8.0 on it starts containers on the unified control group hierarchy.
	ContainerToolkit string `json:"container_toolkit"`
	CuDNN            string `json:"cudnn"`
	ONNXRuntime      string `json:"onnxruntime"`   // recipe in the meta-tegra-community branch of this name; "" where it has none
	CUDAHostGCC      string `json:"cuda_host_gcc"` // gcc that nvcc calls; equal to GCC where no recipe of its own exists

	UnpackDirValue string   `json:"unpackdir_value"`   // UNPACKDIR of bitbake.conf; "" where it does not exist
	DefaultS       string   `json:"default_s"`         // S of bitbake.conf
	UsrMerge       bool     `json:"usrmerge"`          // INIT_MANAGER = "systemd" brings the usrmerge distro feature
	DebugTweaks    bool     `json:"debug_tweaks"`      // IMAGE_FEATURES accepts debug-tweaks; elsewhere it skips the image recipe
	ImageFeatures  []string `json:"image_features"`    // IMAGE_FEATURES[validitems] of image.bbclass
	BuiltinFrags   bool     `json:"builtin_fragments"` // OE_FRAGMENTS accepts machine/NAME and distro/NAME
	Signatures     string   `json:"signature_handler"` // BB_SIGNATURE_HANDLER of bitbake.conf
	HashServe      string   `json:"hashserve"`         // BB_HASHSERVE of bitbake.conf; "" where it sets none
	HashServeWSS   bool     `json:"hashserve_wss"`     // BB_HASHSERVE_UPSTREAM may be wss://
	HashServeDBDir bool     `json:"hashserve_db_dir"`  // BB_HASHSERVE_DB_DIR exists; sharing SSTATE_DIR without it warns
	LoadFactor     bool     `json:"load_factor"`       // BB_LOADFACTOR_MAX exists
	LicenseRefs    bool     `json:"license_refs"`      // LICENSE is an SPDX expression: "CLOSED" warns, what is not on SPDX's list is a LicenseRef- (oe/license.py)
	TmpDir         string   `json:"tmpdir"`            // name of TMPDIR below the build folder, with DISTRO = "nodistro" and glibc

	// SysctlFiles are the BSP's own files in /etc/sysctl.d: a file of the same or a
	// lower number is overridden by them.
	SysctlFiles []string `json:"sysctl_files,omitempty"`

	Read string `json:"read"` // commits of meta-tegra, oe-core and bitbake these facts were read at

	// CoreOnly: the release without meta-tegra, see [Release.WithoutBSP].
	CoreOnly bool `json:"core_only,omitempty"`
}

// WithoutBSP returns the series of openembedded-core with the release's name: what the facts
// have without meta-tegra. ok is false for a branch that only meta-tegra has.
func (r Release) WithoutBSP() (core Release, ok bool) {
	if r.Name != r.CoreBranch() {
		return Release{}, false
	}
	core = r
	core.CoreOnly = true
	core.L4T, core.CUDA, core.TensorRT, core.CuDNN, core.ContainerToolkit, core.CUDAHostGCC, core.ONNXRuntime = "", "", "", "", "", "", ""
	core.Defconfig, core.OtherKernels, core.SysctlFiles, core.NVStartup = "", nil, nil, false
	core.Read = core.Read[strings.Index(core.Read, "oe-core"):]
	return core.WithKernel("", ""), true
}

// WithKernel returns the release with another kernel: its recipe and its version line.
func (r Release) WithKernel(recipe, version string) Release {
	r.Kernel, r.KernelVersion, r.Provider, r.Facts = version, version, recipe, ""
	r.KernelPNs, r.RTProvider, r.RTByConfig = nil, "", false
	if recipe != "" {
		r.KernelPNs = []string{recipe}
	}
	return r
}

// CoreNames lists the series of openembedded-core that the facts have, sorted.
func CoreNames() []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		r, _ := Lookup(name)
		_, ok := r.WithoutBSP()
		return !ok
	})
}

const (
	jammy   = "linux-jammy-nvidia-tegra"
	noble   = "linux-noble-nvidia-tegra"
	nobleRT = "linux-noble-nvidia-tegra-rt"
)

// The image features of image.bbclass: kirkstone's, what scarthgap added, and
// what walnascar took away.
func imageFeatures(debugTweaks, autologin bool) []string {
	f := []string{
		"allow-empty-password", "allow-root-login", "empty-root-password", "overlayfs-etc",
		"post-install-logging", "read-only-rootfs", "read-only-rootfs-delayed-postinsts", "stateless-rootfs",
	}
	if debugTweaks {
		f = append(f, "debug-tweaks")
	}
	if autologin {
		f = append(f, "serial-autologin-root")
	}
	sort.Strings(f)
	return f
}

// The table. bitbake: bin/bitbake __version__; UNPACKDIR, S, signatures:
// meta/conf/bitbake.conf; fragments: addfragments there; SECURITY:
// scripts/lib/checklayer/cases/common.py; kernels: meta-tegra
// recipes-kernel/linux; RT by configuration: arch/arm64/Kconfig of NVIDIA's 5.15
// selects ARCH_SUPPORTS_RT when KVM is off; gcc for nvcc: the gcc-8 and
// gcc-for-nvcc recipes of meta-tegra; ONNX Runtime: recipes-devtools/onnxruntime of
// meta-tegra-community at 26103658 (whinlatter), 9405ee23 (wrynose), 7ff7fe33 (master).
func table() []Release {
	return []Release{
		{
			Name: "kirkstone-l4t-r32.7.x", Series: "kirkstone", BitBake: "2.0", L4T: "32.7.6",
			Kernel: "4.9", KernelVersion: "4.9.337", Provider: "linux-tegra", Defconfig: "tegra_defconfig",
			KernelPNs: []string{"linux-tegra"}, Facts: "NVIDIA's 4.9 tree of r32.7.2 with one vendor's camera drivers",
			CUDA: "10.2", TensorRT: "8.2.1", ContainerToolkit: "1.0.5", CuDNN: "8.2.1.32", CUDAHostGCC: "8.5",
			Go: "1.17", GoVersion: "1.17.13", GCC: "11.5", Glibc: "2.35", Systemd: "250.14", CMake: "3.22.3",
			DefaultS: "${WORKDIR}/${BP}", NVStartup: true, DebugTweaks: true, ImageFeatures: imageFeatures(true, false),
			Signatures: "OEBasicHash", TmpDir: "tmp-glibc",
			Read: "meta-tegra 94e3db3146dc273ec1df463426c0fcaeacc51b5f, oe-core 9687b9409d3a1e121f0f04de856055764d0a392e, bitbake a9f09b9e2f187f07a6f6dfd1caa3fd2f3d564a8a",
		},
		{
			Name: "kirkstone", Series: "kirkstone", BitBake: "2.0", L4T: "35.6.4",
			Kernel: "5.10", KernelVersion: "5.10.216", Provider: "linux-tegra", Defconfig: "tegra_defconfig",
			KernelPNs: []string{"linux-tegra"}, Facts: "NVIDIA's 5.10 tree of r35.4.1 with one vendor's camera drivers",
			CUDA: "11.4", TensorRT: "8.5.2", ContainerToolkit: "1.11.0", CuDNN: "8.6.0.166", CUDAHostGCC: "8.5",
			Go: "1.17", GoVersion: "1.17.13", GCC: "11.5", Glibc: "2.35", Systemd: "250.14", CMake: "3.22.3",
			DefaultS: "${WORKDIR}/${BP}", NVStartup: true, DebugTweaks: true, ImageFeatures: imageFeatures(true, false),
			Signatures: "OEBasicHash", TmpDir: "tmp-glibc",
			SysctlFiles: []string{"60-nvsciipc.conf"},
			Read:        "meta-tegra 47519b99e34475ee9e3e8840da5f1111ab7dee0f, oe-core 9687b9409d3a1e121f0f04de856055764d0a392e, bitbake a9f09b9e2f187f07a6f6dfd1caa3fd2f3d564a8a",
		},
		{
			Name: "scarthgap-l4t-r35.x", Series: "scarthgap", BitBake: "2.8", L4T: "35.6.4",
			Kernel: "5.10", KernelVersion: "5.10.216", Provider: "linux-tegra", Defconfig: "tegra_defconfig",
			KernelPNs: []string{"linux-tegra"}, Facts: "NVIDIA's 5.10 tree of r35.4.1 with one vendor's camera drivers",
			CUDA: "11.4", TensorRT: "8.5.2", ContainerToolkit: "1.11.0", CuDNN: "8.6.0.166", CUDAHostGCC: "10.3",
			Go: "1.22", GoVersion: "1.22.12", GCC: "13.4", Glibc: "2.39", Systemd: "255.21", CMake: "3.28.3",
			DefaultS: "${WORKDIR}/${BP}", NVStartup: true, UsrMerge: true, DebugTweaks: true, ImageFeatures: imageFeatures(true, true),
			Signatures: "OEBasicHash", HashServeWSS: true, LoadFactor: true, TmpDir: "tmp-glibc",
			SysctlFiles: []string{"60-nvsciipc.conf"},
			Read:        "meta-tegra 0c507bfe8d64a0e113beeff8f45e7fe0dfb5bc80, oe-core 543550522f831479f07d332a40ba343c53ae1065, bitbake 0880963fea4d91a034e4a6e007d23f98658ab986",
		},
		{
			Name: "scarthgap", Series: "scarthgap", BitBake: "2.8", L4T: "36.5.0",
			Kernel: "5.15", KernelVersion: "5.15.185", Provider: jammy, Defconfig: "defconfig",
			KernelPNs: []string{jammy}, OtherKernels: []string{"linux-yocto 6.6"},
			RTByConfig: true, Facts: "NVIDIA's own 5.15 tree",
			CUDA: "12.6", TensorRT: "10.3.0.30", ContainerToolkit: "1.16.2", CuDNN: "9.3.0.75", CUDAHostGCC: "13.2",
			Go: "1.22", GoVersion: "1.22.12", GCC: "13.4", Glibc: "2.39", Systemd: "255.21", CMake: "3.28.3",
			DefaultS: "${WORKDIR}/${BP}", NVStartup: true, UsrMerge: true, DebugTweaks: true, ImageFeatures: imageFeatures(true, true),
			Signatures: "OEBasicHash", HashServeWSS: true, LoadFactor: true, TmpDir: "tmp-glibc",
			SysctlFiles: []string{"60-nvsciipc.conf"},
			Read:        "meta-tegra 37530d284a27b904c34a94ef5856015825749b06, oe-core 543550522f831479f07d332a40ba343c53ae1065, bitbake 0880963fea4d91a034e4a6e007d23f98658ab986",
		},
		{
			Name: "walnascar", Series: "walnascar", BitBake: "2.12", L4T: "36.4.3",
			Kernel: "5.15", KernelVersion: "5.15.148", Provider: jammy, Defconfig: "defconfig",
			KernelPNs: []string{jammy}, OtherKernels: []string{"linux-yocto 6.12"},
			RTByConfig: true, Facts: "NVIDIA's own 5.15 tree",
			CUDA: "12.6", TensorRT: "10.3.0.30", ContainerToolkit: "1.16.2", CuDNN: "9.3.0.75", CUDAHostGCC: "10.3",
			Go: "1.24", GoVersion: "1.24.6", GCC: "14.3", Glibc: "2.41", Systemd: "257.6", CMake: "3.31.6",
			UnpackDir: true, UnpackDirValue: "${WORKDIR}/sources-unpack", DefaultS: "${WORKDIR}/${BP}",
			Fragments: true, SecurityFile: true, NVStartup: true, UsrMerge: true, ImageFeatures: imageFeatures(false, true),
			Signatures: "OEBasicHash", HashServeWSS: true, LoadFactor: true, TmpDir: "tmp-glibc",
			SysctlFiles: []string{"60-nvsciipc.conf"},
			Read:        "meta-tegra 4b247bddaec4381f7b87c63911ad779c3835edd1, oe-core bba638620fd241cb43b5c7b64e07e84b4dff6024, bitbake ac097300921590ed6a814f2c3fa08a59f4ded92d",
		},
		{
			Name: "whinlatter", Series: "whinlatter", BitBake: "2.16", L4T: "36.4.4",
			Kernel: "5.15", KernelVersion: "5.15.148", Provider: jammy, Defconfig: "defconfig",
			KernelPNs: []string{jammy}, OtherKernels: []string{"linux-yocto 6.12"},
			RTByConfig: true, Facts: "NVIDIA's own 5.15 tree",
			CUDA: "12.6", TensorRT: "10.3.0.30", ContainerToolkit: "1.16.2", ONNXRuntime: "1.21.0", CuDNN: "9.3.0.75", CUDAHostGCC: "13.2",
			Go: "1.25", GoVersion: "1.25.9", GCC: "15.2", Glibc: "2.42", Systemd: "257.8", CMake: "4.1.2",
			UnpackDir: true, UnpackDirValue: "${WORKDIR}/sources", DefaultS: "${UNPACKDIR}/${BP}",
			Fragments: true, BuiltinFrags: true, SecurityFile: true, NVStartup: true, UsrMerge: true, ImageFeatures: imageFeatures(false, true),
			Signatures: "OEBasicHash", HashServeWSS: true, LoadFactor: true, TmpDir: "tmp-glibc",
			SysctlFiles: []string{"60-nvsciipc.conf"},
			Read:        "meta-tegra 46edb3b92574c5433fdab9f26242bfbe6180df97, oe-core 8751ec83421192fc0f8495fb95798f9eb7be77a0, bitbake 713fbbdb9ecc195ceb2216a2345e0d79dbee2135",
		},
		{
			Name: "wrynose", Series: "wrynose", BitBake: "2.18", L4T: "39.2.0",
			Kernel: "6.8", KernelVersion: "6.8.12", Provider: noble, Defconfig: "defconfig",
			KernelPNs: []string{noble, nobleRT}, OtherKernels: []string{"linux-yocto 6.18", "linux-yocto-rt 6.18"},
			RTProvider: nobleRT, Facts: "generic 6.8, not NVIDIA's own tree",
			CUDA: "13.2", TensorRT: "10.16.2.10", ContainerToolkit: "1.19.1", ONNXRuntime: "1.24.2", CuDNN: "9.20.0.46", CUDAHostGCC: "15.3",
			Go: "1.26", GoVersion: "1.26.5", GCC: "15.3", Glibc: "2.43", Systemd: "259.5", CMake: "4.3.1",
			UnpackDir: true, UnpackDirValue: "${WORKDIR}/sources", DefaultS: "${UNPACKDIR}/${BP}",
			Fragments: true, BuiltinFrags: true, SecurityFile: true, GoSource: true, UsrMerge: true, ImageFeatures: imageFeatures(false, true),
			Signatures: "OEEquivHash", HashServe: "auto", HashServeWSS: true, HashServeDBDir: true, LoadFactor: true, TmpDir: "tmp",
			SysctlFiles: []string{"90-tegra-settings.conf"},
			Read:        "meta-tegra 727633deca9b72643112d1aebadafb736dad60c0, oe-core ef022bf82d79015802309d14c28b13373ebe53f5, bitbake fae9db3168dbff1b8c76fe9c6726a9687ff97514",
		},
		{
			Name: "master", Series: "blacksail", BitBake: "master", L4T: "39.2.0",
			Kernel: "6.8", KernelVersion: "6.8.12", Provider: noble, Defconfig: "defconfig",
			KernelPNs: []string{noble, nobleRT}, OtherKernels: []string{"linux-yocto 6.18", "linux-yocto-rt 6.18"},
			RTProvider: nobleRT, Facts: "generic 6.8, not NVIDIA's own tree",
			CUDA: "13.2", TensorRT: "10.16.2.10", ContainerToolkit: "1.19.1", ONNXRuntime: "1.24.2", CuDNN: "9.20.0.46", CUDAHostGCC: "13.2",
			Go: "1.26", GoVersion: "1.26.6", GCC: "16.2", Glibc: "2.44", Systemd: "261.2", CMake: "4.4.2",
			UnpackDir: true, UnpackDirValue: "${WORKDIR}/sources", DefaultS: "${UNPACKDIR}/${BP}",
			Fragments: true, BuiltinFrags: true, SecurityFile: true, GoSource: true, UsrMerge: true, ImageFeatures: imageFeatures(false, true),
			Signatures: "OEEquivHash", HashServe: "auto", HashServeWSS: true, HashServeDBDir: true, LoadFactor: true, LicenseRefs: true, TmpDir: "tmp",
			SysctlFiles: []string{"90-tegra-settings.conf"},
			Read:        "meta-tegra d5d93dc69befb39cbb3537ab71b68e8b37bb9d9b, oe-core 35a2c6ed7987763dadbe45ad86095e1aee1c7314, bitbake c251833d2062ef92fc7e77ab6456af928ad1d31a",
		},
	}
}

// Lookup finds a release by its branch name.
func Lookup(name string) (Release, bool) {
	for _, r := range table() {
		if r.Name == name {
			return r, true
		}
	}
	return Release{}, false
}

// Names lists the releases, sorted.
func Names() []string {
	var names []string
	for _, r := range table() {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// Line is the L4T line of the release, the key that facts of boards use: "R36"
// for 36.5.0.
func (r Release) Line() string {
	major, _, ok := strings.Cut(r.L4T, ".")
	if !ok {
		return ""
	}
	return "R" + major
}

// HasImageFeature reports whether IMAGE_FEATURES accepts name as one of
// image.bbclass's own. Features that stand for package groups (ssh-server-openssh,
// tools-debug, ...) are not in this list.
func (r Release) HasImageFeature(name string) bool {
	return slices.Contains(r.ImageFeatures, name)
}

// Checkout is a repository that a build of the release takes, and the commit of its branch
// that the facts of the release were read at.
type Checkout struct{ Name, URI, Branch, Commit string }

// Checkouts are the repositories that every build takes: bitbake, openembedded-core
// and, unless CoreOnly, meta-tegra.
func (r Release) Checkouts() []Checkout {
	all := []Checkout{
		{"bitbake", "https://git.openembedded.org/bitbake", r.BitBake, r.commit("bitbake")},
		{"openembedded-core", "https://git.openembedded.org/openembedded-core", r.CoreBranch(), r.commit("oe-core")},
	}
	if r.CoreOnly {
		return all
	}
	return append(all, Checkout{"meta-tegra", "https://github.com/OE4T/meta-tegra", r.Name, r.commit("meta-tegra")})
}

// commit is the commit of a repository that the facts were read at.
func (r Release) commit(repository string) string {
	_, rest, _ := strings.Cut(r.Read, repository+" ")
	commit, _, _ := strings.Cut(rest, ",")
	return commit
}

// CoreBranch is the branch of openembedded-core, and of layers that go with it.
func (r Release) CoreBranch() string {
	if r.Name == "master" {
		return r.Name // its series has no branch yet
	}
	return r.Series
}
