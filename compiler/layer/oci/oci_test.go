package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/yoctune/yoctune/compiler/layer/oci"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/emitters"
)

// serve starts another project's registry on this machine, behind a handler.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	h := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		h = wrap(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	return strings.TrimPrefix(s.URL, "http://")
}

func layer(t *testing.T) oci.Layer {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layer")
	c, err := tree.Compare(dir, []emitters.File{
		{Path: "README.md", Data: []byte("# box\n"), Mode: 0o644},
		{Path: "recipes/run.sh", Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		{Path: "recipes/plan.json", Data: []byte("{}\n"), Mode: 0o644},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "recipes/plan.json.minisig"), []byte("signature\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := tree.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return oci.Layer{Name: "box", Release: "scarthgap", Files: files}
}

func TestLayerRoundTripsThroughRegistry(t *testing.T) {
	host := serve(t, nil)
	l := layer(t)
	pinned, err := oci.Push(t.Context(), l, host+"/layers/box:1.0", oci.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := oci.Push(t.Context(), layer(t), host+"/layers/box:latest", oci.Options{}); err != nil || again != pinned {
		t.Errorf("the same layer is %s and then %s (%v)", pinned, again, err)
	}
	for _, ref := range []string{host + "/layers/box:1.0", pinned} {
		got, from, err := oci.Pull(t.Context(), ref, oci.Options{})
		if err != nil || from != pinned || got.Name != "box" || got.Release != "scarthgap" {
			t.Fatalf("%s: %+v, %s, %v", ref, got.Name, from, err)
		}
		if len(got.Files) != len(l.Files) || len(got.Files) != 5 {
			t.Fatalf("%d files of %d", len(got.Files), len(l.Files))
		}
		for i, f := range got.Files {
			if w := l.Files[i]; f.Path != w.Path || f.Mode != w.Mode || !bytes.Equal(f.Data, w.Data) {
				t.Errorf("%s is not as it was", f.Path)
			}
		}
	}
}

func TestModifiedRegistryContentIsRefused(t *testing.T) {
	tamper := false
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !tamper || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
				h.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			b := rec.Body.Bytes()
			b[len(b)/2] ^= 1
			for k, v := range rec.Header() {
				w.Header()[k] = v
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(b)
		})
	})
	pinned, err := oci.Push(t.Context(), layer(t), host+"/box:1", oci.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tamper = true
	if _, _, err := oci.Pull(t.Context(), pinned, oci.Options{}); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("a changed blob: %v", err)
	}
}

func TestLoginUsesDockersConfiguration(t *testing.T) {
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "ci" || password != "secret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	if _, err := oci.Push(t.Context(), layer(t), host+"/box:1", oci.Options{}); err == nil {
		t.Error("pushed without a login")
	}
	config := `{"auths": {"` + host + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("ci:secret")) + `"}}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := oci.Push(t.Context(), layer(t), host+"/box:1", oci.Options{}); err != nil {
		t.Errorf("with the login: %v", err)
	}
}

func TestDanglingReferencesAreRefused(t *testing.T) {
	host := serve(t, nil)
	for _, ref := range []string{"", "box", host + "/box", host + "/BOX:1", host + "/../box:1", host + "/box:1\n", host + "/box@sha256:00"} {
		if _, _, err := oci.Pull(t.Context(), ref, oci.Options{}); !errors.Is(err, oci.ErrReference) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	digest := host + "/box@sha256:" + strings.Repeat("0", 64)
	if _, err := oci.Push(t.Context(), layer(t), digest, oci.Options{}); !errors.Is(err, oci.ErrReference) {
		t.Errorf("a push to a digest: %v", err)
	}
	if _, _, err := oci.Pull(t.Context(), host+"/nothing:1", oci.Options{}); err == nil {
		t.Error("pulled what is not there")
	}
}

func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, h := range headers {
		data := []byte("x")
		if h.Typeflag != tar.TypeReg {
			data = nil
		}
		h.Size, h.Mode = int64(len(data)), 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchiveWithoutLayerIsRefused(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	for name, c := range map[string]struct {
		blob []byte
		want string
	}{
		"a path that climbs":       {archive(t, file("../../etc/cron.d/x")), "not a path inside"},
		"an absolute path":         {archive(t, file("/etc/passwd")), "not a path inside"},
		"a path that is not clean": {archive(t, file("a/./b")), "not a path inside"},
		"a backslash":              {archive(t, file(`a\..\b`)), "not a path inside"},
		"a link":                   {archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc"}, file("a/b")), "not a regular file"},
		"a hard link":              {archive(t, tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "/etc/passwd"}), "not a regular file"},
		"a device":                 {archive(t, tar.Header{Typeflag: tar.TypeChar, Name: "a"}), "not a regular file"},
		"a folder":                 {archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "a"}), "not a regular file"},
		"twice":                    {archive(t, file("a"), file("A")), "appears twice"},
		"a file that is a folder":  {archive(t, file("a"), file("a/b")), "a file and a folder"},
		"without a manifest":       {archive(t, file("README.md")), "no manifest"},
		"rubbish":                  {[]byte("rubbish"), ""},
		"cut":                      {archive(t, file("a"))[:40], ""},
	} {
		_, err := oci.Unpack(c.blob)
		if !errors.Is(err, oci.ErrContent) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// A file that the manifest does not list, or lists otherwise.
	l := layer(t)
	l.Files = append(l.Files, emitters.File{Path: "evil.bb", Data: []byte("x\n")})
	blob, err := l.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oci.Unpack(blob); !errors.Is(err, oci.ErrContent) || !strings.Contains(err.Error(), "evil.bb is not in the manifest") {
		t.Errorf("a file more: %v", err)
	}
	l = layer(t)
	l.Files[1].Data = append(bytes.Clone(l.Files[1].Data), 'x')
	if blob, err = l.Pack(); err != nil {
		t.Fatal(err)
	}
	if _, err := oci.Unpack(blob); !errors.Is(err, oci.ErrContent) || !strings.Contains(err.Error(), "differs from the manifest") {
		t.Errorf("a changed file: %v", err)
	}
}

// A password goes over an open line only to this machine.
func TestRemoteRegistryRequiresTLS(t *testing.T) {
	serve(t, nil)
	asked := make(chan string, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.Host }))
	defer s.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	// The name of this machine that is no name of this machine: a TLS greeting, no request.
	for _, ref := range []string{"yoctune.invalid:" + port + "/box:1"} {
		if _, _, err := oci.Pull(t.Context(), ref, oci.Options{}); err == nil || !strings.Contains(err.Error(), "https://yoctune.invalid") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("requested without TLS: %s", <-asked)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeReg, Name: "README.md"}))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, blob []byte) {
		files, err := oci.Unpack(blob)
		if err != nil && !errors.Is(err, oci.ErrContent) {
			t.Errorf("%v is not ErrContent", err)
		}
		for _, file := range files {
			if !filepath.IsLocal(file.Path) {
				t.Errorf("%q", file.Path)
			}
		}
	})
}
