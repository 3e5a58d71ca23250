package jsonnet

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	jsonnet "github.com/google/go-jsonnet"

	"github.com/yoctune/yoctune/compiler/language/load"
)

// importer restricts imports to the files of the project.
type importer struct {
	prog  load.Program
	files map[string]imported // by path below the project's folder
	total int
}

type imported struct {
	contents jsonnet.Contents
	err      error
}

// errImport is the prefix of messages about refused imports.
var errImport = errors.New("import")

func newImporter(p load.Program) *importer {
	return &importer{prog: p, files: map[string]imported{}}
}

// Import implements [jsonnet.Importer].
func (i *importer) Import(from, name string) (jsonnet.Contents, string, error) {
	full := name
	if from != "" {
		full = path.Join(path.Dir(from), name)
	}
	if path.IsAbs(name) || !fs.ValidPath(full) {
		return jsonnet.Contents{}, "", fmt.Errorf("%w of %q: it leads out of the project", errImport, name)
	}
	f, ok := i.files[full]
	if !ok {
		f = i.readImport(full)
		i.files[full] = f
	}
	return f.contents, full, f.err
}

func (i *importer) readImport(full string) imported {
	text, ok := i.prog.Files[full]
	var err error
	switch {
	case ok:
	case i.prog.Root == nil:
		err = fs.ErrNotExist
	default:
		text, err = fs.ReadFile(i.prog.Root, full)
	}
	if err != nil {
		return imported{err: fmt.Errorf("%w of %q: %w", errImport, full, load.WithoutPath(err))}
	}
	if i.total += len(text); i.total > load.MaxSource {
		return imported{err: fmt.Errorf("%w of %q: the configuration is larger than %d MiB", errImport, full, load.MaxSource>>20)}
	}
	if line, column, deep := load.FindDeepBracket(text); deep && isProgram(full) {
		return imported{err: &tooDeep{full, line, column}}
	}
	return imported{contents: jsonnet.MakeContents(string(text))}
}

// isProgram reports whether a file contains code. Others are read by importstr.
func isProgram(name string) bool {
	switch path.Ext(name) {
	case ".jsonnet", ".libsonnet", ".json":
		return true
	}
	return strings.HasSuffix(name, "sonnet")
}

type tooDeep struct {
	file         string
	line, column int
}

func (t *tooDeep) Error() string {
	return fmt.Sprintf("%s:%d:%d brackets are nested more than %d deep", t.file, t.line, t.column, load.MaxDepth)
}

// listImported lists the imported files, for messages that quote them.
func (i *importer) listImported() map[string][]byte {
	out := map[string][]byte{}
	for name, f := range i.files {
		if _, own := i.prog.Files[name]; !own && f.err == nil {
			out[name] = f.contents.Data()
		}
	}
	return out
}
