// Package lease manages leases, which raise performance above the plan for a time. A lease
// ends with its holder's connection or, unless it is renewed, after its time to live, so that
// the lease of a holder that crashes or hangs ends soon.
//
// [Ledger] holds the leases and has no clock; [HighPerformance] returns their settings.
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
	PerUser = 8                // leases of one user
	Total   = 64               // leases in all
	MinTTL  = time.Second      //
	MaxTTL  = 24 * time.Hour   //
	Default = 10 * time.Minute // default time to live
)

// Profile is the only profile of leases.
const Profile = "high-performance"

// Errors of this package.
var (
	ErrQuota = errors.New("too many leases")
	ErrTTL   = errors.New("time to live out of range")
	ErrNone  = errors.New("no such lease")
)

// Lease is a lease in force.
type Lease struct {
	ID      uint64
	UID     uint32
	PID     int
	TTL     time.Duration
	Expires time.Duration // on the ledger's clock
}

// Ledger holds the leases in force. Times count from an arbitrary start.
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
		return Lease{}, fmt.Errorf("%w: %v is not within %v and %v", ErrTTL, ttl, MinTTL, MaxTTL)
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

// Renew restarts the time to live.
func (l *Ledger) Renew(now time.Duration, id uint64) (Lease, error) {
	i := l.index(id)
	if i < 0 {
		return Lease{}, fmt.Errorf("%w: %d has ended", ErrNone, id)
	}
	l.leases[i].Expires = now + l.leases[i].TTL
	return l.leases[i], nil
}

// Release ends a lease. It reports false if there is no such lease.
func (l *Ledger) Release(id uint64) bool {
	i := l.index(id)
	if i >= 0 {
		l.leases = slices.Delete(l.leases, i, i+1)
	}
	return i >= 0
}

// Expire ends and returns the leases whose time to live has passed.
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

// Next returns when the next lease expires, and false if there is none.
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

// HighPerformance returns the settings of a lease on this device: the performance governor
// for every cpufreq policy that offers it, and the minimum frequency raised to the current
// maximum. The maximum is not changed: plan, power mode and cooling take precedence over
// leases. The notes list what a lease does not change on this device.
func HighPerformance(dev rootfs.FS) (settings []plan.Setting, notes []string) {
	// A switch of the power mode may need a reboot or change the online CPUs, which is too
	// much for a lease of seconds.
	notes = append(notes, "the power mode is unchanged, and its limits stay in force")
	policies, err := rootfs.Nodes(dev, rootfs.ClassCPUFreq)
	if err != nil || len(policies) == 0 {
		return nil, append(notes, "this device has no CPU frequency policies")
	}
	for _, p := range policies {
		if offered := rootfs.ReadText(dev, path.Join(p.Path, "scaling_available_governors")); slices.Contains(strings.Fields(offered), "performance") {
			settings = append(settings, newSetting(p, "scaling_governor", plan.TypeString, "performance"))
		}
		if top := rootfs.ReadText(dev, path.Join(p.Path, "scaling_max_freq")); top != "" {
			settings = append(settings, newSetting(p, "scaling_min_freq", plan.TypeInt, top))
		}
	}
	if len(settings) == 0 {
		notes = append(notes, "no CPU frequency policy of this device can be raised")
	}
	return settings, notes
}

func newSetting(p rootfs.Node, attr, typ, want string) plan.Setting {
	return plan.Setting{
		ID: "lease." + p.Name + "." + attr, Domain: plan.DomainCPU, Type: typ, Want: want,
		Select:  plan.Select{Path: path.Join(p.Path, attr)},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
}
