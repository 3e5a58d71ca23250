package load

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema"
	"github.com/yoctune/yoctune/schema/plan"
)

// Bounds of the packages that a configuration imports.
const (
	maxPackages = 200
	maxImported = 1000 // files
)

// moduleFile is the file that makes a folder a CUE module.
const moduleFile = "cue.mod/module.cue"

// vendorFolders are the folders of a module for packages of others, as cue reads them.
func vendorFolders() []string { return []string{"cue.mod/gen", "cue.mod/usr", "cue.mod/pkg"} }

// module is the CUE module that a configuration is in.
type module struct {
	path string // "example.com/robots"
	dir  string // its folder, from that of the configuration: "." or "../.."
	root *os.Root
}

// findModule finds the module of a folder: the nearest one at or above it. It returns nil
// if there is none.
func findModule(dir string) (*module, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, err
	}
	for at := real; ; at = filepath.Dir(at) {
		file := filepath.Join(at, moduleFile)
		info, err := os.Lstat(file)
		if err == nil {
			if info, err = os.Stat(file); err != nil {
				return nil, fmt.Errorf("%s: %w", file, WithoutPath(err))
			}
		}
		if err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", file)
		}
		if err == nil {
			root, err := os.OpenRoot(at)
			if err != nil {
				return nil, err
			}
			m := &module{dir: filepath.ToSlash(at), root: root}
			if rel, err := filepath.Rel(abs, at); err == nil && real == abs {
				m.dir = filepath.ToSlash(rel)
			}
			return m, nil
		}
		if at == filepath.Dir(at) {
			return nil, nil
		}
	}
}

// name is the name of a file of the module in positions: its path from the folder of the
// configuration.
func (m *module) name(file string) string { return path.Join(m.dir, file) }

// list lists the files of a package's folder that can belong to the package.
func (m *module) list(folder string) ([]string, error) {
	entries, err := fs.ReadDir(m.root.FS(), folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if path.Ext(name) != ".cue" || name[0] == '.' || name[0] == '_' || strings.HasSuffix(name, "_tool.cue") || strings.HasSuffix(name, "_test.cue") {
			continue
		}
		names = append(names, path.Join(folder, name))
	}
	return names, nil
}

// read reads a regular file below the module's folder. Links that lead out of it are
// refused, because an excerpt in a message would reveal the content of their target.
func (m *module) read(file string) ([]byte, error) {
	info, err := m.root.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := m.root.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSource+1))
}

// packages are the packages that a configuration imports, directly or not.
type packages struct {
	l       *loader
	module  *module           // nil if there is none
	changed map[string][]byte // texts that replace those of files, by name
	total   int               // bytes read, with the configuration
	files   int
	byKey   map[string][]*ast.File
}

// packageKey identifies a package by its folder and name.
func packageKey(p ast.ImportPath) string { return p.Path + ":" + p.Qualifier }

// collectPackages reads what files import. dir is the folder of the configuration; "" if
// it has none.
func (l *loader) collectPackages(dir string, files []*ast.File, changed map[string][]byte, total int) *packages {
	p := &packages{l: l, changed: changed, total: total, byKey: map[string][]*ast.File{}}
	if !slices.ContainsFunc(files, importsPackages) {
		return p
	}
	if dir != "" {
		m, err := findModule(dir)
		if err != nil {
			l.report.Errorf("YT0003", position(files[0].Pos()), "", "looking for the module of %s: %v", dir, err)
			return p
		}
		p.module = m
	}
	if m := p.module; m != nil {
		defer m.root.Close()
		text, err := m.read(moduleFile)
		if err == nil {
			m.path, err = modulePath(text)
		}
		if err != nil {
			l.cfg.Sources.Add(m.name(moduleFile), text)
			l.report.Errorf("YT0003", plan.Position{File: m.name(moduleFile), Line: 1, Column: 1}, "", "reading the module: %v", err)
			return p
		}
	}
	for _, f := range files {
		p.requireImports(f, nil)
	}
	return p
}

