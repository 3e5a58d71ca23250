package memory

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Phases records the memory of this process in each phase of its life, and a timeline. The
// zero value is ready for use. Its methods may be called from several goroutines.
type Phases struct {
	mu       sync.Mutex
	began    time.Time
	phases   []Phase // the last one is current
	top      int64   // high-water mark when the phase began
	timeline []Point
	every    time.Duration // between two points, doubled when the timeline is full
	next     time.Time
	read     func() (held, most int64, ok bool) // nil: /proc/self
}

// Phase is a part of the life of a process, such as "load" or "run". Bytes are resident
// memory, nil if unknown.
type Phase struct {
	Name   string        `json:"phase"`
	At     time.Duration `json:"at_ns"`     // since the start of the first one
	Lasted time.Duration `json:"lasted_ns"` // so far
	Start  *int64        `json:"start"`     // bytes when it began
	End    *int64        `json:"end"`       // or now
	Peak   *int64        `json:"peak"`
	// Exact: the peak is the kernel's high-water mark. Otherwise an earlier phase had a
	// higher one, and the peak is the maximum of the samples.
	Exact bool `json:"exact"`
}

// Point is the resident memory at one moment.
type Point struct {
	At    time.Duration `json:"at_ns"`
	Bytes int64         `json:"bytes"`
}

// timelinePoints bounds the timeline. When it is full, every other point is removed.
const timelinePoints = 120

// Begin ends the current phase and begins another.
func (p *Phases) Begin(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.began.IsZero() {
		p.began, p.every = now, 100*time.Millisecond
	}
	p.addPoint(now, true)
	at := now.Sub(p.began)
	if n := len(p.phases); n > 0 {
		p.phases[n-1].Lasted = at - p.phases[n-1].At
	}
	ph := Phase{Name: name, At: at}
	if held, most, ok := p.readResident(); ok {
		ph.Start, ph.End, ph.Peak = &held, new(held), new(held)
		p.top = most
	}
	p.phases = append(p.phases, ph)
}

// Sample adds a point to the timeline if one is due.
func (p *Phases) Sample() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addPoint(time.Now(), false)
}

func (p *Phases) addPoint(now time.Time, always bool) {
	n := len(p.phases)
	if n == 0 || !always && now.Before(p.next) {
		return
	}
	held, most, ok := p.readResident()
	ph := &p.phases[n-1]
	ph.Lasted = now.Sub(p.began) - ph.At
	if !ok || ph.Peak == nil {
		return
	}
	ph.End, ph.Peak = &held, new(max(*ph.Peak, held))
	if most > p.top { // the high-water mark was set in this phase
		*ph.Peak, ph.Exact = most, true
	}
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(p.every)
	p.timeline = append(p.timeline, Point{now.Sub(p.began), held})
	if len(p.timeline) == timelinePoints {
		half := p.timeline[:0]
		for i, pt := range p.timeline {
			if i%2 == 0 {
				half = append(half, pt)
			}
		}
		p.timeline, p.every = half, 2*p.every
	}
}

// Snapshot returns the phases so far and the timeline.
func (p *Phases) Snapshot() ([]Phase, []Point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addPoint(time.Now(), true)
	return append([]Phase{}, p.phases...), append([]Point{}, p.timeline...)
}

func (p *Phases) readResident() (held, most int64, ok bool) {
	if p.read != nil {
		return p.read()
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, false
	}
	return Resident(string(b))
}

// Resident returns the resident memory and its high-water mark, in bytes, from
// /proc/PID/status.
func Resident(status string) (held, most int64, ok bool) {
	found := 0
	for line := range strings.Lines(status) {
		name, rest, _ := strings.Cut(line, ":")
		to := &held
		switch name {
		case "VmRSS":
		case "VmHWM":
			to = &most
		default:
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 53)
		if err != nil {
			return 0, 0, false
		}
		*to = int64(n) << 10
		found++
	}
	// The kernel updates its per-thread counters in batches, so that the mark may lag behind.
	return held, max(held, most), found == 2
}
