package verdicts

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/onnx"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// The list of faults names tests that exist.
func TestEveryFaultHasATest(t *testing.T) {
	text, err := os.ReadFile("faults.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || cells[0] == "| fault" {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(cells[2], -1)
		if len(tests) == 0 || len(cells[1]) == 0 {
			t.Errorf("no verdict or no test: %s", line)
		}
		for _, m := range tests {
			name := filepath.Join("..", "..", filepath.FromSlash(m[1]))
			if path.Ext(m[1]) == ".txtar" {
				if _, err := os.Stat(name); err != nil {
					t.Errorf("%s: %v", cells[0], err)
				}
				continue
			}
			folder, function, _ := strings.Cut(name[len("../../"):], ".")
			if !hasTest(t, filepath.Join("..", "..", folder), function) {
				t.Errorf("%s: no test %s", cells[0], m[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows: the table is not read", rows)
	}
}

func hasTest(t *testing.T, folder, function string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc "+function+"(t *testing.T)") {
			return true
		}
	}
	return false
}

// oneModel is a pipeline with a model of its own.
func (b bench) oneModel(t *testing.T, model []byte) testCase {
	t.Helper()
	l, raw := b.newLine(), variant{kind: registry.Postprocess.Kind, decode: registry.Raw}
	l.add(t, variant{kind: registry.Custom.Kind, tensor: true}, shapes[registry.Raw], variant{kind: registry.Model.Kind})
	l.add(t, variant{kind: registry.Model.Kind}, nil, raw)
	l.files[l.last+".onnx"] = model
	l.add(t, raw, nil, variant{})
	return b.pipeline("one model", synthetic, "", l)
}

// Exporters write their whole configuration into the metadata of a model.
func TestAModelWithMuchMetadataIsRead(t *testing.T) {
	b := newBench(t)
	property := message(1, []byte("settings"), message(2, bytes.Repeat([]byte("x"), 300<<10), nil))
	c := b.oneModel(t, append(identity(shapes[registry.Raw], false), message(14, property, nil)...))
	errs, p := c.vet()
	if len(errs) > 0 || p == nil {
		t.Fatalf("vet: %v", errs)
	}
	if err := b.runEngine(t, c, p.Pipelines["p"]); err != nil {
		t.Errorf("engine: %v", err)
	}
}

// message is a field of a protocol buffer with bytes, and what follows it.
func message(field int, content, next []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(field)<<3|2)
	b = append(binary.AppendUvarint(b, uint64(len(content))), content...)
	return append(b, next...)
}

// The digest of a model does not cover other files: a model that reads one could change without a
// word. The file exists here, and ONNX Runtime would read it.
func TestModelsWithOtherFilesAreRefusedByBoth(t *testing.T) {
	b := newBench(t)
	write(t, filepath.Join(b.dir, "weights.bin"), strings.Repeat("\x00", 16))
	g := onnx.Graph{
		Weights: []onnx.Weight{{Name: "w", Dims: shapes[registry.Raw], Data: onnx.External("weights.bin")}},
		Nodes:   []onnx.Node{{Op: "Add", In: []string{"x", "w"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, shapes[registry.Raw]...)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, shapes[registry.Raw]...)},
	}
	c := b.oneModel(t, g.Encode())
	errs, p := c.vet()
	if len(errs) != 1 || !strings.HasPrefix(errs[0], "model-external line ") || p == nil {
		t.Fatalf("vet: %v", errs)
	}
	if err := b.runEngine(t, c, p.Pipelines["p"]); err == nil || !strings.Contains(err.Error(), "weights.bin") {
		t.Errorf("engine: %v", err)
	}
}
