package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/schema/plan"
)

func layers(t *testing.T) map[string][]emitters.File {
	t.Helper()
	out := map[string][]emitters.File{}
	for _, l := range []*plan.Layer{emittest.Vision(t), emittest.Control(t)} {
		files, err := assemble.Emit(l)
		if err != nil {
			t.Fatal(err)
		}
		out[l.Name] = files
	}
	return out
}

// withoutMeanings returns the files as they are read from a folder.
func withoutMeanings(files []emitters.File) []emitters.File {
	var out []emitters.File
	for _, f := range files {
		out = append(out, emitters.File{Path: f.Path, Data: f.Data})
	}
	return out
}

func encoded(t *testing.T, m *Manifest) []byte {
	t.Helper()
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestManifestRoundTripsMeanings(t *testing.T) {
	for name, files := range layers(t) {
		text := encoded(t, Of(files))
		m, err := Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again := encoded(t, m); !bytes.Equal(text, again) {
			t.Errorf("%s: another encoding of the same manifest\n%s", name, cmp.Diff(string(text), string(again)))
		}
		size := 0
		for i, f := range Describe(withoutMeanings(files), m) {
			if d := cmp.Diff(files[i].Means, f.Means); d != "" || f.Machine != files[i].Machine {
				t.Errorf("%s: %s of machine %q\n%s", name, f.Path, f.Machine, d)
			}
			size += len(f.Data)
		}
		if 2*len(text) > size {
			t.Errorf("%s: a manifest of %d bytes for a layer of %d", name, len(text), size)
		}
	}
}

// A layer of version 1 is read from its text: that must show the same as the
// manifest states.
func TestLayerTextMatchesItsManifest(t *testing.T) {
	inferred := []emitters.Kind{emitters.Variable, emitters.Recipe, emitters.Append, emitters.Option, emitters.Key, emitters.Package,
		emitters.Model, emitters.Program, emitters.Unit}
	for name, files := range layers(t) {
		plain := func(f emitters.File) []emitters.Meaning {
			var out []emitters.Meaning
			for _, m := range f.Means {
				if !slices.Contains(inferred, m.Kind) || m.Value == "exclude" {
					continue
				}
				m.ID, m.From = "", ""
				if m.Kind == emitters.Model {
					m.Name = "" // the name on the device is not among what the old manifest was read for
				}
				out = append(out, m)
			}
			slices.SortFunc(out, func(a, b emitters.Meaning) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			return out
		}
		for i, f := range Describe(withoutMeanings(files), nil) {
			if d := cmp.Diff(plain(files[i]), plain(f)); d != "" {
				t.Errorf("%s: %s (-manifest +text)\n%s", name, f.Path, d)
			}
		}
	}
}

func TestEditedFileIsReadFromItsText(t *testing.T) {
	const cfg = "recipes-kernel/linux/files/yoctune-on-jetson-orin-nano-devkit/yoctune-vision.cfg"
	files := layers(t)["vision"]
	m := Of(files)
	edited := withoutMeanings(files)
	i := slices.IndexFunc(edited, func(f emitters.File) bool { return f.Path == cfg })
	edited[i].Data = []byte("CONFIG_HZ=250\n# CONFIG_KSM is not set\n")
	want := []emitters.Meaning{
		{Kind: emitters.Option, Name: "HZ", Value: "250", ID: "kernel.config.HZ"},
		{Kind: emitters.Option, Name: "KSM", Value: "n", ID: "kernel.config.KSM"},
	}
	got := Describe(edited, m)[i]
	if d := cmp.Diff(want, got.Means); d != "" || got.Machine != "jetson-orin-nano-devkit" {
		t.Errorf("machine %q\n%s", got.Machine, d)
	}
}

var sum = strings.Repeat("ab", 32)

func TestInvalidManifestsAreRefused(t *testing.T) {
	file := func(path, more string) string {
		return fmt.Sprintf(`{"$schema":"yoctune.manifest/2","files":{%q:{"sha256":"%s","mode":"0644"%s}}}`, path, sum, more)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":                   {"", "unexpected end"},
		"not JSON":                {"conf", "invalid character"},
		"another format":          {`{"files":{}}`, "no $schema"},
		"a newer major":           {`{"$schema":"yoctune.manifest/3","files":[]}`, `unsupported version "yoctune.manifest/3"`},
		"a path that climbs":      {file("../victim", ""), "not a path inside the layer"},
		"an absolute path":        {file("/etc/passwd", ""), "not a path inside the layer"},
		"a backslash":             {file(`a\b`, ""), "not a path inside the layer"},
		"itself":                  {file(Name, ""), "not a path inside the layer"},
		"an unknown field":        {file("a", `,"colour":"red"`), "unknown field"},
		"a repeated key":          {file("a", `,"mode":"0755"`), `duplicate key "mode"`},
		"a repeated file":         {`{"$schema":"yoctune.manifest/2","files":{"a":{},"a":{}}}`, `duplicate key "a"`},
		"a repeated schema":       {`{"$schema":"yoctune.manifest/9","$schema":"yoctune.manifest/2","files":{}}`, `duplicate key "$schema"`},
		"a digest that is none":   {`{"$schema":"yoctune.manifest/2","files":{"a":{"sha256":"00","mode":"0644"}}}`, "not a SHA-256 digest"},
		"an unknown kind":         {file("a", `,"means":[{"kind":"spell","name":"x"}]`), "unknown kind \"spell\""},
		"a meaning without name":  {file("a", `,"means":[{"kind":"unit","name":""}]`), "has no name"},
		"a negative line":         {file("a", `,"means":[{"kind":"variable","name":"A","line":-1}]`), "line -1"},
		"a line that is no int":   {file("a", `,"means":[{"kind":"variable","name":"A","line":1e99}]`), "cannot unmarshal"},
		"a value without end":     {file("a", `,"means":[{"kind":"unit","name":"`+strings.Repeat("x", maxText+1)+`"}]`), "longer than"},
		"meanings in version 1":   {strings.Replace(file("a", `,"machine":"m"`), "manifest/2", "manifest/1", 1), "digests and modes only"},
		"more bytes than allowed": {file("a", strings.Repeat(" ", maxSize)), "more than the limit"},
		"text after it":           {file("a", "") + "{}", "invalid character"},
	} {
		_, err := Decode([]byte(c.text))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %.300v, want %q", name, err, c.want)
		}
	}
	for _, text := range []string{file("a", ""), strings.Replace(file("a", ""), "manifest/2", "manifest/1", 1)} {
		if _, err := Decode([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"$schema":"yoctune.manifest/2","files":{"a":{"sha256":"` + sum + `","mode":"0644","means":[{"kind":"unit","name":"x"}]}}}`))
	f.Add([]byte(`{"$schema":"yoctune.manifest/1","files":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Decode(encoded(t, m))
		if err != nil {
			t.Fatalf("a decoded manifest is refused after encoding: %v", err)
		}
		if d := cmp.Diff(encoded(t, m), encoded(t, again)); d != "" {
			t.Error(d)
		}
	})
}

func TestGrownTextIsRefused(t *testing.T) {
	f := emitters.File{Path: "conf/layer.conf", Data: bytes.Repeat([]byte("A = \"b\"\n"), maxInferred/8+1)}
	if files := Describe([]emitters.File{f}, nil); files[0].Means != nil {
		t.Errorf("%d meanings were read", len(files[0].Means))
	}
	if err := CheckSize(f); err == nil || !strings.Contains(err.Error(), "conf/layer.conf") {
		t.Errorf("got %v", err)
	}
	for _, sound := range []emitters.File{{Path: f.Path, Data: f.Data[:80]}, {Path: "recipes-yoctune/yoctune-box-models/files/" + strings.Repeat("0a", 32), Data: f.Data}} {
		if err := CheckSize(sound); err != nil {
			t.Error(err)
		}
	}
}
