// Package programs finds and reads the runtime folder: the device programs that a layer
// contains, their licences, and the sources of the CUDA library.
//
// The folder is build/lib/yoctune after `make build`, and /usr/lib/yoctune of the
// yoctune package. Its manifest.json has the format of a release's, with the names of
// files beside it for addresses.
package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

// Bounds of what is read, in bytes. yoctuned-serve has about a tenth of the second.
const (
	maxManifest = 1 << 20
	maxFile     = 64 << 20
)

// Finder looks for the runtime folder when it is first needed.
type Finder struct {
	dir    string // of --runtime, "" when it is not given
	beside string // the folder beside the program
	inside fs.FS  // of builds with the tag bundled, nil in others

	found *Folder
	err   error
}

// Find returns a finder that takes the folder dir or, if dir is "", ../lib/yoctune beside
// the program, or the folder embedded in it.
func Find(dir string) *Finder { return &Finder{dir: dir, beside: beside(), inside: embedded()} }

// beside returns the runtime folder beside the program, "" when the program's path is
// not known.
func beside() string {
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(exe), "..", "lib", "yoctune")
}

// AbsentError reports that no place has a runtime folder.
type AbsentError struct {
	Beside string // "" when the program's path is not known
}

func (e *AbsentError) Error() string {
	beside := e.Beside
	if beside == "" {
		beside = "../lib/yoctune beside the program"
	}
	return "the programs of the device are in none of three places: --runtime DIR was not given, " + beside +
		" does not exist, and none are embedded in this yoctune"
}

// Folder returns the runtime folder. The error is an [*AbsentError], or about the first
// folder that exists.
func (f *Finder) Folder() (*Folder, error) {
	if f.found == nil && f.err == nil {
		f.found, f.err = f.find()
	}
	return f.found, f.err
}

func (f *Finder) find() (*Folder, error) {
	if f.dir != "" {
		return openDir(f.dir)
	}
	if f.beside != "" {
		if _, err := os.Stat(f.beside); !errors.Is(err, fs.ErrNotExist) {
			return openDir(f.beside)
		}
	}
	if f.inside != nil {
		return open("the folder embedded in yoctune", f.inside)
	}
	return nil, &AbsentError{f.beside}
}

// Folder is a runtime folder.
type Folder struct {
	Name     string // for messages
	manifest *Manifest
	files    fs.FS
}

// openDir opens a runtime folder on disk. Paths in it do not lead out of it.
func openDir(dir string) (*Folder, error) {
	// Opening a pipe would block until it has a writer.
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s: %w", dir, syscall.ENOTDIR)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return open(dir, root.FS())
}

func open(name string, files fs.FS) (*Folder, error) {
	f := &Folder{Name: name, files: files}
	raw, err := f.readFile(ManifestName, maxManifest)
	if err != nil {
		return nil, f.damaged(ManifestName, err)
	}
	if f.manifest, err = Decode(raw); err != nil {
		return nil, f.damaged(ManifestName, err)
	}
	// As recipes have it.
	if _, err := quote.Version(strings.Replace(f.manifest.Version, "-", "~", 1)); err != nil {
		return nil, f.damaged(ManifestName, err)
	}
	return f, nil
}

func (f *Folder) damaged(file string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %s: %w", f.Name, file, err)
}

// Version returns the version of the programs.
func (f *Folder) Version() string { return f.manifest.Version }

// Read returns files by their roles, with their content. Each is compared with its
// digest in the manifest.
func (f *Folder) Read(roles []string) ([]plan.RuntimeFile, error) {
	var out []plan.RuntimeFile
	for _, role := range roles {
		i := slices.IndexFunc(f.manifest.Files, func(e File) bool { return e.Name == role })
		if i < 0 {
			return nil, f.damaged(ManifestName, fmt.Errorf("it lists no %s", role))
		}
		e := f.manifest.Files[i]
		if !fs.ValidPath(e.URI) || strings.ContainsAny(e.URI, `/\`) || e.URI == "." || e.URI == ManifestName {
			return nil, f.damaged(ManifestName, fmt.Errorf("the address of %s, %.80q, is not the name of a file beside it", role, e.URI))
		}
		data, err := f.readFile(e.URI, maxFile)
		if err != nil {
			return nil, f.damaged(e.URI, err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.SHA256 {
			return nil, f.damaged(e.URI, fmt.Errorf("its SHA-256 is not that of %s: %d bytes", ManifestName, len(data)))
		}
		if err := checkFile(e, data); err != nil {
			return nil, f.damaged(e.URI, err)
		}
		out = append(out, plan.RuntimeFile{Name: role, URI: e.URI, SHA256: e.SHA256, Data: data, Licences: e.Licences, MD5: e.MD5})
	}
	return out, nil
}

// readFile reads a regular file. A link is refused: what it names may change, and may
// be anything.
func (f *Folder) readFile(name string, limit int64) ([]byte, error) {
	info, err := fs.Lstat(f.files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%d bytes are more than the limit of %d", info.Size(), limit)
	}
	file, err := f.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}

// StandIn returns files of the roles for judging a configuration where the programs
// are not needed: they have no content.
func StandIn(roles []string) []plan.RuntimeFile {
	out := make([]plan.RuntimeFile, 0, len(roles))
	for _, role := range roles {
		sum := sha256.Sum256(nil)
		out = append(out, plan.RuntimeFile{Name: role, URI: role, SHA256: hex.EncodeToString(sum[:]), Licences: []string{"Apache-2.0"}, MD5: hex.EncodeToString(sum[:16])})
	}
	return out
}
