// Package planfile writes plan.json, which yoctuned applies, and plan.origins.json, which
// names the line of the configuration behind each setting. Both are marshalled, never
// templated. It also writes the public keys whose signatures the device accepts.
//
// The plan has its own folder, and the config recipe installs the whole folder. A signature
// that yoctune sign or minisign adds later is therefore installed without a change of the
// recipe.
package planfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/schema/plan"
)

// Folders below files/<machine>/ of the config recipe.
const (
	folder = "plan"
	keys   = "keys"
)

const dir = "${nonarch_libdir}/yoctune/"

// Emit returns the two files of each target, and a file for each key.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	var files []emitters.File
	for _, target := range l.Targets {
		doc, err := target.Plan.Encode()
		if err != nil {
			return nil, fmt.Errorf("encoding the plan of target %s: %w", target.Name, err)
		}
		origins := target.Origins
		if origins == nil {
			origins = plan.Origins{}
		}
		where, err := origins.Encode()
		if err != nil {
			return nil, fmt.Errorf("encoding the origins of target %s: %w", target.Name, err)
		}
		p := emitters.NewDeviceFile(l, target, folder+"/plan.json", dir+"plan.json")
		p.Data, p.Means = doc, meanings(target)
		o := emitters.NewDeviceFile(l, target, folder+"/plan.origins.json", dir+"plan.origins.json")
		o.Data = where
		files = append(files, p, o)
		for _, k := range l.Runtime.Keys {
			f, err := key(l, target, k)
			if err != nil {
				return nil, &emitters.Error{Emitter: "planfile", Ref: emitters.Ref{ID: "runtime.keys." + k.Name}, Err: err}
			}
			files = append(files, f)
		}
	}
	return files, nil
}

func key(l *plan.Layer, t *plan.Target, k plan.PublicKey) (emitters.File, error) {
	name, err := quote.FileName(k.Name + ".pub")
	if err != nil {
		return emitters.File{}, err
	}
	public, err := signature.ParseKey([]byte(k.Key))
	if err != nil {
		return emitters.File{}, err
	}
	f := emitters.NewDeviceFile(l, t, keys+"/"+name, "${sysconfdir}/yoctune/keys/"+name)
	f.Data = public.File()
	f.Origins = []emitters.Ref{{ID: "runtime.keys." + k.Name}}
	f.Means = []emitters.Meaning{{Kind: emitters.Key, Name: k.Name, Value: public.ID(), ID: "runtime.keys." + k.Name}}
	return f, nil
}

// meanings are the parts of a plan; the plan itself has them in full. Every part that the
// plan asks of the device is among them, except the units, whose files hold their other
// properties: what no other file of the layer means is in force only where yoctuned is (see
// [emitters.Unheld]).
func meanings(t *plan.Target) []emitters.Meaning {
	out := append(make([]emitters.Meaning, 0, len(t.Plan.Settings)+8), emitters.Meaning{Kind: emitters.Plan, Name: t.Name, Value: t.Plan.Digest})
	for _, s := range t.Plan.Settings {
		if arg, ok := strings.CutPrefix(s.ID, "kernel.args."); ok {
			m := emitters.Meaning{Kind: emitters.Argument, Name: arg, ID: s.ID}
			switch {
			case s.Type != plan.TypePresent:
				m.Value = s.Want
			case s.Want == "0":
				m.Value = "removed"
			}
			out = append(out, m)
			continue
		}
		out = append(out, emitters.Meaning{Kind: emitters.Setting, Name: s.ID, Value: s.Want})
	}
	out = append(out, powerMeanings(t.Plan.Power)...)
	out = append(out, fanMeanings(t.Plan.Fan)...)
	for _, u := range t.Plan.Units {
		out = append(out, partition(t, u)...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Plan.Pipelines)) {
		out = append(out, emitters.Meaning{Kind: emitters.Pipeline, Name: name, Value: t.Plan.Pipelines[name].Source.Kind, ID: "pipelines." + name})
	}
	if c := t.Plan.Cluster; c != nil {
		out = append(out, emitters.Meaning{Kind: emitters.Setting, Name: "cluster", Value: c.Name})
	}
	if m := t.Plan.Monitor; m != nil {
		out = append(out, emitters.Meaning{Kind: emitters.Setting, Name: "monitor", Value: time.Duration(m.Interval).String()})
	}
	return out
}

func powerMeanings(p *plan.Power) []emitters.Meaning {
	var out []emitters.Meaning
	if p == nil {
		return nil
	}
	if p.Default != "" {
		out = append(out, emitters.Meaning{Kind: emitters.Mode, Name: p.Default, Value: "default", ID: "power.default"})
	}
	for _, m := range p.Modes {
		out = append(out, emitters.Meaning{Kind: emitters.Mode, Name: m.Name, Value: strconv.Itoa(m.ID), ID: "power.modes." + m.Name})
	}
	if a := p.Adaptive; a != nil {
		out = append(out, emitters.Meaning{Kind: emitters.Setting, Name: "power.adaptive", Value: strings.Join(a.Ladder, " ")})
	}
	return out
}

func fanMeanings(f *plan.Fan) []emitters.Meaning {
	var out []emitters.Meaning
	if f == nil {
		return nil
	}
	for _, field := range []struct{ id, value string }{{"fan.profile", f.Profile}, {"fan.governor", f.Governor}, {"fan.control", f.Control}} {
		if field.value != "" {
			out = append(out, emitters.Meaning{Kind: emitters.Setting, Name: field.id, Value: field.value})
		}
	}
	if len(f.Curve) > 0 {
		out = append(out, emitters.Meaning{Kind: emitters.Profile, Name: f.Profile, ID: "fan.curves." + f.Profile})
	}
	return out
}

// partition is that of a slice, for which systemd has no property. The service that
// declares it names it.
func partition(t *plan.Target, u plan.Unit) []emitters.Meaning {
	if u.CPUPartition == "" {
		return nil
	}
	m := emitters.Meaning{Kind: emitters.Setting, Name: "services." + u.Name, Value: u.CPUPartition}
	for _, s := range t.Services {
		id := "services." + s.Name + ".cpuPartition"
		if _, declared := t.Origins[id]; declared && s.Slice == u.Name {
			m.Name = id
		}
	}
	return []emitters.Meaning{m}
}
