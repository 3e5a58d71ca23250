// Package api is how programs talk to a running yoctuned: NDJSON over the unix
// socket /run/yoctune/socket, one request and one answer a line.
//
//	> {"type":"acquire","profile":"high-performance","ttl_ms":60000}
//	< {"type":"granted","lease":7,"ttl_ms":60000,"settings":[…],"notes":[…]}
//	> {"type":"renew"}
//	< {"type":"renewed","lease":7,"ttl_ms":60000}
//	> {"type":"release"}
//	< {"type":"released","lease":7}
//
// A watcher is sent what happens to the plan's nodes until it hangs up:
//
//	> {"type":"watch"}
//	< {"type":"watching"}
//	< {"type":"event","event":{"kind":"drift","path":"/proc/sys/vm/swappiness",…}}
//
// The sensors are read once for all who ask, and not while the last sample is young
// enough. A sample is what `yoctuned monitor --format json` prints:
//
//	> {"type":"sample","max_age_ms":900}
//	< {"type":"sampled","sample":{"type":"sample","cpus":[…],…}}
//
// "type" comes first in every answer. A connection holds at most one lease, which
// ends with it, and with the process that connected even if a child has inherited
// the connection. Everybody may ask for "leases",
// "sample" and "watch"; "acquire" is for root and the
// members of group yoctune; "revoke" is for root. The kernel says who is asking,
// as of the moment of connecting.
package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Socket is where yoctuned listens.
const Socket = "/run/yoctune/socket"

// MaxMessage bounds one line, in bytes.
const MaxMessage = 4096

// Types of requests.
const (
	Acquire = "acquire"
	Renew   = "renew"
	Release = "release"
	Revoke  = "revoke" // root: end somebody's lease
	Leases  = "leases" // list those in force
	Sample  = "sample" // measure the device
	Watch   = "watch"  // be sent the events from now on
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

// ErrMalformed says that a line is not a request.
var ErrMalformed = errors.New("not a request")

// Request is what a client asks.
type Request struct {
	Type    string `json:"type"`
	Profile string `json:"profile,omitempty"`    // of acquire
	TTL     int64  `json:"ttl_ms,omitempty"`     // of acquire; 0: yoctuned's default
	Lease   uint64 `json:"lease,omitempty"`      // of revoke
	MaxAge  int64  `json:"max_age_ms,omitempty"` // of sample: how old it may be; at least 100
}

// Answer is what yoctuned says.
type Answer struct {
	Type     string          `json:"type"`
	Lease    uint64          `json:"lease,omitempty"`
	TTL      int64           `json:"ttl_ms,omitempty"`
	Settings []Setting       `json:"settings,omitempty"` // what the lease did
	Notes    []string        `json:"notes,omitempty"`    // what it did not do
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

// Event is one thing that happened to a node.
type Event struct {
	Kind    string    `json:"kind"` // drift, reapplied, contested, regained, switched
	Time    time.Time `json:"time"` // UTC
	ID      string    `json:"id"`   // of the setting
	Path    string    `json:"path"`
	Wanted  string    `json:"wanted"`
	Found   string    `json:"found"`          // before it was repaired
	By      *Process  `json:"by"`             // null: the kernel, or somebody who was not seen
	Outcome string    `json:"outcome"`        // after the repair, if there was one
	Repair  int64     `json:"repair_us"`      // from the event's arrival to the value read back; 0: not repaired
	Lost    int       `json:"lost,omitempty"` // events before this one that the watcher was too slow for
	Message string    `json:"message"`
}

// Process is who did it.
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
	// Strings, integers and lists of them: there is nothing that cannot be encoded.
	b, err := json.Marshal(a)
	if err != nil {
		return []byte(`{"type":"error","code":"device","message":"the answer cannot be encoded"}` + "\n")
	}
	return append(b, '\n')
}
