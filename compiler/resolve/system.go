package resolve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

func (r *resolver) sysctl() {
	for _, f := range sortedFields(r.n.Get("sysctl")) {
		want, kind := sysctlValue(f.Value)
		r.set(plan.Setting{ID: "sysctl." + f.Name, Domain: plan.DomainSysctl, Type: kind, Want: want,
			Select: plan.Select{Path: knob.SysctlPath(f.Name)}, Group: sysctl.Exclusive(f.Name)}, f.Value.Pos)
	}
}

// sysctlValue writes a value as the kernel takes it, and how to compare it.
func sysctlValue(n *load.Node) (want, kind string) {
	switch n.Kind {
	case load.Bool:
		if n.True {
			return "1", plan.TypeInt
		}
		return "0", plan.TypeInt
	case load.Int:
		return n.Text, plan.TypeInt
	}
	words := strings.Fields(n.Text)
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
	return n.Text, plan.TypeString
}

const (
	thpDir       = "/sys/kernel/mm/transparent_hugepage/"
	hugepagesDir = "/sys/kernel/mm/hugepages/"
	mglruDir     = "/sys/kernel/mm/lru_gen/"
)

func (r *resolver) memory() {
	n := r.n.Get("memory")
	if n == nil {
		return
	}
	if v := n.Get("thp"); v != nil {
		r.set(plan.Setting{ID: "memory.thp", Domain: plan.DomainMemory, Type: plan.TypeChoice, Want: v.Text,
			Select: plan.Select{Path: thpDir + "enabled"}, Optional: v.Text == "never"}, v.Pos)
	}
	if v := n.Get("thpDefrag"); v != nil {
		r.set(plan.Setting{ID: "memory.thpDefrag", Domain: plan.DomainMemory, Type: plan.TypeChoice, Want: v.Text,
			Select: plan.Select{Path: thpDir + "defrag"}}, v.Pos)
	}
	if v := n.Get("ksm"); v != nil {
		want := "0"
		if v.True {
			want = "1"
		}
		r.set(plan.Setting{ID: "memory.ksm", Domain: plan.DomainMemory, Type: plan.TypeInt, Want: want,
			Select: plan.Select{Path: "/sys/kernel/mm/ksm/run"}, Optional: !v.True}, v.Pos)
	}
	if v := n.Get("mglru"); v != nil {
		s := plan.Setting{ID: "memory.mglru", Domain: plan.DomainMemory, Type: plan.TypeInt, Want: digit(v.True),
			Select: plan.Select{Path: mglruDir + "enabled"}, Optional: true}
		if v.True {
			// The file is a set of bits, and the first is the switch; which others are on, the processor decides.
			s.Compare = plan.AtLeast
		}
		r.set(s, v.Pos)
	}
	if v := n.Get("mglruMinTTL"); v != nil {
		if ms, ok := r.whole("memory.mglruMinTTL", v, 1e6); ok {
			r.set(plan.Setting{ID: "memory.mglruMinTTL", Domain: plan.DomainMemory, Type: plan.TypeInt, Want: strconv.FormatInt(ms, 10),
				Select: plan.Select{Path: mglruDir + "min_ttl_ms"}, Optional: true}, v.Pos)
		}
	}
	r.mglru(n)
	for _, f := range sortedFields(n.Get("hugepages")) {
		size, ok := r.size("memory.hugepages."+f.Name, &load.Node{Kind: load.String, Text: f.Name, Pos: f.Pos})
		if !ok {
			continue
		}
		r.set(plan.Setting{ID: "memory.hugepages." + f.Name, Domain: plan.DomainMemory, Type: plan.TypeInt, Want: f.Value.Text, Compare: plan.AtLeast,
			Select: plan.Select{Path: hugepagesDir + "hugepages-" + strconv.FormatInt(size>>10, 10) + "kB/nr_hugepages"}}, f.Value.Pos)
	}
	r.zram(n.Get("zram"))
}

