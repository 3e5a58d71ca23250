package monitor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/schema/formats/nvpmodel"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// patience bounds the wait for sensors of one sample.
const patience = 200 * time.Millisecond

// rediscover is the minimum time between two searches for sensors.
const rediscover = 10 * time.Second

// Sampler takes samples of a device. It must be used by one goroutine.
type Sampler struct {
	dev      rootfs.FS
	clock    func() time.Duration // monotonic
	wall     func() time.Time
	patience time.Duration
	sensors  []*sensor
	found    time.Duration // time of the last search
	missing  bool          // a sensor has disappeared
	modes    *nvpmodel.File
	cpus     []cpuNode
	before   counters
}

// counters are the previous values of rates.
type counters struct {
	at     time.Duration
	cpu    map[int]CPUTime
	faults int64
	known  bool // faults
}

// apply enters a sensor's values into a sample.
type apply func(*Sample)

// sensor is read in a goroutine of its own, which may hang in the kernel.
type sensor struct {
	name    string
	read    func() (apply, error)
	unknown apply // enters unknown values
	answer  chan answer
	started time.Duration
	busy    bool
}

type answer struct {
	apply apply
	err   error
}

// New returns a sampler of a device.
func New(dev rootfs.FS) *Sampler {
	return &Sampler{dev: dev, clock: rootfs.BootTime, wall: time.Now, patience: patience}
}

// Take samples the device. Rates cover the time since the previous sample and are unknown in
// the first.
func (s *Sampler) Take() *Sample {
	start := s.clock()
	if s.sensors == nil || s.missing && start-s.found > rediscover {
		s.discover(start)
	}
	out := NewSample()
	out.Time, out.Monotonic = s.wall().UTC(), int64(start)
	for _, sn := range s.sensors {
		sn.startRead(start)
	}
	// These files are in memory and cannot block.
	s.sampleCPUs(out)
	s.sampleMemory(out)
	s.samplePressure(out)
	s.samplePowerMode(out)
	s.before.at = start
	s.collect(out, start)
	return out
}

// startRead starts a read unless the previous one has not returned.
func (sn *sensor) startRead(now time.Duration) {
	if sn.busy {
		select {
		case <-sn.answer: // discard a late answer
			sn.busy = false
		default:
			return
		}
	}
	sn.busy, sn.started = true, now
	go func() {
		a, err := sn.read()
		sn.answer <- answer{a, err}
	}()
}

// collect enters the answers in the order of the sensors.
func (s *Sampler) collect(out *Sample, start time.Duration) {
	late := time.NewTimer(s.patience)
	defer late.Stop()
	over := false
	for _, sn := range s.sensors {
		// Do not wait for a sensor that missed an earlier deadline.
		if !over && sn.started == start {
			select {
			case a := <-sn.answer:
				s.apply(out, sn, a)
				continue
			case <-late.C:
				over = true
			}
		}
		select {
		case a := <-sn.answer:
			s.apply(out, sn, a)
		default:
			s.markStale(out, sn)
		}
	}
}

func (s *Sampler) apply(out *Sample, sn *sensor, a answer) {
	sn.busy = false
	if errors.Is(a.err, fs.ErrNotExist) || errors.Is(a.err, unix.ENODEV) {
		s.missing = true
	}
	if a.apply == nil {
		a.apply = sn.unknown
	}
	a.apply(out)
}

func (s *Sampler) markStale(out *Sample, sn *sensor) {
	sn.unknown(out)
	out.Stale = append(out.Stale, Stale{Sensor: sn.name, For: (s.clock() - sn.started).Milliseconds()})
}

// discover finds the sensors. Sensors that hang keep their goroutine.
func (s *Sampler) discover(now time.Duration) {
	hung := map[string]*sensor{}
	for _, sn := range s.sensors {
		if sn.busy {
			hung[sn.name] = sn
		}
	}
	s.found, s.missing = now, false
	s.sensors = []*sensor{}
	s.cpus = findCPUs(s.dev)
	// The mode stays unknown if the configuration cannot be parsed.
	s.modes, _ = power.Read(s.dev)
	add := func(name string, unknown apply, read func() (apply, error)) {
		if sn := hung[name]; sn != nil {
			s.sensors = append(s.sensors, sn)
			return
		}
		s.sensors = append(s.sensors, &sensor{name: name, read: read, unknown: unknown, answer: make(chan answer, 1)})
	}
	findPolicies(s.dev, s.cpus, add)
	findGPUs(s.dev, add)
	findEMC(s.dev, add)
	findHwmon(s.dev, add)
	findIIO(s.dev, add)
	findZones(s.dev, add)
	findCooling(s.dev, add)
	findNVMap(s.dev, add)
}

// adder registers a sensor that was found.
type adder func(name string, unknown apply, read func() (apply, error))

func (s *Sampler) samplePowerMode(out *Sample) {
	if s.modes == nil {
		return
	}
	if id, err := power.Current(s.dev, s.modes); err == nil && s.modes.ModeName(id) != "" {
		out.PowerMode = new(s.modes.ModeName(id))
	}
}

// readText returns the trimmed text of a node.
func readText(dev rootfs.FS, name string) (string, error) {
	c, err := dev.Read(name)
	if err != nil {
		return "", err
	}
	return strings.Trim(c.Text, " \t\n\x00"), nil
}

// readOptional returns the text of a node, nil if it is empty or cannot be read.
func readOptional(dev rootfs.FS, name string) *string {
	t := rootfs.ReadText(dev, name)
	if t == "" {
		return nil
	}
	return &t
}

// readNumber reads a node that holds an integer.
func readNumber(dev rootfs.FS, name string) (int64, error) {
	t, err := readText(dev, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %.40q is not a number", name, t)
	}
	return n, nil
}

// readOptionalNumber returns the integer in a node, nil if it cannot be read.
func readOptionalNumber(dev rootfs.FS, name string) *int64 {
	n, err := readNumber(dev, name)
	if err != nil {
		return nil
	}
	return &n
}

// readScaled returns the integer in a node times factor, nil if it cannot be read.
func readScaled(dev rootfs.FS, name string, factor int64) *int64 {
	n := readOptionalNumber(dev, name)
	if n == nil || *n > (1<<62)/factor || *n < -(1<<62)/factor {
		return nil
	}
	return new(*n * factor)
}

// listNumbered returns the paths in a directory whose names are a prefix and a number, ordered
// by number. It returns none if there is no such directory.
func listNumbered(dev rootfs.FS, dir, prefix string) []string {
	names, err := dev.List(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		if digits, ok := strings.CutPrefix(n, prefix); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	for i := range out {
		out[i] = path.Join(dir, out[i])
	}
	return out
}
