// Package api is the protocol of a running yoctuned: NDJSON over the unix socket
// /run/yoctune/socket, with one request and one answer per line.
//
//	> {"type":"acquire","profile":"high-performance","ttl_ms":60000}
//	< {"type":"granted","lease":7,"ttl_ms":60000,"settings":[…],"notes":[…]}
//	> {"type":"renew"}
//	< {"type":"renewed","lease":7,"ttl_ms":60000}
//	> {"type":"release"}
//	< {"type":"released","lease":7}
//
// A watcher receives the events of the plan's nodes until it closes the connection:
//
//	> {"type":"watch"}
//	< {"type":"watching"}
//	< {"type":"event","event":{"kind":"drift","path":"/proc/sys/vm/swappiness",…}}
//
// All clients share each reading of the sensors, and a recent sample is returned again. A
// sample has the format of `yoctuned monitor --format json`:
//
//	> {"type":"sample","max_age_ms":900}
//	< {"type":"sampled","sample":{"type":"sample","cpus":[…],…}}
//
// "type" comes first in every answer. A connection holds at most one lease. The lease ends
// with the connection, and with the process that connected even if a child has inherited
// the connection. Every user may send "leases", "sample" and "watch"; "acquire" requires
// root or membership of group yoctune, and "revoke" requires root. Peer credentials, as of
// connect(2), identify the client.
package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Socket is the path on which yoctuned listens.
const Socket = "/run/yoctune/socket"

// MaxMessage bounds one line, in bytes.
const MaxMessage = 4096

// Types of requests.
const (
	Acquire = "acquire"
	Renew   = "renew"
	Release = "release"
	Revoke  = "revoke" // root only: end any lease
	Leases  = "leases" // list those in force
	Sample  = "sample" // measure the device
	Watch   = "watch"  // receive events from now on
)

// Types of answers.
const (
	Granted  = "granted"
	Renewed  = "renewed"
	Released = "released"
	Listed   = "listed"
	Sampled  = "sampled"
	Watching = "watching"
	Happened = "event"
	Failed   = "error"
)

// Codes of failed requests.
const (
	CodeMalformed = "malformed"
	CodeDenied    = "denied"
	CodeQuota     = "quota"
	CodeNone      = "none"   // no such lease
	CodeDevice    = "device" // the settings could not be journalled
)

// ErrMalformed is wrapped by errors about a line that is not a request.
var ErrMalformed = errors.New("not a request")

// Request is a client's request.
type Request struct {
	Type    string `json:"type"`
	Profile string `json:"profile,omitempty"`    // of acquire
	TTL     int64  `json:"ttl_ms,omitempty"`     // of acquire; 0: yoctuned's default
	Lease   uint64 `json:"lease,omitempty"`      // of revoke
	MaxAge  int64  `json:"max_age_ms,omitempty"` // of sample: maximum age; values below 100 count as 100
}

// Answer is yoctuned's answer to a request, or an event.
type Answer struct {
	Type     string          `json:"type"`
	Lease    uint64          `json:"lease,omitempty"`
	TTL      int64           `json:"ttl_ms,omitempty"`
	Settings []Setting       `json:"settings,omitempty"` // changed by the lease
	Notes    []string        `json:"notes,omitempty"`    // settings of the profile that this device lacks
	Leases   []Holder        `json:"leases,omitempty"`
	Event    *Event          `json:"event,omitempty"`
	Sample   json.RawMessage `json:"sample,omitempty"`
	Code     string          `json:"code,omitempty"` // of an error
	Message  string          `json:"message,omitempty"`
}

// Setting is one node that a lease changed, with an outcome as `yoctuned apply`
// reports it.
type Setting struct {
	Path    string `json:"path"`
	Wanted  string `json:"wanted"`
	Found   string `json:"found"`
	Outcome string `json:"outcome"`
	Message string `json:"message,omitempty"`
}

// Holder is a lease in force.
type Holder struct {
	Lease   uint64 `json:"lease"`
	UID     uint32 `json:"uid"`
	PID     int    `json:"pid"`
	Command string `json:"comm,omitempty"`
	Left    int64  `json:"left_ms"` // until it ends, unless renewed
}

// Event is a change of a node.
type Event struct {
	Kind    string    `json:"kind"` // drift, reapplied, contested, regained, switched
	Time    time.Time `json:"time"` // UTC
	ID      string    `json:"id"`   // of the setting
	Path    string    `json:"path"`
	Wanted  string    `json:"wanted"`
	Found   string    `json:"found"`          // before it was repaired
	By      *Process  `json:"by"`             // null: the kernel or an unknown process
	Outcome string    `json:"outcome"`        // after the repair, if there was one
	Repair  int64     `json:"repair_us"`      // from the event's arrival to the value read back; 0: not repaired
	Lost    int       `json:"lost,omitempty"` // events before this one that the watcher missed because it read too slowly
	Message string    `json:"message"`
}

// Process is the process that made a change.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"comm,omitempty"`
	Args    string `json:"cmdline,omitempty"`
	Unit    string `json:"unit,omitempty"` // systemd unit
}

// maxMillis keeps milliseconds from overflowing a time.Duration.
const maxMillis = int64(1<<63-1) / int64(time.Millisecond)

// Decode reads one request. The error is ErrMalformed.
func Decode(line []byte) (Request, error) {
	if len(line) > MaxMessage {
		return Request{}, fmt.Errorf("%w: longer than %d bytes", ErrMalformed, MaxMessage)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	var r Request
	if err := dec.Decode(&r); err != nil {
		return Request{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Request{}, fmt.Errorf("%w: more than one value in a line", ErrMalformed)
	}
	for field, ms := range map[string]int64{"ttl_ms": r.TTL, "max_age_ms": r.MaxAge} {
		if ms < 0 || ms > maxMillis {
			return Request{}, fmt.Errorf("%w: %s is %d", ErrMalformed, field, ms)
		}
	}
	switch r.Type {
	case Acquire, Renew, Release, Revoke, Leases, Sample, Watch:
		return r, nil
	}
	return Request{}, fmt.Errorf("%w: unknown type %.40q", ErrMalformed, r.Type)
}

// Encode writes one answer as a line.
func (a Answer) Encode() []byte {
	// An answer consists of strings, integers and lists, which always encode.
	b, err := json.Marshal(a)
	if err != nil {
		return []byte(`{"type":"error","code":"device","message":"the answer cannot be encoded"}` + "\n")
	}
	return append(b, '\n')
}
