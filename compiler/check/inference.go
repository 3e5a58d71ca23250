package check

import (
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
)

// Programs that use TensorRT are services of the target. What they ask of the
// module is in their environment, as ONNX Runtime's TensorRT provider reads it, or
// in the arguments of trtexec.

func inferenceRules() []Rule {
	return []Rule{
		{
			ID: "trt-workspace", Severity: diag.Warning,
			Title: "TensorRT's workspace is too large for the module",
			Cause: "CPU and GPU share one memory. While TensorRT builds an engine, weights and layers need memory beside the workspace. Where workspaces take more than half of the available memory, the process is killed, or falls back to the CPU without a message.",
			Fix:   "give all workspaces together at most half of the memory, or build the engine on a larger module of the same chip",
			Wrong: `{board: "nano-4gb", release: "kirkstone-l4t-r32.7.x", services: "a.service": {exec: ["/usr/bin/a"], environment: ORT_TENSORRT_MAX_WORKSPACE_SIZE: "2147483648"}}`,
			Right: `{board: "nano-4gb", release: "kirkstone-l4t-r32.7.x", services: "a.service": {exec: ["/usr/bin/a"], environment: ORT_TENSORRT_MAX_WORKSPACE_SIZE: "536870912"}}`,
			See:   "ONNX Runtime, TensorRT execution provider: trt_max_workspace_size; microsoft/onnxruntime#4308",
			run:   checkTensorRTWorkspace,
		},
		{
			ID: "dla-cores", Severity: diag.Error,
			Title: "the module has no such deep learning accelerator",
			Cause: "TensorRT refuses a DLA core that does not exist. Programs that continue without it run all layers on the GPU.",
			Fix:   "leave the DLA out, or choose a core that the module has",
			Wrong: `services: "a.service": exec: ["/usr/bin/trtexec", "--onnx=/m.onnx", "--useDLACore=0"]`,
			Right: `{board: "agx-orin-64gb", services: "a.service": exec: ["/usr/bin/trtexec", "--onnx=/m.onnx", "--useDLACore=0"]}`,
			See:   "yoctune facts show BOARD",
			run:   checkDLACores,
		},
		{
			ID: "trt-precision", Severity: diag.Error,
			Title: "the module does not support this precision",
			Cause: "TensorRT supports INT8 from compute capability 6.1 except 6.2, BF16 from 8.0 and FP8 from 8.9. Where a precision is missing, the build of the engine fails, or layers stay in FP32.",
			Fix:   "use FP16, which every module supports",
			Wrong: `{board: "tx2", release: "kirkstone-l4t-r32.7.x", services: "a.service": {exec: ["/usr/bin/a"], environment: ORT_TENSORRT_INT8_ENABLE: "1"}}`,
			Right: `{board: "tx2", release: "kirkstone-l4t-r32.7.x", services: "a.service": {exec: ["/usr/bin/a"], environment: ORT_TENSORRT_FP16_ENABLE: "1"}}`,
			See:   "TensorRT support matrix: hardware and precision",
			run:   checkTensorRTPrecision,
		},
		{
			ID: "malloc-arenas", Severity: diag.Warning,
			Title: "MALLOC_ARENA_MAX has no effect",
			Cause: "Only the C library's own allocator reads MALLOC_ARENA_MAX, and it ignores a value that is not a number of at least 1. Without a bound a program may hold eight arenas a core.",
			Fix:   "set a number of at least 1, or use the other allocator's own settings",
			Wrong: `{packages: jemalloc: "install", services: "a.service": {exec: ["/usr/bin/a"], environment: {LD_PRELOAD: "/usr/lib/libjemalloc.so.2", MALLOC_ARENA_MAX: "2"}}}`,
			Right: `services: "a.service": {exec: ["/usr/bin/a"], environment: MALLOC_ARENA_MAX: "2"}`,
			See:   "mallopt(3): M_ARENA_MAX",
			run:   checkMallocArenas,
		},
	}
}

// request is something that a service requests of TensorRT, and where.
type request struct {
	config.Part
	what  string // workspace, dla, fp16, int8, bf16, fp8
	value string
}

// requests lists what services request of TensorRT.
func (s *subject) requests() []request {
	var all []request
	for _, svc := range s.Config.Services.Entries {
		all = append(all, providerRequests(svc)...)
		for _, c := range commandsOf(svc) {
			all = append(all, trtexecRequests(c.Items)...)
		}
	}
	return all
}

