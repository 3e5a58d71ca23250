package watch

import (
	"fmt"
	"net"
	"path"
	"time"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// File is where the enforcer keeps its state for `yoctuned status` and `why`. It outlives
// the enforcer but, on a tmpfs, not the boot.
const File = "/run/yoctune/watch.json"

// maxEvents bounds the history; older events are dropped.
const maxEvents = 256

// Kinds of events.
const (
	Drift     = "drift"     // a process or the kernel changed a node
	Reapplied = "reapplied" // a node that appeared got its setting
	Returned  = "returned"  // summary of such settings after one cause
	Overdue   = "overdue"   // the node of a waiting setting did not appear in time
	Contest   = "contested" // another program keeps changing a node, which is not repaired any more
	Regained  = "regained"  // a contested node is enforced again
	Switched  = "switched"  // the power mode changed with the load, temperature or a lease
)

// Event is one thing that happened to a node.
type Event struct {
	Type    string          `json:"type"` // one of the kinds
	Time    time.Time       `json:"time"` // of the last occurrence, UTC
	ID      string          `json:"id"`
	Path    string          `json:"path"`
	Wanted  string          `json:"wanted"`
	Found   string          `json:"found"`           // before it was repaired
	By      *rootfs.Process `json:"by"`              // null: the kernel or an unknown process
	Outcome outcome.Outcome `json:"outcome"`         // after the repair, if there was one
	Repair  int64           `json:"repair_us"`       // from the event's arrival to the value read back; 0: not repaired
	Count   int             `json:"count,omitempty"` // of equal events in a row, if more than one
	Message string          `json:"message"`
}

// Contested is a node that is not repaired any more because another program keeps
// changing it.
type Contested struct {
	ID     string          `json:"id"`
	Path   string          `json:"path"`
	Wanted string          `json:"wanted"`
	Found  string          `json:"found"`
	By     *rootfs.Process `json:"by"`
	Since  time.Time       `json:"since"`
}

// Waiting is a setting whose node is not there yet.
type Waiting struct {
	ID     string    `json:"id"`
	Path   string    `json:"path"`
	Module string    `json:"module"` // that provides it, "" if unknown
	Until  time.Time `json:"until"`  // when it is reported as overdue

	optional bool // the device may lack the node: it is never overdue
}

// Text describes what the setting waits for.
func (w Waiting) Text(now time.Time) string {
	left := w.Until.Sub(now).Round(time.Second)
	overdue, what := "no such node so far; the setting is applied when it appears", "its node"
	if w.Module != "" {
		overdue, what = "module "+w.Module+" is not loaded; the setting is applied when it is", "module "+w.Module
	}
	if left <= 0 {
		return outcome.Name(w.Path) + ": " + overdue
	}
	return fmt.Sprintf("%s: waits for %s (%d:%02d left)", outcome.Name(w.Path), what, int(left.Minutes()), int(left.Seconds())%60)
}

// Lease is a lease in force, as status shows it.
type Lease struct {
	ID      uint64         `json:"id"`
	Profile string         `json:"profile"`
	Holder  rootfs.Process `json:"holder"`
	UID     uint32         `json:"uid"`
	Since   time.Time      `json:"since"`
	Expires time.Time      `json:"expires"` // unless it is renewed
}

// State is the content of File.
type State struct {
	Boot      string      `json:"boot"`
	PID       int         `json:"pid"`                  // of the enforcer, 0 after its end
	Killed    int         `json:"killed_pid,omitempty"` // of an enforcer that ended without recording it
	Written   time.Time   `json:"written"`              // UTC
	Plan      string      `json:"plan"`                 // file
	Digest    string      `json:"digest"`               // of that plan
	Events    []Source    `json:"sources"`              // of events
	Sweep     int64       `json:"sweep_s"`              // seconds between looks at every node
	Drifts    int         `json:"drifts"`               // since the start
	Repairs   int         `json:"repairs"`              // of those
	Contested []Contested `json:"contested"`
	Waiting   []Waiting   `json:"waiting"` // settings whose node does not exist yet
	Leases    []Lease     `json:"leases"`
	History   []Event     `json:"history"` // oldest first, bounded
}

// Source is a source of events, and whether it delivers them.
type Source struct {
	Name      string `json:"name"` // /proc, /sys, uevents
	Delivered bool   `json:"delivered"`
	Why       string `json:"why,omitempty"` // if not
}

// add appends an event, or counts it if it repeats the last one.
func (s *State) add(e Event) {
	if n := len(s.History); n > 0 && sameEvent(s.History[n-1], e) {
		last := &s.History[n-1]
		last.Time, last.Repair, last.By = e.Time, e.Repair, e.By
		last.Count = max(last.Count, 1) + 1
		return
	}
	if len(s.History) >= maxEvents {
		s.History = append(s.History[:0], s.History[len(s.History)-maxEvents+1:]...)
	}
	s.History = append(s.History, e)
}

func sameEvent(a, b Event) bool {
	return a.Type == b.Type && a.Path == b.Path && a.Found == b.Found && a.Outcome == b.Outcome &&
		(a.By == nil) == (b.By == nil) && (a.By == nil || a.By.Command == b.By.Command)
}

// ReadState returns the state that an enforcer of this boot has written, nil if there is
// none. An enforcer that was killed has left its PID there; ReadState moves it to Killed.
func ReadState(dev *rootfs.Root, boot string) (*State, error) {
	s, err := loadState(dev, boot)
	if s != nil && s.PID != 0 && !isEnforcing(dev, s.PID) {
		s.PID, s.Killed = 0, s.PID
	}
	return s, err
}

// isEnforcing reports whether the enforcer with that PID still runs. A PID alone may belong
// to another process by now, but the kernel releases the lock of a process that has ended.
func isEnforcing(dev *rootfs.Root, pid int) bool {
	if h := dev.Holder(); h != nil {
		return h.PID == pid || h.PID == 0
	}
	// In a sandbox the lock may be invisible. The socket has no listener after the end.
	c, err := net.DialTimeout("unix", path.Join(dev.Dir(), api.Socket), time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

func loadState(st rootfs.State, boot string) (*State, error) {
	s, err := rootfs.ReadJSON[State](st, File)
	if err != nil {
		return nil, fmt.Errorf("read the enforcer's state: %w", err)
	}
	if s == nil || s.Boot != boot {
		return nil, nil
	}
	return s, nil
}

// Watcher describes who enforces the plan, and how old the state is when nobody does.
func (s *State) Watcher(now time.Time) string {
	if s.PID != 0 {
		return fmt.Sprintf("by pid %d", s.PID)
	}
	text := "no longer; nobody enforces the plan"
	if s.Killed != 0 {
		text += fmt.Sprintf(": pid %d ended unexpectedly", s.Killed)
	}
	if !s.Written.IsZero() {
		text += fmt.Sprintf("; its last state is %v old", now.Sub(s.Written).Round(time.Second))
	}
	return text
}

func (s *State) write(st rootfs.State) error {
	if err := rootfs.WriteJSON(st, File, s); err != nil {
		return fmt.Errorf("write the enforcer's state: %w", err)
	}
	return nil
}
