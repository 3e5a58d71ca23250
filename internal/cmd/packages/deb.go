package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/yoctune/yoctune/internal/licence"
)

// pack is a Debian package.
type pack struct {
	Name, Arch, Summary, Text string
	Depends, Suggests         []string
	Files                     []file
}

const maintainer = "yoctune maintainers <yoctune@users.noreply.github.com>"

// terms are the licences of everything that is linked into a program.
func (p *packager) terms(program string) []byte { return licence.Text(program, p.parts[program]) }

// deb stages a package and lets nfpm write it.
func (p *packager) deb(d pack) error {
	stage := filepath.Join(p.work, d.Name+"-"+d.Arch)
	files, err := p.debianFiles(d)
	if err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Join(stage, "usr", filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.data, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(name, f.mode); err != nil {
			return err
		}
	}
	// nfpm takes the times of folders from the disk.
	err = filepath.WalkDir(stage, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(name, p.when, p.when)
	})
	if err != nil {
		return err
	}
	// The configuration is YAML, of which JSON is a part.
	config, err := json.MarshalIndent(map[string]any{
		"name": d.Name, "arch": d.Arch, "platform": "linux", "version": p.debVersion(), "version_schema": "none",
		"section": "devel", "priority": "optional", "maintainer": maintainer, "description": d.Summary + "\n" + d.Text,
		"homepage": "https://" + module, "license": "Apache-2.0", "mtime": p.when.Format(time.RFC3339),
		"depends": d.Depends, "suggests": d.Suggests,
		"contents": []map[string]any{{"src": filepath.Join(stage, "usr"), "dst": "/usr", "type": "tree", "file_info": map[string]any{"mtime": p.when.Format(time.RFC3339)}}},
	}, "", " ")
	if err != nil {
		return err
	}
	file := filepath.Join(p.work, d.Name+"-"+d.Arch+".yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	name := fmt.Sprintf("%s_%s_%s.deb", d.Name, p.debVersion(), d.Arch)
	cmd := exec.Command(p.nfpm, "package", "-f", file, "-p", "deb", "-t", filepath.Join(p.dist, name))
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", p.when.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm %s: %w\n%s", name, err, out)
	}
	return p.bills(name, d.Name)
}

// overrides are lintian's warnings that hold for these programs on purpose.
var overrides = map[string]string{
	"yoctune":        "# Go links statically.\nyoctune: statically-linked-binary [usr/bin/yoctune]\n",
	"yoctuned":       "# Go's linker has no position-independent programs with cgo by default.\nyoctuned: hardening-no-pie [usr/bin/yoctuned]\n",
	"yoctuned-serve": "# As for yoctuned, which has the manual page.\nyoctuned-serve: hardening-no-pie [usr/bin/yoctuned-serve]\nyoctuned-serve: no-manual-page [usr/bin/yoctuned-serve]\n",
}

// debianFiles are the files of a package with what Debian's policy asks for: compressed man
// pages, a change log and the terms. Completions of other systems' shells are left out.
func (p *packager) debianFiles(d pack) ([]file, error) {
	doc := "share/doc/" + d.Name + "/"
	all := append(d.Files[:len(d.Files):len(d.Files)],
		file{doc + "changelog", p.debianChangelog(d.Name), 0o644}, file{doc + "LICENSES.txt", p.terms(d.Name), 0o644},
		file{doc + "copyright", []byte(copyright), 0o644},
	)
	all = append(all, file{"share/lintian/overrides/" + d.Name, []byte(overrides[d.Name]), 0o644})
	var out []file
	for _, f := range all {
		switch {
		case strings.HasPrefix(f.path, "share/powershell/"), f.path == doc+"LICENSE":
			continue
		case strings.HasPrefix(f.path, "share/man/"), f.path == doc+"changelog", f.path == doc+"LICENSES.txt":
			data, err := compress(f.data)
			if err != nil {
				return nil, err
			}
			f = file{f.path + ".gz", data, f.mode}
		case f.path == doc+"CHANGELOG.md":
			f.path = doc + "NEWS.md"
		}
		out = append(out, f)
	}
	return out, nil
}

// debVersion is the version as Debian sorts it: 0.2.0~dev comes before 0.2.0.
func (p *packager) debVersion() string { return strings.ReplaceAll(p.version, "-", "~") }

func (p *packager) debianChangelog(name string) []byte {
	return fmt.Appendf(nil, "%s (%s) unstable; urgency=medium\n\n  * Release %s; NEWS.md of the package yoctune lists the changes.\n\n -- %s  %s\n",
		name, p.debVersion(), p.version, maintainer, p.when.Format(time.RFC1123Z))
}

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: yoctune
Source: https://` + module + `

Files: *
Copyright: 2026 the yoctune authors
License: Apache-2.0
Comment: LICENSES.txt.gz has the terms of the modules that are linked.

License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
`
