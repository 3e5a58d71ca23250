// Package units writes systemd services and slices, drop-ins for services that
// something else installs, and the cores of pipelines.
package units

import (
	_ "embed"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed service.tmpl
	service string
	//go:embed timer.tmpl
	timer string
	//go:embed slice.tmpl
	slice string
	//go:embed pipeline.tmpl
	pipeline string
	//go:embed engines.tmpl
	engines string
	//go:embed cluster.tmpl
	cluster string
	//go:embed scheduling.tmpl
	scheduling string
)

const unitDir = "${systemd_system_unitdir}/"

// reserved are units this layer or the system owns: a service of the
// configuration with one of these names and a command of its own would replace
// it.
var reserved = []string{"yoctuned.service", "yoctuned-serve.service", enginesUnit, clusterUnit, "yoctune-zram.service", "yoctune-late.service", "nvpmodel.service", "dbus.service", "systemd-udevd.service"}

type templates struct {
	service, timer, slice, pipeline, scheduling, engines, cluster *emitters.Template
}

func newTemplates() *templates {
	one := func(text string) *emitters.Template { return emitters.NewTemplate("units", text) }
	return &templates{one(service), one(timer), one(slice), one(pipeline), one(scheduling), one(engines), one(cluster)}
}

// Emit returns the units of each target.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t := newTemplates()
	var files []emitters.File
	for _, target := range l.Targets {
		for _, s := range target.Services {
			if s.Timer == nil || !s.ChangesNothing() {
				f, err := t.emitService(l, target, s)
				if err != nil {
					return nil, err
				}
				files = append(files, f)
			}
			if s.Timer != nil {
				f, err := t.emitTimer(l, target, s)
				if err != nil {
					return nil, err
				}
				files = append(files, f)
			}
		}
		for _, emit := range []func(*plan.Layer, *plan.Target) ([]emitters.File, error){t.emitScheduling, t.emitSlices, t.emitCluster, t.emitPipelines} {
			more, err := emit(l, target)
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
	}
	return files, nil
}

// emitScheduling returns the drop-in with the rights that yoctuned needs to schedule
// services, if there are any to schedule.
func (t *templates) emitScheduling(l *plan.Layer, target *plan.Target) ([]emitters.File, error) {
	scheduled := slices.DeleteFunc(slices.Clone(target.Services), func(s plan.Service) bool { return s.Scheduling == "" && s.Nice == nil })
	threads := slices.DeleteFunc(slices.Clone(target.Plan.Settings), func(s plan.Setting) bool { return s.Domain != plan.DomainThread })
	if len(scheduled)+len(threads) == 0 || !l.Runtime.Installed() {
		return nil, nil
	}
	id := "services"
	if len(scheduled) == 0 {
		id = "threads"
	}
	hasThread := func(match func(plan.Setting) bool) bool { return slices.ContainsFunc(threads, match) }
	realtime := hasThread(func(s plan.Setting) bool { return strings.Contains(s.Want, " ") }) || slices.ContainsFunc(scheduled, func(s plan.Service) bool { return s.Priority > 0 })
	network := slices.ContainsFunc(target.Plan.Settings, func(s plan.Setting) bool {
		return s.Select.Class == "net" || strings.HasPrefix(s.Select.Path, "/proc/sys/net/") || strings.HasPrefix(s.Select.Path, "/sys/class/net/")
	})
	f, err := t.scheduling.Fill(emitters.NewDeviceFile(l, target, "yoctuned.service.d-40-scheduling.conf", unitDir+"yoctuned.service.d/40-scheduling.conf"), struct {
		Layer                       string
		Units, Threads              bool
		Realtime, Network, Affinity bool
	}{l.Name, len(scheduled) > 0, len(threads) > 0, realtime, network, hasThread(func(s plan.Setting) bool { return s.Select.Attr == "affinity" })})
	return []emitters.File{unit(f, "yoctuned.service", "drop-in", id)}, err
}

func (t *templates) emitSlices(l *plan.Layer, target *plan.Target) ([]emitters.File, error) {
	var files []emitters.File
	for _, s := range target.Slices {
		if _, err := quote.SystemdUnit(s.Name); err != nil || !strings.HasSuffix(s.Name, ".slice") {
			return nil, refuse(target, "cpu.isolate", fmt.Errorf("slice %q is not a slice unit name", s.Name))
		}
		f, err := t.slice.Fill(emitters.NewDeviceFile(l, target, s.Name, unitDir+s.Name), struct {
			Layer, Target string
			Slice         plan.Slice
		}{l.Name, target.Name, s})
		if err != nil {
			return nil, err
		}
		files = append(files, unit(f, s.Name, "unit", "cpu.isolate"))
	}
	return files, nil
}

