package compiler

import (
	"fmt"
	"math/rand/v2"
	"path"
	"testing"
)

// pathConfig names a path in every field of the language that takes one.
const pathConfig = `layer: {name: "box", maintainer: "A <a@example.com>", description: "d"}
build: kas: folder: %[1]q
targets: a: {board: "orin-nano-8gb", release: "scarthgap", pipelines: clip: {
	source: {kind: "file", path: %[1]q, format: "mjpeg", width: 64, height: 64, fps: 10}
	stages: {
		f: {kind: "preprocess", input: "source", width: 64, height: 64}
		m: {kind: "model", input: "f", uri: "https://example.com/a.zip", member: %[1]q
			sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
			archiveSha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
		p: {kind: "postprocess", input: "m", decode: "argmax", labels: %[1]q}
	}
	sink: kind: "ndjson"
}}
`

// checkPath reports whether the language admits a path. An admitted path is one that the
// layer holds.
func checkPath(t *testing.T, name string) bool {
	t.Helper()
	p := OpenFiles(map[string][]byte{"config.cue": fmt.Appendf(nil, pathConfig, name), path.Clean(name): []byte("x")})
	if p.Report.Failed() {
		return false
	}
	layers := p.Layers(Selection{})
	for _, d := range p.Report.All() {
		t.Errorf("the path %q is admitted, and then: %s: %s", name, d.ID, d.Message)
	}
	return len(layers) == 1
}

// A path that vet accepts builds.
func TestAdmittedPathsBuild(t *testing.T) {
	const characters = "aZ9._+,@:=/-/."
	admitted := 0
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		name := make([]byte, 1+rng.IntN(7))
		for i := range name {
			name[i] = characters[rng.IntN(len(characters))]
		}
		if checkPath(t, string(name)) {
			admitted++
		}
	}
	if admitted < 20 {
		t.Errorf("%d of 300 paths were admitted: the test tries too few", admitted)
	}
}

func FuzzAdmittedPathsBuild(f *testing.F) {
	for _, seed := range []string{".m/clip", "a=b,c:d", "a/", "a//b", "./a", "..", ".", "-a", "a/../b", "@", "~", "${D}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) { checkPath(t, name) })
}
