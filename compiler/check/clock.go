package check

import (
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/pipeline"
)

// clockRules are rules about limits that the module's shared clocks and memory undo.
func clockRules() []Rule {
	return []Rule{
		{
			ID: "deadline-clocks", Severity: diag.Warning,
			Title: "a deadline depends on the clocks that a governor chooses",
			Cause: "With dynamic clocks a processor that was idle runs at its lowest clock, and a run takes several times as long as at the highest. A deadline that was measured on a busy module is then missed after each pause, and the frame is dropped or goes to the CPU.",
			Fix:   "hold the clocks: cpu: governor: \"performance\" or cpu: min, gpu: min for a stage with device \"gpu\", lease: true of the pipeline, or a power mode with a minimum",
			Wrong: `pipelines: p: {source: {kind: "synthetic", format: "rgb", width: 64, height: 64}, stages: {a: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "a", path: "/m.onnx", deadline: "5ms"}}}`,
			Right: `{cpu: governor: "performance", pipelines: p: {source: {kind: "synthetic", format: "rgb", width: 64, height: 64}, stages: {a: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "a", path: "/m.onnx", deadline: "5ms"}}}}`,
			See:   "Documentation/admin-guide/pm/cpufreq.rst",
			run:   checkDeadlineClocks,
		},
		{
			ID: "memory-gpu", Severity: diag.Warning,
			Title: "a memory limit does not cover the GPU's memory",
			Cause: "The GPU of a Jetson uses the same memory as the CPU, but the control group does not count what the driver allocates: a service or pipeline within its limit can exhaust the module, and the OOM killer then ends something else.",
			Fix:   "limit the GPU's memory too: budget.gpuMemory of a pipeline; in a service by a setting of its program, and memoryMax for the rest",
			Wrong: `services: "a.service": {exec: ["/usr/bin/trtexec"], package: "tensorrt-trtexec", memoryMax: "1GiB"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/a"], package: "vim", memoryMax: "1GiB"}`,
			See:   "Documentation/admin-guide/cgroup-v2.rst: memory",
			run:   checkGPUMemory,
		},
	}
}

// modeHolds reports whether the default power mode has a lowest clock of a kind.
func (s *subject) modeHolds(lowest func(*config.PowerMode) bool) bool {
	mode := s.Config.Power.Modes.Get(s.Config.Power.Default.Text)
	return mode.IsSet() && lowest(mode)
}

func checkDeadlineClocks(s *subject) {
	cpu := s.Config.CPU.Governor.Text == "performance" || s.Config.CPU.Min.IsSet() ||
		s.modeHolds(func(m *config.PowerMode) bool { return m.CPU.Min.IsSet() })
	gpu := s.Config.GPU.Governor.Text == "performance" || s.Config.GPU.Min.IsSet() ||
		s.modeHolds(func(m *config.PowerMode) bool { return m.GPU.Min.IsSet() })
	for c := range s.pipelines() {
		for _, st := range c.Stages.Sorted() {
			held, what := cpu || c.Lease.On, "CPU"
			if pipeline.MayBeGPU(st.Device.Text) {
				held, what = gpu, "GPU"
			}
			if d := st.Deadline; d.IsSet() && !held {
				s.reportAt(d, d.Show(), "", "pipeline %s: stage %s has a deadline, and the clock of the %s is dynamic", c.Key(), st.Key(), what)
			}
		}
	}
}

func checkGPUMemory(s *subject) {
	if s.Release.CoreOnly {
		return
	}
	for c := range s.pipelines() {
		for _, st := range c.Stages.Sorted() {
			if b := c.Budget; pipeline.MayBeGPU(st.Device.Text) && b.Memory.IsSet() && !b.GPUMemory.IsSet() {
				s.reportAt(b.Memory, b.Memory.Show(), "add budget: gpuMemory", "pipeline %s: its budget of memory does not count what stage %s allocates on the GPU", c.Key(), st.Key())
				break
			}
		}
	}
	for _, svc := range s.Config.Services.Entries {
		l := s.limitsOf(svc)
		limit := config.FirstSet(first(l.memoryMax), first(l.memoryHigh))
		if why := s.cudaSign(svc); limit.IsSet() && why != "" {
			s.reportAt(limit, limit.Show(), "", "the limit of %s does not count memory of the GPU, which it uses: %s", svc.Key(), why)
		}
	}
}

// cudaSign is what shows that a service uses the GPU; "" if nothing does.
func (s *subject) cudaSign(svc *config.Service) string {
	if !resolve.IsWholeUnit(svc) {
		return ""
	}
	for _, e := range svc.Environment.Entries {
		if hidden := e.Text == "" || e.Text == "-1" || e.Text == "none" || e.Text == "void"; hidden {
			continue // as CUDA_VISIBLE_DEVICES hides the GPU
		}
		if strings.HasPrefix(e.Key(), "CUDA_") || strings.HasPrefix(e.Key(), "NVIDIA_") {
			return "its environment has " + e.Key()
		}
	}
	if name := svc.Package.Text; name != "" && len(recipe.Sources(s.Release.Name)) > 0 && recipe.Has(s.Release.Name, name, recipe.CUDA) {
		return "the recipe of " + name + " inherits cuda"
	}
	return ""
}
