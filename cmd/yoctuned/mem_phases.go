package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/runtime/device/memory"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
)

// pipelineMemory is the memory of one running pipeline.
type pipelineMemory struct {
	Pipeline string         `json:"pipeline"`
	PID      int            `json:"pid"`
	Pool     int64          `json:"pool_bytes"`
	Phases   []memory.Phase `json:"phases"`
	Timeline []memory.Point `json:"timeline"`
	Worker   *workerMemory  `json:"worker"` // null: it has none
}

// workerMemory is that of its GPU's process.
type workerMemory struct {
	PID    int          `json:"pid"`    // 0: it does not run now
	Held   *int64       `json:"held"`   // resident bytes; null: not known
	Peak   *int64       `json:"peak"`   //
	Device *core.Memory `json:"device"` // of its device, when it was ready
}

func memPhases(cmd *cobra.Command, dev *rootfs.Root) error {
	var all []*live.Snapshot
	var errs []error
	for _, dir := range liveDirs(dev) {
		found, e := live.All(dir)
		all, errs = append(all, found...), append(errs, e...)
	}
	if len(all) == 0 {
		return errors.Join(append(errs, errors.New("no pipeline is running on this machine"))...)
	}
	slices.SortFunc(all, func(a, b *live.Snapshot) int { return cmp.Or(strings.Compare(a.Pipeline, b.Pipeline), a.PID-b.PID) })
	p := cli.NewPrinter(cmd)
	for _, s := range all {
		m := pipelineMemory{Pipeline: s.Pipeline, PID: s.PID, Pool: s.Pool, Phases: s.Phases, Timeline: s.Timeline}
		if s.Worker != nil {
			m.Worker = &workerMemory{PID: s.Worker.PID, Device: s.Worker.Memory}
			if b, err := dev.ReadFile(fmt.Sprintf("/proc/%d/status", m.Worker.PID), 64<<10); err == nil {
				if held, most, ok := memory.Resident(string(b)); ok {
					m.Worker.Held, m.Worker.Peak = &held, &most
				}
			}
		}
		if p.JSON {
			p.Line("pipeline", m)
		} else {
			writePhases(p, &m)
		}
	}
	for _, err := range errs {
		cli.Warn(cmd, "%v", err)
	}
	return p.End("mem", cli.ExitDone, nil)
}

func writePhases(w cli.Printer, m *pipelineMemory) {
	w.Printf("%s (process %d): %s of frames and tensors\n", m.Pipeline, m.PID, size(&m.Pool))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "from\tlasted\tat first\tat last\tpeak\t  phase\t")
	for _, p := range m.Phases {
		peak := size(p.Peak)
		if !p.Exact && p.Peak != nil { // an earlier phase held more
			peak = "~" + peak
		}
		printable.Fprintf(tw, "%v\t%v\t%s\t%s\t%s\t  %s\t\n", p.At.Round(time.Millisecond), p.Lasted.Round(time.Millisecond), size(p.Start), size(p.End), peak, p.Name)
	}
	_ = tw.Flush()
	if m.Worker == nil {
		return
	}
	if m.Worker.PID == 0 {
		fmt.Fprintln(w, "  the GPU process is not running")
		return
	}
	w.Printf("  GPU process %d: %s resident, peak %s\n", m.Worker.PID, size(m.Worker.Held), size(m.Worker.Peak))
	if d := m.Worker.Device; d != nil {
		for _, u := range d.Modes {
			w.Printf("    %s memory of the device: %s, peak %s\n", u.Mode, size(new(int64(u.Bytes))), size(new(int64(u.Peak))))
		}
	}
}
