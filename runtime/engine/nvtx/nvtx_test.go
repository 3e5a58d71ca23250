//go:build cgo

package nvtx_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/nvtx"
	"github.com/yoctune/yoctune/runtime/engine/nvtx/nvtxtest"
)

func TestRangesReachTheLibrary(t *testing.T) {
	path, calls := nvtxtest.Library(t)
	lib, err := nvtx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	infer, post := lib.Range("infer"), lib.Range("post\x00process")
	a := infer.Start()
	b := post.Start()
	infer.End(a)
	post.End(b)
	if got := calls(); !slices.Equal(got, []string{"start 1 infer", "start 2 postprocess", "end 1", "end 2"}) {
		t.Errorf("%q", got)
	}
}

func TestWithoutALibraryNothingIsMarked(t *testing.T) {
	if _, err := nvtx.Open(filepath.Join(t.TempDir(), "libnvToolsExt.so.1")); !errors.Is(err, nvtx.ErrNotFound) {
		t.Errorf("%v", err)
	}
	var lib *nvtx.Library
	r := lib.Range("x")
	r.End(r.Start())
	other := filepath.Join(t.TempDir(), "lib.so")
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-x", "c", "-o", other, "-")
	cmd.Stdin = strings.NewReader("int nothing;\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := nvtx.Open(other); err == nil || errors.Is(err, nvtx.ErrNotFound) || !strings.Contains(err.Error(), "nvtxRangeStartA") {
		t.Errorf("%v", err)
	}
}
