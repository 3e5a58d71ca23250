// Package hashserv writes the units of a hash equivalence server that several
// builders share: the server, and a check that restarts one that no longer
// answers. They are for a host that is not a target, so they are below contrib/ and
// no recipe installs them.
package hashserv

import (
	_ "embed"
	"fmt"
	"path"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed hashserv.service.tmpl
	serve string
	//go:embed check.service.tmpl
	check string
	//go:embed check.timer
	timer string
	//go:embed restart.service
	restart string
)

// Dir is the folder of the units in the layer.
const Dir = "contrib/hashserv"

// Emit returns nothing unless the configuration has a server.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	s := l.Build.HashServer
	if s == nil {
		return nil, nil
	}
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	if !r.HashServeWSS && (strings.HasPrefix(s.Listen, "ws") || strings.HasPrefix(s.Upstream, "ws")) {
		return nil, &emitters.Error{Emitter: "hashserv", Ref: emitters.Ref{ID: "build.hashserve.server"},
			Err: fmt.Errorf("the bitbake-hashserv %s of %s supports host:port only", r.BitBake, r.Name)}
	}
	bin := path.Join(s.BitBake, "bin")
	data := struct {
		Layer      *plan.Layer
		Serve, Ask []string
	}{
		Layer: l,
		Serve: []string{path.Join(bin, "bitbake-hashserv"), "--bind", s.Listen, "--database", "hashserv.db", "--log", "INFO"},
		// Clients of every series have this command.
		Ask: []string{path.Join(bin, "bitbake-hashclient"), "--address", localAddress(s.Listen), "stats"},
	}
	if s.Upstream != "" {
		data.Serve = append(data.Serve, "--upstream", s.Upstream)
	}
	// Otherwise anonymous clients could clear the database.
	perms := "@read,@report"
	if s.ReadOnly {
		perms = "@read"
		data.Serve = append(data.Serve, "--read-only")
	}
	if r.HashServeWSS { // and accounts came together
		data.Serve = append(data.Serve, "--anon-perms", perms)
	}
	var files []emitters.File
	for _, u := range []struct{ name, text string }{{"yoctune-hashserv.service", serve}, {"yoctune-hashserv-check.service", check}} {
		t := emitters.NewTemplate("hashserv", u.text)
		f, err := t.Fill(unit(u.name), data)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	checkTimer, restartUnit := unit("yoctune-hashserv-check.timer"), unit("yoctune-hashserv-restart.service")
	checkTimer.Data, restartUnit.Data = []byte(timer), []byte(restart)
	return append(files, checkTimer, restartUnit), nil
}

func unit(name string) emitters.File {
	return emitters.File{Path: path.Join(Dir, name), Mode: 0o644,
		Means: []emitters.Meaning{{Kind: emitters.Unit, Name: name, Value: "unit", ID: "build.hashserve.server"}}}
}

// localAddress returns the address at which the machine itself reaches a server that
// listens at bind.
func localAddress(bind string) string {
	rest, ws := strings.CutPrefix(bind, "ws://")
	if strings.HasPrefix(rest, ":") {
		rest = "localhost" + rest
	}
	if ws {
		return "ws://" + rest
	}
	return rest
}