// emitPipelines returns the drop-ins of the pipelines that need one, after the unit that
// builds their engines.
func (t *templates) emitPipelines(l *plan.Layer, target *plan.Target) ([]emitters.File, error) {
	if !l.Runtime.Installed() {
		return nil, nil
	}
	var files []emitters.File
	if slices.ContainsFunc(slices.Collect(maps.Values(target.Plan.Pipelines)), func(p plan.Pipeline) bool { return p.WantsTensorRT() }) {
		f, err := t.engines.Fill(emitters.NewDeviceFile(l, target, enginesUnit, unitDir+enginesUnit), struct{ Layer string }{l.Name})
		if err != nil {
			return nil, err
		}
		files = append(files, unit(f, enginesUnit, "unit", "pipelines"))
	}
	for _, name := range slices.Sorted(maps.Keys(target.Plan.Pipelines)) {
		p := target.Plan.Pipelines[name]
		bounded := p.Budget != nil && (p.Budget.Memory > 0 || len(disks(p)) > 0)
		if p.CPUs == "" && !p.Counters && p.Scheduling == "" && p.Nice == nil && !bounded && !locksMemory(p) && !p.WantsTensorRT() && !p.Serves() {
			continue
		}
		instance := emitters.PipelineUnit(name)
		if _, err := quote.SystemdUnit(instance); err != nil {
			return nil, refuse(target, "pipelines."+name, err)
		}
		f, err := t.pipeline.Fill(emitters.NewDeviceFile(l, target, instance+".d-50-yoctune.conf", unitDir+instance+".d/50-yoctune.conf"), struct {
			plan.Pipeline
			Layer, Target, Name string
			Engines, Lock       bool
			Disks               []disk
			Requests            *requests
			Delivers, Posts     bool
			Identity            []credential
		}{p, l.Name, target.Name, name, p.WantsTensorRT(), locksMemory(p), disks(p), requestsOf(p), p.Sink.NATS != nil, p.Sink.NATS == nil && p.Sink.NeedsServer(), identity(p.Sink.TLS)})
		if err != nil {
			return nil, err
		}
		files = append(files, unit(f, instance, "drop-in", "pipelines."+name))
	}
	return files, nil
}

// requests is what the unit of a pipeline that answers requests has beside that of others.
type requests struct {
	Group       bool         // its members may connect
	Folder      string       // of the socket, "": the pipeline's own
	Low         bool         // the port is one that only root may use
	Credentials []credential // files that the pipeline's user cannot read
}

// credential is a file that systemd hands to the pipeline under a name.
type credential struct{ Name, Path string }

// requestsOf returns nil for a pipeline that answers no requests.
func requestsOf(p plan.Pipeline) *requests {
	q := p.Source.Request
	if q == nil {
		return nil
	}
	r := &requests{Group: !q.Everyone}
	if q.Socket != "" {
		r.Folder = path.Dir(q.Socket)
	}
	r.Low = isLowPort(q.Address)
	if q.TLS != nil {
		r.Credentials = append(r.Credentials, credential{"certificate", q.TLS.Certificate}, credential{"key", q.TLS.Key}, credential{"client-ca", q.TLS.ClientCA})
	}
	r.Credentials = append(r.Credentials, credential{"tokens", q.Tokens})
	r.Credentials = slices.DeleteFunc(r.Credentials, func(c credential) bool { return c.Path == "" })
	return r
}

// emitCluster returns the unit of the NATS server of a target that has a cluster.
func (t *templates) emitCluster(l *plan.Layer, target *plan.Target) ([]emitters.File, error) {
	c := target.Plan.Cluster
	if c == nil || !l.Runtime.Installed() {
		return nil, nil
	}
	all := identity(c.TLS)
	if c.Credentials != "" {
		all = append(all, credential{"user", c.Credentials})
	}
	f, err := t.cluster.Fill(emitters.NewDeviceFile(l, target, clusterUnit, unitDir+clusterUnit), struct {
		Layer, Target string
		Low           bool
		Credentials   []credential
	}{l.Name, target.Name, isLowPort(c.Listen), all})
	f.Install.Unit = clusterUnit
	return []emitters.File{unit(f, clusterUnit, "unit", "cluster")}, err
}

