package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Documents that a bill is written as.
const (
	SPDX      = "spdx"
	CycloneDX = "cyclonedx"
)

// Specs lists the documents, the usual one first.
func Specs() []string { return []string{SPDX, CycloneDX} }

// EncodeAs returns the document as one of [Specs].
func (d *Document) EncodeAs(spec string) ([]byte, error) {
	switch spec {
	case SPDX:
		return d.Encode()
	case CycloneDX:
		return d.EncodeCycloneDX()
	}
	return nil, fmt.Errorf("bill of materials: no document is called %q", spec)
}

// WriteBeside writes every document beside the file that it describes.
func (d *Document) WriteBeside(file string) error {
	for spec, suffix := range map[string]string{SPDX: ".spdx.json", CycloneDX: ".cdx.json"} {
		text, err := d.EncodeAs(spec)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file+suffix, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// GoModule is a module of Go that a program links.
func GoModule(path, version, licence string) Package {
	p := Package{Name: path, Version: version, Licence: licence}
	if version != "" {
		p.PURL = "pkg:golang/" + strings.ToLower(path) + "@" + version
	}
	return p
}

// EncodeCycloneDX returns the document in CycloneDX 1.6, ending with a line feed.
func (d *Document) EncodeCycloneDX() ([]byte, error) {
	top := component(root, d.described)
	top.Type = cdx.ComponentTypeApplication
	var parts []cdx.Component
	for i, f := range d.files {
		sum := sha256.Sum256(f.Data)
		parts = append(parts, cdx.Component{
			BOMRef: "File-" + strconv.Itoa(i+1), Type: cdx.ComponentTypeFile, Name: f.Path,
			Hashes: hashes(hex.EncodeToString(sum[:])), Licenses: licences(f.Licence),
		})
	}
	if parts != nil {
		top.Components = &parts
	}
	needs := make([]cdx.Component, 0, len(d.needs))
	refs := make([]string, 0, len(d.needs))
	for i, p := range d.needs {
		ref := "Package-" + strconv.Itoa(i+1)
		needs, refs = append(needs, component(ref, p)), append(refs, ref)
	}
	doc := cdx.NewBOM()
	doc.SerialNumber = serialNumber(d.described.Name + "\x00" + d.digest)
	doc.Metadata = &cdx.Metadata{
		Timestamp: d.doc.CreationInfo.Created,
		Tools:     &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: d.tool}}},
		Component: &top,
	}
	doc.Components = &needs
	doc.Dependencies = &[]cdx.Dependency{{Ref: root, Dependencies: &refs}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(doc, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}

func component(ref string, p Package) cdx.Component {
	c := cdx.Component{
		BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, Description: p.Comment,
		PackageURL: p.PURL, Hashes: hashes(p.SHA256), Licenses: licences(p.Licence),
	}
	if p.Model {
		c.Type = cdx.ComponentTypeMachineLearningModel
	}
	if p.Location != "" {
		c.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeDistribution, URL: p.Location}}
	}
	return c
}

func hashes(sha string) *[]cdx.Hash {
	if sha == "" {
		return nil
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sha}}
}

func licences(expression string) *cdx.Licenses {
	if expression == "" {
		return nil
	}
	return &cdx.Licenses{{Expression: expression}}
}

// serialNumber makes a UUID (RFC 9562, version 8) of what a document describes, so that the
// same content has the same number.
func serialNumber(of string) string {
	sum := sha256.Sum256([]byte(of))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
