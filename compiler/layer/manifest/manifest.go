// Package manifest reads and writes .yoctune-manifest.json, which lists the files
// of a layer: the digest and mode of each, and since version 2 what it means.
//
//	{
//	  "$schema": "yoctune.manifest/2",
//	  "files": {
//	    "recipes-kernel/linux/files/yoctune-on-jetson-agx-xavier/yoctune-edge.cfg": {
//	      "machine": "jetson-agx-xavier",
//	      "means": [
//	        {"kind": "option", "name": "HZ", "value": "1000", "id": "kernel.config.HZ", "from": "config.cue:22"}
//	      ],
//	      "mode": "0644",
//	      "sha256": "…"
//	    }
//	  }
//	}
//
// [emitters.Meaning] has the fields of a meaning, [emitters.Kind] the kinds. The
// text is canonical JSON (see [plan.Canonical]) with each meaning on one line: the same
// layer has the same manifest, byte for byte.
package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

// Name is the manifest's path in the layer.
const Name = ".yoctune-manifest.json"

// Versions of the format.
const (
	Schema  = "yoctune.manifest/2"
	schema1 = "yoctune.manifest/1" // path, digest and mode of each file
)

// Bounds of what is read. The largest layers of real projects stay below a
// hundredth of each.
const (
	maxSize  = 32 << 20 // bytes
	maxFiles = 100_000
	maxMeans = 1_000_000 // of all files
	maxText  = 1 << 20   // bytes of one text
)

// ErrFormat marks a manifest that cannot be read; test with errors.Is.
var ErrFormat = errors.New("invalid manifest")

// Manifest lists the files of a layer.
type Manifest struct {
	Schema string          `json:"$schema"`
	Files  map[string]File `json:"files"`
}

// File is what a manifest holds about one file.
type File struct {
	SHA256  string             `json:"sha256"`
	Mode    string             `json:"mode"`              // four octal digits
	Machine string             `json:"machine,omitempty"` // MACHINE that it is for
	Dest    string             `json:"dest,omitempty"`    // path on the device, in bitbake's directory variables
	From    []string           `json:"from,omitempty"`    // FILE:LINE of causes that no meaning has
	Means   []emitters.Meaning `json:"means,omitempty"`
}

// Of makes the manifest of a layer's files.
func Of(files []emitters.File) *Manifest {
	m := &Manifest{Schema: Schema, Files: map[string]File{}}
	for _, f := range files {
		e := File{SHA256: cmp.Or(f.Held, Digest(f.Data)), Mode: fmt.Sprintf("%04o", f.Mode.Perm()), Machine: f.Machine, From: f.From, Means: f.Means}
		if f.Install != nil {
			e.Dest = f.Install.Dest
		}
		m.Files[f.Path] = e
	}
	return m
}

// Encode returns the text that [Manifest.Write] writes.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Write writes the manifest as canonical JSON with one line for each meaning, file by file: the
// text of a layer for a thousand machines has tens of megabytes.
func (m *Manifest) Write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10) // keeps its first error
	schema, err := plan.Canonical(m.Schema)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "{\n  \"$schema\": %s,\n  \"files\": {", bytes.TrimSpace(schema))
	next := "\n"
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		text, err := plan.Canonical(map[string]File{name: m.Files[name]})
		if err != nil {
			return err
		}
		out.WriteString(next)
		writeEntry(out, text)
		next = ",\n"
	}
	if len(m.Files) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteString("}\n}\n")
	return out.Flush()
}

// writeEntry writes what is between the braces of an object with one file, without a line feed at
// the end. It indents by two blanks more, and joins the lines of a meaning.
func writeEntry(out *bufio.Writer, object []byte) {
	object = bytes.TrimSuffix(bytes.TrimPrefix(object, []byte("{\n")), []byte("\n}\n"))
	// A line is a token: text in JSON has no line feed. Those of a meaning are indented by eight
	// blanks.
	const inside = "        "
	joined, first := false, true
	for line := range bytes.Lines(object) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		field, found := bytes.CutPrefix(line, []byte(inside))
		meaning := found && !bytes.HasPrefix(field, []byte(" "))
		switch {
		case joined && meaning:
			out.WriteByte(' ')
			out.Write(field)
		case joined || meaning:
			out.Write(bytes.TrimLeft(line, " "))
		default:
			if !first {
				out.WriteByte('\n')
			}
			out.WriteString("  ")
			out.Write(line)
		}
		joined, first = meaning, false
	}
}

