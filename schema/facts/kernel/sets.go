package kernel

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ../../../internal/cmd/facts kernels -root ../../..

//go:embed facts.bin
var embedded []byte

// ErrUnknown is returned for a kernel that is not embedded.
var ErrUnknown = errors.New("no facts for this kernel")

// Exactness is how well a set of facts matches the kernel that a release builds.
type Exactness uint8

const (
	// Exact: the facts were read from the very tree that the release builds.
	Exact Exactness = iota
	// BaseOnly: they were read from the tree that the release's kernel is
	// derived from; what the derivation changed is unknown.
	BaseOnly
)

func (e Exactness) String() string {
	if e == BaseOnly {
		return "base only"
	}
	return "exact"
}

// Set describes the facts of one kernel.
type Set struct {
	Name      string // as in `yoctune kernel predict --kernel`
	L4T       string // the L4T series that ships it, or empty
	Source    string // what the facts were read from
	Base      string // the configuration the recipe starts from
	Exactness Exactness
	// Caveat describes for users what is not exact; empty if Exact.
	Caveat string
	// Release: the full kernel version of the tree read.
	Release string
	// Realtime explains a lost PREEMPT_RT on this kernel, if it needs more than
	// configuration.
	Realtime string
}

// Sets lists the embedded kernels, oldest first. The base configurations are
// kept as facts, symbol and value: what each tree's own defconfig sets.
func Sets() []Set {
	return []Set{
		{Name: "4.9", L4T: "r32", Realtime: rtPatches, Release: "4.9.253", Base: "tegra_defconfig",
			Source: "L4T 32.7.2 kernel sources with the nvidia and nvgpu overlays, as republished by a camera vendor"},
		{Name: "5.10", L4T: "r35", Realtime: rtPatches, Release: "5.10.120", Base: "tegra_defconfig",
			Source: "L4T 35.4.1 kernel sources with the nvidia and nvgpu overlays, as republished by a camera vendor"},
		{Name: "5.15", L4T: "r36", Release: "5.15.148", Base: "defconfig",
			Source: "JetPack 6.2 BSP sources (L4T 36.4.3)"},
		{Name: "6.1", Realtime: "arm64 offers PREEMPT_RT without patches from 6.12 on", Release: "6.1.192", Base: "arch/arm64/configs/defconfig",
			Source: "Debian linux-source-6.1"},
		{Name: "6.8", L4T: "r39", Realtime: "build the real-time kernel recipe of the BSP instead", Release: "6.8.0", Base: "arch/arm64/configs/defconfig", Exactness: BaseOnly,
			Source: "Ubuntu 6.8.0-31, the base of NVIDIA's noble tree",
			Caveat: "these facts are Ubuntu's generic 6.8, from which NVIDIA's r39 kernel is derived; index the kernel's source for exact answers"},
		{Name: "6.12", Release: "6.12.117", Base: "arch/arm64/configs/defconfig",
			Source: "Debian linux-source-6.12"},
		{Name: "6.18", Release: "6.18.2", Base: "arch/arm64/configs/defconfig", Exactness: BaseOnly,
			Source: "upstream Linux 6.18.2",
			Caveat: "linux-yocto adds its own symbols and fragments to upstream 6.18; index the kernel's source for exact answers"},
	}
}

const rtPatches = "this series needs the real-time patches that its BSP ships; no configuration alone gives it"

// Find returns the set called name.
func Find(name string) (Set, bool) {
	for _, s := range Sets() {
		if s.Name == name {
			return s, true
		}
	}
	return Set{}, false
}

// Around lists the embedded kernels that stand for a version line: the line itself, or else the
// nearest ones before and after it. Only one is listed beyond the oldest and the newest.
func Around(line string) []string {
	before, after := "", ""
	for _, s := range Sets() {
		switch order := compareLines(s.Name, line); {
		case order == 0:
			return []string{s.Name}
		case order < 0:
			before = s.Name
		case after == "":
			after = s.Name
		}
	}
	return slices.DeleteFunc([]string{before, after}, func(name string) bool { return name == "" })
}

// compareLines orders two version lines, such as 5.15 and 6.1.
func compareLines(a, b string) int {
	major, minor, _ := strings.Cut(a, ".")
	otherMajor, otherMinor, _ := strings.Cut(b, ".")
	return cmp.Or(compareNumbers(major, otherMajor), compareNumbers(minor, otherMinor))
}

func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Names lists the embedded kernels for a message.
func Names() string {
	var n []string
	for _, s := range Sets() {
		n = append(n, s.Name)
	}
	return strings.Join(n, ", ")
}

// Open decodes the facts of an embedded kernel and its base configuration. It
// takes some 20 ms; keep the result. The error is [ErrUnknown] for other names.
func Open(name string) (*Tree, []Value, error) {
	if _, ok := Find(name); !ok {
		return nil, nil, fmt.Errorf("%w: %q; embedded are %s", ErrUnknown, name, Names())
	}
	return Decode(embedded, name)
}
