package config_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// A field of the language that nothing reads would be accepted and do nothing.
func TestEveryFieldIsUsed(t *testing.T) {
	// These describe the configuration to people, or keep what a device reported.
	informative := []string{"Board.Description", "Observed.Kernel", "Observed.Compatible"}
	unread := map[*types.Var]string{}
	for _, pkg := range typeCheck(t, "../../check", "../../resolve", "../../models") {
		if len(unread) == 0 {
			unread = languageFields(t, pkg.types)
		}
		for _, s := range pkg.info.Selections {
			if v, ok := s.Obj().(*types.Var); ok {
				delete(unread, v.Origin())
			}
		}
	}
	for _, name := range unread {
		if !slices.Contains(informative, name) {
			t.Errorf("none of compiler/check, compiler/resolve and compiler/models reads the field %s", name)
		}
	}
}

// languageFields lists the fields of the structs of this package, as one that imports
// it sees them.
func languageFields(t *testing.T, importing *types.Package) map[*types.Var]string {
	t.Helper()
	i := slices.IndexFunc(importing.Imports(), func(p *types.Package) bool { return p.Name() == "config" })
	if i < 0 {
		t.Fatalf("%s does not import package config", importing.Path())
	}
	scope := importing.Imports()[i].Scope()
	fields := map[*types.Var]string{}
	for _, name := range scope.Names() {
		st, ok := scope.Lookup(name).Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		for f := range st.Fields() {
			if f.Exported() && !f.Embedded() {
				fields[f] = name + "." + f.Name()
			}
		}
	}
	return fields
}

type checked struct {
	types *types.Package
	info  *types.Info
}

// typeCheck type-checks packages of this module; all of them see the same imports.
func typeCheck(t *testing.T, dirs ...string) []checked {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, dirs...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []checked
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		var files []*ast.File
		for _, name := range names {
			if match, _ := filepath.Match("*_test.go", filepath.Base(name)); match {
				continue
			}
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		pkg, err := (&types.Config{Importer: imports}).Check(dir, fset, files, info)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, checked{pkg, info})
	}
	return all
}
