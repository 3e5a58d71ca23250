package board

import (
	"slices"
	"strings"
)

// modules maps a board id to the module numbers that its device tree may name.
// A Jetson's "compatible" lists carrier and module, then the module alone, then
// the SoC, for instance
//
//	nvidia,p3768-0000+p3767-0005-super  nvidia,p3767-0005  nvidia,tegra234
//
// and a carrier of another maker keeps the module's entry. Only families whose
// device trees name the module are here: AGX Xavier and older ones name the
// developer kit instead, see [Kits].
func modules(id string) []string {
	switch id {
	case "agx-orin-64gb":
		return []string{"p3701-0000", "p3701-0005"}
	case "agx-orin-32gb":
		return []string{"p3701-0004"}
	case "agx-orin-industrial":
		return []string{"p3701-0008"}
	case "orin-nx-16gb":
		return []string{"p3767-0000"}
	case "orin-nx-8gb":
		return []string{"p3767-0001"}
	case "orin-nano-8gb":
		return []string{"p3767-0003", "p3767-0005"}
	case "orin-nano-4gb":
		return []string{"p3767-0004"}
	}
	return nil
}

// Kits returns the developer kits by which a board that is not [Identifiable] is
// recognised, nil where there is none of its own. They are what the device trees of
// families before Orin name at their root (tegra194-p2972-0000.dts and
// tegra186-p2771-0000.dts of the kernel; what Jetson.GPIO looks for on L4T); nothing
// in them tells modules of one kit apart.
func Kits(id string) []string {
	switch id {
	case "agx-xavier":
		return []string{"nvidia,p2972-0000", "nvidia,jetson-xavier"}
	case "agx-xavier-industrial":
		return []string{"nvidia,galen-industrial", "nvidia,jetson-xavier-industrial"}
	case "tx2":
		return []string{"nvidia,p2771-0000"}
	case "tx2-4gb-nx":
		return []string{"nvidia,p3509-0000+p3636-0001"}
	}
	return nil
}

// IsKit reports whether a device tree with these "compatible" entries is of the
// developer kit of board id: as much as can be known where it does not name the
// module.
func IsKit(id string, compatible []string) bool {
	for _, kit := range Kits(id) {
		if slices.Contains(compatible, kit) {
			return true
		}
	}
	return false
}

// Identifiable reports whether the device tree of board id names its module, so
// that [IsCompatible] can answer.
func Identifiable(id string) bool { return modules(id) != nil }

// IsCompatible reports whether a device whose tree has these "compatible"
// entries carries the module of board id.
func IsCompatible(id string, compatible []string) bool {
	for _, entry := range compatible {
		_, entry, _ = strings.Cut(entry, ",")
		for part := range strings.SplitSeq(entry, "+") {
			part = strings.TrimSuffix(part, "-super")
			for _, m := range modules(id) {
				if part == m {
					return true
				}
			}
		}
	}
	return false
}
