// Package emitters turns a resolved [plan.Layer] into the files of a Yocto
// layer. Each artefact is a package of its own below this one, with its template
// beside its Go file; this package holds what they share and the list of them.
//
// Emitters are pure: they open nothing and know no clock, host name or
// environment, so the same layer gives the same bytes.
package emitters

import "io/fs"

// File is one file of the layer.
type File struct {
	Path    string      // relative, slash separated, inside the layer
	Mode    fs.FileMode // 0644 or 0755
	Data    []byte
	Origins []Ref // what in the configuration caused it, for the layer's README
}

// Ref names a part of a target ("" for the layer itself) by its id.
type Ref struct {
	Target string
	ID     string
}
