package watch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

func (d *daemon) acceptClients(time.Duration) {
	for _, c := range d.server.accept() {
		if err := d.poll.add(c.fd); err != nil {
			d.server.closeClient(c)
		}
	}
}

// handleClient handles input on a connection, or the exit of a lease's holder.
func (d *daemon) handleClient(now time.Duration, fd int) {
	if c := d.server.clients[fd]; c != nil {
		if !d.server.receive(c) || !d.serveClient(now, c) {
			d.hangUp(now, c)
		}
	} else if c := d.server.holders[fd]; c != nil {
		d.hangUp(now, c)
	}
}

// serveClient answers the next requests of a client. It reports false if the client
// does not read its answers.
func (d *daemon) serveClient(now time.Duration, c *client) bool {
	lines := c.takeLines()
	c.setLineDeadline(now, len(lines) > 0)
	for _, line := range lines {
		a := d.handleRequest(now, c, line)
		if a.Type == "" {
			continue // answered later
		}
		if err := d.server.send(c, a); err != nil {
			return false
		}
	}
	return true
}

// servePending gives each client that sent many requests at once its next turn.
func (d *daemon) servePending(now time.Duration) {
	if d.server == nil {
		return
	}
	for _, c := range d.server.clients {
		if c.hasLine() && !d.serveClient(now, c) {
			d.hangUp(now, c)
		}
	}
}

// dropUnfinished ends the connections of clients that began a line and did not finish it in time.
func (d *daemon) dropUnfinished(now time.Duration) {
	if d.server == nil {
		return
	}
	for _, c := range d.server.clients {
		if c.lineBy > 0 && now >= c.lineBy {
			_ = d.server.send(c, failure(api.CodeMalformed, "a line was not finished within %v", lineTimeout))
			d.hangUp(now, c)
		}
	}
}

// hasPendingRequest reports whether a request was received and not answered yet. No
// event will announce it again.
func (d *daemon) hasPendingRequest() bool {
	if d.server != nil {
		for _, c := range d.server.clients {
			if c.hasLine() {
				return true
			}
		}
	}
	return false
}

// hangUp ends a connection and its lease.
func (d *daemon) hangUp(now time.Duration, c *client) {
	d.server.closeClient(c)
	if c.lease != 0 {
		d.releaseLease(now, "ended with its holder", c.lease)
	}
}

func failure(code, format string, args ...any) api.Answer {
	return api.Answer{Type: api.Failed, Code: code, Message: fmt.Sprintf(format, args...)}
}

// handleRequest carries out a request and returns the answer, the zero one if it comes
// later.
func (d *daemon) handleRequest(now time.Duration, c *client, line []byte) api.Answer {
	r, err := api.Decode(line)
	if err != nil {
		return failure(api.CodeMalformed, "%v", err)
	}
	switch r.Type {
	case api.Acquire:
		return d.acquireLease(now, c, r)
	case api.Renew:
		return d.renewLease(now, c)
	case api.Release:
		id := c.lease
		if c.lease = 0; !d.releaseLease(now, "released", id) {
			return failure(api.CodeNone, "%v", lease.ErrNone)
		}
		return api.Answer{Type: api.Released, Lease: id}
	case api.Sample:
		return d.requestSample(now, c, time.Duration(r.MaxAge)*time.Millisecond)
	case api.Watch:
		c.watches = true
		return api.Answer{Type: api.Watching}
	case api.Revoke:
		if c.right < mayAdmin {
			return failure(api.CodeDenied, "only root may revoke the lease of another process")
		}
		if !d.releaseLease(now, "revoked", r.Lease) {
			return failure(api.CodeNone, "%v", lease.ErrNone)
		}
		return api.Answer{Type: api.Released, Lease: r.Lease}
	default: // api.Leases: Decode refuses other types
		a := api.Answer{Type: api.Listed}
		for _, l := range d.ledger.All() {
			a.Leases = append(a.Leases, api.Holder{Lease: l.ID, UID: l.UID, PID: l.PID, Command: d.shown[l.ID].Holder.Command, Left: (l.Expires - now).Milliseconds()})
		}
		return a
	}
}

