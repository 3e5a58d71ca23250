package monitor

import (
	"errors"
	"fmt"
	"github.com/yoctune/yoctune/schema/formats/nvpmodel"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// patience is how long a sample waits for its sensors.
const patience = 200 * time.Millisecond

// rediscover is the least time between two looks at what sensors there are.
const rediscover = 10 * time.Second

// Sampler takes samples of one device. It is for one goroutine.
type Sampler struct {
	dev      rootfs.FS
	clock    func() time.Duration // monotonic
	wall     func() time.Time
	patience time.Duration
	sensors  []*sensor
	found    time.Duration // when they were looked for
	missing  bool          // one of them was gone
	modes    *nvpmodel.File
	cpus     []cpuNode
	before   counters
}

// counters are what rates are made of.
type counters struct {
	at     time.Duration
	cpu    map[int]CPUTime
	faults int64
	known  bool // faults
}

// apply enters what a sensor said.
type apply func(*Sample)

// sensor is read by a goroutine of its own, which may hang in the kernel.
type sensor struct {
	name    string
	read    func() (apply, error)
	unknown apply // what is there without an answer
	answer  chan answer
	asked   time.Duration
	busy    bool
}

type answer struct {
	apply apply
	err   error
}

// New returns a sampler of a device.
func New(dev rootfs.FS) *Sampler {
	return &Sampler{dev: dev, clock: uptime, wall: time.Now, patience: patience}
}

// uptime is CLOCK_BOOTTIME: nobody sets it, and it runs through suspend.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Take samples the device. Rates are over the time since the sample before, and
// unknown in the first.
func (s *Sampler) Take() *Sample {
	start := s.clock()
	if s.sensors == nil || s.missing && start-s.found > rediscover {
		s.discover(start)
	}
	out := &Sample{
		Type: "sample", Time: s.wall().UTC(), Monotonic: int64(start),
		CPUs: []CPU{}, GPUs: []GPU{}, Engines: []Engine{}, Rails: []Rail{}, Zones: []Zone{}, Fans: []Fan{},
		Cooling: []Cooling{}, Alarms: []Alarm{}, Stale: []Stale{},
	}
	for _, sn := range s.sensors {
		sn.ask(start)
	}
	// These come from memory and cannot block.
	s.processors(out)
	s.memory(out)
	s.pressure(out)
	s.mode(out)
	s.before.at = start
	s.collect(out, start)
	return out
}

// ask starts the sensor's goroutine unless it still waits for an answer.
func (sn *sensor) ask(now time.Duration) {
	if sn.busy {
		select {
		case <-sn.answer: // too late to be of this moment
			sn.busy = false
		default:
			return
		}
	}
	sn.busy, sn.asked = true, now
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
		// One that missed an earlier deadline is not waited for again.
		if over || sn.asked != start {
			select {
			case a := <-sn.answer:
				s.enter(out, sn, a)
			default:
				s.stale(out, sn)
			}
			continue
		}
		select {
		case a := <-sn.answer:
			s.enter(out, sn, a)
		case <-late.C:
			over = true
			s.stale(out, sn)
		}
	}
}

func (s *Sampler) enter(out *Sample, sn *sensor, a answer) {
	sn.busy = false
	if errors.Is(a.err, fs.ErrNotExist) || errors.Is(a.err, unix.ENODEV) {
		s.missing = true
	}
	if a.apply == nil {
		a.apply = sn.unknown
	}
	a.apply(out)
}

func (s *Sampler) stale(out *Sample, sn *sensor) {
	sn.unknown(out)
	out.Stale = append(out.Stale, Stale{Sensor: sn.name, For: (s.clock() - sn.asked).Milliseconds()})
}

// discover finds the sensors. Those that hang keep their goroutine.
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
	// A configuration that cannot be parsed leaves the mode unknown.
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

// adder is how a find function registers a sensor.
type adder func(name string, unknown apply, read func() (apply, error))

func (s *Sampler) mode(out *Sample) {
	if s.modes == nil {
		return
	}
	id, err := power.Current(s.dev, s.modes)
	if err != nil {
		return
	}
	if name := s.modes.ModeName(id); name != "" {
		out.PowerMode = &name
	}
}

// text reads a node, trimmed.
func text(dev rootfs.FS, name string) (string, error) {
	c, err := dev.Read(name)
	if err != nil {
		return "", err
	}
	return strings.Trim(c.Text, " \t\n\x00"), nil
}

// words is text where absence is unknown.
func words(dev rootfs.FS, name string) *string {
	t, err := text(dev, name)
	if err != nil || t == "" {
		return nil
	}
	return &t
}

// number reads a node that holds one integer.
func number(dev rootfs.FS, name string) (int64, error) {
	t, err := text(dev, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %.40q is not a number", name, t)
	}
	return n, nil
}

// known is number where absence is unknown.
func known(dev rootfs.FS, name string) *int64 {
	n, err := number(dev, name)
	if err != nil {
		return nil
	}
	return &n
}

// scaled is known in another unit.
func scaled(dev rootfs.FS, name string, factor int64) *int64 {
	n := known(dev, name)
	if n == nil || *n > (1<<62)/factor || *n < -(1<<62)/factor {
		return nil
	}
	return new(*n * factor)
}

// children lists the names in a folder that have a prefix and then a number, by
// that number; none when there is no such folder.
func children(dev rootfs.FS, dir, prefix string) []string {
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
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	for i := range out {
		out[i] = path.Join(dir, out[i])
	}
	return out
}