// importsPackages reports whether a file imports more than the schema and built-in packages.
func importsPackages(f *ast.File) bool {
	for spec := range f.ImportSpecs() {
		if path, err := literal.Unquote(spec.Path.Value); err == nil && !isSchema(path) && !isPurePackage(path) {
			return true
		}
	}
	return false
}

// modulePath reads the path of a module, without its version.
func modulePath(text []byte) (string, error) {
	f, err := parser.ParseFile(moduleFile, text)
	if err != nil {
		return "", err
	}
	root, ok := literalTree([]*ast.File{f})
	if !ok || root.Get("module") == nil || root.Get("module").Kind != String {
		return "", errors.New(`a line such as module: "example.com/robots@v0" is missing`)
	}
	base, _, _ := strings.Cut(root.Get("module").Text, "@")
	return base, nil
}

// requireImports reads the packages that a file imports. importers are the packages that
// led to the file.
func (p *packages) requireImports(f *ast.File, importers []string) {
	for spec := range f.ImportSpecs() {
		name, err := literal.Unquote(spec.Path.Value)
		if err != nil || isSchema(name) || isPurePackage(name) {
			continue
		}
		at := position(spec.Path.Pos())
		target := ast.ParseImportPath(name)
		key := packageKey(target)
		if i := slices.Index(importers, key); i >= 0 {
			p.report(at, "keep what both need in a third package", "packages import each other: %s", strings.Join(append(slices.Clone(importers[i:]), key), " imports "))
			continue
		}
		if _, known := p.byKey[key]; known {
			continue
		}
		if len(p.byKey) == maxPackages {
			p.report(at, "", "the configuration imports more than %d packages", maxPackages)
			return
		}
		folders, help, err := p.find(name, target)
		p.byKey[key] = nil
		if err != nil {
			p.report(at, help, "%v", err)
			continue
		}
		p.byKey[key] = p.readPackage(at, name, target.Qualifier, folders)
		for _, own := range p.byKey[key] {
			p.requireImports(own, append(slices.Clone(importers), key))
		}
	}
}

func (p *packages) report(at plan.Position, help, format string, args ...any) {
	p.l.report.Add(diag.Diagnostic{ID: "YT0003", Severity: diag.Error, Pos: at, Message: fmt.Sprintf(format, args...), Help: help})
}

// find finds the folders of a package below the module: its own, with those above it, or
// those of a vendored package.
func (p *packages) find(name string, target ast.ImportPath) (folders []string, help string, err error) {
	first, _, _ := strings.Cut(target.Path, "/")
	switch {
	case strings.HasPrefix(name, "."):
		return nil, "write the path of the module and the folder in it, such as \"example.com/robots/lib\"", fmt.Errorf("import of %q: packages are not imported by relative paths", name)
	case !strings.Contains(first, "."):
		help = fmt.Sprintf("a configuration may import %q, packages of its own CUE module, and CUE's packages that compute from their arguments alone, such as \"list\" and \"strings\"", schema.ImportPath)
		return nil, help, fmt.Errorf("import of %q is not allowed", name)
	case p.module == nil:
		return nil, "make the folder a CUE module: cue mod init example.com/robots", fmt.Errorf("import of %q: there is no %s at or above the configuration", name, moduleFile)
	case !fs.ValidPath(target.Path):
		return nil, "", fmt.Errorf("import of %q: not the path of a package", name)
	}
	if rest, own := strings.CutPrefix(target.Path+"/", p.module.path+"/"); own && p.module.path != "" {
		folder := path.Clean(rest)
		if !p.isFolder(folder) {
			return nil, "", fmt.Errorf("import of %q: module %s has no folder %s", name, p.module.path, folder)
		}
		for at := folder; ; at = path.Dir(at) { // as in cue, a package goes on in the folders above
			folders = append(folders, at)
			if at == "." {
				return folders, "", nil
			}
		}
	}
	for _, vendor := range vendorFolders() {
		if folder := path.Join(vendor, target.Path); p.isFolder(folder) {
			folders = append(folders, folder)
		}
	}
	if len(folders) == 0 {
		help = fmt.Sprintf("yoctune reads no registry: copy the package to %s of the module", path.Join("cue.mod/pkg", target.Path))
		return nil, help, fmt.Errorf("import of %q: the package is of another module than %s", name, p.module.path)
	}
	return folders, "", nil
}