// identity lists the files of a client's identity.
func identity(t *plan.ClientTLS) []credential {
	if t == nil {
		return nil
	}
	return slices.DeleteFunc([]credential{{"ca", t.CA}, {"certificate", t.Certificate}, {"key", t.Key}}, func(c credential) bool { return c.Path == "" })
}

// clusterUnit is the NATS server of a device.
const clusterUnit = "yoctuned-cluster.service"

// isLowPort reports whether an address has a port that only root may use.
func isLowPort(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Port() > 0 && at.Port() < 1024
}

// enginesUnit builds the engines of a target's pipelines before they start.
const enginesUnit = "yoctuned-engines.service"

// disk is a bound for the disk that a folder is on, in bytes a second.
type disk struct {
	Limit, Path string
	Rate        int64
}

// disks are the I/O limits of a pipeline. Files in memory have none.
func disks(p plan.Pipeline) []disk {
	if p.Budget == nil {
		return nil
	}
	folder := func(file, otherwise string) string {
		if !path.IsAbs(file) {
			return otherwise
		}
		return path.Dir(file)
	}
	var all []disk
	for _, d := range []disk{
		{"IOReadBandwidthMax", folder(p.Source.Path, "/usr/lib/yoctune"), p.Budget.DiskRead},
		{"IOWriteBandwidthMax", folder(p.Sink.Path, "/var/lib"), p.Budget.DiskWrite},
	} {
		memory := slices.ContainsFunc([]string{"/dev", "/run", "/tmp", "/proc", "/sys"}, func(root string) bool {
			return d.Path == root || strings.HasPrefix(d.Path, root+"/")
		})
		if d.Rate > 0 && !memory {
			all = append(all, d)
		}
	}
	return all
}

func locksMemory(p plan.Pipeline) bool { return p.Memory != nil && p.Memory.Lock }

func (t *templates) emitService(l *plan.Layer, target *plan.Target, s plan.Service) (emitters.File, error) {
	id := "services." + s.Name
	if _, err := quote.SystemdTemplate(s.Name); err != nil {
		return emitters.File{}, refuse(target, id, err)
	}
	if !strings.HasSuffix(s.Name, ".service") {
		return emitters.File{}, refuse(target, id, fmt.Errorf("%q is not a service", s.Name))
	}
	if s.IsWhole() && slices.Contains(reserved, s.Name) {
		return emitters.File{}, refuse(target, id, fmt.Errorf("%s belongs to the system; choose another name, or leave exec out to adjust it", s.Name))
	}
	all, err := allSections(&s)
	if err != nil {
		return emitters.File{}, refuse(target, id, err)
	}
	file, what := deviceUnit(l, target, s.Name, all.Whole)
	f, err := t.service.Fill(file, struct {
		Layer, Target string
		Service       plan.Service
		Sections      sections
	}{l.Name, target.Name, s, all})
	if err == nil && len(all.Install) > 0 && s.Enable {
		f.Install.Unit = s.Name
	}
	return unit(f, s.Name, what, id), err
}

func (t *templates) emitTimer(l *plan.Layer, target *plan.Target, s plan.Service) (emitters.File, error) {
	id := "services." + s.Timer.Name
	all, err := timerSections(s.Timer)
	if err != nil {
		return emitters.File{}, refuse(target, id, err)
	}
	file, what := deviceUnit(l, target, s.Timer.Name, all.Whole)
	f, err := t.timer.Fill(file, struct {
		Layer, Target string
		Timer         *plan.Timer
		Sections      sections
	}{l.Name, target.Name, s.Timer, all})
	if err == nil && len(all.Install) > 0 && s.Timer.Enable {
		f.Install.Unit = s.Timer.Name
	}
	return unit(f, s.Timer.Name, what, id), err
}

// deviceUnit makes the file of a whole unit, or of a drop-in for one.
func deviceUnit(l *plan.Layer, t *plan.Target, name string, whole bool) (f emitters.File, what string) {
	if whole {
		return emitters.NewDeviceFile(l, t, name, unitDir+name), "unit"
	}
	return emitters.NewDeviceFile(l, t, name+".d-50-yoctune.conf", unitDir+name+".d/50-yoctune.conf"), "drop-in"
}

// unit marks f as a unit, or as a drop-in for one, that a part of the configuration
// requests.
func unit(f emitters.File, name, what, id string) emitters.File {
	f.Means = []emitters.Meaning{{Kind: emitters.Unit, Name: name, Value: what, ID: id}}
	return f
}

func refuse(t *plan.Target, id string, err error) error {
	return &emitters.Error{Emitter: "units", Ref: emitters.Ref{Target: t.Name, ID: id}, Err: err}
}
