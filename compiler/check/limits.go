package check

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// The limits of a service's resources, wherever the configuration writes them: in a field, in a
// directive of systemd, or in an option of the container engine that the service starts.

// bound is one of them.
type bound struct {
	config.Place
	name  string // as it is written: memoryMax, MemoryMax=, --memory
	value int64  // bytes, or percent of a core
}

// limits are the limits of one service. Of a kind the field comes first, as systemd keeps it with a
// container's own limit below it.
type limits struct {
	memoryMax, memoryHigh, quota, ioWeight []bound
	containers                             []container
}

// first returns the place of the first limit of a kind, that of an absent one for none.
func first(all []bound) config.Place {
	if len(all) == 0 {
		return config.Place{}
	}
	return all[0].Place
}

// limitsOf lists the limits of a service.
func (s *subject) limitsOf(svc *config.Service) limits {
	var l limits
	for _, f := range []struct {
		to         *[]bound
		field      config.Part
		read       func() (int64, bool)
		directives []string
		parse      func(string) (int64, bool)
	}{
		{&l.memoryMax, svc.MemoryMax, readSizeOf(svc.MemoryMax), []string{"MemoryMax", "MemoryLimit"}, s.parseMemory},
		{&l.memoryHigh, svc.MemoryHigh, readSizeOf(svc.MemoryHigh), []string{"MemoryHigh"}, s.parseMemory},
		{&l.quota, svc.CPUQuota, func() (int64, bool) { return int64(svc.CPUQuota.Value), true }, []string{"CPUQuota"}, parsePercent},
		{&l.ioWeight, svc.IOWeight, func() (int64, bool) { return int64(svc.IOWeight.Value), true }, []string{"IOWeight", "BlockIOWeight"}, parseWhole},
	} {
		if at := f.field.Where(); at.IsSet() {
			if v, ok := f.read(); ok {
				*f.to = append(*f.to, bound{at, at.Key(), v})
			}
		}
		for _, name := range f.directives {
			elements := svc.Unit.Get("Service").Get(name).Elements()
			if len(elements) == 0 {
				continue
			}
			d := elements[len(elements)-1] // the last line counts
			if v, ok := f.parse(resolve.DirectiveValue(d)); ok {
				*f.to = append(*f.to, bound{d.Place, name + "=", v})
			}
		}
	}
	for _, c := range commandsOf(svc) {
		if found, ok := parseContainer(c.Items); ok {
			l.containers = append(l.containers, found)
			l.memoryMax = append(l.memoryMax, found.memory...)
			l.quota = append(l.quota, found.cpus...)
		}
	}
	return l
}

// memory returns the limit that bounds what the service takes: that of its container, which is in a control
// group of its own, else the lowest.
func (l limits) memory() (lowest bound, ok bool) {
	all := l.memoryMax
	if own := slices.DeleteFunc(slices.Clone(all), func(m bound) bool { return !isOption(m) }); len(own) > 0 {
		all = own
	}
	if len(all) == 0 {
		return bound{}, false
	}
	return slices.MinFunc(all, func(a, b bound) int { return cmp.Compare(a.value, b.value) }), true
}

func readSizeOf(field config.Size) func() (int64, bool) {
	return func() (int64, bool) {
		v, err := resolve.Size(field.Node())
		return v, err == nil
	}
}

// parseMemory reads a size of systemd; a percentage is of the module's memory.
func (s *subject) parseMemory(text string) (int64, bool) {
	if digits, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(digits, 64)
		return int64(percent / 100 * float64(s.Board.RAMBytes)), err == nil
	}
	return parsePowers(text)
}

func parsePercent(text string) (int64, bool) {
	digits, ok := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(digits, 64)
	return int64(percent), ok && err == nil
}

func parseWhole(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

var powers = lazyregexp.New(`^([0-9]+(?:\.[0-9]+)?) ?([kKmMgGtTpP]?)i?[bB]?$`)

// parsePowers reads a size whose units are powers of 1024, as those of systemd and of container engines.
func parsePowers(text string) (int64, bool) {
	m := powers.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n = math.Ldexp(n, 10*(strings.Index(" KMGTP", strings.ToUpper(m[2] + " ")[:1])))
	return int64(n), err == nil && n < math.MaxInt64
}

// container holds the limits on the command line of a container engine.
type container struct {
	engine                                  string
	memory, reservation, swap, shared, cpus []bound
}

// Options of "run" and "create" that take a value. Their value may follow "=".
var containerOptions = map[string]string{
	"-m": "memory", "--memory": "memory", "--memory-reservation": "reservation", "--memory-swap": "swap", "--shm-size": "shared", "--cpus": "cpus",
}

// parseContainer reads the limits of a container that a command starts. The command may be that of a shell.
func parseContainer(command []config.String) (container, bool) {
	var words []config.String
	for _, w := range command {
		for word := range strings.FieldsSeq(w.Text) {
			words = append(words, config.String{Place: w.Place, Text: strings.Trim(word, `"'`)})
		}
	}
	var c container
	starts := false
	for i, w := range words {
		switch {
		case c.engine == "":
			c.engine = engineOf(w.Text)
		case w.Text == "run" || w.Text == "create":
			starts = true
		case starts:
			option, value, inOne := strings.Cut(w.Text, "=")
			kind := containerOptions[option]
			if kind == "" {
				continue
			}
			at := w
			if !inOne {
				if i+1 == len(words) {
					continue
				}
				at, value = words[i+1], words[i+1].Text
			}
			c.add(kind, option, at.Place, value)
		}
	}
	return c, starts
}

func (c *container) add(kind, option string, at config.Place, text string) {
	if kind == "cpus" {
		if cores, err := strconv.ParseFloat(text, 64); err == nil {
			c.cpus = append(c.cpus, bound{at, option, int64(math.Round(100 * cores))})
		}
		return
	}
	v, ok := parsePowers(text)
	if !ok {
		return // "-1" is none
	}
	to := map[string]*[]bound{"memory": &c.memory, "reservation": &c.reservation, "swap": &c.swap, "shared": &c.shared}[kind]
	*to = append(*to, bound{at, option, v})
}

// leastContainer is the smallest memory limit that Docker takes, in bytes.
const leastContainer = 6 << 20

func checkContainerLimit(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		for _, c := range s.limitsOf(svc).containers {
			s.checkContainer(svc.Key(), c)
		}
	}
}

