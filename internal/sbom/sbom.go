// Package sbom writes software bills of materials: SPDX 2.3 and CycloneDX 1.6 in JSON. The
// time in a document is an argument, so that the same input gives the same bytes.
package sbom

import (
	"cmp"
	"crypto/sha1" // SPDX identifies files by it; nothing is secured with it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// noAssertion is SPDX's value for unknown information.
const noAssertion = "NOASSERTION"

// Package is a thing that is shipped or used.
type Package struct {
	Name     string
	Version  string
	Location string // where it is fetched; "" when not known
	SHA256   string // "" when not known
	Licence  string // SPDX expression; "" when not known
	Comment  string
	PURL     string // package URL; "" if it has none
	Model    bool   // it is a model of a neural network
}

// File is a file of the package that a document describes.
type File struct {
	Path    string // relative, slash separated
	Data    []byte
	Licence string // SPDX expression, of identifiers joined by AND; "" when not known
}

// Document is a bill of materials of one package.
type Document struct {
	doc   spdx.Document
	count int

	// What CycloneDX is made of.
	described Package
	files     []File
	needs     []Package
	digest    string
	tool      string
}

// Epoch is the time of SOURCE_DATE_EPOCH, or 1 January 1970 where it is not set,
// so that the same content gives the same document.
func Epoch() (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 253402300799 { // the last second of year 9999
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, not a number of seconds since 1970", s)
	}
	return time.Unix(n, 0).UTC(), nil
}

const root = "Package-root"

// New starts the document of a package and its files, which are in order. The
// digest makes the document's name unique.
func New(p Package, files []File, digest, tool string, created time.Time) *Document {
	d := &Document{described: p, files: files, digest: digest, tool: tool, doc: spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      p.Name,
		DocumentNamespace: "https://github.com/yoctune/yoctune/spdx/" + p.Name + "-" + digest,
		CreationInfo: &spdx.CreationInfo{
			Created:  created.UTC().Format("2006-01-02T15:04:05Z"),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: tool}},
		},
	}}
	top := pkg(root, p)
	d.doc.Packages = append(d.doc.Packages, top)
	d.relate("DOCUMENT", "DESCRIBES", root)
	if len(files) == 0 {
		return d
	}
	top.FilesAnalyzed = true
	sums := make([]string, 0, len(files))
	for i, f := range files {
		id := "File-" + strconv.Itoa(i+1)
		one, two := sha1.Sum(f.Data), sha256.Sum256(f.Data)
		sum := hex.EncodeToString(one[:])
		sums = append(sums, sum)
		ids := strings.Split(cmp.Or(f.Licence, noAssertion), " AND ")
		kind := "TEXT"
		if strings.HasSuffix(f.Path, ".gz") {
			kind = "ARCHIVE"
		} else if !utf8.Valid(f.Data) {
			kind = "BINARY"
		}
		d.doc.Files = append(d.doc.Files, &spdx.File{
			FileName: "./" + f.Path, FileSPDXIdentifier: common.ElementID(id), FileTypes: []string{kind},
			Checksums: []common.Checksum{
				{Algorithm: common.SHA1, Value: sum}, {Algorithm: common.SHA256, Value: hex.EncodeToString(two[:])},
			},
			LicenseConcluded: cmp.Or(f.Licence, noAssertion), LicenseInfoInFiles: ids, FileCopyrightText: noAssertion,
		})
		for _, l := range ids {
			if !slices.Contains(top.PackageLicenseInfoFromFiles, l) {
				top.PackageLicenseInfoFromFiles = append(top.PackageLicenseInfoFromFiles, l)
			}
		}
		d.relate(root, "CONTAINS", id)
	}
	// SPDX 2.3, 7.9: the digest over the sorted digests of the files.
	slices.Sort(sums)
	code := sha1.Sum([]byte(strings.Join(sums, "")))
	top.PackageVerificationCode = &common.PackageVerificationCode{Value: hex.EncodeToString(code[:])}
	return d
}

// Depends adds a package that the described one needs.
func (d *Document) Depends(p Package) {
	d.needs = append(d.needs, p)
	d.count++
	id := "Package-" + strconv.Itoa(d.count)
	d.doc.Packages = append(d.doc.Packages, pkg(id, p))
	d.relate(root, "DEPENDS_ON", id)
}

// Encode returns the document in SPDX, ending with a line feed.
func (d *Document) Encode() ([]byte, error) {
	raw, err := json.MarshalIndent(&d.doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return append(raw, '\n'), nil
}

func (d *Document) relate(a, kind, b string) {
	d.doc.Relationships = append(d.doc.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", a), Relationship: kind, RefB: common.MakeDocElementID("", b),
	})
}

func pkg(id string, p Package) *spdx.Package {
	out := &spdx.Package{
		PackageName: p.Name, PackageSPDXIdentifier: common.ElementID(id), PackageVersion: p.Version,
		PackageDownloadLocation: cmp.Or(p.Location, noAssertion), PackageLicenseConcluded: cmp.Or(p.Licence, noAssertion), PackageLicenseDeclared: cmp.Or(p.Licence, noAssertion),
		PackageCopyrightText: noAssertion, PackageComment: p.Comment,
	}
	if p.SHA256 != "" {
		out.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: p.SHA256}}
	}
	return out
}
