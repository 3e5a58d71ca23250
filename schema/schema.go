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
