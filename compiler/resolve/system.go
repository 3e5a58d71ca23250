package resolve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

func (r *resolver) resolveSysctl() {
	for _, v := range r.c.Sysctl.Sorted() {
		want, kind := sysctlValue(v)
		r.set(v, plan.Setting{Domain: plan.DomainSysctl, Type: kind, Want: want,
			Select: plan.Select{Path: knob.SysctlPath(v.Key())}, Group: sysctl.Exclusive(v.Key())})
	}
}

// sysctlValue writes a value as the kernel takes it, and how to compare it.
func sysctlValue(v *config.Scalar) (want, kind string) {
	switch v.Kind() {
	case load.Bool:
		return FormatSwitch(v.IsTrue()), plan.TypeInt
	case load.Int:
		return v.Text, plan.TypeInt
	}
	words := strings.Fields(v.Text)
	numbers := len(words) > 0
	for _, w := range words {
		if _, err := strconv.ParseInt(w, 0, 64); err != nil {
			numbers = false
		}
	}
	switch {
	case numbers && len(words) == 1:
		return words[0], plan.TypeInt
	case numbers:
		return strings.Join(words, " "), plan.TypeVector
	}
	return v.Text, plan.TypeString
}

const (
	thpDir       = "/sys/kernel/mm/transparent_hugepage/"
	hugepagesDir = "/sys/kernel/mm/hugepages/"
	mglruDir     = "/sys/kernel/mm/lru_gen/"
)

func (r *resolver) resolveMemory() {
	m := &r.c.Memory
	r.setText(m.THP, plan.Setting{Domain: plan.DomainMemory, Type: plan.TypeChoice,
		Select: plan.Select{Path: thpDir + "enabled"}, Optional: m.THP.Text == "never"})
	r.setText(m.THPDefrag, plan.Setting{Domain: plan.DomainMemory, Type: plan.TypeChoice, Select: plan.Select{Path: thpDir + "defrag"}})
	r.setSwitch(m.KSM, plan.Setting{Domain: plan.DomainMemory, Type: plan.TypeInt,
		Select: plan.Select{Path: "/sys/kernel/mm/ksm/run"}, Optional: !m.KSM.On})
	r.resolveMGLRU()
	r.resolveEMC(m.EMC)
	for _, pages := range m.Hugepages.Sorted() {
		size, err := Size(&load.Node{Kind: load.String, Text: pages.Key()})
		if err != nil {
			continue // the schema lists the sizes
		}
		r.setInt(*pages, plan.Setting{Domain: plan.DomainMemory, Type: plan.TypeInt, Compare: plan.AtLeast,
			Select: plan.Select{Path: hugepagesDir + "hugepages-" + strconv.FormatInt(size>>10, 10) + "kB/nr_hugepages"}})
	}
	r.resolveZRAM()
	r.resolveTmpfs()
}

func (r *resolver) resolveMGLRU() {
	on, ttl := r.c.Memory.MGLRU, r.c.Memory.MGLRUMinTTL
	s := plan.Setting{Domain: plan.DomainMemory, Type: plan.TypeInt, Select: plan.Select{Path: mglruDir + "enabled"}, Optional: true}
	if on.On {
		// The file is a bit mask. Bit 0 enables MGLRU; the others depend on the
		// processor.
		s.Compare = plan.AtLeast
	}
	r.setSwitch(on, s)
	if ttl.IsSet() {
		if ms, ok := r.wholeDuration(ttl, 1e6); ok {
			r.set(ttl, plan.Setting{Domain: plan.DomainMemory, Type: plan.TypeInt, Want: strconv.FormatInt(ms, 10),
				Select: plan.Select{Path: mglruDir + "min_ttl_ms"}, Optional: true})
		}
	}
	if !KernelAtLeast(r.t.Release.Kernel, 6, 1) {
		return
	}
	if on.On {
		r.implyOption("LRU_GEN", "y", on)
	} else if !on.IsSet() && ttl.IsSet() {
		r.implyOption("LRU_GEN", "y", ttl)
	}
}

// KernelAtLeast compares a kernel's version, such as "5.15", with major.minor.
func KernelAtLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

// resolveTmpfs lists the file systems in memory, and has the device compare their sizes.
func (r *resolver) resolveTmpfs() {
	for _, m := range r.c.Tmpfs.Sorted() {
		mount := plan.Tmpfs{Path: m.Key(), Bytes: r.readBytes(m.Size), Mode: m.Mode.Or("1777"), Inodes: int64(m.Inodes.Value)}
		r.t.Tmpfs = append(r.t.Tmpfs, mount)
		// The kernel counts in pages, and prints KiB.
		r.set(m, plan.Setting{ID: "tmpfs." + m.Key(), Domain: plan.DomainMemory, Type: plan.TypeInt, Want: strconv.FormatInt((mount.Bytes+4095)/4096*4096, 10),
			Select: plan.Select{Class: "mount", Name: m.Key()}, Policy: plan.Report, Needs: plan.NeedsReboot})
	}
}

