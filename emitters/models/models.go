// Package models writes the recipe that installs the files of pipelines: models that the
// build fetches, under their digests; labels that it fetches, under their names; and what the
// layer carries of the files beside the configuration, below the folder of the plan.
package models

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed models.bb.tmpl
var recipe string

// source is an address of SRC_URI.
type source struct {
	Target, ID string // part of the configuration behind it
	URI        string
	SHA256     string
	Flag       string // names the checksum
	Download   string // name in DL_DIR, "" for a file of the build machine
	Folder     string // where an archive is unpacked, "" for what stays as it is
}

// installed is a file that the recipe puts on the device.
type installed struct {
	Target, ID string
	From       string // below UNPACKDIR, with a leading slash
	To         string // in bitbake's directory variables
	Verify     string // digest that bitbake did not verify, or ""
}

type machine struct {
	Machine string
	Sources []source
	Carried []plan.CarriedFile // each content once
	Files   []installed
}

// recipeName is the name of the recipe and of its package.
func recipeName(l *plan.Layer) string { return "yoctune-" + l.Name + "-models" }

const (
	modelDir = "${datadir}/yoctune/models/"
	planDir  = "${nonarch_libdir}/yoctune/" // where the plan's relative paths begin
)

// Emit returns nothing when pipelines need no file.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	data := struct {
		Layer       *plan.Layer
		Machines    []machine
		Sums        []source // each checksum once
		LicenseRefs bool
		Models      bool // some file is in modelDir
		Carried     bool // some file is in planDir
	}{Layer: l}
	if r, err := emitters.Release(l); err == nil {
		data.LicenseRefs = r.LicenseRefs
	}
	file := emitters.File{Path: fmt.Sprintf("recipes-yoctune/%s/%s_%d.0.bb", recipeName(l), recipeName(l), l.Version)}
	var contents []emitters.File
	for _, t := range l.Targets {
		if len(t.Models) == 0 && len(t.Files) == 0 {
			continue
		}
		m := machine{Machine: t.Machine}
		if err := m.addFetched(t); err != nil {
			return nil, err
		}
		if err := m.addCarried(t); err != nil {
			return nil, err
		}
		data.Models, data.Carried = data.Models || len(t.Models) > 0, data.Carried || len(t.Files) > 0
		data.Machines = append(data.Machines, m)
		for _, s := range m.Sources {
			if !slices.ContainsFunc(data.Sums, func(o source) bool { return o.Flag == s.Flag }) {
				data.Sums = append(data.Sums, s)
			}
		}
		contents = addContents(contents, l, t)
		file.Means = append(file.Means, meanings(t)...)
		file.Needs = append(file.Needs, emitters.Need{Package: recipeName(l), Machine: t.Machine, ID: m.Files[0].ID})
	}
	if len(data.Machines) == 0 {
		return nil, nil
	}
	t := emitters.NewTemplate("models", recipe)
	f, err := t.Fill(file, data)
	if err != nil {
		return nil, err
	}
	return append(contents, f), nil
}

// addContents adds the files that the layer carries for a target, named by digest.
func addContents(files []emitters.File, l *plan.Layer, t *plan.Target) []emitters.File {
	for _, c := range t.Files {
		name := fmt.Sprintf("recipes-yoctune/%s/files/%s", recipeName(l), c.SHA256)
		ref := emitters.Ref{Target: t.Name, ID: c.ID}
		if i := slices.IndexFunc(files, func(f emitters.File) bool { return f.Path == name }); i >= 0 {
			files[i].Origins = append(files[i].Origins, ref)
			continue
		}
		files = append(files, emitters.File{Path: name, Mode: 0o644, Data: c.Data, Origins: []emitters.Ref{ref}})
	}
	return files
}