// Digest is the SHA-256 of a file's content, in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// FileMode is the mode to write the file with: 0755 for one that can be executed,
// 0644 for any other.
func (f File) FileMode() fs.FileMode {
	if n, err := strconv.ParseUint(f.Mode, 8, 32); err == nil && n&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// Decode reads a manifest of version 1 or 2. The error wraps [ErrFormat].
func Decode(data []byte) (*Manifest, error) {
	m, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", Name, ErrFormat, err)
	}
	return m, nil
}

func decode(data []byte) (*Manifest, error) {
	if len(data) > maxSize {
		return nil, fmt.Errorf("%d bytes are more than the limit of %d", len(data), maxSize)
	}
	// The version decides before anything else can be wrong.
	var head struct {
		Schema string `json:"$schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	switch head.Schema {
	case Schema, schema1:
	case "":
		return nil, errors.New("no $schema; restore the file, or move the folder away and build the layer again")
	default:
		return nil, fmt.Errorf("unsupported version %.80q; this yoctune reads %s and %s: use a newer one, or move the folder away", head.Schema, schema1, Schema)
	}
	if err := unique(data); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	m := &Manifest{}
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	return m, m.check()
}

// unique refuses an object with the same key twice, of which encoding/json would
// take the last.
func unique(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	type level struct {
		keys map[string]bool // nil in an array
		key  bool            // a key comes next
	}
	var open []level
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		top := len(open) - 1
		if s, ok := token.(string); ok && top >= 0 && open[top].key {
			if open[top].keys[s] {
				return fmt.Errorf("duplicate key %.80q", s)
			}
			open[top].keys[s], open[top].key = true, false
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{map[string]bool{}, true})
			continue
		case json.Delim('['):
			open = append(open, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
			top--
		}
		if top >= 0 && open[top].keys != nil {
			open[top].key = true
		}
	}
}

func (m *Manifest) check() error {
	if len(m.Files) > maxFiles {
		return fmt.Errorf("%d files are more than the limit of %d", len(m.Files), maxFiles)
	}
	kinds, means := emitters.Kinds(), 0
	for name, f := range m.Files {
		if !fs.ValidPath(name) || name == "." || name == Name || strings.ContainsRune(name, '\\') {
			return fmt.Errorf("%.200q is not a path inside the layer", name)
		}
		if raw, err := hex.DecodeString(f.SHA256); err != nil || len(raw) != sha256.Size {
			return fmt.Errorf("%s: %.80q is not a SHA-256 digest", name, f.SHA256)
		}
		if m.Schema == schema1 && (f.Means != nil || f.From != nil || f.Machine != "" || f.Dest != "") {
			return fmt.Errorf("%s: a manifest of version 1 holds digests and modes only", name)
		}
		if means += len(f.Means); means > maxMeans {
			return fmt.Errorf("more than %d meanings", maxMeans)
		}
		for _, x := range f.Means {
			if !slices.Contains(kinds, x.Kind) {
				return fmt.Errorf("%s: unknown kind %.80q of a meaning; a newer yoctune wrote the layer", name, x.Kind)
			}
			if x.Name == "" || x.Line < 0 {
				return fmt.Errorf("%s: a meaning of kind %s has no name, or line %d", name, x.Kind, x.Line)
			}
			if len(x.Name)+len(x.Value)+len(x.ID)+len(x.From) > maxText {
				return fmt.Errorf("%s: a meaning of kind %s is longer than %d bytes", name, x.Kind, maxText)
			}
		}
	}
	return nil
}
