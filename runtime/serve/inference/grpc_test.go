package inference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yoctune/yoctune/runtime/serve/inference/protocol"
)

// Any message is read to a request or refused with a kind of its own.
func FuzzMessage(f *testing.F) {
	for _, m := range []*protocol.ModelInferRequest{
		{ModelName: "m", Inputs: []*protocol.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, -4}}}, RawInputContents: [][]byte{{1}}},
		{Inputs: []*protocol.ModelInferRequest_InferInputTensor{{Datatype: "INT8", Contents: &protocol.InferTensorContents{IntContents: []int32{1, 300}}}}},
		{Parameters: map[string]*protocol.InferParameter{"a": nil}, Outputs: []*protocol.ModelInferRequest_InferRequestedOutputTensor{nil}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m protocol.ModelInferRequest
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		r, err := readMessage(&m)
		if err != nil {
			if k := KindOf(err); k != Invalid {
				t.Fatalf("kind %d: %v", k, err)
			}
			return
		}
		if len(r.Inputs) != len(m.Inputs) || len(r.Outputs) != len(m.Outputs) {
			t.Fatal("inputs or outputs are missing")
		}
		if _, err := writeMessage(&Response{Parameters: echo(r.Parameters), Outputs: r.Inputs}); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever a caller registers, it reads and writes nothing outside the folder of shared memory, and nothing
// beyond its region.
func FuzzRegions(f *testing.F) {
	f.Add("/a", uint64(0), uint64(16), uint64(0), uint64(16))
	f.Add("/../outside", uint64(0), uint64(16), uint64(0), uint64(16))
	f.Add("/a", uint64(1<<63), uint64(1<<63), uint64(1<<63), uint64(16))
	f.Add("/link", uint64(0), uint64(1), uint64(0), uint64(1))
	dir := f.TempDir()
	shared := filepath.Join(dir, "shm")
	if err := os.Mkdir(shared, 0o755); err != nil {
		f.Fatal(err)
	}
	outside := filepath.Join(dir, "outside")
	for path, text := range map[string]string{outside: "secret secret secret", filepath.Join(shared, "a"): strings.Repeat("-", 64)} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(shared, "link")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key string, offset, size, at, n uint64) {
		r := NewRegions(false)
		r.dir = shared
		defer r.Close()
		c := Caller{Local: true, UID: uint32(os.Geteuid())}
		if err := r.Register(c, Region{Name: "x", Key: key, Offset: offset, Size: size}); err != nil {
			if KindOf(err) == Internal {
				t.Fatal(err)
			}
			return
		}
		if n > 1<<20 {
			return // a model bounds what is read
		}
		b, err := r.Read(c, "x", at, n)
		if err == nil && (at+n > size || strings.Trim(string(b), "-+") != "") {
			t.Fatalf("read %q of %d bytes at %d of a region of %d", b, n, at, size)
		}
		if err := r.Write(c, "x", at, []byte(strings.Repeat("+", int(n)))); err == nil && at+n > size {
			t.Fatal("written beyond the region")
		}
		if text, err := os.ReadFile(outside); err != nil || string(text) != "secret secret secret" {
			t.Fatalf("%q %v", text, err)
		}
		if st, err := os.Stat(filepath.Join(shared, "a")); err != nil || st.Size() != 64 {
			t.Fatalf("the memory has %d bytes", st.Size())
		}
	})
}

// A region that is in use stays open until its last use.
func TestARegionIsClosedAfterItsLastUse(t *testing.T) {
	r := NewRegions(false)
	r.dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(r.dir, "a"), make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Caller{Local: true, UID: uint32(os.Geteuid())}
	if err := r.Register(c, Region{Name: "x", Key: "a", Size: 8}); err != nil {
		t.Fatal(err)
	}
	file, _, done, err := r.use(c, "x", 0, 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Unregister(c, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := file.ReadAt(make([]byte, 8), 0); err != nil {
		t.Errorf("closed while in use: %v", err)
	}
	done()
	if _, err := file.ReadAt(make([]byte, 8), 0); err == nil {
		t.Error("open after the last use")
	}
	var none *Regions
	if _, err := none.Read(c, "x", 0, 8); KindOf(err) != Unimplemented {
		t.Errorf("%v", err)
	}
	none.Close()
}
