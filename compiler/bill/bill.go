// Package bill says what a layer brings: its files, the runtime it fetches, and
// the models of its pipelines.
package bill

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
	for _, name := range artefacts(l) {
		for _, f := range l.Runtime.Files {
			if f.Name == name {
				doc.Depends(sbom.Package{Name: f.Name, Version: l.Runtime.Version, Location: location(f.URI), SHA256: f.SHA256, Licence: "Apache-2.0"})
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

// artefacts are the files of the release that the recipes fetch.
func artefacts(l compiler.Layer) []string {
	var names []string
	if form := l.Runtime.Form; form != "" {
		names = append(names, yoctuned.File(form, yoctuned.Name))
		if slices.ContainsFunc(l.Targets, yoctuned.Serves) {
			names = append(names, yoctuned.File(form, yoctuned.Server))
		}
	}
	if l.Runtime.CUDA {
		names = append(names, "yoctune-cuda-source")
	}
	return names
}

// location is an address that others can use: a file of the build machine is none.
func location(uri string) string {
	if strings.HasPrefix(uri, "file:") {
		return ""
	}
	return uri
}
