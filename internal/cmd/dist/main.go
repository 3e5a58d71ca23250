// Command dist makes the release files of the device runtime:
//
//	yoctuned-<version>-linux-{amd64,arm64}        programs, cgo, for glibc 2.34 and newer
//	yoctuned-<version>-source.tar.gz              the runtime's own module with vendor/
//	yoctuned-<version>-licenses.txt               licences of everything linked into it
//	yoctuned-serve-<version>-linux-{amd64,arm64}  its second build, which serves
//	yoctuned-serve-<version>-source.tar.gz        the module of that build
//	yoctuned-serve-<version>-licenses.txt         and its terms
//	yoctune-cuda-<version>-source.tar.gz          sources of libyoctune_cuda.so
//	*.spdx.json, *.cdx.json                       what each of them is made of
//	manifest.json                                 name, uri and sha256 of each, and the licences
//	lib/yoctune                                   the runtime folder
//
// The runtime folder has what layers contain (package programs). With -runtime DIR only
// that folder is written, and programs whose inputs did not change are not linked again.
//
// Two runs on the same commit give the same bytes: archives are sorted and carry
// SOURCE_DATE_EPOCH (the commit's time when unset) or nothing.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" // required by bitbake's LIC_FILES_CHKSUM; files are secured by SHA-256
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/compiler/programs"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/internal/licence"
	"github.com/yoctune/yoctune/internal/sbom"
	"github.com/yoctune/yoctune/internal/version"
)

const mainModule = "github.com/yoctune/yoctune"

// build is one of the two programs built from cmd/yoctuned. Each has its own source archive,
// because the modules of the second are ten times the source of the first.
type build struct{ Name, Tags string }

var builds = [...]build{{"yoctuned", ""}, {"yoctuned-serve", "serve"}}

// release is what a run makes.
type release struct {
	version string
	when    time.Time // in archives and bills of materials
	cache   string    // folder of linked programs, "" for none
}

