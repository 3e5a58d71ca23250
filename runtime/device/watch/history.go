package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// File holds what the watching process knows, for `yoctuned status` and `why`.
// It outlives that process and, lying on a tmpfs, not the boot.
const File = "/run/yoctune/watch.json"

// maxEvents bounds the history; older events are dropped.
const maxEvents = 256

// Kinds of events.
const (
	Drift     = "drift"     // a node is not as wanted, by somebody's or the kernel's doing
	Reapplied = "reapplied" // a device came, or came back, and was given its settings
	Returned  = "returned"  // what came, and how many settings it was given
	Overdue   = "overdue"   // what a setting waits for has not come in time
	Contest   = "contested" // somebody insists, and this program has yielded
	Regained  = "regained"  // a contest is over
	Switched  = "switched"  // the power mode followed the load, heat or a lease
)

// Event is one thing that happened to a node.
type Event struct {
	Type    string          `json:"type"` // one of the kinds
	Time    time.Time       `json:"time"` // of the last occurrence, UTC
	ID      string          `json:"id"`
	Path    string          `json:"path"`
	Wanted  string          `json:"wanted"`
	Found   string          `json:"found"`           // before it was repaired
	By      *rootfs.Process `json:"by"`              // null: the kernel, or somebody who was not seen
	Outcome outcome.Outcome `json:"outcome"`         // after the repair, if there was one
	Repair  int64           `json:"repair_us"`       // from the event's arrival to the value read back; 0: not repaired
	Count   int             `json:"count,omitempty"` // of equal events in a row, when more than one
	Message string          `json:"message"`
}

// Contested is a node that was yielded to somebody.
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
	Module string    `json:"module"`
	Until  time.Time `json:"until"` // after which it is said to be overdue
}

// Text says what is waited for, and how long still.
func (w Waiting) Text(now time.Time) string {
	left := w.Until.Sub(now).Round(time.Second)
	if left <= 0 {
		return fmt.Sprintf("%s: module %s has not come; it is set when it does", outcome.Name(w.Path), w.Module)
	}
	return fmt.Sprintf("%s: waits for module %s (%d:%02d left)", outcome.Name(w.Path), w.Module, int(left.Minutes()), int(left.Seconds())%60)
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
	PID       int         `json:"pid"`     // of the watching process, 0 when it ended orderly
	Plan      string      `json:"plan"`    // file it obeys
	Digest    string      `json:"digest"`  // of that plan
	Events    []Source    `json:"sources"` // where events come from
	Sweep     int64       `json:"sweep_s"` // seconds between looks at every node
	Drifts    int         `json:"drifts"`  // since the start, by whomever
	Repairs   int         `json:"repairs"` // of those, put right
	Contested []Contested `json:"contested"`
	Waiting   []Waiting   `json:"waiting"` // settings whose node a module brings
	Leases    []Lease     `json:"leases"`
	History   []Event     `json:"history"` // oldest first, bounded
}

// Source says whether a file system's events reach this program.
type Source struct {
	Name      string `json:"name"` // /proc, /sys, uevents
	Delivered bool   `json:"delivered"`
	Why       string `json:"why,omitempty"` // when not
}

// add appends an event; one that repeats the last is counted instead.
func (s *State) add(e Event) {
	if n := len(s.History); n > 0 && same(s.History[n-1], e) {
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

func same(a, b Event) bool {
	return a.Type == b.Type && a.Path == b.Path && a.Found == b.Found && a.Outcome == b.Outcome &&
		(a.By == nil) == (b.By == nil) && (a.By == nil || a.By.Command == b.By.Command)
}

// ReadState returns what a watching process of this boot left, nil when none
// did.
func ReadState(st rootfs.State, boot string) (*State, error) {
	b, err := st.ReadState(File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read drift history: %w", err)
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read drift history: %s: %w", File, err)
	}
	if s.Boot != boot {
		return nil, nil
	}
	return &s, nil
}

func (s *State) write(st rootfs.State) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write drift history: %w", err)
	}
	if err := st.WriteState(File, append(b, '\n')); err != nil {
		return fmt.Errorf("write drift history: %w", err)
	}
	return nil
}