func (s *subject) checkContainer(of string, c container) {
	last := func(all []bound) *bound {
		if len(all) == 0 {
			return nil
		}
		return &all[len(all)-1]
	}
	memory, reserved, swap, cpus := last(c.memory), last(c.reservation), last(c.swap), last(c.cpus)
	if cores := int64(100 * s.Board.Cores); cpus != nil && cpus.value > cores && c.engine == "docker" {
		s.refuse(s.coreCount(), cpus, cpus.Show(), "", "docker refuses --cpus above the %d cores of %s, and %s does not start", s.Board.Cores, s.Board.ID, of)
	}
	if memory == nil || memory.value == 0 {
		return
	}
	if memory.value < leastContainer && c.engine == "docker" {
		s.reportAt(memory, memory.Show(), `write "6m" at least`, "docker refuses a limit below 6 MiB, and %s does not start", of)
	}
	if swap != nil && swap.value > 0 && swap.value < memory.value {
		s.reportAt(swap, swap.Show(), "write memory and swap together", "%s refuses --memory-swap below --memory, and %s does not start", c.engine, of).addRelated(memory, "the limit of memory")
	}
	if reserved != nil && reserved.value > memory.value {
		s.reportAt(reserved, reserved.Show(), "write a reservation below the limit", "%s refuses --memory-reservation above --memory, and %s does not start", c.engine, of).addRelated(memory, "the limit")
	}
}

func limitRules() []Rule {
	return []Rule{
		{
			ID: "service-limits", Severity: diag.Warning,
			Title: "a limit of a service has no effect",
			Cause: "memoryMax ends processes before memoryHigh slows them down. A quota above the processor time of all cores, and a limit above the module's memory, are never reached. Directives of systemd and options of container engines count as the fields do.",
			Fix:   "lower the limit, or remove it",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], external: true, memoryHigh: "2GiB", memoryMax: "1GiB"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], external: true, memoryHigh: "1GiB", memoryMax: "2GiB"}`,
			See:   "systemd.resource-control(5), docker-run(1)",
			run:   checkServiceLimits,
		},
		{
			ID: "container-limit", Severity: diag.Error,
			Title: "a limit that the container engine refuses",
			Cause: "Docker refuses --cpus above the number of cores and --memory below 6 MiB. No engine takes a reservation above the limit, or a sum of memory and swap below it. The container does not start.",
			Fix:   "write a limit that the module can hold",
			Wrong: `services: "a.service": {exec: ["/usr/bin/docker", "run", "--cpus", "8", "acme/vision"], external: true}`,
			Right: `services: "a.service": {exec: ["/usr/bin/docker", "run", "--cpus", "2", "acme/vision"], external: true}`,
			See:   "moby daemon/daemon_unix.go: verifyPlatformContainerResources",
			run:   checkContainerLimit,
		},
	}
}

func checkServiceLimits(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		l := s.limitsOf(svc)
		for _, high := range l.memoryHigh {
			for _, most := range l.memoryMax {
				if high.value >= most.value && !isOption(most) {
					s.reportAt(high, high.Show(), "", "%s of %s is not below %s", strings.TrimSuffix(high.name, "="), svc.Key(), strings.TrimSuffix(most.name, "=")).addRelated(most, "the limit that acts first")
				}
			}
		}
		cores := s.countCores(svc.CPUs)
		for _, quota := range l.quota {
			if quota.value > int64(100*cores) && !(isOption(quota) && quota.value > int64(100*s.Board.Cores)) { // container-limit
				s.reportAt(quota, quota.Show(), "", "%d %% of a core are never reached on %d cores", quota.value, cores).restOn(s.coreCount())
			}
		}
		all := slices.Concat(l.memoryMax, l.memoryHigh)
		for _, c := range l.containers {
			all = append(all, c.shared...)
		}
		counted, _ := l.memory() // memory-budget adds these up
		for _, m := range all {
			if m.value > s.Board.RAMBytes && s.Board.RAMBytes > 0 && m != counted {
				s.reportAt(m, m.Show(), "", "the %d MiB of %s are never reached on %d MiB of memory", m.value>>20, strings.TrimSuffix(m.name, "="), s.Board.RAMBytes>>20).restOn(s.memorySize())
			}
		}
	}
}

// isOption reports whether a limit is an option of a container engine.
func isOption(l bound) bool { return strings.HasPrefix(l.name, "-") }