func (r *resolver) resolveZRAM() {
	zram := &r.c.Memory.ZRAM
	if !zram.IsSet() {
		return
	}
	amount, algorithm := zram.Scalar, zram.Struct.Algorithm
	if zram.Struct.IsSet() {
		amount = zram.Struct.Size
		if symbol := r.t.Compressor(algorithm.Text); symbol != "" {
			r.implyOption(symbol, "y", algorithm)
		}
	}
	size := r.readBytes(amount)
	if size == 0 {
		return
	}
	r.t.ZRAM = &plan.ZRAM{Bytes: size, Algorithm: algorithm.Text}
	// The size cannot change once the device is in use: a unit sets it at boot,
	// the runtime only looks.
	r.set(amount, plan.Setting{ID: "memory.zram", Domain: plan.DomainMemory, Type: plan.TypeInt, Want: strconv.FormatInt(size, 10),
		Select: plan.Select{Class: "block", Name: "zram0", Attr: "disksize"}, Policy: plan.Report, Needs: plan.NeedsReboot})
}

// Compressor is the kernel option that gives zram an algorithm; "" when it is
// not known. zram offers names of algorithms that the kernel lacks, and refuses
// them when they are written (drivers/block/zram/zcomp.c).
func (t *Target) Compressor(algorithm string) string {
	name := strings.ToUpper(strings.TrimSuffix(algorithm, "-rle"))
	switch name {
	case "LZO", "LZ4", "LZ4HC", "ZSTD", "842":
		return "CRYPTO_" + name
	}
	return ""
}

// readaheadOf proposes a size for one that was written in bytes: a small number is KiB, as the kernel
// counts it.
func readaheadOf(size int64) string {
	if size < 64<<10 {
		return fmt.Sprintf("%dKiB", max(size, 4))
	}
	return fmt.Sprintf("%dKiB", size>>10+1)
}

func (r *resolver) resolveStorage() {
	for _, c := range r.c.Storage.Sorted() {
		setting := func(attr, kind string) plan.Setting {
			// A medium that is not plugged in is not an error.
			return plan.Setting{Domain: plan.DomainStorage, Type: kind, Select: plan.Select{Class: "block", Name: c.Key(), Attr: attr}, Optional: true}
		}
		if c.Scheduler.Text == "bfq" {
			// The other schedulers are part of every BSP's configuration.
			r.implyOption("IOSCHED_BFQ", "y", c.Scheduler)
		}
		r.setText(c.Scheduler, setting("queue/scheduler", plan.TypeChoice))
		if size, ok := r.convert(c.Readahead, Size); ok {
			if size%1024 != 0 {
				r.reportPart(c.Readahead, size, "bytes", "KiB", readaheadOf(size))
			}
			read := setting("queue/read_ahead_kb", plan.TypeInt)
			read.Want = strconv.FormatInt(size>>10, 10)
			r.set(c.Readahead, read)
		}
		r.setInt(c.Requests, setting("queue/nr_requests", plan.TypeInt))
		r.setInt(c.RqAffinity, setting("queue/rq_affinity", plan.TypeInt))
	}
}

func (r *resolver) resolvePackages() {
	for _, p := range r.c.Packages.Sorted() {
		r.t.Packages = append(r.t.Packages, plan.Package{Name: p.Key(), Action: p.Text})
		r.origins[p.ID()] = p.Pos()
	}
	for _, svc := range r.c.Services.Sorted() {
		if svc.Package.IsSet() && !r.c.Packages.Has(svc.Package.Text) && !slices.ContainsFunc(r.t.Packages, func(p plan.Package) bool { return p.Name == svc.Package.Text }) {
			r.t.Packages = append(r.t.Packages, plan.Package{Name: svc.Package.Text, Action: "install"})
			r.origins["packages."+svc.Package.Text] = svc.Package.Pos()
		}
	}
	// Every series since kirkstone has these in openembedded-core (recipes-kernel/perf,
	// recipes-devtools/valgrind, recipes-rt/rt-tests, recipes-extended/stress-ng).
	tools := &r.c.Tools
	r.installTools(tools.Perf, "perf")
	r.installTools(tools.Memory, "valgrind") // and heapProfiler, of another layer
	r.installTools(tools.Benchmark, "rt-tests", "stress-ng")
	r.t.Benchmark = tools.Benchmark.On && !r.c.Packages.Has("yoctuned-bench")
	slices.SortFunc(r.t.Packages, func(a, b plan.Package) int { return strings.Compare(a.Name, b.Name) })
}

// installTools adds packages that a field of tools requests, unless packages has its
// own word on them.
func (r *resolver) installTools(tool config.Bool, names ...string) {
	if !tool.On {
		return
	}
	r.origins[tool.ID()] = tool.Pos()
	for _, name := range names {
		if !r.c.Packages.Has(name) {
			r.t.Packages = append(r.t.Packages, plan.Package{Name: name, Action: "install"})
			r.origins["packages."+name] = tool.Pos()
		}
	}
}

// monitorInterval is the time between samples when it is not set, in ns.
const monitorInterval = int64(1e9)

func (r *resolver) resolveMonitor() {
	m := &r.c.Monitor
	if m.IsSet() {
		r.plan.Monitor = &plan.Monitor{Interval: r.nanoseconds(m.Interval, monitorInterval), Metrics: m.Metrics.On}
		r.origins["monitor"] = m.Pos()
	}
}
