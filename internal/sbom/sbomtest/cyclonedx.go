// Package sbomtest checks bills of materials with the schemas of their makers.
package sbomtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ValidateCycloneDX fails the test unless the document fits CycloneDX's own schema, which comes
// with its Go module.
func ValidateCycloneDX(t *testing.T, text []byte) {
	t.Helper()
	if err := checkCycloneDX(t, text); err != nil {
		t.Errorf("not CycloneDX 1.6: %v", err)
	}
	// The schema really checks.
	broken := bytes.Replace(text, []byte(`"type": "application"`), []byte(`"type": "folder"`), 1)
	if err := checkCycloneDX(t, broken); err == nil {
		t.Error("the schema takes a broken document")
	}
}

func checkCycloneDX(t *testing.T, text []byte) error {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	const base = "http://cyclonedx.org/schema/"
	for url, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		schema, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(base+url, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}
