package main

import (
	"errors"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/worker"
)

// assumed are the kinds of GPU of --assume.
var assumed = map[string]core.Attributes{
	"shared":          {Integrated: true, MapHost: true, Managed: true},
	"shared-coherent": {Integrated: true, MapHost: true, Managed: true, ConcurrentManaged: true, HostRegister: true},
	"discrete":        {MapHost: true, Managed: true, ConcurrentManaged: true, HostRegister: true},
}

func newExplainMemoryCommand() *cobra.Command {
	var open core.Options
	var assume string
	cmd := &cobra.Command{
		Use:   "explain-memory",
		Short: "Explain which memory the compute core uses, and why",
		Long: `Show what each memory mode becomes on the device that pipelines would use: automatic for
each use, then explicit, pinned, mapped, unified, registered (existing pages) and
ordinary. A mode that the device does not support is refused, with the reason. The last
line is how the GPU process accesses the frames of a pipeline.

--assume answers for another kind of GPU:
  shared           CPU and GPU share one memory, and the CPU must not access managed
                   memory while a kernel runs (Jetson up to Orin)
  shared-coherent  both may access the shared memory at once (Jetson Thor)
  discrete         a card with its own memory

Exit status: 0 explained, 1 failed, 2 wrong usage.`,
		Example: `  yoctuned explain-memory
  yoctuned explain-memory --assume shared --format json | jq 'select(.refused)'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if assume != "" {
				at := assumed[assume]
				return explainMemory(cmd, "assumed: "+assume, core.CUDA, at.Integrated, at.Choose)
			}
			return explainMemoryOf(cmd, open)
		},
	}
	coreFlags(cmd, &open)
	cmd.Flags().IntVar(&open.Index, "device", 0, "`INDEX` of the device to use")
	cli.ChoiceVar(cmd, &assume, "assume", "", "`KIND` of GPU to assume", slices.Sorted(maps.Keys(assumed))...)

	return cmd
}

func explainMemoryOf(cmd *cobra.Command, open core.Options) (err error) {
	d, err := core.Open(open)
	if errors.Is(err, core.ErrInvalid) {
		return cli.UsageError(err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	info, err := d.Info()
	if err != nil {
		return err
	}
	return explainMemory(cmd, info.Name, info.Backend, info.Integrated, d.ChooseMemory)
}

// memoryLine is one answer.
type memoryLine struct {
	Asked   string `json:"asked"`
	CPU     string `json:"cpu"` // what the CPU does with it
	Mode    string `json:"mode"`
	Reason  string `json:"reason"`
	Refused bool   `json:"refused"`
	Text    string `json:"text"`
}

type memorySummary struct {
	cli.Summary
	Backend string   `json:"backend"`
	Device  string   `json:"device"`
	Allowed []string `json:"allowed"` // kinds of memory the device has

	Worker worker.Access `json:"worker"` // how the GPU process accesses frames
}

func explainMemory(cmd *cobra.Command, device, backend string, integrated bool, choose func(core.Mode, core.Touch) (core.Choice, error)) error {
	requests := []struct {
		name  string
		mode  core.Mode
		touch core.Touch
	}{
		{"automatic", core.MemAuto, core.TouchNever},
		{"automatic", core.MemAuto, core.TouchWrite},
		{"automatic", core.MemAuto, core.TouchRead},
		{"explicit", core.MemDevice, core.TouchBoth},
		{"pinned", core.MemPinned, core.TouchBoth},
		{"mapped", core.MemMapped, core.TouchBoth},
		{"unified", core.MemManaged, core.TouchBoth},
		{"registered", core.MemRegistered, core.TouchBoth},
		{"ordinary", core.MemHost, core.TouchBoth},
	}
	p := cli.NewPrinter(cmd)
	summary := memorySummary{Summary: cli.Summary{Type: "summary", Command: "explain-memory"}, Backend: backend, Device: device}
	if !p.JSON {
		p.Printf("memory on %s (%s)\n", device, backend)
	}
	for i, a := range requests {
		c, err := choose(a.mode, a.touch)
		if err != nil {
			return err
		}
		if i == 0 {
			for _, m := range c.Allowed {
				summary.Allowed = append(summary.Allowed, m.String())
			}
		}
		line := memoryLine{Asked: a.name, CPU: a.touch.String(), Mode: c.Mode.String(), Reason: c.Reason, Refused: c.Refused, Text: c.Text}
		if p.JSON {
			p.Line("memory", line)
			continue
		}
		if line.Refused {
			line.Mode = "refused"
		}
		p.Printf("%-10s CPU %-17s %-8s %s\n", line.Asked, line.CPU, line.Mode, line.Text)
	}
	summary.Worker = worker.AccessFor(backend, integrated, slices.Contains(summary.Allowed, core.MemRegistered.String()))
	if p.JSON {
		p.Encode(summary)
	} else {
		p.Printf("%-10s %-21s %-8s %s\n", "isolation", "", summary.Worker, summary.Worker.Text())
	}
	return nil
}