func (p *packages) isFolder(name string) bool {
	info, err := p.module.root.Stat(name)
	return err == nil && info.IsDir()
}

// readPackage parses the files of a package.
func (p *packages) readPackage(at plan.Position, name, pkg string, folders []string) (files []*ast.File) {
	var others []string
	for _, folder := range folders {
		listed, err := p.module.list(folder)
		if err != nil {
			p.report(at, "", "import of %q: %v", name, WithoutPath(err))
			return nil
		}
		for _, file := range listed {
			f, other, ok := p.readFile(at, name, pkg, file)
			switch {
			case !ok:
				return nil
			case f != nil:
				files = append(files, f)
			case folder == folders[0] && other != "" && !slices.Contains(others, other):
				others = append(others, other)
			}
		}
	}
	if len(files) == 0 {
		help := ""
		if len(others) > 0 {
			help = fmt.Sprintf("its files are of package %s: import %q", strings.Join(others, ", "), strings.TrimSuffix(name, ":"+pkg)+":"+others[0])
		}
		p.report(at, help, "import of %q: folder %s has no file of package %s", name, folders[0], pkg)
	}
	return files
}

// readFile reads a file and parses it if it is of a package; otherwise it returns the
// package that the file is of. ok is false if the bounds are exceeded or the file
// cannot be read.
func (p *packages) readFile(at plan.Position, name, pkg, file string) (f *ast.File, other string, ok bool) {
	shown := p.module.name(file)
	text, changed := p.changed[shown]
	if !changed {
		var err error
		if text, err = p.module.read(file); err != nil {
			p.report(at, "", "import of %q: reading %s of the module: %v", name, file, WithoutPath(err))
			return nil, "", false
		}
	}
	p.files++
	p.total += len(text)
	switch {
	case p.files > maxImported:
		p.l.report.Errorf("YT0006", at, "", "the packages of the configuration have more than %d files", maxImported)
		return nil, "", false
	case p.total > MaxSource:
		p.l.report.Errorf("YT0006", at, "", "the configuration and its packages are larger than %d MiB", MaxSource>>20)
		return nil, "", false
	}
	if !p.l.checkEncoding(shown, text) {
		return nil, "", false
	}
	if clause, err := parser.ParseFile(shown, text, parser.PackageClauseOnly); err == nil && clause.PackageName() != pkg {
		return nil, clause.PackageName(), true
	}
	p.l.cfg.Sources.Add(shown, text)
	parsed := p.l.parse([]string{shown}, map[string][]byte{shown: text})
	if len(parsed) == 0 {
		return nil, "", false // a syntax error, reported
	}
	return parsed[0], "", true
}

// load returns the function by which CUE finds an imported package.
func (p *packages) load(bctx *build.Context) build.LoadFunc {
	loaded := map[string]*build.Instance{}
	var load build.LoadFunc
	load = func(_ token.Pos, name string) *build.Instance {
		if isSchema(name) {
			return newPermissiveSchema(bctx)
		}
		key := packageKey(ast.ParseImportPath(name))
		files := p.byKey[key]
		if len(files) == 0 {
			return nil // a built-in package
		}
		if inst := loaded[key]; inst != nil {
			return inst
		}
		inst := bctx.NewInstance(key, load)
		inst.ImportPath, inst.PkgName = name, files[0].PackageName()
		loaded[key] = inst
		for _, f := range files {
			if inst.AddSyntax(f) != nil {
				return inst // the instance has the error
			}
		}
		_ = inst.Complete() // the instance has the error
		return inst
	}
	return load
}
