package programs

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ManifestName is the manifest's name in a runtime folder and in a release.
const ManifestName = "manifest.json"

// schema is the version of the manifest's format.
const schema = "yoctune.dist/1"

// Manifest lists the files of a release, or of a runtime folder.
type Manifest struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Files   []File `json:"files"`
}

// File is one file.
type File struct {
	Name   string `json:"name"`           // its role: yoctuned-arm64, yoctuned-source, …
	File   string `json:"file,omitempty"` // in the folder of the release
	URI    string `json:"uri"`            // where bitbake fetches it; in a runtime folder the name of the file
	SHA256 string `json:"sha256"`         // lower-case hexadecimal
	Bytes  int64  `json:"bytes,omitempty"`

	// Of PROGRAM-licenses: the SPDX identifiers of what is linked into the program, and
	// the digest that bitbake's LIC_FILES_CHKSUM takes.
	Licences []string `json:"licenses,omitempty"`
	MD5      string   `json:"md5,omitempty"`
}

// NewManifest returns an empty manifest.
func NewManifest(version string) *Manifest { return &Manifest{Schema: schema, Version: version} }

// Encode writes the manifest as JSON.
func (m *Manifest) Encode() ([]byte, error) {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("manifest of the runtime: %w", err)
	}
	return append(raw, '\n'), nil
}

// Decode reads a manifest.
func Decode(raw []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	if m.Schema != "" && m.Schema != schema { // those of 0.1 have none
		return nil, fmt.Errorf("its format is %.80q, and this yoctune reads %s", m.Schema, schema)
	}
	if m.Version == "" || len(m.Files) == 0 {
		return nil, errors.New("it holds no version or no files")
	}
	names := map[string]bool{}
	for _, f := range m.Files {
		if names[f.Name] {
			return nil, fmt.Errorf("file %.80q is listed twice", f.Name)
		}
		names[f.Name] = true
		if raw, err := hex.DecodeString(f.SHA256); err != nil || len(raw) != 32 || strings.ToLower(f.SHA256) != f.SHA256 {
			return nil, fmt.Errorf("file %.80q has no SHA-256", f.Name)
		}
	}
	return m, nil
}
