package examples_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/formats/examples"
)

// file is a safetensors file with a header and bytes.
func file(header string, data ...byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

func open(data []byte) (*examples.Set, error) {
	return examples.Open(bytes.NewReader(data), int64(len(data)))
}

const header = `{"x":{"dtype":"U8","shape":[3,2],"data_offsets":[0,6]},"fixed.y":{"dtype":"I8","shape":[],"data_offsets":[6,7]},"label":{"dtype":"I8","shape":[3],"data_offsets":[7,10]}}`

func TestExamplesAreReadInAnyOrder(t *testing.T) {
	s, err := open(file(header, 1, 2, 3, 4, 5, 6, 42, 0, 255, 7))
	if err != nil {
		t.Fatal(err)
	}
	if s.Count != 3 || len(s.Inputs) != 2 || s.Inputs[0].Name != "x" || s.Inputs[1].Name != "y" || !s.Inputs[1].Fixed {
		t.Fatalf("%+v", s)
	}
	got := make([]byte, 4)
	if err := s.Fill(&s.Inputs[0], []int{2, 0}, got); err != nil || !bytes.Equal(got, []byte{5, 6, 1, 2}) {
		t.Error(got, err)
	}
	if err := s.Fill(&s.Inputs[1], []int{2, 0}, got[:1]); err != nil || got[0] != 42 {
		t.Error(got, err)
	}
	if l, err := s.LabelsOf(1); err != nil || l[0] != -1 {
		t.Error(l, err)
	}
	if shape := s.Inputs[0].BatchShape(8); shape[0] != 8 || shape[1] != 2 {
		t.Error(shape)
	}
}

func TestSetsThatDoNotFitAreRefused(t *testing.T) {
	boxes := func(v ...float32) []byte {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return append([]byte{1, 2}, b...)
	}
	const boxed = `{"x":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]},"boxes":{"dtype":"F32","shape":[1,6],"data_offsets":[2,26]}}`
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "too short for a header"},
		{"not JSON", file("x"), "not JSON"},
		{"no examples", file(`{}`), "it has no examples"},
		{"only fixed", file(`{"fixed.y":{"dtype":"I8","shape":[],"data_offsets":[0,1]}}`, 1), "it has no examples"},
		{"empty axis", file(`{"x":{"dtype":"U8","shape":[0,2],"data_offsets":[0,0]}}`), "has the shape [0 2]"},
		{"truncated", file(header, 1, 2, 3), "truncated or damaged"},
		{"overflow", file(`{"x":{"dtype":"I64","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`), "has the shape"},
		{"negative", file(`{"x":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, 1), "has the shape [-1]"},
		{"offsets", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}`, 1), "lies at [-1 0]"},
		{"doubles", file(`{"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`, 1), `type "F64"`},
		{"a scalar", file(`{"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1), "no axis of examples"},
		{"labels of others", file(strings.Replace(header, `[3],"data_offsets":[7,10]`, `[2],"data_offsets":[7,9]`, 1), 1, 2, 3, 4, 5, 6, 42, 0, 1, 2), "2 labels for 3 examples"},
		{"labels of floats", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"label":{"dtype":"F16","shape":[1],"data_offsets":[1,3]}}`, 1, 0, 0), "labels are integers"},
		{"boxes of five", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"boxes":{"dtype":"F32","shape":[1,5],"data_offsets":[1,21]}}`, boxes(1, 2, 3, 4, 5)[1:]...), "F32 [objects 6]"},
		{"inputs of other length", file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"z":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, 2), "examples"},
	} {
		if _, err := open(c.data); !errors.Is(err, examples.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for name, v := range map[string][]float32{
		"an example that does not exist": {2, 0, 0, 0, 1, 1}, "half a class": {0, 0.5, 0, 0, 1, 1}, "right before left": {0, 0, 5, 0, 1, 1},
		"not a number": {0, 0, float32(math.NaN()), 0, 1, 1},
	} {
		s, err := open(file(boxed, boxes(v...)...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadBoxes(); !errors.Is(err, examples.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(file(header, 1, 2, 3, 4, 5, 6, 42, 0, 255, 7))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := open(data)
		if err != nil {
			return
		}
		for i := range s.Inputs {
			in := &s.Inputs[i]
			n := 1
			for _, d := range in.BatchShape(1) {
				n *= int(d)
			}
			if n <= 1<<16 {
				_ = s.Fill(in, []int{s.Count - 1}, make([]byte, 8*n))
			}
		}
		if _, err := json.Marshal(s.Inputs); err != nil {
			t.Fatal(err)
		}
	})
}
