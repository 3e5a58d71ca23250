package enforce

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// The kernel allocates as many huge pages as it can get. A request for more than the memory
// that is available ends other processes and may end in a panic, so a part of the memory is
// left to others.

// minReserve is the least memory that is left, in bytes; otherwise it is a part of all memory.
const (
	minReserve  = 128 << 20
	reservePart = 16
)

// hugePages is the memory of a node that is a number of huge pages, in bytes.
type hugePages struct {
	size, total, available int64
}

// checkFreeMemory refuses memory that the kernel shall keep free and that others use: with more
// than that, mm/page_alloc.c serves no process any more.
func checkFreeMemory(dev rootfs.FS, t *target) error {
	if t.real != "/proc/sys/vm/min_free_kbytes" || t.setting.Compare == plan.AtMost {
		return nil
	}
	want, err := strconv.ParseInt(t.setting.Want, 0, 64)
	found, err2 := strconv.ParseInt(t.found.Value, 10, 64)
	h, known := readHugePages(dev, t.real)
	if err != nil || err2 != nil || !known || want <= found {
		return nil // left to the kernel
	}
	if most := h.available - h.reserve(); want > math.MaxInt64>>10 || (want-found)<<10 > most {
		return fmt.Errorf("%s KiB would leave less than %s of the memory to processes: %s of %s is available", t.setting.Want,
			units.RoundSize(h.reserve()), units.RoundSize(h.available), units.RoundSize(h.total))
	}
	return nil
}

// readHugePages returns the memory of a node, false if it cannot be read.
func readHugePages(dev rootfs.FS, name string) (hugePages, bool) {
	text, err := dev.ReadFile("/proc/meminfo", 1<<16)
	if err != nil {
		return hugePages{}, false
	}
	info := rootfs.Meminfo(string(text))
	h := hugePages{size: info["Hugepagesize"], total: info["MemTotal"], available: info["MemAvailable"]}
	if kib, ok := strings.CutPrefix(path.Base(path.Dir(name)), "hugepages-"); ok {
		n, err := strconv.ParseInt(strings.TrimSuffix(kib, "kB"), 10, 32)
		if err != nil {
			return hugePages{}, false
		}
		h.size = n << 10
	}
	return h, h.size > 0 && h.total > 0
}

func (h hugePages) reserve() int64 { return max(minReserve, h.total/reservePart) }

// limitPages returns the number of huge pages to write in place of the wanted one, so that the
// reserve remains; ok is false if the wanted one may be written.
func (s *Session) limitPages(t *target) (pages int64, ok bool) {
	want, err := strconv.ParseInt(t.setting.Want, 10, 64)
	found, err2 := strconv.ParseInt(t.found.Value, 10, 64)
	if err != nil || err2 != nil || !outcome.IsPages(t.path) {
		return 0, false
	}
	h, known := readHugePages(s.dev, t.real)
	if !known {
		return 0, false
	}
	pages = found + max(0, h.available-h.reserve())/h.size
	return pages, pages < want
}

// describeShortage explains why there are fewer huge pages than wanted.
func (t *target) describeShortage(dev rootfs.FS) string {
	want, err := strconv.ParseInt(t.setting.Want, 10, 64)
	h, known := readHugePages(dev, t.real)
	if err == nil && known && (t.limited || want > (h.total-h.reserve())/h.size) {
		return fmt.Sprintf("%s: %s of %s pages of %s: %s of the memory is left to others; reserve more at boot with hugepages=, or fewer here",
			outcome.Name(t.path), t.found.Value, t.setting.Want, units.Size(h.size), units.RoundSize(h.reserve()))
	}
	return outcome.DescribeShortage(t.path, t.setting.Want, t.found.Value)
}
