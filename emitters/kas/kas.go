// Package kas writes a configuration for kas, one file a target: which
// checkouts the release takes, and the line that switches the layer on. The
// files lie at the top of the layer, because kas takes a repository without a
// URL to be the one its configuration file is in.
package kas

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed kas.yml.tmpl
var text string

// Emit returns nothing unless the configuration requests the file.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	if l.Build.Kas == nil {
		return nil, nil
	}
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	if slices.Contains([]string{"bitbake", "openembedded-core", "meta-tegra", "meta-yocto"}, l.Name) {
		return nil, &emitters.Error{Emitter: "kas", Ref: emitters.Ref{ID: "layer.name"},
			Err: fmt.Errorf("in a configuration for kas %q is the name of another repository; choose another", l.Name)}
	}
	t := emitters.NewTemplate("kas", text)
	var files []emitters.File
	for _, target := range l.Targets {
		name := "kas-" + target.Name + ".yml"
		if _, err := quote.FileName(name); err != nil {
			return nil, &emitters.Error{Emitter: "kas", Ref: emitters.Ref{Target: target.Name, ID: "board"}, Err: err}
		}
		f, err := t.Fill(emitters.File{Path: name}, struct {
			Layer   *plan.Layer
			Release release.Release
			Target  *plan.Target
			Kas     *plan.Kas
			File    string
			Poky    bool // the distribution is one of meta-poky's
		}{l, r, target, l.Build.Kas, name, l.Build.Kas.Distro == "poky" || strings.HasPrefix(l.Build.Kas.Distro, "poky-")})
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
