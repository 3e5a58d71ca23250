// Package compiler compiles a folder with a configuration to the files of a layer.
// Each step is a package below this one; this package calls them in order and
// collects their diagnostics in one report.
package compiler

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/kconfig/forecast"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/language/sandbox"
	"github.com/yoctune/yoctune/compiler/programs"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
	"github.com/yoctune/yoctune/schema/plan"
)

// Project is a configuration that was read, resolved and checked.
type Project struct {
	*resolve.Project
	Config   *load.Config
	Language *conform.Schema
	Report   *diag.Report

	book     *forecast.Book   // of the targets' kernels
	programs *programs.Finder // for layers that contain them
}

// Options control how a configuration is read.
type Options struct {
	// Vars are values for the variables of HCL and for std.extVar of Jsonnet.
	Vars map[string]string
	// Cache is a folder for results that are expensive to compute; "" for none.
	Cache string
	// Runtime is the folder of the programs that layers contain; "" for the one that
	// comes with yoctune. See package programs.
	Runtime string
	// Changed are texts that replace those of files, by path from the configuration's folder:
	// what an editor shows before it is saved.
	Changed map[string][]byte
}

// Open reads, resolves and checks the configuration in a folder: its CUE, HCL and Jsonnet
// files, unified. Faults are in the project's report; the error is about reading the folder.
func (o Options) Open(dir string) (*Project, error) {
	end, closeRoot := o.frontEnd(dir)
	defer closeRoot()
	cfg, report, err := load.ChangedDir(dir, o.Changed, end)
	if err != nil {
		return nil, err
	}
	p := resolveAndCheck(cfg, report, o.Cache, folder{dir, o.Changed})
	p.programs = programs.Find(o.Runtime)
	return p, nil
}

// TargetNames lists the targets of the configuration in a folder, for completion: none
// where it cannot be read.
func (o Options) TargetNames(dir string) []string {
	end, closeRoot := o.frontEnd(dir)
	defer closeRoot()
	cfg, _, err := load.Dir(dir, end)
	if err != nil || cfg == nil || cfg.Root == nil {
		return nil
	}
	targets := cfg.Root.Get("targets")
	if targets == nil {
		return nil
	}
	var names []string
	for _, f := range targets.Fields {
		names = append(names, f.Name)
	}
	return names
}

// frontEnd returns the front end of HCL and Jsonnet for a folder, and a function that
// closes the folder.
func (o Options) frontEnd(dir string) (sandbox.FrontEnd, func()) {
	end := sandbox.FrontEnd{Vars: o.Vars, Changed: o.Changed}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return end, func() {} // load.Dir reports the folder
	}
	end.Root = root.FS()
	return end, func() { root.Close() }
}

// OpenFiles is [Options.Open] for files that are already in memory. Its layers contain
// stand-ins of the programs.
func OpenFiles(files map[string][]byte) *Project {
	sources := map[string][]byte{}
	for name, b := range files {
		if ext := path.Ext(name); ext != modelExt && ext != boardExt {
			sources[name] = b
		}
	}
	cfg, report := load.Files(sources, sandbox.FrontEnd{})
	return resolveAndCheck(cfg, report, "", memory(files))
}

// Extensions of files that are no part of the configuration's source.
const (
	modelExt = ".onnx"
	boardExt = ".json"
)

// companions reads the files that a configuration refers to.
type companions interface {
	manifest(path string) ([]byte, error)
	board(path string) ([]byte, error) // a board file
	model(path string) (*onnx.Model, error)
	file(path string) ([]byte, error) // as [resolve.ReadFile]
	digest(path string) (string, error)
}

// folder is a configuration on disk.
type folder struct {
	dir     string
	changed map[string][]byte // as in [Options]
}

func (f folder) manifest(path string) ([]byte, error) {
	if text, ok := f.changed[path]; ok {
		return text, nil
	}
	return readBelow(f.dir, path)
}