// mglru asks for the option, where the kernel has it (Linux 6.1).
func (r *resolver) mglru(n *load.Node) {
	on := n.Get("mglru")
	if on == nil {
		on = n.Get("mglruMinTTL")
	}
	if on != nil && (on.Kind != load.Bool || on.True) && KernelAtLeast(r.t.Release.Kernel, 6, 1) {
		r.imply("LRU_GEN", "y", on.Pos)
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

func (r *resolver) zram(n *load.Node) {
	if n == nil {
		return
	}
	amount := n
	z := &plan.ZRAM{}
	if n.Kind == load.Struct {
		amount = n.Get("size")
		z.Algorithm = text(n.Get("algorithm"))
		if symbol := r.t.Compressor(z.Algorithm); symbol != "" {
			r.imply(symbol, "y", n.Get("algorithm").Pos)
		}
	}
	size, ok := r.size("memory.zram", amount)
	if !ok || size == 0 {
		return
	}
	z.Bytes = size
	r.t.ZRAM = z
	// The size cannot change once the device is in use: a unit sets it at boot,
	// the runtime only looks.
	r.set(plan.Setting{ID: "memory.zram", Domain: plan.DomainMemory, Type: plan.TypeInt, Want: strconv.FormatInt(size, 10),
		Select: plan.Select{Class: "block", Name: "zram0", Attr: "disksize"}, Policy: plan.Report, Needs: plan.NeedsReboot}, amount.Pos)
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

func (r *resolver) storage() {
	for _, f := range sortedFields(r.n.Get("storage")) {
		s := plan.Storage{ID: f.Name, Name: f.Name, ReadKiB: -1, RQ: -1}
		set := func(field, attr, kind, want string, pos plan.Position) {
			// A medium that is not plugged in is no fault.
			r.set(plan.Setting{ID: "storage." + f.Name + "." + field, Domain: plan.DomainStorage, Type: kind, Want: want,
				Select: plan.Select{Class: "block", Name: f.Name, Attr: attr}, Optional: true}, pos)
		}
		if v := f.Value.Get("scheduler"); v != nil {
			s.Scheduler = v.Text
			if v.Text == "bfq" {
				// The other schedulers are part of every BSP's configuration.
				r.imply("IOSCHED_BFQ", "y", v.Pos)
			}
			set("scheduler", "queue/scheduler", plan.TypeChoice, v.Text, v.Pos)
		}
		if v := f.Value.Get("readahead"); v != nil {
			if size, ok := r.size(load.PathOf("storage", f.Name)+".readahead", v); ok {
				if size%1024 != 0 {
					r.inexact(load.PathOf("storage", f.Name)+".readahead", v, ErrInexact)
				}
				s.ReadKiB = int(size >> 10)
				set("readahead", "queue/read_ahead_kb", plan.TypeInt, strconv.Itoa(s.ReadKiB), v.Pos)
			}
		}
		if v := f.Value.Get("requests"); v != nil {
			s.Requests = int(integer(v, 0))
			set("requests", "queue/nr_requests", plan.TypeInt, v.Text, v.Pos)
		}
		if v := f.Value.Get("rqAffinity"); v != nil {
			s.RQ = int(integer(v, 0))
			set("rqAffinity", "queue/rq_affinity", plan.TypeInt, v.Text, v.Pos)
		}
		r.t.Storage = append(r.t.Storage, s)
	}
}

func (r *resolver) services() {
	named, partition := map[string]bool{}, map[string]string{}
	for _, f := range sortedFields(r.n.Get("services")) {
		n := f.Value
		s := plan.Service{
			Name: f.Name, Description: textOr(n.Get("description"), strings.TrimSuffix(f.Name, ".service")),
			Exec: texts(n.Get("exec")), Type: text(n.Get("type")), User: text(n.Get("user")),
			After: texts(n.Get("after")), Wants: texts(n.Get("wants")), Requires: texts(n.Get("requires")),
			CPUs: cpulist.Format(Cores(n.Get("cpus"))), Scheduling: text(n.Get("scheduling")), Priority: int(integer(n.Get("priority"), 0)),
			MemoryLock: boolean(n.Get("memoryLock"), false), CPUQuota: int(integer(n.Get("cpuQuota"), 0)), Restart: text(n.Get("restart")),
			CPUWeight: int(integer(n.Get("cpuWeight"), 0)), IOWeight: int(integer(n.Get("ioWeight"), 0)),
		}
		if len(s.Exec) > 0 {
			// A drop-in changes only what it names; a whole unit needs the rest.
			s.Type = textOr(n.Get("type"), "simple")
			s.Restart = textOr(n.Get("restart"), "on-failure")
			if s.Type == "oneshot" {
				s.Restart = textOr(n.Get("restart"), "no")
			}
			s.Enable = boolean(n.Get("enable"), true)
			s.Hardening = boolean(n.Get("hardening"), true)
		} else {
			s.Enable = boolean(n.Get("enable"), false)
			s.Hardening = boolean(n.Get("hardening"), false)
			s.Description = text(n.Get("description"))
		}
		if v := n.Get("nice"); v != nil {
			nice := int(integer(v, 0))
			s.Nice = &nice
		}
		if v := n.Get("slice"); v != nil {
			s.Slice = v.Text + ".slice"
			named[s.Slice] = true
			if _, ok := r.origins["services."+s.Slice]; !ok {
				r.origins["services."+s.Slice] = v.Pos
			}
		}
		if v := n.Get("memoryMax"); v != nil {
			s.MemoryMax, _ = r.size("services."+f.Name+".memoryMax", v)
		}
		if v := n.Get("memoryHigh"); v != nil {
			s.MemoryHigh, _ = r.size("services."+f.Name+".memoryHigh", v)
		}
		if v := n.Get("cpuPartition"); v != nil && s.Slice != "" {
			partition[s.Slice] = v.Text
			r.origins["services."+f.Name+".cpuPartition"] = v.Pos
		}
		if env := n.Get("environment"); env != nil {
			s.Environment = map[string]string{}
			for _, e := range env.Fields {
				s.Environment[e.Name] = e.Value.Text
			}
		}
		r.t.Services = append(r.t.Services, s)
		r.origins["services."+f.Name] = f.Pos
		r.plan.Units = append(r.plan.Units, plan.Unit{Name: s.Name, CPUs: s.CPUs, Slice: s.Slice,
			IOWeight: s.IOWeight, CPUWeight: s.CPUWeight, CPUQuota: s.CPUQuota,
			MemoryMax: s.MemoryMax, MemoryHigh: s.MemoryHigh, Scheduling: s.Scheduling, Priority: s.Priority, Nice: s.Nice})
	}
	cpus := cpulist.Format(r.t.Isolated())
	for name := range named {
		r.t.Slices = append(r.t.Slices, plan.Slice{Name: name, CPUs: cpus})
		r.plan.Units = append(r.plan.Units, plan.Unit{Name: name, CPUs: cpus, CPUPartition: partition[name]})
	}
	slices.SortFunc(r.t.Slices, func(a, b plan.Slice) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.plan.Units, func(a, b plan.Unit) int { return strings.Compare(a.Name, b.Name) })
}

func (r *resolver) packages() {
	for _, f := range sortedFields(r.n.Get("packages")) {
		r.t.Packages = append(r.t.Packages, plan.Package{Name: f.Name, Action: f.Value.Text})
		r.origins["packages."+f.Name] = f.Value.Pos
	}
	for _, tool := range tools() {
		n := r.n.At("tools", tool.field)
		if !boolean(n, false) {
			continue
		}
		r.origins["tools."+tool.field] = n.Pos
		names := tool.packages
		if tool.own != "" && r.n.At("runtime", "manifest") != nil {
			names = append(names, tool.own)
		}
		for _, name := range names {
			if r.n.At("packages", name) != nil {
				continue
			}
			r.t.Packages = append(r.t.Packages, plan.Package{Name: name, Action: "install"})
			r.origins["packages."+name] = n.Pos
		}
	}
	slices.SortFunc(r.t.Packages, func(a, b plan.Package) int { return strings.Compare(a.Name, b.Name) })
}

type toolSet struct {
	field    string
	packages []string
	own      string // of the layer, where it brings yoctuned
}

// tools are the packages behind the fields of #Tools. Every series since kirkstone
// has them in openembedded-core (recipes-kernel/perf, recipes-devtools/valgrind,
// recipes-rt/rt-tests, recipes-extended/stress-ng).
func tools() []toolSet {
	return []toolSet{
		{"perf", []string{"perf"}, ""},
		{"memory", []string{"valgrind"}, ""}, // and heapProfiler, of another layer
		{"benchmark", []string{"rt-tests", "stress-ng"}, "yoctuned-bench"},
	}
}

// interval is how often the device samples itself unless told otherwise.
const interval = int64(1e9)

func (r *resolver) monitor() {
	n := r.n.Get("monitor")
	if n == nil {
		return
	}
	r.plan.Monitor = &plan.Monitor{Interval: r.duration("monitor.interval", n.Get("interval"), interval), Metrics: boolean(n.Get("metrics"), false)}
	r.origins["monitor"] = n.Pos
}
