package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

var versionNumber = lazyregexp.New(`^\d+(\.\d+)+$`)

// Check tests the facts of a release against each other.
func (r Release) Check() []error {
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("release %s: "+format, append([]any{r.Name}, args...)...))
	}
	for name, v := range map[string]string{
		"L4T": r.L4T, "kernel": r.Kernel, "kernel version": r.KernelVersion, "CUDA": r.CUDA, "TensorRT": r.TensorRT,
		"cuDNN": r.CuDNN, "gcc for nvcc": r.CUDAHostGCC, "Go": r.Go, "Go version": r.GoVersion, "gcc": r.GCC,
		"glibc": r.Glibc, "systemd": r.Systemd, "cmake": r.CMake,
	} {
		if !versionNumber.MatchString(v) {
			report("%s %q is not a version", name, v)
		}
	}
	if !strings.HasPrefix(r.KernelVersion, r.Kernel+".") {
		report("kernel %s is not of line %s", r.KernelVersion, r.Kernel)
	}
	if !strings.HasPrefix(r.GoVersion, r.Go+".") {
		report("Go %s is not of line %s", r.GoVersion, r.Go)
	}
	if !slices.Contains(r.KernelPNs, r.Provider) {
		report("%s is not among the kernel recipes", r.Provider)
	}
	if r.RTProvider != "" && !slices.Contains(r.KernelPNs, r.RTProvider) {
		report("%s is not among the kernel recipes", r.RTProvider)
	}
	if !slices.Contains(Series(), r.Series) {
		report("unknown series %s", r.Series)
	}
	for feature, has := range map[string]bool{
		"unpackdir": r.UnpackDir, "fragments": r.Fragments, "security-file": r.SecurityFile,
		"builtin-fragments": r.BuiltinFrags, "systemd-usrmerge": r.UsrMerge, "debug-tweaks": !r.DebugTweaks,
		"load-factor": r.LoadFactor, "hashserve-wss": r.HashServeWSS, "hash-equivalence": r.HashServeDBDir,
	} {
		rule := slices.IndexFunc(r.Syntax(), func(s Syntax) bool { return s.ID == feature })
		if has != (rule >= 0) {
			report("the field for %s is %t, the syntax rules give %t", feature, has, rule >= 0)
		}
	}
	if r.UnpackDir != (r.UnpackDirValue != "") {
		report("UNPACKDIR exists: %t, its value: %q", r.UnpackDir, r.UnpackDirValue)
	}
	if r.DebugTweaks != r.HasImageFeature("debug-tweaks") {
		report("debug-tweaks: %t, yet the image features are %v", r.DebugTweaks, r.ImageFeatures)
	}
	if len(r.Machines()) == 0 {
		report("no machine")
	}
	for _, m := range r.Machines() {
		if m.NVPModel == "" || m.BoardID == "" || len(m.DeviceTrees) == 0 || m.Source == "" {
			report("machine %s lacks a power mode file, a board id, a device tree or its source", m.Name)
		}
	}
	if _, ok := r.Unit("nvpmodel.service"); !ok {
		report("no nvpmodel.service")
	}
	if _, ok := r.Unit("nvstartup.service"); ok != r.NVStartup {
		report("nvstartup.service: the field is %t, the units give %t", r.NVStartup, ok)
	}
	if len(r.RenamedVariables()) == 0 {
		report("no renamed variables")
	}
	for name, v := range r.RenamedVariables() {
		if (v.New == "") == (v.Message == "") || v.Source == "" {
			report("renamed variable %s wants a new name or a message, and a source", name)
		}
	}
	return problems
}
