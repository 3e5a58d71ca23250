package compiler_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
)

// manyTargets is a configuration with n targets of n machines that share a profile.
func manyTargets(n int) []byte {
	var targets, machines strings.Builder
	for i := range n {
		fmt.Fprintf(&targets, "\t\"unit-%04d\": {board: \"carrier\", release: \"scarthgap\", machine: \"unit-%04d\", use: [\"base\"], sysctl: \"vm.vfs_cache_pressure\": %d}\n", i, i, 50+i)
		fmt.Fprintf(&machines, "%q, ", fmt.Sprintf("unit-%04d", i))
	}
	return fmt.Appendf(nil, `package fleet

import "github.com/yoctune/yoctune/schema"

schema.#Config & {
	layer: {name: "fleet", maintainer: "x <x@example.com>"}
	targets: {
%s	}
	boards: carrier: {base: "orin-nano-8gb", machines: scarthgap: [%s]}
	profiles: base: {
		sysctl: {"vm.swappiness": 10, "net.core.somaxconn": 4096}
		kernel: config: {HZ_1000: "y"}
		cpu: governor: "performance"
		services: "vision.service": {exec: ["/usr/bin/env", "true"], after: ["yoctuned.service"]}
	}
}
`, targets.String(), machines.String())
}

// A thousand targets cost ten times what a hundred cost: a rule or an emitter that looks at all
// targets for each of them shows in the bytes that are allocated, which depend on no other program.
func TestWorkIsLinearInTheNumberOfTargets(t *testing.T) {
	allocated := func(n int) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := compiler.OpenFiles(map[string][]byte{"config.cue": manyTargets(n)})
		layers := p.LastLayers(compiler.Selection{}, nil)
		runtime.ReadMemStats(&after)
		if len(layers) != 1 || len(layers[0].Targets) != n {
			t.Fatalf("%d targets: %d layers, %+v", n, len(layers), p.Report.All())
		}
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	allocated(2) // tables that are read once
	few, some, many := allocated(40), allocated(80), allocated(160)
	if growth, want := many-some, 2*(some-few); growth > 1.2*want {
		t.Errorf("the step from 80 to 160 targets allocates %.1f MB, twice that from 40 to 80 %.1f MB", growth/1e6, want/1e6)
	}
	t.Logf("40, 80, 160 targets: %.1f, %.1f, %.1f MB", few/1e6, some/1e6, many/1e6)
}