func main() {
	out := flag.String("o", "dist", "output folder")
	base := flag.String("uri", "", "where the files will be fetched from (default: the release's page)")
	arches := flag.String("arch", "amd64,arm64", "architectures of the programs")
	folder := flag.String("runtime", "", "write the runtime folder to this `DIR`, and nothing else")
	cache := flag.String("cache", "", "`DIR` for linked programs, which are linked again only when their inputs change")
	show := flag.Bool("version", false, "print the version, and nothing else")
	flag.Parse()
	r := release{version: taggedVersion(), cache: *cache}
	var err error
	switch {
	case *show:
		fmt.Println(r.version)
		return
	case *folder != "":
		err = r.writeFolder(*folder)
	default:
		uri := cmp.Or(*base, "https://github.com/yoctune/yoctune/releases/download/v"+r.version)
		err = r.writeRelease(*out, uri, strings.Split(*arches, ","))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// tagPattern matches the tag of a release.
var tagPattern = lazyregexp.New(`^v(\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?)$`)

// taggedVersion returns the version of the tag at the checked-out commit, or the version
// under development. A tree with changes has that one, too.
func taggedVersion() string {
	raw, err := exec.Command("git", "describe", "--tags", "--exact-match", "--match", "v[0-9]*", "--dirty").Output()
	if err != nil {
		return version.Version // no tag, or no repository
	}
	tag := strings.TrimSpace(string(raw))
	if m := tagPattern.FindStringSubmatch(tag); m != nil && !strings.HasSuffix(tag, "-dirty") {
		return m[1]
	}
	return version.Version
}

// writeFolder writes the runtime folder.
func (r *release) writeFolder(dir string) error {
	w, err := programs.NewWriter(dir, r.version)
	if err != nil {
		return err
	}
	if err := r.setTime(); err != nil {
		// Outside a checkout, as in an archive of the sources.
		fmt.Fprintf(os.Stderr, "dist: %v: archives carry 1 January 1970\n", err)
		r.when = time.Unix(0, 0).UTC()
	}
	for _, p := range builds {
		program, err := r.program(p, "arm64")
		if err != nil {
			return err
		}
		parts, err := licence.Parts(context.Background(), "./cmd/yoctuned", p.Tags)
		if err != nil {
			return err
		}
		if err := r.addProgram(w, p, program, parts); err != nil {
			return err
		}
	}
	cuda, err := r.cudaSource()
	if err != nil {
		return fmt.Errorf("CUDA source archive: %w", err)
	}
	if err := w.Source("yoctune-cuda", cuda); err != nil {
		return err
	}
	return w.Close()
}

// addProgram adds a program to the runtime folder.
func (r *release) addProgram(w *programs.Writer, p build, program []byte, parts []licence.Part) error {
	document, err := r.bill(p.Name+"-"+r.version+"-linux-arm64", digest(program), parts).Encode()
	if err != nil {
		return err
	}
	if err := w.Program(p.Name, "arm64", program); err != nil {
		return err
	}
	if err := w.Licences(p.Name, licence.IDs(parts), licence.Text(p.Name, parts)); err != nil {
		return err
	}
	return w.SPDX(p.Name, document)
}

// writeRelease writes the release files and their manifest.
func (r *release) writeRelease(out, base string, arches []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := r.setTime(); err != nil {
		return err
	}
	folder, err := programs.NewWriter(filepath.Join(out, "lib", "yoctune"), r.version)
	if err != nil {
		return err
	}
	m := programs.NewManifest(r.version)
	// add writes a file with its bill of materials.
	add := func(role, file string, data []byte, mode os.FileMode, parts []licence.Part) error {
		if err := os.WriteFile(filepath.Join(out, file), data, mode); err != nil {
			return err
		}
		sum := digest(data)
		m.Files = append(m.Files, programs.File{Name: role, File: file, URI: base + "/" + file, SHA256: sum, Bytes: int64(len(data))})
		fmt.Printf("%s  %9d  %s\n", sum[:16], len(data), file)
		return r.bill(file, sum, parts).WriteBeside(filepath.Join(out, file))
	}
	for _, p := range builds {
		parts, err := licence.Parts(context.Background(), "./cmd/yoctuned", p.Tags)
		if err != nil {
			return err
		}
		text := licence.Text(p.Name, parts)
		if err := add(p.Name+"-licenses", fmt.Sprintf("%s-%s-licenses.txt", p.Name, r.version), text, 0o644, parts); err != nil {
			return err
		}
		sum, last := md5.Sum(text), &m.Files[len(m.Files)-1]
		last.Licences, last.MD5 = licence.IDs(parts), hex.EncodeToString(sum[:])
		for _, arch := range arches {
			program, err := r.program(p, arch)
			if err != nil {
				return err
			}
			if err := add(p.Name+"-"+arch, fmt.Sprintf("%s-%s-linux-%s", p.Name, r.version, arch), program, 0o755, parts); err != nil {
				return err
			}
			if arch == "arm64" {
				if err := r.addProgram(folder, p, program, parts); err != nil {
					return err
				}
			}
		}
		source, err := r.source(p, parts)
		if err != nil {
			return fmt.Errorf("source archive of %s: %w", p.Name, err)
		}
		if err := add(p.Name+"-source", fmt.Sprintf("%s-%s-source.tar.gz", p.Name, r.version), source, 0o644, parts); err != nil {
			return err
		}
	}
	cuda, err := r.cudaSource()
	if err != nil {
		return fmt.Errorf("CUDA source archive: %w", err)
	}
	if err := add("yoctune-cuda-source", fmt.Sprintf("yoctune-cuda-%s-source.tar.gz", r.version), cuda, 0o644, nil); err != nil {
		return err
	}
	if err := folder.Source("yoctune-cuda", cuda); err != nil {
		return err
	}
	if err := folder.Close(); err != nil {
		return err
	}
	raw, err := m.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, programs.ManifestName), raw, 0o644)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// setTime sets the time to SOURCE_DATE_EPOCH, or that of the commit.
func (r *release) setTime() error {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		raw, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return fmt.Errorf("commit time: %w (set SOURCE_DATE_EPOCH outside a checkout)", err)
		}
		s = string(bytes.TrimSpace(raw))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH %q: %w", s, err)
	}
	r.when = time.Unix(n, 0).UTC()
	return nil
}

// bill is the bill of materials of a file.
func (r *release) bill(file, digest string, parts []licence.Part) *sbom.Document {
	ids := licence.IDs(parts)
	if len(parts) == 0 {
		ids = []string{"Apache-2.0"}
	}
	doc := sbom.New(sbom.Package{Name: file, Version: r.version, SHA256: digest, Licence: licence.Expression(ids)},
		nil, digest, "yoctune-dist-"+r.version, r.when)
	for _, m := range parts {
		if m.Path != mainModule {
			doc.Depends(sbom.GoModule(m.Path, m.Version, licence.Expression(m.IDs)))
		}
	}
	return doc
}
