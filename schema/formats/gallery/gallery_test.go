package gallery_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/formats/gallery"
)

// file is a file with a header and vectors.
func file(header string, v ...float32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func header(shape, offsets, meta string) string {
	return fmt.Sprintf(`{"embeddings":{"dtype":"F32","shape":%s,"data_offsets":%s},"__metadata__":%s}`, shape, offsets, meta)
}

func read(b []byte) (*gallery.Gallery, error) {
	return gallery.Read(bytes.NewReader(b), int64(len(b)))
}

func TestAGalleryIsScaledToUnitLength(t *testing.T) {
	model := strings.Repeat("ab", 32)
	g, err := read(file(header("[2,2]", "[0,16]", `{"names":"[\"anna\",\"bert\"]","model":"`+model+`","extra":"x"}`)+"   ", 3, 4, -1e-6, 0))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(g.Names, g.Dimension, g.Vectors) != "[anna bert] 2 [0.6 0.8 -1 0]" || g.Model != model {
		t.Errorf("%+v", g)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	names := `{"names":"[\"a\"]","model":"` + strings.Repeat("ab", 32) + `"}`
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty file", nil, "too short for a header"},
		{"no header", file(""), "not JSON"},
		{"header beyond the file", binary.LittleEndian.AppendUint64(nil, 1<<40), "its header would have 1099511627776 bytes"},
		{"header that wraps", binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "its header would have"},
		{"another tensor", file(`{"weights":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}`, 1), "one tensor, embeddings"},
		{"two tensors", file(`{"embeddings":{},"more":{}}`), "one tensor, embeddings"},
		{"half", file(`{"embeddings":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},"__metadata__":`+names+`}`, 1), `has type "F16"`},
		{"one dimension", file(header("[4]", "[0,16]", names), 1, 2, 3, 4), "has 1 dimensions"},
		{"no entries", file(header("[0,2]", "[0,0]", `{"names":"[]"}`)), "it has no entries"},
		{"negative", file(header("[-1,2]", "[0,0]", names)), "at most 1048576 entries"},
		{"a million dimensions", file(header("[1,1000000]", "[0,4000000]", names)), "at most 1048576 entries of 1 to 16384"},
		{"sizes that overflow", file(header("[9223372036854775807,9223372036854775807]", "[0,4]", names), 1), "at most 1048576 entries"},
		{"offsets", file(header("[1,2]", "[4,12]", names), 1, 2, 3), "lies at [4 12]"},
		{"truncated", file(header("[1,2]", "[0,8]", names), 1), "1 entries of 2 values are 8 bytes, and the file has 4: it is truncated"},
		{"longer", file(header("[1,2]", "[0,8]", names), 1, 2, 3), "and the file has 12"},
		{"no names", file(header("[1,2]", "[0,8]", `{}`), 1, 2), "names in its metadata"},
		{"fewer names", file(header("[2,1]", "[0,8]", names), 1, 2), "1 names for 2 entries"},
		{"empty name", file(header("[1,2]", "[0,8]", `{"names":"[\"\"]"}`), 1, 2), "the name of entry 0 has 0 bytes"},
		{"metadata of numbers", file(header("[1,2]", "[0,8]", `{"names":1}`), 1, 2), "its metadata is not text"},
		{"no model", file(header("[1,2]", "[0,8]", `{"names":"[\"a\"]"}`), 1, 2), "add model, the SHA-256 of the model file"},
		{"empty model", file(header("[1,2]", "[0,8]", `{"names":"[\"a\"]","model":""}`), 1, 2), "add model, the SHA-256 of the model file"},
		{"model", file(header("[1,2]", "[0,8]", `{"names":"[\"a\"]","model":"yolo"}`), 1, 2), `its model "yolo" is not a SHA-256`},
		{"zero", file(header("[1,2]", "[0,8]", names), 0, 0), `entry 0, "a", has no direction: its length is 0`},
		{"tiny", file(header("[1,2]", "[0,8]", names), 1e-20, 0), "has no direction: its length is 1e-20"},
		{"NaN", file(header("[1,2]", "[0,8]", names), nan, 1), "has no direction: its length is NaN"},
		{"infinite", file(header("[1,2]", "[0,8]", names), inf, 1), "has no direction: its length is +Inf"},
	} {
		if _, err := read(c.file); !errors.Is(err, gallery.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := gallery.Read(strings.NewReader(""), 1<<40); err == nil || !strings.Contains(err.Error(), "at most 536870912") {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	model := strings.Repeat("ab", 32)
	f.Add(file(header("[1,2]", "[0,8]", `{"names":"[\"a\"]","model":"`+model+`"}`), 3, 4))
	f.Add(file(header("[2,1]", "[0,8]", `{"names":"[\"a\",\"b\"]","model":"`+model+`"}`), 3, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := read(b)
		if err != nil {
			return
		}
		if len(g.Vectors) != len(g.Names)*g.Dimension || len(g.Names) == 0 {
			t.Fatalf("%d names, dimension %d, %d values", len(g.Names), g.Dimension, len(g.Vectors))
		}
		for i := range g.Names {
			sum := 0.0
			for _, x := range g.Vectors[i*g.Dimension:][:g.Dimension] {
				sum += float64(x) * float64(x)
			}
			if !(math.Abs(sum-1) < 1e-5) {
				t.Fatalf("entry %d has length %g", i, math.Sqrt(sum))
			}
		}
	})
}
