// Package bom says what a layer brings: its files, the runtime it fetches, and
// the models of its pipelines.
package bom

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/emitters/yoctuned"
	"github.com/yoctune/yoctune/internal/sbom"
	"github.com/yoctune/yoctune/internal/version"
)

// Of writes the bill of a layer. The same layer and time give the same bytes.
func Of(l compiler.Layer, created time.Time) ([]byte, error) {
	sum := sha256.New()
	files := make([]sbom.File, 0, len(l.Files))
	for _, f := range l.Files {
		files = append(files, sbom.File{Path: f.Path, Data: f.Data, Licence: "MIT"})
		one := sha256.Sum256(f.Data)
		sum.Write([]byte(f.Path + "\x00" + hex.EncodeToString(one[:]) + "\n"))
	}
	doc := sbom.New(sbom.Package{
		Name: "meta-" + l.Name + "-" + l.Release, Version: strconv.Itoa(l.Version), Licence: "MIT",
		Comment: "A Yocto layer written by yoctune. What the recipes of other layers bring is in the bill that bitbake makes of the image (create-spdx).",
	}, files, hex.EncodeToString(sum.Sum(nil)), "yoctune-"+version.Version, created)
	for _, a := range artefacts(l) {
		for _, f := range l.Runtime.Files {
			if f.Name == a.name {
				doc.Depends(sbom.Package{Name: f.Name, Version: l.Runtime.Version, Location: location(f.URI), SHA256: f.SHA256, Licence: a.terms(l)})
			}
		}
	}
	seen := map[string]bool{}
	for _, t := range l.Targets {
		for _, m := range t.Models {
			if seen[m.SHA256] {
				continue
			}
			seen[m.SHA256] = true
			doc.Depends(sbom.Package{Name: path.Base(m.URI), Location: location(m.URI), SHA256: m.SHA256,
				Comment: m.ID + " of target " + t.Name + "; its licence is not in the configuration"})
		}
	}
	return doc.Encode()
}

// artefact is a file of the release that a recipe fetches, with the program that it
// is, or "" for one that nothing is linked into.
type artefact struct{ name, program string }

func artefacts(l compiler.Layer) []artefact {
	var found []artefact
	if form := l.Runtime.Form; form != "" {
		found = append(found, artefact{yoctuned.File(form, yoctuned.Name), yoctuned.Name})
		if slices.ContainsFunc(l.Targets, yoctuned.Serves) {
			found = append(found, artefact{yoctuned.File(form, yoctuned.Server), yoctuned.Server})
		}
	}
	if l.Runtime.CUDA {
		found = append(found, artefact{name: "yoctune-cuda-source"})
	}
	return found
}

// terms are those of all that is linked into it.
func (a artefact) terms(l compiler.Layer) string {
	if a.program == "" {
		return "Apache-2.0"
	}
	for _, f := range l.Runtime.Files {
		if f.Name == yoctuned.Terms(a.program) {
			return strings.Join(f.Licences, " AND ")
		}
	}
	return ""
}

// location is an address that others can use: a file of the build machine is none.
func location(uri string) string {
	if strings.HasPrefix(uri, "file:") {
		return ""
	}
	return uri
}
