// Package lease keeps account of who has asked for more performance than the
// plan gives. A lease lives as long as its holder's connection, and no longer
// than its time to live unless it is renewed: a holder that crashes, hangs or
// forgets costs nothing for long.
//
// [Ledger] is the account, without a clock of its own; [HighPerformance] is what
// a lease does.
package lease

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// Bounds of leases.
const (
	PerUser = 8                // leases of one user at a time
	Total   = 64               // of all
	MinTTL  = time.Second      //
	MaxTTL  = 24 * time.Hour   //
	Default = 10 * time.Minute // time to live when none is asked for
)

// Profile is the one kind of lease there is.
const Profile = "high-performance"

// Errors of this package; test with errors.Is.
var (
	ErrQuota = errors.New("too many leases")
	ErrTTL   = errors.New("time to live out of range")
	ErrNone  = errors.New("no such lease")
)

// Lease is one holder's.
type Lease struct {
	ID      uint64
	UID     uint32
	PID     int
	TTL     time.Duration
	Expires time.Duration // on the ledger's clock
}

// Ledger is the leases in force. Times are since an arbitrary start.
type Ledger struct {
	leases []Lease // oldest first
	last   uint64
}

// Acquire grants a lease. A ttl of 0 means [Default].
func (l *Ledger) Acquire(now time.Duration, uid uint32, pid int, ttl time.Duration) (Lease, error) {
	if ttl == 0 {
		ttl = Default
	}
	if ttl < MinTTL || ttl > MaxTTL {
		return Lease{}, fmt.Errorf("%w: %v, allowed are %v to %v", ErrTTL, ttl, MinTTL, MaxTTL)
	}
	own := 0
	for _, e := range l.leases {
		if e.UID == uid {
			own++
		}
	}
	if own >= PerUser || len(l.leases) >= Total {
		return Lease{}, fmt.Errorf("%w: %d of user %d (at most %d), %d in all (at most %d)", ErrQuota, own, uid, PerUser, len(l.leases), Total)
	}
	l.last++
	e := Lease{ID: l.last, UID: uid, PID: pid, TTL: ttl, Expires: now + ttl}
	l.leases = append(l.leases, e)
	return e, nil
}

// Renew starts the time to live anew.
func (l *Ledger) Renew(now time.Duration, id uint64) (Lease, error) {
	i := l.index(id)
	if i < 0 {
		return Lease{}, fmt.Errorf("%w: %d has ended", ErrNone, id)
	}
	l.leases[i].Expires = now + l.leases[i].TTL
	return l.leases[i], nil
}

// Release ends a lease and reports whether it was in force.
func (l *Ledger) Release(id uint64) bool {
	i := l.index(id)
	if i >= 0 {
		l.leases = slices.Delete(l.leases, i, i+1)
	}
	return i >= 0
}

// Expire ends the leases whose time is over and returns them.
func (l *Ledger) Expire(now time.Duration) []Lease {
	var over []Lease
	l.leases = slices.DeleteFunc(l.leases, func(e Lease) bool {
		if now < e.Expires {
			return false
		}
		over = append(over, e)
		return true
	})
	return over
}

// Next is when Expire has something, and false when nothing is in force.
func (l *Ledger) Next() (time.Duration, bool) {
	if len(l.leases) == 0 {
		return 0, false
	}
	next := l.leases[0].Expires
	for _, e := range l.leases {
		next = min(next, e.Expires)
	}
	return next, true
}

// All returns the leases in force, oldest first.
func (l *Ledger) All() []Lease { return slices.Clone(l.leases) }

func (l *Ledger) index(id uint64) int {
	return slices.IndexFunc(l.leases, func(e Lease) bool { return e.ID == id })
}

// HighPerformance returns the settings of a lease on this device: every CPU
// frequency policy with the performance governor, where it is offered, and its
// lowest frequency raised to the highest allowed now. The limit itself is not
// touched: the plan, the power mode and cooling stay above any lease. The notes
// say what a lease does not do here.
func HighPerformance(dev rootfs.FS) (settings []plan.Setting, notes []string) {
	// Of the modes of nvpmodel a switch may need a reboot, or change which CPUs
	// are there at all: not what a lease of seconds should do.
	notes = append(notes, "the power mode is left as it is: its limits stay in force")
	policies, err := rootfs.Nodes(dev, rootfs.ClassCPUFreq)
	if err != nil || len(policies) == 0 {
		return nil, append(notes, "this machine has no CPU frequency policies to raise")
	}
	for _, p := range policies {
		if offered, err := dev.Read(path.Join(p.Path, "scaling_available_governors")); err == nil && slices.Contains(strings.Fields(offered.Text), "performance") {
			settings = append(settings, setting(p, "scaling_governor", plan.TypeString, "performance"))
		}
		if top, err := dev.Read(path.Join(p.Path, "scaling_max_freq")); err == nil && strings.TrimSpace(top.Text) != "" {
			settings = append(settings, setting(p, "scaling_min_freq", plan.TypeInt, strings.TrimSpace(top.Text)))
		}
	}
	if len(settings) == 0 {
		notes = append(notes, "no CPU frequency policy of this machine can be raised")
	}
	return settings, notes
}

func setting(p rootfs.Node, attr, typ, want string) plan.Setting {
	return plan.Setting{
		ID: "lease." + p.Name + "." + attr, Domain: plan.DomainCPU, Type: typ, Want: want,
		Select:  plan.Select{Path: path.Join(p.Path, attr)},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
}
