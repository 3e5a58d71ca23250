package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/runtime/device/memory"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func newMemCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mem",
		Short: "Show what uses the memory",
		Long: `Show the kernel's memory statistics, the processes by proportional set size (PSS, which
divides shared pages among their users), GPU allocations, the contiguous memory area
(CMA), the free blocks by size (lfb in tegrastats) and the kernel's slab caches.

Only root may read other users' processes, the slab caches and GPU allocations; mem
reports what it could not read.

--phases shows the running pipelines instead: the memory of each while loading, warming
up and running, its pool of frames and tensors, and the memory of the GPU process.

Exit status: 0 done, 1 failed, or no pipeline is running (with --phases), 2 wrong usage.`,
		Example: `  yoctuned mem
  yoctuned mem --phases
  yoctuned mem --all --format json | jq 'select(.type == "process")'`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			if phases, _ := cmd.Flags().GetBool("phases"); phases {
				return memPhases(cmd, dev)
			}
			most := 10
			if all, _ := cmd.Flags().GetBool("all"); all {
				most = 1 << 30
			}
			p, r := cli.NewPrinter(cmd), memory.ReadReport(dev)
			if p.JSON {
				memJSON(p, r, most)
			} else {
				memText(p, r, most)
			}
			return p.End("mem", cli.ExitDone, nil)
		}),
	}
	cmd.Flags().Bool("phases", false, "show the memory of running pipelines by phase")
	cmd.Flags().Bool("all", false, "list all processes and caches instead of the ten largest")
	return cmd
}

func memJSON(p cli.Printer, r *memory.Report, most int) {
	largest, count := monitor.Largest(r.Blocks, int64(os.Getpagesize()))
	p.Line("memory", struct {
		Info    map[string]int64 `json:"meminfo"`
		GPU     *int64           `json:"gpu"`
		Largest *int64           `json:"largest_free"`
		Count   *int64           `json:"largest_free_count"`
		Hidden  int              `json:"hidden_processes"`
	}{r.Info, r.GPU.Total, largest, count, r.Hidden})
	for _, process := range r.Processes[:min(most, len(r.Processes))] {
		p.Line("process", process)
	}
	for _, b := range r.Blocks {
		p.Line("zone", struct {
			Node string  `json:"node"`
			Zone string  `json:"zone"`
			Free []int64 `json:"free_by_order"`
		}{b.Node, b.Zone, b.Free})
	}
	for _, s := range r.Slabs[:min(most, len(r.Slabs))] {
		p.Line("cache", s)
	}
	for _, problem := range r.Problems {
		p.Error(errors.New(problem))
	}
}

func memText(w cli.Printer, r *memory.Report, most int) {
	get := func(name string) *int64 {
		if v, ok := r.Info[name]; ok {
			return &v
		}
		return nil
	}
	row := func(label, text string) { w.Printf("%-11s %s\n", label, text) }
	row("memory", size(get("MemAvailable"))+" available of "+size(get("MemTotal"))+", "+size(get("MemFree"))+" free, "+size(get("Cached"))+" cached, "+size(get("Shmem"))+" shared")
	if total := get("SwapTotal"); total == nil || *total > 0 {
		row("swap", size(get("SwapFree"))+" free of "+size(total))
	} else {
		row("swap", "none")
	}
	if total := get("CmaTotal"); total != nil && *total > 0 {
		row("contiguous", size(get("CmaFree"))+" free of "+size(total))
	} else {
		row("contiguous", "none")
	}
	row("huge pages", count(get("HugePages_Free"))+" free of "+count(get("HugePages_Total"))+" of "+size(get("Hugepagesize")))
	row("kernel", size(get("Slab"))+" in caches, of which "+size(get("SReclaimable"))+" reclaimable; "+size(get("PageTables"))+" page tables")
	row("gpu", size(r.GPU.Total))
	largest, n := monitor.Largest(r.Blocks, int64(os.Getpagesize()))
	row("fragments", "largest free blocks: "+count(n)+" x "+size(largest))
	if len(r.Processes) > 0 {
		fmt.Fprintln(w)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "share\tresident\tswapped\tgpu\tpid\t  process\t")
		for _, p := range r.Processes[:min(most, len(r.Processes))] {
			printable.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t  %s\t\n", size(&p.PSS), size(&p.RSS), size(&p.Swap), size(p.GPU), p.PID, p.Name)
		}
		_ = tw.Flush()
	}
	if r.Hidden > 0 {
		fmt.Fprintf(w, "%d more processes may not be read\n", r.Hidden)
	}
	if len(r.Slabs) > 0 {
		fmt.Fprintln(w)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "size\tobjects\t  kernel cache\t")
		for _, s := range r.Slabs[:min(most, len(r.Slabs))] {
			printable.Fprintf(tw, "%s\t%d\t  %s\t\n", size(&s.Bytes), s.Objects, s.Name)
		}
		_ = tw.Flush()
	}
	for _, p := range r.Problems {
		row("unreadable", p)
	}
}

func count(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