func (f folder) board(path string) ([]byte, error) {
	if text, ok := f.changed[strings.TrimPrefix(path, "./")]; ok {
		return text, nil
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return infile.ReadIn(root, path, boardfile.MaxSize)
}

// model reads a model below the folder, or at an absolute path.
func (f folder) model(path string) (*onnx.Model, error) {
	stat, open := os.Stat, os.Open
	if !filepath.IsAbs(path) {
		root, err := os.OpenRoot(f.dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		stat, open = root.Stat, root.Open
	}
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a regular file", onnx.ErrFormat)
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return onnx.Read(file, info.Size())
}

// file reads a file below the folder. Opening a pipe does not wait for its writer.
func (f folder) file(path string) ([]byte, error) {
	if text, ok := f.changed[path]; ok {
		return text, nil
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, resolve.ErrNotFile
	}
	data, err := io.ReadAll(io.LimitReader(file, resolve.MaxCarried+1))
	if len(data) > resolve.MaxCarried {
		return nil, resolve.ErrFileSize
	}
	return data, err
}

// digest is the SHA-256 of a file of any size.
func (f folder) digest(path string) (string, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", resolve.ErrNotFile
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// memory is a configuration in memory.
type memory map[string][]byte

func (m memory) manifest(path string) ([]byte, error) {
	return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
}

func (m memory) board(path string) ([]byte, error) {
	if b, ok := m[strings.TrimPrefix(path, "./")]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
}

func (m memory) model(path string) (*onnx.Model, error) {
	b, ok := m[path]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
	}
	return onnx.Read(bytes.NewReader(b), int64(len(b)))
}

func (m memory) file(path string) ([]byte, error) {
	if b, ok := m[path]; ok {
		return b, nil
	}
	return nil, resolve.ErrUnknownFile
}

func (m memory) digest(path string) (string, error) {
	b, err := m.file(path)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), err
}

func resolveAndCheck(cfg *load.Config, report *diag.Report, cache string, files companions) *Project {
	lang := conform.Language()
	p := &Project{Config: cfg, Language: lang, Report: report}
	report.Words = hcl.Words(lang)
	if cfg == nil || cfg.Root == nil {
		return p
	}
	checkDefinitions(cfg, lang, report)
	p.Project = resolve.Resolve(cfg.Root, lang, resolve.Files{Manifest: files.manifest, Board: files.board, Read: files.file, Digest: files.digest}, report)
	p.ReadFiles(files.file, report)
	p.book = forecast.NewBook(cache)
	check.Run(p.Project, report, p.book, files.model)
	p.book.Save()
	if p.Conforms {
		p.reportUnheld()
	}
	return p
}

// maxManifest is the largest size of runtime.manifest, in bytes.
const maxManifest = 1 << 20

// readBelow reads a file inside the configuration's folder and refuses paths that lead out.
func readBelow(dir, path string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxManifest {
		return nil, fmt.Errorf("%s is not a file of at most %d KiB", path, maxManifest>>10)
	}
	return root.ReadFile(path)
}

// Selection chooses what to build; empty fields choose everything.
type Selection struct {
	Target  string
	Release string
	All     bool // every release, each in a folder of its own
}

// Layer is a layer with its files.
type Layer struct {
	*plan.Layer
	Folder string // below the output folder; "" for the folder itself
	Files  []emitters.File
}

// Layers builds the layers of a selection. Errors are added to the report; the result is
// then nil.
func (p *Project) Layers(sel Selection) []Layer { return p.emit(p.outline(sel, p.programs), nil) }

// LastLayers is Layers, and forgets the configuration but for its text: that of a thousand targets
// takes as much memory as their layer. The function hold, unless it is nil, opens the folder of a
// layer (see [Layer.Folder]), which may hold contents in place of the memory, and returns a function
// that closes it.
func (p *Project) LastLayers(sel Selection, hold func(folder string) (emitters.Hold, func())) []Layer {
	layers := p.outline(sel, p.programs)
	p.forget()
	return p.emit(layers, hold)
}

// forget drops the configuration but for its text.
func (p *Project) forget() {
	p.Project, p.book = nil, nil
	if p.Config != nil {
		p.Config.Root = nil
	}
}

// Outlines are the layers with stand-ins of the programs: what the configuration says
// without what yoctune brings.
func (p *Project) Outlines(sel Selection) []Layer { return p.emit(p.outline(sel, nil), nil) }

// outline returns the layers of a selection without files.
func (p *Project) outline(sel Selection, finder *programs.Finder) []Layer {
	if p.Report.Failed() || p.Project == nil {
		return nil
	}
	var layers []Layer
	for _, g := range p.selectTargets(sel) {
		p.refuseSharedMachines(g)
		l := Layer{Layer: p.Layer(g, finder, p.Report)}
		if sel.All {
			l.Folder = l.Name + "-" + folderOf(g[0].Release)
		}
		layers = append(layers, l)
	}
	return layers
}

// Verify generates every layer and discards it, to report values that only an output format
// refuses.
func (p *Project) Verify() { p.verify(func() {}) }

// LastVerify is Verify, and forgets the configuration as [Project.LastLayers] does.
func (p *Project) LastVerify() { p.verify(p.forget) }

// verify calls ready when the layers are complete except for their files.
func (p *Project) verify(ready func()) {
	if p.Report.Failed() || p.Project == nil {
		return
	}
	var layers []*plan.Layer
	for _, g := range p.buildable() {
		layers = append(layers, p.Layer(g, nil, p.Report))
		if p.Report.Failed() {
			return
		}
	}
	ready()
	for _, l := range layers {
		if err := assemble.Check(l); err != nil {
			p.Report.Add(diagnoseRefusal(l, err))
		}
	}
}

// buildable returns all targets in groups that one layer can hold: those of a release whose
// MACHINEs differ.
func (p *Project) buildable() [][]*resolve.Target {
	var groups [][]*resolve.Target
	for _, g := range groupByRelease(p.Targets) {
		for len(g) > 0 {
			var together, later []*resolve.Target
			taken := map[string]bool{}
			for _, t := range g {
				if taken[t.Machine] {
					later = append(later, t)
				} else {
					together = append(together, t)
				}
				taken[t.Machine] = true
			}
			groups, g = append(groups, together), later
		}
	}
	return groups
}

// selectTargets returns the targets of a selection, by release. Errors are added to the
// report; the result is then nil.
func (p *Project) selectTargets(sel Selection) [][]*resolve.Target {
	var chosen []*resolve.Target
	var targets, releases []string
	for _, t := range p.Targets {
		targets = append(targets, t.Name)
		if !slices.Contains(releases, t.Release.Name) {
			releases = append(releases, t.Release.Name)
		}
		if (sel.Target == "" || t.Name == sel.Target) && (sel.Release == "" || t.Release.Name == sel.Release) {
			chosen = append(chosen, t)
		}
	}
	slices.Sort(releases)
	if len(chosen) == 0 {
		d := diag.Diagnostic{ID: "YT0208", Severity: diag.Error, Message: "the configuration has no targets"}
		switch {
		case sel.Target != "" && !slices.Contains(targets, sel.Target):
			d.Message = fmt.Sprintf("no target is called %q", sel.Target)
			d.Help = diag.DidYouMean(sel.Target, targets)
		case sel.Target != "":
			d.Message = fmt.Sprintf("target %q is not of release %q", sel.Target, sel.Release)
		case sel.Release != "":
			d.Message = fmt.Sprintf("no target is of release %q", sel.Release)
			d.Help = diag.DidYouMean(sel.Release, releases)
		}
		p.Report.Add(d)
		return nil
	}
	groups := groupByRelease(chosen)
	if len(groups) > 1 && !sel.All {
		d := diag.Diagnostic{
			ID: "YT0207", Severity: diag.Error, Message: "the targets are of several releases: " + strings.Join(releases, ", "),
			Help: "a layer serves one release: choose with --release, or build each into a separate folder with --all",
		}
		if first := groups[0][0].Release; first.Name == groups[1][0].Release.Name {
			d.Message = fmt.Sprintf("some targets of release %s need meta-tegra and others do not", first.Name)
			d.Help = "a layer serves one of the two: choose a target with --target, or build each into a separate folder with --all"
		}
		p.Report.Add(d)
		return nil
	}
	return groups
}

// groupByRelease groups targets by release, in the order of their names. Boards without meta-tegra
// are groups of their own: their layer must not depend on it.
func groupByRelease(targets []*resolve.Target) [][]*resolve.Target {
	groups := map[string][]*resolve.Target{}
	for _, t := range targets {
		groups[folderOf(t.Release)] = append(groups[folderOf(t.Release)], t)
	}
	var sorted [][]*resolve.Target
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		sorted = append(sorted, groups[name])
	}
	return sorted
}