func (d *daemon) acquireLease(now time.Duration, c *client, r api.Request) api.Answer {
	switch {
	case c.right < mayLease:
		return failure(api.CodeDenied, "user %d may not take leases: only root and members of group %s may", c.uid, leaseGroup)
	case r.Profile != lease.Profile:
		return failure(api.CodeMalformed, "unknown profile %.40q; the only profile is %q", r.Profile, lease.Profile)
	case c.lease != 0:
		return failure(api.CodeQuota, "this connection already holds lease %d", c.lease)
	}
	l, err := d.ledger.Acquire(now, c.uid, c.pid, time.Duration(r.TTL)*time.Millisecond)
	if errors.Is(err, lease.ErrQuota) {
		return failure(api.CodeQuota, "%v", err)
	} else if err != nil {
		return failure(api.CodeMalformed, "%v", err)
	}
	if err := d.applyOverlay(); err != nil {
		d.ledger.Release(l.ID)
		return failure(api.CodeDevice, "%v", err)
	}
	c.lease = l.ID
	if fd := d.server.watchHolder(c); fd >= 0 {
		// If this fails, the lease still ends with its connection or its time to live.
		_ = d.poll.add(fd)
	}
	wall := time.Now().UTC()
	d.shown[l.ID] = Lease{ID: l.ID, Profile: lease.Profile, UID: l.UID, Holder: rootfs.NameProcess(l.PID), Since: wall, Expires: wall.Add(l.TTL)}
	d.recordLeases()
	d.Report.Leased("granted", d.shown[l.ID])
	a := api.Answer{Type: api.Granted, Lease: l.ID, TTL: l.TTL.Milliseconds(), Notes: d.notes}
	for _, r := range d.overlay {
		a.Settings = append(a.Settings, api.Setting{Path: r.Path, Wanted: r.Wanted, Found: r.Found, Outcome: string(r.Outcome), Message: r.Message})
	}
	return a
}

func (d *daemon) renewLease(now time.Duration, c *client) api.Answer {
	l, err := d.ledger.Renew(now, c.lease)
	if err != nil {
		return failure(api.CodeNone, "%v", err)
	}
	renewed := d.shown[l.ID]
	renewed.Expires = time.Now().UTC().Add(l.TTL)
	d.shown[l.ID] = renewed
	d.recordLeases()
	return api.Answer{Type: api.Renewed, Lease: l.ID, TTL: l.TTL.Milliseconds()}
}

// applyOverlay puts the settings of leases in force unless they are already.
func (d *daemon) applyOverlay() error {
	d.removeOverlayAt = 0
	if d.overlay != nil {
		return nil
	}
	var settings []plan.Setting
	settings, d.notes = lease.HighPerformance(d.Root)
	results, err := d.keeper.Overlay(settings)
	if err != nil {
		return err
	}
	d.overlay = append([]enforce.Result{}, results...)
	return nil
}

func (d *daemon) removeOverlay() {
	d.removeOverlayAt = 0
	if d.overlay == nil {
		return
	}
	d.overlay, d.notes = nil, nil
	failed, err := d.keeper.RemoveOverlay()
	if err != nil {
		d.Report.Problem(err)
	}
	if len(failed) > 0 {
		d.Report.Restored("lease", failed)
	}
}

// releaseLease ends a lease. It reports false if there is no such lease.
func (d *daemon) releaseLease(now time.Duration, action string, id uint64) bool {
	all := d.ledger.All()
	i := slices.IndexFunc(all, func(l lease.Lease) bool { return l.ID == id })
	if !d.ledger.Release(id) || i < 0 {
		return false
	}
	d.finishLease(now, action, all[i])
	return true
}

// finishLease cleans up after a lease that has left the ledger.
func (d *daemon) finishLease(now time.Duration, action string, l lease.Lease) {
	if d.server != nil {
		for _, c := range d.server.clients {
			if c.lease == l.ID {
				c.lease = 0
			}
		}
	}
	if len(d.ledger.All()) == 0 {
		d.removeOverlayAt = now + overlayLinger
	}
	over := d.shown[l.ID]
	delete(d.shown, l.ID)
	d.recordLeases()
	d.Report.Leased(action, over)
}

// recordLeases writes the leases in force to the state file.
func (d *daemon) recordLeases() {
	leases := []Lease{}
	for _, l := range d.ledger.All() {
		leases = append(leases, d.shown[l.ID])
	}
	d.keeper.setLeases(leases)
}
