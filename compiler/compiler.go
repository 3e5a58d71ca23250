// Package compiler compiles a folder with a configuration to the files of a layer.
// Each step is a package below this one; this package calls them in order and
// collects their diagnostics in one report.
package compiler

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/kconfig/forecast"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/language/sandbox"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/plan"
)

// Project is a configuration that was read, resolved and checked.
type Project struct {
	*resolve.Project
	Config   *load.Config
	Language *conform.Schema
	Report   *diag.Report

	book *forecast.Book // answers for the targets' kernels
}

// Options control how a configuration is read.
type Options struct {
	// Vars are values for the variables of HCL and for std.extVar of Jsonnet.
	Vars map[string]string
	// Cache is a folder for what is expensive to find out again; "" for none.
	Cache string
}

// Open is [Options.Open] without options.
func Open(dir string) (*Project, error) { return Options{}.Open(dir) }

// Open reads, resolves and checks the configuration in a folder: its CUE, HCL and Jsonnet
// files, unified. Faults are in the project's report; the error is about reading the folder.
func (o Options) Open(dir string) (*Project, error) {
	end := sandbox.FrontEnd{Vars: o.Vars}
	if root, err := os.OpenRoot(dir); err == nil {
		defer root.Close()
		end.Root = root.FS()
	}
	cfg, report, err := load.Dir(dir, end)
	if err != nil {
		return nil, err
	}
	return finish(cfg, report, o.Cache, folder(dir)), nil
}

// OpenFiles is Open for files that are already in memory.
func OpenFiles(files map[string][]byte) *Project {
	sources := map[string][]byte{}
	for name, b := range files {
		if path.Ext(name) != modelExt {
			sources[name] = b
		}
	}
	cfg, report := load.Files(sources, sandbox.FrontEnd{})
	return finish(cfg, report, "", memory(files))
}

// modelExt ends the names of models.
const modelExt = ".onnx"

// beside gives access to other files of a configuration's folder.
type beside interface {
	manifest(path string) ([]byte, error)
	model(path string) (*onnx.Model, error)
}

// folder implements beside on disk.
type folder string

func (f folder) manifest(path string) ([]byte, error) { return below(string(f), path) }

// model reads a model below the folder, or at an absolute path.
func (f folder) model(path string) (*onnx.Model, error) {
	if filepath.IsAbs(path) {
		if info, err := os.Stat(path); err != nil {
			return nil, err
		} else if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: it is not a regular file", onnx.ErrFormat)
		}
		return onnx.ReadFile(path)
	}
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a regular file", onnx.ErrFormat)
	}
	file, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return onnx.Read(file, info.Size())
}

// memory implements beside in memory.
type memory map[string][]byte

func (m memory) manifest(path string) ([]byte, error) {
	return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
}

func (m memory) model(path string) (*onnx.Model, error) {
	b, ok := m[path]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
	}
	return onnx.Read(bytes.NewReader(b), int64(len(b)))
}

func finish(cfg *load.Config, report *diag.Report, cache string, files beside) *Project {
	lang := conform.Language()
	p := &Project{Config: cfg, Language: lang, Report: report}
	report.Words = hcl.Words(lang)
	if cfg == nil || cfg.Root == nil {
		return p
	}
	definitions(cfg, lang, report)
	p.Project = resolve.Resolve(cfg.Root, lang, files.manifest, report)
	p.book = forecast.NewBook(cache)
	check.Run(p.Project, report, p.book, files.model)
	p.book.Save()
	return p
}

// maxManifest is the largest size of runtime.manifest, in bytes.
const maxManifest = 1 << 20

// below reads a file inside the configuration's folder; paths that lead out are refused.
func below(dir, path string) ([]byte, error) {
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
func (p *Project) Layers(sel Selection) []Layer {
	if p.Report.Failed() || p.Project == nil {
		return nil
	}
	groups := p.selected(sel)
	var layers []Layer
	for _, g := range groups {
		p.apart(g)
		if l, ok := p.layer(g); ok {
			if sel.All {
				l.Folder = l.Name + "-" + l.Release
			}
			layers = append(layers, l)
		}
	}
	if p.Report.Failed() {
		return nil
	}
	return layers
}

// Verify generates every layer and discards it, to report values that only an output format
// refuses.
func (p *Project) Verify() {
	if p.Report.Failed() || p.Project == nil {
		return
	}
	for _, g := range p.releases(p.Targets) {
		// Targets with the same MACHINE are built one at a time.
		for len(g) > 0 {
			var together, later []*resolve.Target
			for _, t := range g {
				if slices.ContainsFunc(together, func(o *resolve.Target) bool { return o.Machine == t.Machine }) {
					later = append(later, t)
				} else {
					together = append(together, t)
				}
			}
			p.layer(together)
			g = later
		}
	}
}

func (p *Project) selected(sel Selection) [][]*resolve.Target {
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
	groups := p.releases(chosen)
	if len(groups) > 1 && !sel.All {
		p.Report.Add(diag.Diagnostic{
			ID: "YT0207", Severity: diag.Error, Message: "the targets are of several releases: " + strings.Join(releases, ", "),
			Help: "a layer serves one release: choose with --release, or build each into a folder of its own with --all",
		})
		return nil
	}
	return groups
}

// releases groups targets by release, in order.
func (p *Project) releases(targets []*resolve.Target) [][]*resolve.Target {
	by := map[string][]*resolve.Target{}
	var names []string
	for _, t := range targets {
		if by[t.Release.Name] == nil {
			names = append(names, t.Release.Name)
		}
		by[t.Release.Name] = append(by[t.Release.Name], t)
	}
	slices.Sort(names)
	groups := make([][]*resolve.Target, 0, len(names))
	for _, n := range names {
		groups = append(groups, by[n])
	}
	return groups
}

// apart refuses two targets of the same MACHINE in one layer.
func (p *Project) apart(targets []*resolve.Target) {
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
			Help:    "build them one at a time with --target, or give one a machine of its own",
		})
	}
}

// layer generates one layer. A refusal is reported at the line of the refused value.
func (p *Project) layer(targets []*resolve.Target) (Layer, bool) {
	l := Layer{Layer: p.Layer(targets, p.Report)}
	if p.Report.Failed() {
		return l, false
	}
	files, err := assemble.Emit(l.Layer)
	if err != nil {
		p.Report.Add(refusal(l.Layer, err))
		return l, false
	}
	l.Files = files
	return l, true
}

func refusal(l *plan.Layer, err error) diag.Diagnostic {
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
	groups := p.selected(Selection{Target: name})
	if len(groups) == 0 {
		return nil, nil
	}
	return groups[0][0].Plan, groups[0][0].Origins
}

// OriginsFile names the file beside a plan that maps settings to lines.
func OriginsFile(planFile string) string {
	return strings.TrimSuffix(planFile, ".json") + ".origins.json"
}
