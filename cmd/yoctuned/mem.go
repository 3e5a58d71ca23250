package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			dev, err := rootfs.Open(rootDir(cmd))
			if err != nil {
				return err
			}
			if phases, _ := cmd.Flags().GetBool("phases"); phases {
				return memPhases(cmd, dev)
			}
			most := 10
			if all, _ := cmd.Flags().GetBool("all"); all {
				most = 1 << 30
			}
			w := bufio.NewWriter(cmd.OutOrStdout())
			r := memory.Take(dev)
			if cli.Format(cmd) == "json" {
				memJSON(w, r, most)
			} else {
				memText(w, r, most)
			}
			return w.Flush()
		},
	}
	cmd.Flags().Bool("phases", false, "show the memory of running pipelines by phase")
	cmd.Flags().Bool("all", false, "list all processes and caches instead of the ten largest")
	return cmd
}

func memJSON(w io.Writer, r *memory.Report, most int) {
	enc := cli.Encoder(w) // the buffer keeps its error for Flush
	largest, count := monitor.Largest(r.Blocks, int64(os.Getpagesize()))
	_ = enc.Encode(struct {
		Type    string           `json:"type"`
		Info    map[string]int64 `json:"meminfo"`
		GPU     *int64           `json:"gpu"`
		Largest *int64           `json:"largest_free"`
		Count   *int64           `json:"largest_free_count"`
		Hidden  int              `json:"hidden_processes"`
	}{"memory", r.Info, r.GPU.Total, largest, count, r.Hidden})
	for _, p := range r.Processes[:min(most, len(r.Processes))] {
		_ = enc.Encode(struct {
			Type string `json:"type"`
			memory.Process
		}{"process", p})
	}
	for _, b := range r.Blocks {
		_ = enc.Encode(struct {
			Type string  `json:"type"`
			Node string  `json:"node"`
			Zone string  `json:"zone"`
			Free []int64 `json:"free_by_order"`
		}{"zone", b.Node, b.Zone, b.Free})
	}
	for _, s := range r.Slabs[:min(most, len(r.Slabs))] {
		_ = enc.Encode(struct {
			Type string `json:"type"`
			memory.Slab
		}{"cache", s})
	}
	for _, p := range r.Problems {
		_ = enc.Encode(cli.NewErrorLine(p))
	}
	_ = enc.Encode(cli.Summary{Type: "summary", Command: "mem"})
}

func memText(w io.Writer, r *memory.Report, most int) {
	get := func(name string) *int64 {
		if v, ok := r.Info[name]; ok {
			return &v
		}
		return nil
	}
	row := func(label, text string) { fmt.Fprintf(w, "%-11s %s\n", label, text) }
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
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t  %s\t\n", size(&p.PSS), size(&p.RSS), size(&p.Swap), size(p.GPU), p.PID, cli.PrintableLine(p.Name))
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
			fmt.Fprintf(tw, "%s\t%d\t  %s\t\n", size(&s.Bytes), s.Objects, cli.PrintableLine(s.Name))
		}
		_ = tw.Flush()
	}
	for _, p := range r.Problems {
		row("unreadable", cli.PrintableLine(p))
	}
}

func count(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