// folderOf is the last part of the name of a release's folder.
func folderOf(r release.Release) string {
	if r.CoreOnly {
		return r.Name + "-core"
	}
	return r.Name
}

// refuseSharedMachines refuses two targets of the same MACHINE in one layer.
func (p *Project) refuseSharedMachines(targets []*resolve.Target) {
	first := map[string]*resolve.Target{}
	for _, t := range targets {
		other := first[t.Machine]
		if other == nil {
			first[t.Machine] = t
			continue
		}
		p.Report.Add(diag.Diagnostic{
			ID: check.SharedMachine, Severity: diag.Error, Pos: t.Config.Machine.Pos(), Path: t.Config.Machine.FullPath(),
			Message: fmt.Sprintf("targets %s and %s cannot share a layer: both are for MACHINE %s", other.Name, t.Name, t.Machine),
			Related: []diag.Related{{Pos: other.Config.Machine.Pos(), Message: "the other target"}},
			Help:    "build them one at a time with --target, or give one a different machine",
		})
	}
}

// emit generates the files of layers. A refusal is reported at the line of the refused value; the
// result is then nil.
func (p *Project) emit(layers []Layer, hold func(folder string) (emitters.Hold, func())) []Layer {
	for i := range layers {
		if p.Report.Failed() {
			return nil
		}
		var held emitters.Hold
		if hold != nil {
			var done func()
			held, done = hold(layers[i].Folder)
			defer done()
		}
		files, err := assemble.EmitHeld(layers[i].Layer, held)
		if err != nil {
			p.Report.Add(diagnoseRefusal(layers[i].Layer, err))
			return nil
		}
		layers[i].Files = files
	}
	return layers
}

