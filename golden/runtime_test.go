package golden

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler/programs"
	"github.com/yoctune/yoctune/internal/sbom"
)

// runtimeFolder has stand-ins of the programs, so that the golden trees do not change
// with every change of the programs.
const (
	runtimeFolder  = "runtime"
	runtimeVersion = "0.2.0"
)

func TestTheRuntimeFolderHoldsStandIns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runtime")
	if *update {
		dir = runtimeFolder
	}
	writeRuntime(t, dir)
	if *update {
		return
	}
	want, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := os.ReadDir(runtimeFolder)
	if err != nil || len(found) != len(want) {
		t.Fatalf("%d files, want %d: %v; write them with: go test ./golden -update", len(found), len(want), err)
	}
	for _, f := range want {
		a, errA := os.ReadFile(filepath.Join(dir, f.Name()))
		b, errB := os.ReadFile(filepath.Join(runtimeFolder, f.Name()))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs; write it with: go test ./golden -update", f.Name())
		}
	}
}

func writeRuntime(t *testing.T, dir string) {
	t.Helper()
	w, err := programs.NewWriter(dir, runtimeVersion)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"yoctuned", "yoctuned-serve"} {
		licences := []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT"}
		if name == "yoctuned-serve" {
			licences = append(licences, "blessing")
		}
		must(w.Program(name, "arm64", fmt.Appendf(nil, "#!/bin/sh\necho \"%s %s, a stand-in for tests\"\n", name, runtimeVersion)))
		must(w.Licences(name, licences, fmt.Appendf(nil, "Licences of %s: a stand-in for tests.\n", name)))
		doc := sbom.New(sbom.Package{Name: name, Version: runtimeVersion}, nil, "stand-in", "yoctune-golden", time.Unix(0, 0))
		raw, err := doc.Encode()
		must(err)
		must(w.SPDX(name, raw))
	}
	must(w.Source("yoctune-cuda", cudaArchive(t)))
	must(w.Close())
}

// cudaArchive is a source archive of one kernel.
func cudaArchive(t *testing.T) []byte {
	t.Helper()
	licence, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, f := range []struct{ name, text string }{
		{"LICENSE", string(licence)},
		{"runtime/engine/core/cuda/none.cu", "// a stand-in for tests\n"},
	} {
		err := w.WriteHeader(&tar.Header{Name: "yoctune-cuda-" + runtimeVersion + "/" + f.name, Mode: 0o644, Size: int64(len(f.text)), Format: tar.FormatPAX})
		if err == nil {
			_, err = w.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
