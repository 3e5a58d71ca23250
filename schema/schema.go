// Package schema holds the yoctune language: the CUE definitions that a
// configuration imports as "github.com/yoctune/yoctune/schema". They are the
// source of the checks, of the reference documentation and of the text that
// `yoctune explain` prints.
package schema

import "embed"

// ImportPath is what a configuration imports.
const ImportPath = "github.com/yoctune/yoctune/schema"

// FS holds the .cue files, one a domain.
//
//go:embed *.cue
var FS embed.FS

// ModuleFile is cue.mod/module.cue of the language as a CUE module.
//
//go:embed cue.mod/module.cue
var ModuleFile []byte

// File is a file of the language.
type File struct {
	Name string // "cpu.cue"
	Text []byte
}

// Files lists the .cue files by name.
func Files() []File {
	entries, err := FS.ReadDir(".")
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	files := make([]File, len(entries))
	for i, e := range entries {
		text, err := FS.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		files[i] = File{e.Name(), text}
	}
	return files
}
