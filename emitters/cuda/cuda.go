// Package cuda writes the recipe of libyoctune_cuda.so, the only one that
// inherits cuda: everything else of the layer stays independent of the SoC.
package cuda

import (
	_ "embed"
	"fmt"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/yoctuned"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed yoctune-cuda.bb.tmpl
var recipe string

const dir = "recipes-yoctune/yoctune-cuda/"

// Emit returns the recipe when the configuration requests the library.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	if !l.Runtime.CUDA || !l.Runtime.Installed() {
		return nil, nil
	}
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	// The kernels are C++17, which nvcc supports since CUDA 11.
	if r.CUDA == "10.2" {
		return nil, &emitters.Error{Emitter: "cuda", Ref: emitters.Ref{ID: "runtime.cuda"},
			Err: fmt.Errorf("the CUDA %s of %s cannot compile the library; leave runtime.cuda out", r.CUDA, r.Name)}
	}
	artefact, err := yoctuned.Artefact(l, "yoctune-cuda-source")
	if err != nil {
		return nil, err
	}
	version, err := yoctuned.Version(l)
	if err != nil {
		return nil, err
	}
	means := []emitters.Meaning{{Kind: emitters.Program, Name: "yoctune-cuda", Value: l.Runtime.Version, SHA256: artefact.SHA256, ID: "runtime.cuda"}}
	var beside []emitters.File
	if l.Runtime.Bundled() {
		beside, means = yoctuned.Contain(l, dir, []plan.RuntimeFile{artefact}, means), nil
	}
	f, err := emitters.NewTemplate("cuda", recipe).Fill(emitters.File{Path: dir + "yoctune-cuda_" + version + ".bb", Means: means}, struct {
		Bundled  bool
		Artefact plan.RuntimeFile
	}{l.Runtime.Bundled(), artefact})
	if err != nil {
		return nil, err
	}
	f.Needs = []emitters.Need{{Package: "yoctune-cuda", ID: "runtime.cuda"}}
	return append(beside, f), nil
}
