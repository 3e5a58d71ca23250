package upstream

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestFactsAreComplete(t *testing.T) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var all []File
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	sha := regexp.MustCompile(`^[0-9a-f]{64}$`)
	seen := map[string]bool{}
	for _, f := range all {
		if seen[f.Name] {
			t.Errorf("%s is listed twice", f.Name)
		}
		seen[f.Name] = true
		if f.Version == "" || f.Licence == "" || f.Source == "" || f.Size <= 0 || !sha.MatchString(f.SHA256) || len(f.Members) == 0 {
			t.Errorf("%s is incomplete: %+v", f.Name, f)
		}
		if name, version, ok := strings.Cut(f.Package, "=="); !ok || version != f.Version || !strings.HasPrefix(path.Base(f.URI), name+"-"+version+"-") {
			t.Errorf("%s: the address is not that of %s", f.Name, f.Package)
		}
		if !strings.HasSuffix(f.URI, "-"+f.Tag+".whl") {
			t.Errorf("%s: the address is not that of a wheel for %s", f.Name, f.Tag)
		}
		if u, err := url.Parse(f.URI); err != nil || u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%s: %s is not a plain https address", f.Name, f.URI)
		}
		for _, m := range f.Members {
			if !sha.MatchString(m.SHA256) || m.Size <= 0 || path.Clean(m.Path) != m.Path || path.IsAbs(m.Path) {
				t.Errorf("%s: member %+v is incomplete", f.Name, m)
			}
		}
	}
}

// The parts that the recipe names.
func TestONNXRuntimeHasItsLibraryAndLicences(t *testing.T) {
	f := ONNXRuntime()
	if m := f.Member("*/capi/libonnxruntime.so.*"); path.Base(m.Path) != "libonnxruntime.so."+f.Version || m.Needs["GLIBC"] == "" {
		t.Errorf("library: %+v", m)
	}
	for _, name := range []string{"LICENSE", "ThirdPartyNotices.txt"} {
		if m := f.Member("*/" + name); m.MD5 == "" {
			t.Errorf("%s: no MD5, which LIC_FILES_CHKSUM needs", name)
		}
	}
}