// providerRequests reads the environment as ONNX Runtime's TensorRT provider does.
func providerRequests(svc *config.Service) []request {
	variables := map[string]string{
		"ORT_TENSORRT_MAX_WORKSPACE_SIZE": "workspace", "ORT_TENSORRT_DLA_CORE": "dla",
		"ORT_TENSORRT_FP16_ENABLE": "fp16", "ORT_TENSORRT_INT8_ENABLE": "int8", "ORT_TENSORRT_BF16_ENABLE": "bf16",
	}
	var all []request
	dla := svc.Environment.Get("ORT_TENSORRT_DLA_ENABLE")
	for _, v := range svc.Environment.Entries {
		what := variables[v.Key()]
		switch {
		case what == "",
			strings.HasSuffix(v.Key(), "_ENABLE") && v.Text != "1",
			what == "dla" && dla.Text != "1": // the core counts only where the DLA does
			continue
		}
		all = append(all, request{v, what, v.Text})
	}
	if dla.Text == "1" && !svc.Environment.Has("ORT_TENSORRT_DLA_CORE") {
		all = append(all, request{dla, "dla", "0"})
	}
	return all
}

// trtexecRequests reads the arguments of trtexec; none for another program.
func trtexecRequests(exec []config.String) []request {
	if len(exec) == 0 || path.Base(exec[0].Text) != "trtexec" {
		return nil
	}
	options := map[string]string{
		"--workspace": "workspace", "--memPoolSize": "workspace", "--useDLACore": "dla",
		"--fp16": "fp16", "--int8": "int8", "--bf16": "bf16", "--fp8": "fp8",
	}
	var all []request
	for _, w := range exec[1:] {
		name, value, _ := strings.Cut(w.Text, "=")
		what := options[name]
		if what == "workspace" {
			value = trtexecSize(name, value)
		}
		if what != "" {
			all = append(all, request{w, what, value})
		}
	}
	return all
}

// trtexecSize is a size of trtexec in bytes: --workspace counts MiB, --memPoolSize
// lists pools with MiB or a unit of their own.
func trtexecSize(name, value string) string {
	if name == "--memPoolSize" {
		for pool := range strings.SplitSeq(value, ",") {
			if size, ok := strings.CutPrefix(pool, "workspace:"); ok {
				return trtexecSize("--workspace", size)
			}
		}
		return ""
	}
	unit := int64(1 << 20)
	if n := len(value); n > 0 {
		for suffix, bytes := range map[byte]int64{'B': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30} {
			if value[n-1] == suffix {
				value, unit = value[:n-1], bytes
				break
			}
		}
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || f < 0 || f > 1<<40 {
		return ""
	}
	return strconv.FormatInt(int64(f*float64(unit)), 10)
}

func checkTensorRTWorkspace(s *subject) {
	var total int64
	var last config.Part
	for _, r := range s.requests() {
		if n, err := strconv.ParseInt(r.value, 10, 53); r.what == "workspace" && err == nil && n > 0 {
			total, last = total+n, r
		}
	}
	room := (s.Board.RAMBytes - systemReserve - s.hugepages()) / 2
	if last != nil && total > room { // huge pages alone may leave no room: hugepages-memory reports it
		s.refuse(s.memorySize(), last, last.Where().Show(), "", "workspaces of %d MiB, of %d MiB that %s has", total>>20, s.Board.RAMBytes>>20, s.Board.ID)
	}
}

func checkDLACores(s *subject) {
	if !s.Board.IsKnown("dla") {
		return
	}
	for _, r := range s.requests() {
		core, err := strconv.Atoi(r.value)
		if r.what != "dla" || err != nil || core < 0 || core < s.Board.DLA {
			continue // trtexec takes -1 for none
		}
		s.refuse(s.boardFact("dla", "number of DLA cores"), r, r.Where().Show(), "", "DLA core %d does not exist: %s has %d", core, s.Board.ID, s.Board.DLA)
	}
}

func checkTensorRTPrecision(s *subject) {
	if !s.Board.IsKnown("sm") {
		return
	}
	sm := s.Board.SM
	lacks := map[string]bool{"int8": sm < 61 || sm == 62, "bf16": sm < 80, "fp8": sm < 89}
	for _, r := range s.requests() {
		if lacks[r.what] {
			s.refuse(s.boardFact("sm", "compute capability"), r, r.Where().Show(), "", "%s has compute capability %d.%d, which has no %s", s.Board.ID, sm/10, sm%10, strings.ToUpper(r.what))
		}
	}
}

func checkMallocArenas(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		arenas, preload := svc.Environment.Get("MALLOC_ARENA_MAX"), svc.Environment.Get("LD_PRELOAD")
		if !arenas.IsSet() {
			continue
		}
		if count, err := strconv.Atoi(arenas.Text); err != nil || count < 1 {
			s.reportAt(arenas, arenas.Show(), "", "service %s: %s is not a number of arenas", svc.Key(), arenas.Show())
			continue
		}
		for _, lib := range []string{"libjemalloc", "libtcmalloc", "libmimalloc"} {
			if strings.Contains(preload.Text, lib) {
				s.raise(arenas, "service %s allocates with %s, which has no such arenas", svc.Key(), lib).addRelated(preload, "the other allocator")
			}
		}
	}
}
