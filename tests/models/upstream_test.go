package models

import (
	"archive/zip"
	"crypto/md5"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/blake2b"

	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/upstream"
)

// The facts about files that recipes fetch are those of the files.
func TestUpstreamFactsAreThoseOfTheFiles(t *testing.T) {
	for _, f := range upstream.Files() {
		t.Run(f.Name, func(t *testing.T) {
			file := filepath.Join(Dir(t), "upstream", path.Base(f.URI))
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() != f.Size {
				t.Errorf("size %d, the facts have %d", info.Size(), f.Size)
			}
			if sum := digest(t, sha256.New(), file); sum != f.SHA256 {
				t.Errorf("sha256 %s, the facts have %s", sum, f.SHA256)
			}
			blake, err := blake2b.New256(nil)
			if err != nil {
				t.Fatal(err)
			}
			// PyPI: /packages/AB/CD/REST/NAME, after the BLAKE2b digest of 256 bits.
			sum := digest(t, blake, file)
			if want := "/packages/" + sum[:2] + "/" + sum[2:4] + "/" + sum[4:] + "/"; !strings.Contains(f.URI, want) {
				t.Errorf("the address %s is not that of this file, which has %s", f.URI, want)
			}
			archive, err := zip.OpenReader(file)
			if err != nil {
				t.Fatal(err)
			}
			defer archive.Close()
			for _, m := range f.Members {
				checkMember(t, archive, m)
			}
			metadata := string(read(t, archive, "*.dist-info/METADATA"))
			name, _, _ := strings.Cut(f.Licence, "-") // "MIT License", "Apache-2.0"
			if !strings.Contains(metadata, "\nLicense: "+name) {
				t.Errorf("METADATA does not have the licence %s", f.Licence)
			}
		})
	}
}

func checkMember(t *testing.T, archive *zip.ReadCloser, m upstream.Member) {
	t.Helper()
	content := read(t, archive, m.Path)
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != m.SHA256 || int64(len(content)) != m.Size {
		t.Errorf("%s: %d bytes, sha256 %s; the facts have %d, %s", m.Path, len(content), got, m.Size, m.SHA256)
	}
	if text := md5.Sum(content); m.MD5 != "" && hex.EncodeToString(text[:]) != m.MD5 {
		t.Errorf("%s: md5 %x, the facts have %s", m.Path, text, m.MD5)
	}
	if m.Needs == nil {
		return
	}
	library, err := elf.NewFile(strings.NewReader(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	if library.Machine != elf.EM_AARCH64 {
		t.Errorf("%s is for %v", m.Path, library.Machine)
	}
	needs := map[string]string{}
	symbols, err := library.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		prefix, version, ok := strings.Cut(s.Version, "_")
		if ok && s.Section == elf.SHN_UNDEF && (needs[prefix] == "" || compareVersions(version, needs[prefix]) > 0) {
			needs[prefix] = version
		}
	}
	for prefix, version := range needs {
		if m.Needs[prefix] != version {
			t.Errorf("%s needs %s_%s, the facts have %q", m.Path, prefix, version, m.Needs[prefix])
		}
	}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		if compareVersions(m.Needs["GLIBC"], r.Glibc) > 0 {
			t.Errorf("%s needs glibc %s, and %s has %s", m.Path, m.Needs["GLIBC"], name, r.Glibc)
		}
		// libstdc++ has GLIBCXX_3.4.22 and CXXABI_1.3.11 since GCC 7 (its ABI policy and guidelines).
		if compareVersions(m.Needs["GLIBCXX"], "3.4.22") > 0 || compareVersions(m.Needs["CXXABI"], "1.3.11") > 0 || compareVersions(r.GCC, "7") < 0 {
			t.Errorf("%s needs GLIBCXX %s and CXXABI %s; %s has GCC %s", m.Path, m.Needs["GLIBCXX"], m.Needs["CXXABI"], name, r.GCC)
		}
	}
}

func compareVersions(a, b string) int {
	parse := func(v string) []int {
		var out []int
		for p := range strings.SplitSeq(v, ".") {
			n, _ := strconv.Atoi(p)
			out = append(out, n)
		}
		return out
	}
	return slices.Compare(parse(a), parse(b))
}

func digest(t *testing.T, h hash.Hash, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// read returns the member of an archive whose path matches a pattern.
func read(t *testing.T, archive *zip.ReadCloser, pattern string) []byte {
	t.Helper()
	for _, f := range archive.File {
		if ok, err := path.Match(pattern, f.Name); err != nil || !ok {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Fatalf("no member %s", pattern)
	return nil
}
