package programs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const golden = "../../golden/runtime"

// roles are those of the golden folder's smaller program.
var roles = []string{"yoctuned-arm64", "yoctuned-licenses", "yoctuned-spdx"}

func TestAFolderIsReadByRole(t *testing.T) {
	f, err := Find(golden).Folder()
	if err != nil {
		t.Fatal(err)
	}
	files, err := f.Read(roles)
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if f.Version() != "0.2.0" || files[0].URI != "yoctuned-0.2.0-linux-arm64.gz" || len(files[0].Data) == 0 || len(files[1].Licences) == 0 {
		t.Errorf("version %s, %+v", f.Version(), files[0])
	}
}

// The first place that exists decides: a damaged folder is reported, not passed over.
func TestPlacesAreTriedInOrder(t *testing.T) {
	whole := os.DirFS(golden)
	empty := t.TempDir()
	missing := filepath.Join(empty, "missing")
	for name, c := range map[string]struct {
		f    Finder
		want string // in the error, or the name of the folder
	}{
		"the flag":               {Finder{dir: golden, beside: empty, inside: whole}, golden},
		"the flag, missing":      {Finder{dir: missing, beside: golden, inside: whole}, "missing"},
		"beside the program":     {Finder{beside: golden, inside: whole}, golden},
		"beside it, but damaged": {Finder{beside: empty, inside: whole}, "manifest.json"},
		"embedded":               {Finder{beside: missing, inside: whole}, "the folder embedded in yoctune"},
	} {
		d, err := c.f.Folder()
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = d.Name
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
	_, err := (&Finder{beside: missing}).Folder()
	var absent *AbsentError
	if !errors.As(err, &absent) {
		t.Fatalf("nowhere: %v", err)
	}
	for _, place := range []string{"--runtime DIR", missing, "embedded"} {
		if !strings.Contains(err.Error(), place) {
			t.Errorf("%q does not name %s", err, place)
		}
	}
}

func TestDamagedFoldersAreRefused(t *testing.T) {
	whole := func() fstest.MapFS {
		m := fstest.MapFS{}
		entries, err := os.ReadDir(golden)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(golden, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			m[e.Name()] = &fstest.MapFile{Data: data, Mode: 0o644}
		}
		return m
	}
	const program = "yoctuned-0.2.0-linux-arm64.gz"
	for name, c := range map[string]struct {
		damage func(fstest.MapFS)
		want   string
	}{
		"a changed byte":       {func(m fstest.MapFS) { m[program].Data[20] ^= 1 }, program},
		"a file cut short":     {func(m fstest.MapFS) { m[program].Data = m[program].Data[:40] }, program},
		"an empty file":        {func(m fstest.MapFS) { m[program].Data = nil }, program},
		"no file":              {func(m fstest.MapFS) { delete(m, program) }, program},
		"a folder for a file":  {func(m fstest.MapFS) { m[program].Mode = fs.ModeDir | 0o755 }, program},
		"a link for a file":    {func(m fstest.MapFS) { m[program].Mode = fs.ModeSymlink | 0o777 }, program},
		"a pipe for a file":    {func(m fstest.MapFS) { m[program].Mode = fs.ModeNamedPipe }, program},
		"a huge file":          {func(m fstest.MapFS) { m[program].Data = make([]byte, maxFile+1) }, "limit"},
		"a huge manifest":      {func(m fstest.MapFS) { m[ManifestName].Data = make([]byte, maxManifest+1) }, "limit"},
		"no manifest":          {func(m fstest.MapFS) { delete(m, ManifestName) }, ManifestName},
		"a manifest cut short": {func(m fstest.MapFS) { m[ManifestName].Data = m[ManifestName].Data[:100] }, ManifestName},
		"another format":       {replaceText("yoctune.dist/1", "yoctune.dist/2"), "yoctune.dist/2"},
		"a path that leads up": {replaceText(`"`+program, `"../`+program), "not the name of a file"},
		"an absolute path":     {replaceText(`"`+program, `"/etc/passwd`), "not the name of a file"},
		"a file in a folder":   {replaceText(`"`+program, `"a/`+program), "not the name of a file"},
		"the manifest itself":  {replaceText(`"`+program, `"`+ManifestName), "not the name of a file"},
		"no digest":            {replaceText(`"sha256": "9aaeb`, `"sha256": "xxxxx`), "SHA-256"},
		"no such role":         {replaceText(`"yoctuned-arm64"`, `"yoctuned-riscv"`), "lists no yoctuned-arm64"},
		"a role twice":         {replaceText(`"yoctuned-licenses"`, `"yoctuned-arm64"`), "twice"},
		"no version":           {replaceText(`"version": "0.2.0"`, `"version": ""`), "no version"},
		"a hostile version":    {replaceText(`"version": "0.2.0"`, `"version": "1_\""`), "version"},
		"no gzip":              {replaceFile(program, []byte("text")), "not a gzip archive"},
		"half an archive":      {replaceFile(program, compress(t, []byte("#!/bin/sh\n"))[:20]), "damaged"},
		"no program":           {replaceFile(program, compress(t, []byte("text"))), "no program"},
		"another processor":    {replaceFile(program, compress(t, append([]byte("\x7fELF\x02\x01\x01"), "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00\x01\x00\x00\x00"+strings.Repeat("\x00", 28)+"\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00"...))), "EM_X86_64"},
		"other licence texts":  {replaceFile("yoctuned-0.2.0-licenses.txt", []byte("text")), "MD5"},
		"no licences":          {replaceText(`"licenses": [`, `"licences": [`), "no licenses"},
	} {
		m := whole()
		c.damage(m)
		f, err := open("the folder", m)
		if err == nil {
			_, err = f.Read(roles)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "the folder") {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
}

func replaceText(old, text string) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		f := m[ManifestName]
		f.Data = []byte(strings.Replace(string(f.Data), old, text, 1))
	}
}

// replaceFile replaces a file and its digest in the manifest.
func replaceFile(name string, data []byte) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		digest := func(data []byte) string { sum := sha256.Sum256(data); return hex.EncodeToString(sum[:]) }
		was := digest(m[name].Data)
		m[name].Data = data
		replaceText(was, digest(data))(m)
	}
}

func compress(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What a writer writes is what a reader reads; a second run changes no file, and stale
// ones go.
func TestWriterAndReaderAgree(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "yoctuned-0.1.0-linux-arm64.gz")
	if err := os.WriteFile(stale, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	write := func() os.FileInfo {
		w, err := NewWriter(dir, "1.0.0")
		if err == nil {
			err = errors.Join(w.Program("yoctuned", "arm64", []byte("#!/bin/program")), w.SPDX("yoctuned", []byte("{}\n")),
				w.Licences("yoctuned", []string{"MIT"}, []byte("MIT\n")), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "yoctuned-1.0.0-linux-arm64.gz"))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write()
	if second := write(); !os.SameFile(first, second) {
		t.Error("an unchanged file was written again")
	}
	if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the stale file: %v", err)
	}
	f, err := Find(dir).Folder()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(roles); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	raw, err := os.ReadFile(filepath.Join(golden, ManifestName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"version":"1","files":[{"name":"a","uri":"..","sha256":""}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Decode(raw)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(again); err != nil {
			t.Errorf("%s is not read again: %v", again, err)
		}
	})
}