func meanings(t *plan.Target) []emitters.Meaning {
	var all []emitters.Meaning
	for _, f := range t.Models {
		m := emitters.Meaning{Kind: emitters.Model, Name: cmp.Or(f.Name, f.SHA256), Value: f.URI, SHA256: f.SHA256, Machine: t.Machine, ID: f.ID}
		if f.Member != "" {
			m.SHA256 = f.Archive
		}
		all = append(all, m)
	}
	for _, c := range t.Files {
		all = append(all, emitters.Meaning{Kind: emitters.Model, Name: c.Path, Value: c.Path, SHA256: c.SHA256, Machine: t.Machine, ID: c.ID})
	}
	return all
}

// addFetched adds the files that the build fetches for a target.
func (m *machine) addFetched(t *plan.Target) error {
	names := map[string]string{} // digest by name
	for _, f := range t.Models {
		fail := func(err error) error {
			return &emitters.Error{Emitter: "models", Ref: emitters.Ref{Target: t.Name, ID: f.ID}, Err: err}
		}
		if f.SHA256 == "" || f.Member != "" && f.Archive == "" {
			return fail(errors.New("a file that is fetched needs its sha256: only the digest proves that it is the right one"))
		}
		if _, err := quote.SHA256(f.SHA256); err != nil {
			return fail(err)
		}
		name := cmp.Or(f.Name, f.SHA256)
		if other, taken := names[name]; taken && other != f.SHA256 {
			return fail(fmt.Errorf("another pipeline has a file of the name %q and another content; give one of them another name", name))
		}
		names[name] = f.SHA256
		s, from, err := fetch(f)
		if err != nil {
			return fail(err)
		}
		s.Target, s.ID = t.Name, f.ID
		if !slices.ContainsFunc(m.Sources, func(o source) bool { return o.Flag == s.Flag }) {
			m.Sources = append(m.Sources, s)
		}
		i := installed{Target: t.Name, ID: f.ID, From: from, To: modelDir + name}
		if f.Member != "" || s.Download == "" {
			i.Verify = f.SHA256
		}
		m.Files = append(m.Files, i)
	}
	// What is fetched first, as oelint wants it.
	slices.SortStableFunc(m.Sources, func(a, b source) int { return -cmp.Compare(min(len(a.Download), 1), min(len(b.Download), 1)) })
	return nil
}

// fetch returns how bitbake gets a file, and where it is then.
func fetch(f plan.ModelFile) (s source, from string, err error) {
	local, isLocal := strings.CutPrefix(f.URI, "file://")
	s = source{URI: f.URI, SHA256: f.SHA256}
	if f.Member == "" {
		s.Flag = "model-" + f.SHA256[:12]
		if isLocal {
			return s, local, nil
		}
		s.Download = "yoctune-" + f.SHA256
		return s, "/" + s.Download, nil
	}
	if _, err := quote.SHA256(f.Archive); err != nil {
		return s, "", err
	}
	s.SHA256 = f.Archive
	s.Flag = "archive-" + f.Archive[:12]
	s.Folder = s.Flag
	if !isLocal {
		s.Download = "yoctune-" + f.Archive + f.ArchiveType()
	}
	return s, "/" + s.Folder + "/" + f.Member, nil
}

// addCarried adds the files that the layer carries for a target.
func (m *machine) addCarried(t *plan.Target) error {
	for _, c := range t.Files {
		// The plan, the libraries and the programs of the layer.
		for _, own := range []string{"plan.", "late.", "lib", "yoctune"} {
			if strings.HasPrefix(c.Path, own) && (own != "lib" || !strings.Contains(c.Path, "/")) {
				return &emitters.Error{Emitter: "models", Ref: emitters.Ref{Target: t.Name, ID: c.ID},
					Err: fmt.Errorf("%s would be beside the plan on the device, where names that begin with %q are the layer's own; put it into a folder of another name", c.Path, own)}
			}
		}
		if !slices.ContainsFunc(m.Carried, func(o plan.CarriedFile) bool { return o.SHA256 == c.SHA256 }) {
			m.Carried = append(m.Carried, c)
		}
		m.Files = append(m.Files, installed{Target: t.Name, ID: c.ID, From: "/" + c.SHA256, To: planDir + c.Path})
	}
	return nil
}