func diagnoseRefusal(l *plan.Layer, err error) diag.Diagnostic {
	d := diag.Diagnostic{ID: "YT0900", Severity: diag.Error, Message: err.Error()}
	var at *emitters.Error
	if errors.As(err, &at) {
		d.ID = "YT0601"
		d.Message = at.Err.Error()
		d.Path = at.Ref.ID
		if at.Ref.Target != "" {
			d.Path = "targets." + at.Ref.Target + "." + at.Ref.ID
		}
		if pos, ok := emitters.Position(l, at.Ref); ok {
			d.Pos = pos
		}
	}
	var refused *quote.Error
	if errors.As(err, &refused) {
		d.Message = refused.Sink + ": " + refused.Reason
		d.Got, d.Help = fmt.Sprintf("%.80q", refused.Value), refused.Hint
	}
	return d
}

// Document finds the device document of a target; the only one when name is empty. Errors
// are added to the report.
func (p *Project) Document(name string) (*plan.Plan, plan.Origins) {
	if p.Report.Failed() || p.Project == nil {
		return nil, nil
	}
	if name == "" && len(p.Targets) != 1 {
		names := make([]string, 0, len(p.Targets))
		for _, t := range p.Targets {
			names = append(names, t.Name)
		}
		p.Report.Add(diag.Diagnostic{ID: "YT0208", Severity: diag.Error, Message: "the configuration has several targets, and none is chosen",
			Help: "choose one with --target: " + strings.Join(names, ", ")})
		return nil, nil
	}
	groups := p.selectTargets(Selection{Target: name})
	if len(groups) == 0 {
		return nil, nil
	}
	// The runtime of the layer decides the plan's format.
	if p.Layer(groups[0], nil, p.Report); p.Report.Failed() {
		return nil, nil
	}
	return groups[0][0].Plan, groups[0][0].Origins
}

// OriginsFile names the file beside a plan that maps settings to lines.
func OriginsFile(planFile string) string {
	return strings.TrimSuffix(planFile, ".json") + ".origins.json"
}
