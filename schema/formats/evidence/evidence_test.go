package evidence_test

import (
	"errors"
	"testing"

	"github.com/yoctune/yoctune/schema/formats/evidence"
)

func TestFilesLieBesideTheSource(t *testing.T) {
	if got := evidence.Path("models/way.onnx", "cam"); got != "models/way.cam.evidence.json" {
		t.Error(got)
	}
	if got := evidence.CandidatePath("models/way.onnx", "cam", "fp16"); got != "models/way.cam.fp16.onnx" {
		t.Error(got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"$schema":"yoctune.evidence/1","model":"m","target":"t","source":{"name":"original","file":"m.onnx","sha256":"e3","bytes":1},` +
		`"candidates":[{"name":"original","file":"m.onnx","sha256":"e3","bytes":1,"accepted":true,"reason":"","batches":[]}],"chosen":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := evidence.Decode(data)
		if err != nil {
			if !errors.Is(err, evidence.ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if e.Chosen != nil && evidence.CandidatePath(e.Chosen.File, "", "") == "" {
			t.Fatal("no path")
		}
	})
}
