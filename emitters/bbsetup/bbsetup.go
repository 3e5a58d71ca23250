// Package bbsetup writes a configuration for bitbake-setup, one file a target:
// which checkouts the release takes, the machine, and the fragment that switches
// the layer on. The files lie at the top of the layer, because bitbake-setup looks
// for a layer that it does not fetch beside its configuration
// (bb-layers-file-relative).
package bbsetup

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

// setup is bitbake's setup-schema/bitbake-setup.schema.json, as far as it is used.
type setup struct {
	Description string            `json:"description"`
	Sources     map[string]source `json:"sources"`
	Setup       configurations    `json:"bitbake-setup"`
	Version     string            `json:"version"`
}

type source struct {
	Git remote `json:"git-remote"`
}

type remote struct {
	URI    string `json:"uri"`
	Branch string `json:"branch"`
	Rev    string `json:"rev"`
}

type configurations struct {
	List []configuration `json:"configurations"`
}

type configuration struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Dir         string   `json:"setup-dir-name"`
	Layers      []string `json:"bb-layers"`
	Beside      []string `json:"bb-layers-file-relative"`
	Fragments   []string `json:"oe-fragments"`
}

// Emit returns nothing unless the configuration asks for it.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	if !l.Build.BitBakeSetup {
		return nil, nil
	}
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	refuse := func(target, id string, err error) error {
		return &emitters.Error{Emitter: "bbsetup", Ref: emitters.Ref{Target: target, ID: id}, Err: err}
	}
	if !r.BuiltinFrags {
		return nil, refuse("", "build.bitbakeSetup", fmt.Errorf("%s has no bitbake-setup; whinlatter is the first that has", r.Name))
	}
	if _, err := quote.LayerName(l.Name); err != nil {
		return nil, refuse("", "layer.name", err)
	}
	sources := map[string]source{}
	for _, c := range r.Checkouts() {
		sources[c.Name] = source{remote{c.URI, c.Branch, c.Branch}}
	}
	var files []emitters.File
	for _, t := range l.Targets {
		name := "bitbake-setup-" + t.Name + ".conf.json"
		if _, err := quote.FileName(name); err != nil {
			return nil, refuse(t.Name, "board", err)
		}
		if _, err := quote.BitBakeMachine(t.Machine); err != nil {
			return nil, refuse(t.Name, "machine", err)
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(setup{
			Description: "Written by yoctune for target " + t.Name + " of the layer " + l.Name,
			Version:     "1.0",
			Sources:     sources,
			Setup: configurations{[]configuration{{
				Name: t.Name, Description: t.Machine + " with the layer " + l.Name, Dir: l.Name + "-" + t.Name,
				Layers: []string{"openembedded-core/meta", "meta-tegra"}, Beside: []string{"."},
				Fragments: []string{"machine/" + t.Machine, l.Name + "/" + l.Name},
			}}},
		}); err != nil {
			return nil, refuse(t.Name, "build.bitbakeSetup", err)
		}
		files = append(files, emitters.File{Path: name, Mode: 0o644, Data: b.Bytes(),
			Origins: []emitters.Ref{{ID: "build.bitbakeSetup"}}})
	}
	return files, nil
}
