package watch

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// openSources opens the sources of events. Each of them may be missing: in a container,
// without CAP_SYS_ADMIN, or on a kernel that was built without it.
func (d *daemon) openSources() {
	if d.marks, d.marksErr = openMarks(d.Root); d.marksErr == nil {
		d.marksErr = d.handle(d.marks.fd, d.readWrites)
	}
	if !d.Root.Running() {
		d.ueventsErr = errors.New("a copied tree has no devices")
	} else if d.uevents, d.ueventsErr = openUevents(); d.ueventsErr == nil {
		d.ueventsErr = d.handle(d.uevents.fd, d.readUevents)
	}
	d.openNetwork()
	if dirs := d.session.UnitDirs(); len(dirs) > 0 {
		if d.units, d.unitsErr = openUnits(d.Root, dirs); d.unitsErr == nil {
			d.unitsErr = d.handle(d.units.fd, d.readUnits)
		}
	}
	var err error
	if d.resume, err = openResumeTimer(); err == nil {
		err = d.handle(d.resume.fd, d.readResume)
	}
	if err != nil {
		d.Report.Problem(err) // the sweep finds what a resume changed
	}
}

// openNetwork opens the sources of changes of network interfaces.
func (d *daemon) openNetwork() {
	if !d.watchesNetwork() {
		return
	}
	if d.links, d.networkErr = openLinks(); d.networkErr == nil {
		d.networkErr = d.handle(d.links.fd, d.readLinks)
	}
	if !needsNetwork(d.File.Plan) {
		return
	}
	var err error
	if d.drivers, err = openEthtool(); err == nil {
		err = d.handle(d.drivers.fd, d.readDrivers)
	}
	d.networkErr = errors.Join(d.networkErr, err)
}

func (d *daemon) watchesNetwork() bool {
	return d.Root.Running() && (needsNetwork(d.File.Plan) || needsInterrupts(d.File.Plan))
}

func (d *daemon) closeSources() {
	if d.marks != nil {
		d.marks.close()
	}
	if d.resume != nil {
		_ = unix.Close(d.resume.fd)
	}
	if d.units != nil {
		_ = unix.Close(d.units.fd)
	}
	for _, n := range []*netlink{d.uevents, d.links, d.drivers} {
		if n != nil {
			_ = unix.Close(n.fd)
		}
	}
}

// probeSources finds out which sources the running kernel delivers, and handles the
// writes that came while the plan was applied.
func (d *daemon) probeSources() {
	now := rootfs.BootTime()
	var early []Write
	delivered := map[string]bool{} // file systems of which this process saw its own writes
	read := func() {
		if d.marks == nil {
			return
		}
		writes, own, lost := d.marks.read()
		early = append(early, writes...)
		for name := range own {
			delivered[name] = true
		}
		if lost {
			d.keeper.Rescan(now, "write events were lost")
		}
	}
	read() // if applying the plan wrote anything
	var sources []Source
	for _, name := range d.keeper.fileSystems() {
		why := d.probeFileSystem(name, read, delivered)
		sources = append(sources, Source{Name: name, Delivered: why == "", Why: why})
	}
	if err := d.keeper.MarkError(); err != nil && d.marksErr == nil {
		sources = append(sources, Source{Name: "some nodes", Why: err.Error()})
	}
	sources = append(sources, newSource("uevents", d.ueventsErr))
	if d.watchesNetwork() {
		sources = append(sources, newSource("network", d.networkErr))
	}
	if d.units != nil || d.unitsErr != nil {
		sources = append(sources, newSource("units", d.unitsErr))
	}
	d.keeper.SetSources(now, sources)
	d.keeper.HandleWrites(now, early)
	d.Report.Watching(sources, len(d.keeper.nodes), time.Duration(d.keeper.State().Sweep)*time.Second)
	d.aliveAt = now
}

// probeFileSystem returns why writes to a file system raise no events, "" if they do.
func (d *daemon) probeFileSystem(name string, read func(), delivered map[string]bool) string {
	if d.marksErr != nil {
		return d.marksErr.Error()
	}
	if name == "/proc" {
		// Other processes may write to another mount, whose writes are not seen.
		if err := d.Root.SharesProc(); err != nil {
			return err.Error()
		}
	}
	if delivered[name] {
		return ""
	}
	if err := d.keeper.writeTest(name); err != nil {
		return err.Error()
	}
	if read(); !delivered[name] {
		return "a test write raised no event"
	}
	return ""
}

func newSource(name string, err error) Source {
	if err != nil {
		return Source{Name: name, Why: err.Error()}
	}
	return Source{Name: name, Delivered: true}
}

func (d *daemon) readWrites(now time.Duration) {
	writes, _, lost := d.marks.read()
	d.keeper.HandleWrites(now, writes)
	if lost {
		d.keeper.handleOverflow(now)
	}
}

func (d *daemon) readUevents(now time.Duration) {
	if d.uevents.read(func(b []byte) {
		if e, ok := ParseUevent(b); ok {
			d.keeper.HandleUevent(now, e)
		}
	}) {
		d.keeper.Rescan(now, "device events were lost")
	}
}

func (d *daemon) readLinks(now time.Duration) {
	if d.links.read(func(b []byte) {
		for _, what := range d.links.describeLinks(b) {
			d.keeper.Rescan(now, what)
		}
	}) {
		d.keeper.Rescan(now, "network interface events were lost")
	}
}

func (d *daemon) readUnits(now time.Duration) {
	started, stopped := d.units.read()
	for _, name := range stopped {
		d.keeper.HandleUnit(now, name+" stopped")
	}
	for _, name := range started {
		d.keeper.HandleUnit(now, name+" started")
	}
}

func (d *daemon) readDrivers(now time.Duration) {
	changed := map[string]bool{}
	if d.drivers.read(func(b []byte) {
		for _, name := range parseEthtool(b, d.drivers.family) {
			changed[name] = true
		}
	}) {
		d.keeper.handleOverflow(now)
	}
	for name := range changed {
		d.keeper.handleDriverChange(now, name)
	}
}

func (d *daemon) readResume(now time.Duration) {
	if d.resume.hasSlept() {
		d.keeper.Rescan(now, "resume from sleep")
	}
}
