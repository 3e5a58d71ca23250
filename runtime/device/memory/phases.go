package memory

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Phases keeps what this process held in each phase of its life, and a timeline. The
// zero value is ready; its methods may be called from several goroutines.
type Phases struct {
	mu       sync.Mutex
	began    time.Time
	phases   []Phase // the last one is going on
	top      int64   // most resident ever, when the phase began
	timeline []Point
	every    time.Duration // between two points, doubled when there is no room
	next     time.Time
	read     func() (held, most int64, ok bool) // nil: /proc/self
}

// Phase is a part of the life of a process, such as "load" or "run". Bytes are of
// resident memory; nil: the kernel does not say.
type Phase struct {
	Name   string        `json:"phase"`
	At     time.Duration `json:"at_ns"`     // since the first one began
	Lasted time.Duration `json:"lasted_ns"` // so far
	Start  *int64        `json:"start"`     // bytes when it began
	End    *int64        `json:"end"`       // or now
	Peak   *int64        `json:"peak"`
	// Exact: the peak is the kernel's own. Else it is the most that was seen at the looks
	// in the timeline, because an earlier phase held more.
	Exact bool `json:"exact"`
}

// Point is what was held at a moment.
type Point struct {
	At    time.Duration `json:"at_ns"`
	Bytes int64         `json:"bytes"`
}

// timelinePoints bounds the timeline: when it is full every other point goes.
const timelinePoints = 120

// Begin ends the phase that goes on and begins another.
func (p *Phases) Begin(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.began.IsZero() {
		p.began, p.every = now, 100*time.Millisecond
	}
	p.look(now, true)
	at := now.Sub(p.began)
	if n := len(p.phases); n > 0 {
		p.phases[n-1].Lasted = at - p.phases[n-1].At
	}
	ph := Phase{Name: name, At: at}
	if held, most, ok := p.held(); ok {
		ph.Start, ph.End, ph.Peak = &held, new(held), new(held)
		p.top = most
	}
	p.phases = append(p.phases, ph)
}

// Look takes a point of the timeline when it is time for one.
func (p *Phases) Look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look(time.Now(), false)
}

func (p *Phases) look(now time.Time, always bool) {
	n := len(p.phases)
	if n == 0 || !always && now.Before(p.next) {
		return
	}
	held, most, ok := p.held()
	ph := &p.phases[n-1]
	ph.Lasted = now.Sub(p.began) - ph.At
	if !ok || ph.Peak == nil {
		return
	}
	ph.End, ph.Peak = &held, new(max(*ph.Peak, held))
	if most > p.top { // it was never so high before: the peak is of this phase
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

// Take returns the phases so far and the timeline.
func (p *Phases) Take() ([]Phase, []Point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look(time.Now(), true)
	return append([]Phase{}, p.phases...), append([]Point{}, p.timeline...)
}

func (p *Phases) held() (held, most int64, ok bool) {
	if p.read != nil {
		return p.read()
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, false
	}
	return Resident(string(b))
}

// Resident reads what a process holds and the most it ever held, in bytes, from its
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
	// The kernel adds up what several threads hold now and then: the most may be behind.
	return held, max(held, most), found == 2
}
