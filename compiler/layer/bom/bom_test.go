package bom_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/layer/bom"
	"github.com/yoctune/yoctune/internal/sbom/sbomtest"
	"github.com/yoctune/yoctune/schema/plan"
)

func example(t *testing.T) compiler.Layer {
	t.Helper()
	p, err := compiler.Options{Runtime: filepath.Join("..", "..", "..", "golden", "runtime")}.Open(filepath.Join("..", "..", "..", "examples", "video-analytics"))
	if err != nil {
		t.Fatal(err)
	}
	layers := p.Layers(compiler.Selection{})
	if len(layers) != 1 {
		t.Fatalf("%d layers: %+v", len(layers), p.Report)
	}
	layers[0].Targets[0].Models = []plan.ModelFile{
		{ID: "pipelines.door.stages.read", URI: "https://models.example.com/door/read.onnx", SHA256: strings.Repeat("e", 64)},
		{ID: "pipelines.door.stages.count", URI: "file:///srv/models/count.onnx", SHA256: strings.Repeat("d", 64)},
	}
	return layers[0]
}

func encodeBOM(t *testing.T, l compiler.Layer) []byte {
	t.Helper()
	text, err := bom.New(l, time.Unix(0, 0)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// validate runs SPDX's own validator.
func validate(t *testing.T, text []byte) (string, error) {
	t.Helper()
	tool := filepath.Join("..", "..", "..", "build", "spdx-venv", "bin", "pyspdxtools")
	if _, err := os.Stat(tool); err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_SPDX") != "" {
			t.Fatal(err)
		}
		t.Skip("no validator; scripts/setup.sh python installs it: ", err)
	}
	file := filepath.Join(t.TempDir(), "layer.spdx.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "-i", file).CombinedOutput()
	return string(out), err
}

func TestBOMIsValidAndComplete(t *testing.T) {
	l := example(t)
	text := encodeBOM(t, l)
	for _, f := range l.Files {
		if !bytes.Contains(text, []byte(`"./`+f.Path+`"`)) {
			t.Errorf("%s is missing", f.Path)
		}
	}
	for _, m := range l.Targets[0].Models {
		if !bytes.Contains(text, []byte(m.SHA256)) {
			t.Errorf("the model %s is missing", m.URI)
		}
	}
	if !bytes.Contains(text, []byte(`"yoctuned-arm64"`)) {
		t.Error("the runtime is missing")
	}
	if out, err := validate(t, text); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// The validator really checks: it recomputes values.
	broken := bytes.Replace(text, []byte(`"SPDXRef-File-1"`), []byte(`"SPDXRef-File_1"`), 1)
	if out, err := validate(t, broken); err == nil {
		t.Errorf("the validator takes a broken document: %s", out)
	}
}

func TestBOMDependsOnTheLayerAlone(t *testing.T) {
	l := example(t)
	text := encodeBOM(t, l)
	if !bytes.Equal(text, encodeBOM(t, example(t))) {
		t.Error("twice the same layer gives two bills")
	}
	l.Files[0].Data = append(bytes.Clone(l.Files[0].Data), '\n')
	changed := encodeBOM(t, l)
	namespace := func(b []byte) string {
		_, rest, _ := strings.Cut(string(b), `"documentNamespace": "`)
		name, _, _ := strings.Cut(rest, `"`)
		return name
	}
	if namespace(text) == namespace(changed) {
		t.Errorf("two layers have bills of the same name %s", namespace(text))
	}
}

// CycloneDX has what SPDX has, and fits the schema of its makers.
func TestCycloneDXIsValidAndComplete(t *testing.T) {
	l := example(t)
	text, err := bom.New(l, time.Unix(0, 0)).EncodeCycloneDX()
	if err != nil {
		t.Fatal(err)
	}
	sbomtest.ValidateCycloneDX(t, text)
	for _, f := range l.Files {
		if !bytes.Contains(text, []byte(`"`+f.Path+`"`)) {
			t.Errorf("%s is missing", f.Path)
		}
	}
	for _, m := range l.Targets[0].Models {
		if !bytes.Contains(text, []byte(m.SHA256)) {
			t.Errorf("the model %s is missing", m.URI)
		}
	}
	if !bytes.Contains(text, []byte(`"yoctuned-arm64"`)) {
		t.Error("the runtime is missing")
	}
	again, err := bom.New(example(t), time.Unix(0, 0)).EncodeCycloneDX()
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("twice the same layer gives two bills: %v", err)
	}
}

// Names and addresses are data: JSON's encoder keeps them inside their strings.
func TestHostileAddressStaysInItsString(t *testing.T) {
	l := example(t)
	hostile := "https://example.com/\"},{\"SPDXID\":\"SPDXRef-x\"\u2028 ${X} .onnx"
	l.Targets[0].Models[0].URI = hostile
	var doc struct {
		Packages []struct{ SPDXID, DownloadLocation string }
	}
	if err := json.Unmarshal(encodeBOM(t, l), &doc); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, p := range doc.Packages {
		if p.SPDXID == "SPDXRef-x" {
			t.Error("an address became a member of the document")
		}
		if p.DownloadLocation == hostile {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d packages have the address as it was given", kept)
	}
}
