package board

import (
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

// A Jetson's "compatible" lists carrier and module, then the module alone, then
// the SoC, for instance
//
//	nvidia,p3768-0000+p3767-0005-super  nvidia,p3767-0005  nvidia,tegra234
//
// and a carrier of another maker keeps the module's entry. The function modules, which
// is generated, has only families whose device trees name the module. AGX Xavier and
// older ones name the developer kit instead, see [Kits].

// Kits returns the developer kits by which a board that is not [IsIdentifiable] is
// recognised; nil for a board that shares its kit or has none. They are what the device
// trees of families before Orin name at their root (tegra194-p2972-0000.dts and
// tegra186-p2771-0000.dts of the kernel; what Jetson.GPIO looks for on L4T). Modules of
// the same kit cannot be distinguished.
func Kits(id string) []string { return kits(id) }

// IsKit reports whether a device tree with these "compatible" entries is of the
// developer kit of board id: as much as can be known where it does not name the
// module.
func IsKit(id string, compatible []string) bool {
	return slices.ContainsFunc(Kits(id), func(kit string) bool { return slices.Contains(compatible, kit) })
}

// IsIdentifiable reports whether the device tree of board id names its module, so
// that [IsCompatible] can answer.
func IsIdentifiable(id string) bool { return modules(id) != nil }

// IsCompatible reports whether a device whose tree has these "compatible"
// entries carries the module of board id.
func IsCompatible(id string, compatible []string) bool {
	for _, entry := range compatible {
		_, entry, _ = strings.Cut(entry, ",")
		for part := range strings.SplitSeq(entry, "+") {
			if slices.Contains(modules(id), strings.TrimSuffix(part, "-super")) {
				return true
			}
		}
	}
	return false
}

// Recognise returns a board that these "compatible" entries identify, "" for none that the
// facts can distinguish.
func Recognise(compatible []string) string {
	i := slices.IndexFunc(recognised, func(id string) bool { return IsCompatible(id, compatible) || IsKit(id, compatible) })
	if i < 0 {
		return ""
	}
	return recognised[i]
}

// IsOneOf reports whether a device that reports some identities is of a board that others
// recognise; [boardfile.AnyDevice] stands for a device that nothing identifies.
func IsOneOf(wanted, reported []string) bool {
	if slices.Contains(wanted, boardfile.AnyDevice) {
		return Recognise(reported) == ""
	}
	return slices.ContainsFunc(wanted, func(id string) bool { return slices.Contains(reported, id) })
}
